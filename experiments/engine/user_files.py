"""The losses and models that a command line names in a user's files, checked before training."""

from collections.abc import Collection
from dataclasses import replace
from functools import cache

from experiments.shell.errors import UsageError, refusals
from experiments.shell.loading import load
from pgeom.data.dataset import Dataset
from pgeom.diagnosis import explain_convexity
from pgeom.losses.catalogue import MEAN_CURVATURE
from pgeom.losses.own import (
    generator_loss,
    matching_factor,
    plain_loss,
    require_convex,
    require_loss,
)
from pgeom.losses.spec import LossSpec
from pgeom.models import architectures
from pgeom.models.model import Model

GENERATORS, LOSSES = "--generators", "--own-losses"  # options
MATCHED = (
    "to the Brier score's curvature where training begins or ends; --no-match leaves it as it is"
)
MORE = "more by python -m proofs_numeric --generator"
load_once = cache(load)  # a file is run once, however many studies of a command ask for it


def load_generators(sources: tuple[str, ...], K: int, *, match: bool) -> list[LossSpec]:
    """The scores of generators `FILE_OR_MODULE:NAME`, each with a note on what is known about it.

    Args:
      sources: as on the command line.
      K: the number of classes on which each must be convex.
      match: whether to rescale each to the curvature of the Brier score: see `generator_loss`.
    """
    specs = []
    for source in sources:
        F = load_once(source, option=GENERATORS)
        scaled = ""
        with refusals(f"{GENERATORS}: "):
            verdict = require_convex(F, K, source)
        if match:
            with refusals(f"{GENERATORS}: ", {"match=False": "--no-match"}):
                factor = matching_factor(F, K, source)
            scaled = f"; multiplied by {factor:.3g} ({MATCHED})"
        known = "strictly convex" if verdict.strictly_convex else explain_convexity(verdict)
        target = MEAN_CURVATURE if match else None
        spec = generator_loss(F, _name(source), mean_curvature=target)
        note = f"{source}: {known}, by a short search{scaled}; {MORE} {source}"
        specs.append(replace(spec, note=note, proper=bool(verdict.strictly_convex)))
    return specs


def load_losses(sources: tuple[str, ...], K: int) -> list[LossSpec]:
    """The losses `FILE_OR_MODULE:NAME`, each `loss(logits, labels)`."""
    specs = []
    for source in sources:
        loss = load_once(source, option=LOSSES)
        with refusals(f"{LOSSES}: "):
            require_loss(loss, K, source)
        specs.append(plain_loss(loss, _name(source)))
    return specs


def require_new_names(own: list[LossSpec], known: Collection[str]) -> None:
    """Refuse losses that are called as another one is."""
    taken = set(known)
    for spec in own:
        if spec.name in taken:
            raise UsageError(f"there is a loss called {spec.name!r} already; rename yours")
        taken.add(spec.name)


def name_sources(generators: tuple[str, ...], losses: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """By the name of each loss, the option that named it and what it was given."""
    named = [(GENERATORS, source) for source in generators] + [(LOSSES, one) for one in losses]
    return {_name(source): {option: source} for option, source in named}


def _name(source: str) -> str:
    return source.rpartition(":")[2]


OPTION = "--model"
ARGUMENTS = {"image_shape=, as in (8, 8)": "of a .npz file, an array X[n, height, width]"}


def make_model(name: str, dataset: Dataset) -> Model:
    """The model for a dataset, or a UsageError.

    Args:
      name: of `ARCHITECTURES`, or `FILE_OR_MODULE:NAME`.
      dataset: whose examples it takes.
    """
    given = load_once(name, option=OPTION, what="flax.linen.Module") if ":" in name else name
    shape = (dataset.features.shape[1], dataset.image_shape, dataset.num_classes)
    with refusals(f"{OPTION}: ", ARGUMENTS):
        return architectures.make_model(given, *shape)
