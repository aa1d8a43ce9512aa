"""The models that a study can be asked for by name.

>>> ARCHITECTURES["mlp"]((8, 8), 10).size, ARCHITECTURES["cnn"]((8, 8), 10).inputs
(16522, 64)
"""

import math

import flax.linen as nn

from pgeom.models.cnn import CNN
from pgeom.models.flax_module import FlaxModel, construct, refusal
from pgeom.models.model import MLP, Architecture, Linear, Model

ModelLike = str | type[nn.Module] | nn.Module | Architecture
"""A name of `ARCHITECTURES`, a Flax module, or a function of the same form."""

ARCHITECTURES: dict[str, Architecture] = {
    "mlp": lambda input_shape, classes: MLP(math.prod(input_shape), classes),
    "linear": lambda input_shape, classes: Linear(math.prod(input_shape), classes),
    "cnn": lambda input_shape, classes: _cnn(input_shape, classes),
}
IMAGES_ONLY = frozenset({"cnn"})  # the features of a table have no neighbours


def _cnn(input_shape: tuple[int, ...], classes: int) -> CNN:
    """A wider network with more dropout for signals, which have few points, than for images."""
    if len(input_shape) == 1:
        return CNN(input_shape, classes, channels=(64, 128), hidden=128, dropout=0.5)
    return CNN(input_shape, classes)


def make_model(
    given: ModelLike, features: int, image_shape: tuple[int, ...] | None, classes: int
) -> Model:
    """What a user calls a model, for examples of so many features and classes.

    Raises:
      ValueError: for an unknown name, a model of images without their shape, or a module that
        cannot be trained.
    """
    if image_shape is not None and math.prod(image_shape) != features:
        raise ValueError(f"image_shape must have {features} entries, got {image_shape}")
    shape = image_shape or (features,)
    if isinstance(given, str):
        if given not in ARCHITECTURES:
            raise ValueError(f"model must be one of {', '.join(ARCHITECTURES)}, got {given!r}")
        if given in IMAGES_ONLY and image_shape is None:
            raise ValueError(f"model {given!r} needs the shape of an image, as image_shape=(8, 8)")
        return ARCHITECTURES[given](shape, classes)
    if isinstance(given, nn.Module) or (isinstance(given, type) and issubclass(given, nn.Module)):
        return _flax_model(given, shape, classes)
    model = given(shape, classes) if callable(given) else None
    if not isinstance(model, Model):
        raise ValueError(f"model must be a name, a Flax module or a function, got {given!r}")
    return model


def _flax_model(
    module: type[nn.Module] | nn.Module, shape: tuple[int, ...], classes: int
) -> FlaxModel:
    try:
        model = FlaxModel(construct(module, classes), shape, classes)
        reason = refusal(model)
    except Exception as error:  # whatever a user's module may raise
        line = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"model raised {type(error).__name__}: {line}; it is called as module(x, train) and "
            "must return logits"
        ) from error
    if reason is not None:
        raise ValueError(f"model: {reason}")
    return model
