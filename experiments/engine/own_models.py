"""The model that a command line names: a built-in one, or a Flax module of the user's."""

from typing import Any

import flax.linen as nn

from experiments.engine.own_losses import load_once
from experiments.shell.errors import UsageError, refusals
from pgeom.data.sources import Dataset
from pgeom.messages import describe_error, known_name
from pgeom.models.architectures import ARCHITECTURES, IMAGES_ONLY
from pgeom.models.flax_module import FlaxModel, construct, refusal
from pgeom.models.model import Model

OPTION = "--model"


def make_model(name: str, dataset: Dataset) -> Model:
    """The model for a dataset, or a UsageError.

    Args:
      name: of `ARCHITECTURES`, or `FILE_OR_MODULE:NAME`.
      dataset: whose examples it takes.
    """
    image = dataset.image_shape
    shape = image or (dataset.features.shape[1],)
    if ":" in name:
        return _load_module(name, shape, dataset.num_classes)
    with refusals():
        known_name("model", name, ARCHITECTURES)
    if name in IMAGES_ONLY and image is None:
        raise UsageError(
            f"{OPTION} {name} needs images, and {dataset.name!r} has none; images of a .npz file "
            "are an array X[n, height, width]"
        )
    return ARCHITECTURES[name](shape, dataset.num_classes)


def _load_module(source: str, shape: tuple[int, ...], classes: int) -> FlaxModel:
    """The Flax module of that name, checked as far as possible without running it."""
    given: Any = load_once(source, option=OPTION, what="flax.linen.Module")
    name, is_class = f"{OPTION}: {source}", isinstance(given, type)
    if not (issubclass(given, nn.Module) if is_class else isinstance(given, nn.Module)):
        got = given.__name__ if is_class else type(given).__name__
        raise UsageError(f"{name} must be a flax.linen.Module, got {got}")
    try:
        model = FlaxModel(construct(given, classes), shape, classes)
        reason = refusal(model)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a user's module may raise
        raise UsageError(
            f"{name} raised {describe_error(error)}; "
            f"it is called as module(x{['n', *shape]}, train)"
        ) from error
    if reason is not None:
        raise UsageError(f"{name}: {reason}")
    return model
