"""The losses and models that a command line names in a user's files, checked before training."""

from dataclasses import replace
from functools import cache

from experiments.shell.errors import UsageError, refusals
from experiments.shell.loading import load
from pgeom.data.dataset import Dataset
from pgeom.diagnosis import explain_convexity
from pgeom.losses import catalogue
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


def load_own(
    generators: tuple[str, ...], losses: tuple[str, ...], K: int, *, match: bool
) -> list[LossSpec]:
    """The losses of the user's own, whose names must be new.

    Args:
      generators: `FILE_OR_MODULE:NAME` of convex functions, of which the scores are trained.
      losses: `FILE_OR_MODULE:NAME` of functions `loss(logits, labels)`.
      K: the number of classes.
      match: whether to rescale each generator to the curvature of the Brier score.
    """
    specs = [load_generator(source, K, match=match) for source in generators]
    specs += [load_loss(source, K) for source in losses]
    taken = set(catalogue.LOSSES)
    for spec in specs:
        if spec.name in taken:
            raise UsageError(f"there is a loss called {spec.name!r} already; rename yours")
        taken.add(spec.name)
    return specs


def load_generator(source: str, K: int, *, match: bool) -> LossSpec:
    """The score of a generator, with a note on what is known about it."""
    F, scaled = load_once(source, option=GENERATORS), ""
    with refusals(f"{GENERATORS}: ", {"match=False": "--no-match"}):
        verdict = require_convex(F, K, source)
        if match:
            scaled = f"; multiplied by {matching_factor(F, K, source):.3g} ({MATCHED})"
    known = "strictly convex" if verdict.strictly_convex else explain_convexity(verdict)
    spec = generator_loss(F, _name(source), mean_curvature=MEAN_CURVATURE if match else None)
    note = f"{source}: {known}, by a short search{scaled}; {MORE} {source}"
    return replace(spec, note=note, proper=bool(verdict.strictly_convex))


def load_loss(source: str, K: int) -> LossSpec:
    """A loss `loss(logits, labels)`."""
    loss = load_once(source, option=LOSSES)
    with refusals(f"{LOSSES}: "):
        require_loss(loss, K, source)
    return plain_loss(loss, _name(source))


def name_sources(generators: tuple[str, ...], losses: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """By the name of each loss, the option that named it and what it was given."""
    named = {_name(source): {GENERATORS: source} for source in generators}
    return named | {_name(source): {LOSSES: source} for source in losses}


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
