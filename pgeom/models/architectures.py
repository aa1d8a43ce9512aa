"""The models that a study can be asked for by name.

>>> ARCHITECTURES["mlp"]((8, 8), 10).size, ARCHITECTURES["cnn"]((8, 8), 10).inputs
(16522, 64)
"""

import math

import flax.linen as nn

from pgeom.messages import known_name
from pgeom.models.cnn import CNN
from pgeom.models.flax_module import wrap_module
from pgeom.models.model import MLP, Architecture, Linear, Model

ModelLike = str | type[nn.Module] | nn.Module | Architecture
"""A name of `ARCHITECTURES`, a Flax module, or a function of the same form."""


def _cnn(input_shape: tuple[int, ...], classes: int) -> CNN:
    """A wider network with more dropout for signals, which have few points, than for images."""
    if len(input_shape) == 1:
        return CNN(input_shape, classes, channels=(64, 128), hidden=128, dropout=0.5)
    return CNN(input_shape, classes)


ARCHITECTURES: dict[str, Architecture] = {
    "mlp": lambda input_shape, classes: MLP(math.prod(input_shape), classes),
    "linear": lambda input_shape, classes: Linear(math.prod(input_shape), classes),
    "cnn": _cnn,
}


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
    shape = (features,) if image_shape is None else tuple(image_shape)
    if given == "cnn" and image_shape is None:  # the features of a table have no neighbours
        raise ValueError("the model 'cnn' needs images: image_shape=, as in (8, 8)")
    if isinstance(given, str):
        given = ARCHITECTURES[known_name("model", given, ARCHITECTURES)]
    if isinstance(given, nn.Module) or (isinstance(given, type) and issubclass(given, nn.Module)):
        return wrap_module(given, shape, classes)
    model = given(shape, classes) if callable(given) else None
    if not isinstance(model, Model):
        raise ValueError(f"model must be a name, a Flax module or a function, got {given!r}")
    return model
