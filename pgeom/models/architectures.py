"""The models that a study can be asked for by name.

>>> ARCHITECTURES["mlp"]((8, 8), 10).size, ARCHITECTURES["cnn"]((8, 8), 10).inputs
(16522, 64)
"""

import math

from pgeom.models.cnn import CNN
from pgeom.models.linear import Linear
from pgeom.models.mlp import MLP
from pgeom.models.model import Architecture

ARCHITECTURES: dict[str, Architecture] = {
    "mlp": lambda input_shape, classes: MLP(math.prod(input_shape), classes),
    "linear": lambda input_shape, classes: Linear(math.prod(input_shape), classes),
    "cnn": CNN,
}
IMAGES_ONLY = frozenset({"cnn"})  # the features of a table have no neighbours
