"""Datasets as values: the four of the paper, and your own arrays in the same form.

A dataset is a whole population, not yet split: raw features, clean labels, whether the features
are intensities in [0, 1], on which a pixel perturbation makes sense, and the regimes it is studied
under. The synthetic ones are generated from a fixed seed of their own, so that a dataset never
depends on the seed of a run.

>>> digits = load("digits")
>>> digits.features.shape, digits.num_classes, digits.unit_range
((1797, 64), 10, True)
>>> [str(regime) for regime in digits.regimes]
['clean', 'symmetric-20', 'symmetric-40', 'pair-flip-40']
>>> from_arrays("mine", [[0.0], [2.0], [1.0]], [0, 1, 0]).num_classes
2
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from jaxtyping import Float64, Int32
from sklearn import datasets

from pgeom.data.regimes import Regime
from pgeom.frontend.names import choose
from pgeom.types import Numbers

REGIMES = "clean symmetric-20 symmetric-40"  # of a dataset that names none


@dataclass(frozen=True, eq=False)
class Dataset:
    """A labelled population.

    Attributes:
      name: what messages, records and random streams call it.
      features: `[n, d]`.
      labels: `[n]`, in 0 … K−1.
      regimes: those it is studied under unless others are asked for.
    """

    name: str
    features: Float64[np.ndarray, "n d"]
    labels: Int32[np.ndarray, " n"]
    regimes: tuple[Regime, ...]

    @cached_property
    def num_classes(self) -> int:
        """K."""
        return int(self.labels.max()) + 1

    @cached_property
    def unit_range(self) -> bool:
        """Whether every feature lies in [0, 1]."""
        return bool(self.features.min() >= 0 and self.features.max() <= 1)

    @cached_property
    def digest(self) -> str:
        """A hash of all that determines a split: the arrays, and the name of the streams."""
        content = hashlib.sha256(self.name.encode())
        for array in (self.features, self.labels):
            content.update(f"{array.dtype.str}{array.shape}".encode())
            content.update(np.ascontiguousarray(array).data)
        return content.hexdigest()


def from_arrays(name: str, features: Numbers, labels: Numbers, regimes: str = REGIMES) -> Dataset:
    """A dataset of your own arrays, checked and copied.

    Args:
      name: what to call it.
      features: `[n, d]` finite real numbers.
      labels: `[n]` integers; with K − 1 the largest, each of 0 … K−1 occurs, and K ≥ 2.
      regimes: those it is studied under by default, separated by spaces.
    """
    checked = _checked_features(np.asarray(features))
    classes = _checked_labels(np.asarray(labels), len(checked))
    return Dataset(name, checked, classes, tuple(map(Regime.parse, regimes.split())))


def load(name: str) -> Dataset:
    """One of the built-in datasets, made once."""
    return _made(BUILT_IN[choose("dataset", name, BUILT_IN)])


@cache
def _made(build: Callable[[], Dataset]) -> Dataset:
    return build()


def _breast_cancer() -> Dataset:
    features, labels = map(np.asarray, datasets.load_breast_cancer(return_X_y=True))
    return from_arrays("breast-cancer", features, labels)


def _digits() -> Dataset:
    pixels, labels = map(np.asarray, datasets.load_digits(return_X_y=True))
    return from_arrays("digits", pixels / 16.0, labels, f"{REGIMES} pair-flip-40")


def _confusion() -> Dataset:
    # The paper states 2,400 examples and six classes; it does not state any constant below.
    features, labels = datasets.make_classification(
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
    return from_arrays("confusion", features, labels, "clean symmetric-20 pair-flip-40")


def _long_tail() -> Dataset:
    # The paper states 6,000 examples and ten balanced classes; it does not state any constant
    # below. flip_y = 0 keeps the population balanced exactly: 600 of each class.
    features, labels = datasets.make_classification(
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
    return from_arrays("long-tail", features, labels, "long-tail-30")


BUILT_IN: dict[str, Callable[[], Dataset]] = {
    "digits": _digits,
    "breast-cancer": _breast_cancer,
    "confusion": _confusion,
    "long-tail": _long_tail,
}
PAPER = ("digits", "breast-cancer", "confusion", "long-tail")


def _checked_features(features: np.ndarray) -> Float64[np.ndarray, "n d"]:
    if features.dtype.kind not in "fiu":
        raise ValueError(f"features must be real numbers, got dtype {features.dtype}")
    if features.ndim != 2 or features.size == 0:
        raise ValueError(f"features must be a non-empty [n, d] array, got shape {features.shape}")
    bad = np.argwhere(~np.isfinite(features))
    if len(bad):
        row, column = bad[0]
        value = features[row, column]
        raise ValueError(f"features must be finite, got features[{row}, {column}] = {value}")
    return _frozen(features.astype(np.float64))


def _checked_labels(labels: np.ndarray, length: int) -> Int32[np.ndarray, " n"]:
    if labels.dtype.kind not in "iu":
        raise ValueError(f"labels must be integers, got dtype {labels.dtype}")
    if labels.shape != (length,):
        raise ValueError(f"labels must have shape [{length}] like features, got {labels.shape}")
    present = np.unique(labels)
    if present[0] < 0:
        raise ValueError(f"labels must be 0 … K−1, got {present[0]}")
    if len(present) < 2:
        raise ValueError(f"labels must have at least 2 classes, got only {present[0]}")
    # The distinct labels are sorted, so the first to differ from its position follows a gap.
    gaps = np.flatnonzero(present != np.arange(len(present)))
    if len(gaps):
        raise ValueError(
            f"labels must be 0 … K−1 with all present, got none of {gaps[0]} below {present[-1]}"
        )
    return _frozen(labels.astype(np.int32))


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
