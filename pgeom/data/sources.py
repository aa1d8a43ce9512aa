"""The four datasets of the study, and your own arrays in the same form.

A source is a whole population, not yet split: raw features, clean labels, and whether the features
are intensities in [0, 1], on which a pixel perturbation makes sense. The synthetic sources are
generated from a fixed seed of their own, so that a source never depends on the seed of a run.

>>> from pgeom.data import sources
>>> digits = sources.load("digits")
>>> digits.features.shape, digits.num_classes, digits.unit_range
((1797, 64), 10, True)
>>> sources.from_arrays([[0.0], [2.0], [1.0]], [0, 1, 0]).num_classes
2
"""

import difflib
from typing import NamedTuple

import numpy as np
from sklearn import datasets


class Source(NamedTuple):
    """A labelled population: features [n, d] float64, labels [n] int32 in 0..num_classes−1.

    `unit_range` says that every feature lies in [0, 1].
    """

    name: str
    features: np.ndarray
    labels: np.ndarray
    num_classes: int
    unit_range: bool


def _breast_cancer():
    return datasets.load_breast_cancer(return_X_y=True)


def _digits():
    pixels, labels = datasets.load_digits(return_X_y=True)
    return pixels / 16.0, labels


def _confusion():
    # The paper states 2,400 examples and six classes; it does not state any constant below.
    return datasets.make_classification(
        n_samples=2400,
        n_classes=6,
        n_features=18,
        n_informative=10,
        n_redundant=5,
        n_clusters_per_class=2,
        class_sep=0.85,
        flip_y=0.01,
        random_state=2025,
    )


def _long_tail():
    # The paper states 6,000 examples and ten balanced classes; it does not state any constant
    # below. flip_y = 0 keeps the population balanced exactly: 600 of each class.
    return datasets.make_classification(
        n_samples=6000,
        n_classes=10,
        n_features=30,
        n_informative=14,
        n_redundant=8,
        n_clusters_per_class=1,
        class_sep=1.1,
        flip_y=0.0,
        random_state=2023,
    )


_BUILDERS = {
    "breast-cancer": _breast_cancer,
    "digits": _digits,
    "confusion": _confusion,
    "long-tail": _long_tail,
}
NAMES = tuple(_BUILDERS)


def load(name):
    """Loads one of the datasets of the study.

    Args:
      name: one of `NAMES`.

    Returns:
      The `Source`, the same for every call.
    """
    if name not in _BUILDERS:
        nearest = difflib.get_close_matches(str(name).lower(), NAMES, n=1, cutoff=0.0)[0]
        known = ", ".join(NAMES)
        raise ValueError(f"unknown dataset {name!r}: nearest is {nearest!r}; known are {known}")
    return from_arrays(*_BUILDERS[name](), name=name)


def from_arrays(features, labels, name="arrays"):
    """Makes a source of your own arrays, after checking them.

    Args:
      features: [n, d] finite real numbers.
      labels: [n] integers; with K − 1 the largest, each of 0..K−1 occurs, and K ≥ 2.
      name: what to call it in messages and records.

    Returns:
      A `Source` with copies of the arrays.
    """
    features = _checked_features(np.asarray(features))
    labels = _checked_labels(np.asarray(labels), len(features))
    unit_range = bool(features.min() >= 0 and features.max() <= 1)
    return Source(name, features, labels, int(labels.max()) + 1, unit_range)


def _checked_features(features):
    if features.dtype.kind not in "fiu":
        raise ValueError(f"features must be real numbers, but their dtype is {features.dtype}")
    if features.ndim != 2 or features.size == 0:
        raise ValueError(f"features must be a non-empty [n, d] array, but are {features.shape}")
    bad = np.argwhere(~np.isfinite(features))
    if len(bad):
        row, column = bad[0]
        value = features[row, column]
        raise ValueError(f"features must be finite, but features[{row}, {column}] is {value}")
    return features.astype(np.float64)


def _checked_labels(labels, length):
    if labels.dtype.kind not in "iu":
        raise ValueError(f"labels must be integers, but their dtype is {labels.dtype}")
    if labels.shape != (length,):
        raise ValueError(f"labels must be [{length}] like features, but are {labels.shape}")
    present = np.unique(labels)
    if present[0] < 0:
        raise ValueError(f"labels must be 0..K-1, but the smallest is {present[0]}")
    if len(present) < 2:
        raise ValueError(f"labels must have at least 2 classes, but are all {present[0]}")
    # The distinct labels are sorted, so the first to differ from its position follows a gap.
    gaps = np.flatnonzero(present != np.arange(len(present)))
    if len(gaps):
        raise ValueError(
            f"labels must be 0..K-1 with all present, but {gaps[0]} is missing below {present[-1]}"
        )
    return labels.astype(np.int32)
