"""A dataset from a folder with four IDX files, as MNIST and its kin are distributed."""

import zlib
from pathlib import Path

import numpy as np

from pgeom.data import files, images
from pgeom.data.dataset import Dataset, from_arrays
from pgeom.data.encoding import EncodedLabels


def read_folder(folder: Path) -> Dataset:
    """The images of a folder, named like it; Fashion-MNIST is known by its labels.

    Raises:
      UsageError: in one line, for a folder that has not got the files.
    """
    parts = images.read_parts(folder)
    if zlib.crc32(parts.labels.tobytes()) == images.FASHION_LABELS:
        return images.make_fashion(parts)
    classes, labels = np.unique(parts.labels, return_inverse=True)
    names = tuple(map(str, classes))
    files.require_enough(EncodedLabels(labels.astype(np.int32), names), folder.name)
    name = files.safe_name(folder.absolute().name)
    shape = {"image_shape": parts.pixels.shape[1:], "dtype": np.float32}
    return from_arrays(name, parts.intensities, labels, classes=names, **shape)
