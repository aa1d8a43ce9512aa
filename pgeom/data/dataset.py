"""Which words are paths of data, and not names.

>>> is_path("people.csv"), is_path("digits")
(True, False)

A dataset as a value: a labelled population, checked, and not yet split.

>>> mine = from_arrays("mine", [[0.0], [2.0], [1.0]], [0, 1, 0], classes=("cat", "dog"))
>>> mine.num_classes, mine.classes, mine.unit_range
(2, ('cat', 'dog'), False)
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, Int32
from numpy.typing import ArrayLike

from pgeom.data.regimes import Regime
from pgeom.data.splits import Moments, fit_moments, largest_feature

SUFFIXES = (".npz", ".csv", ".parquet")
FORMS = ".npz, .csv or .parquet file, or of a folder with IDX files"


def is_path(word: str) -> bool:
    """Whether a word looks like the path of a file, and not like the name of a dataset."""
    path = Path(word)
    return path.suffix.lower() in SUFFIXES or len(path.parts) > 1 or path.is_file()


def is_folder(word: str) -> bool:
    """Whether a word is a folder, and no table in several files, as of `.parquet` there are."""
    return Path(word).is_dir() and Path(word).suffix.lower() not in SUFFIXES


REGIMES = "clean symmetric-20 symmetric-40"  # of a dataset that names none
UNEVEN = 2  # times as many examples of the largest class as of the smallest


@dataclass(frozen=True, eq=False)
class Dataset:
    """A labelled population.

    Attributes:
      name: what messages, records and random streams call it.
      features: `[n, d]`; NaN where a value is missing, to be imputed in each split.
      labels: `[n]`, in 0 … K−1.
      regimes: those it is studied under unless others are asked for.
      classes: what the K classes are called.
      image_shape: that of one example, if its features are pixels or samples of a signal.
      noise_map: `[K]`, the class for which asymmetric noise mistakes each class, possibly itself.
      notes: what a user should know about how it was read, one line each.
      posterior: `[n, K]`, the true probabilities of the classes, where they are known.
    """

    name: str
    features: Float[np.ndarray, "n d"]
    labels: Int32[np.ndarray, " n"]
    regimes: tuple[Regime, ...]
    classes: tuple[str, ...]
    image_shape: tuple[int, ...] | None = None
    noise_map: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()
    posterior: Float[np.ndarray, "n K"] | None = None

    @cached_property
    def num_classes(self) -> int:
        """K."""
        return int(self.labels.max()) + 1

    @cached_property
    def class_sizes(self) -> Int[np.ndarray, " K"]:
        """The number of examples of each class."""
        return np.bincount(self.labels)

    @cached_property
    def is_uneven(self) -> bool:
        """Whether the largest class has at least twice as many examples as the smallest."""
        return bool(self.class_sizes.max() >= UNEVEN * self.class_sizes.min())

    @cached_property
    def unit_range(self) -> bool:
        """Whether every feature lies in [0, 1]."""
        return bool(self.features.min() >= 0 and self.features.max() <= 1)

    @cached_property
    def standardised(self) -> "Standardised":
        """All features, standardised by their own moments, which float32 holds without loss."""
        moments = fit_moments(self.features)
        return Standardised(moments.apply(self.features), moments)

    @cached_property
    def digest(self) -> str:
        """A hash of all that determines a split: the arrays, and the name of the streams."""
        content = hashlib.sha256(self.name.encode())
        for array in (self.features, self.labels):
            content.update(f"{array.dtype.str}{array.shape}".encode())
            content.update(np.ascontiguousarray(array).data)
        return content.hexdigest()


class Standardised(NamedTuple):
    """The features of a dataset in float32, NaN where missing, and their moments."""

    features: Float32[np.ndarray, "n d"]
    moments: Moments


def from_arrays(
    name: str,
    features: ArrayLike,
    labels: ArrayLike,
    regimes: str = REGIMES,
    *,
    classes: Sequence[str] | None = None,
    image_shape: tuple[int, ...] | None = None,
    noise_map: Sequence[int] | None = None,
    notes: Sequence[str] = (),
    missing: bool = False,
    dtype: type[np.floating] = np.float64,
    posterior: ArrayLike | None = None,
) -> Dataset:
    """A dataset of your own arrays, checked and copied.

    Args:
      name: what to call it.
      features: `[n, d]` real numbers of at most 1e150, or 1e38 in float32.
      labels: `[n]` integers; with K − 1 the largest, each of 0 … K−1 occurs, and K ≥ 2.
      regimes: those it is studied under by default, separated by spaces.
      classes: the K names of the classes, by default their numbers.
      image_shape: that of one example, with d entries in all.
      noise_map: `[K]`, the class for which asymmetric noise mistakes each class.
      notes: what a user should know, one line each.
      missing: whether features may be NaN, to be imputed in each split.
      dtype: of the features; float32 takes half the memory.
      posterior: `[n, K]`, the true probabilities of the classes, where they are known.
    """
    checked = _checked_features(np.asarray(features), dtype, missing)
    integers = _checked_labels(np.asarray(labels), len(checked))
    K = int(integers.max()) + 1
    names = tuple(map(str, range(K))) if classes is None else tuple(classes)
    if len(set(names)) != K or len(names) != K:
        raise ValueError(f"classes must be {K} different names, got {list(names)}")
    if image_shape is not None and np.prod(image_shape) != checked.shape[1]:
        width = checked.shape[1]
        raise ValueError(f"image_shape must have {width} entries, got {image_shape}")
    return Dataset(
        name=name,
        features=checked,
        labels=integers,
        regimes=tuple(map(Regime.parse, regimes.split())),
        classes=names,
        image_shape=image_shape,
        noise_map=None if noise_map is None else _checked_map(noise_map, K),
        notes=tuple(notes),
        posterior=None if posterior is None else _checked_posterior(posterior, len(integers), K),
    )


def _checked_posterior(posterior: ArrayLike, n: int, K: int) -> Float[np.ndarray, "n K"]:
    rows = np.asarray(posterior, np.float64)
    if rows.shape != (n, K) or not np.all(rows >= 0) or not np.allclose(rows.sum(axis=1), 1):
        raise ValueError(f"posterior must be {n} distributions on {K} classes, got {rows.shape}")
    return _frozen(rows.copy())


def _checked_map(noise_map: Sequence[int], K: int) -> tuple[int, ...]:
    targets = tuple(map(int, noise_map))
    if len(targets) != K or not all(0 <= target < K for target in targets):
        raise ValueError(f"noise_map must be {K} classes in 0 … {K - 1}, got {list(targets)}")
    return targets


def _checked_features(
    features: np.ndarray, dtype: type[np.floating], missing: bool
) -> Float[np.ndarray, "n d"]:
    if features.dtype.kind not in "fiu":
        raise ValueError(f"features must be real numbers, got dtype {features.dtype}")
    if features.ndim != 2 or features.size == 0:
        raise ValueError(f"features must be a non-empty [n, d] array, got shape {features.shape}")
    most = largest_feature(dtype)
    _refuse_any(features, np.isinf(features) if missing else ~np.isfinite(features), "finite")
    _refuse_any(features, np.abs(features) > most, f"within ±{most:.0e} to be standardised")
    return _frozen(features.astype(dtype))


def _refuse_any(features: np.ndarray, bad: Bool[np.ndarray, "n d"], must: str) -> None:
    if bad.any():
        row, column = np.argwhere(bad)[0]
        value = features[row, column]
        raise ValueError(f"features must be {must}, got features[{row}, {column}] = {value}")


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
