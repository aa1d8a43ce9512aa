"""The models that a study can be asked for by name.

>>> ARCHITECTURES["mlp"](64, 10).size
16522
"""

from pgeom.models.mlp import MLP
from pgeom.models.model import Architecture

ARCHITECTURES: dict[str, Architecture] = {"mlp": MLP}
