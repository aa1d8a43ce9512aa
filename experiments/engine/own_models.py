"""The model that a command line names: a built-in one, or a Flax module of the user's."""

from experiments.engine.own_losses import load_once
from experiments.shell.errors import refusals
from pgeom.data.dataset import Dataset
from pgeom.models import architectures
from pgeom.models.model import Model

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
