"""A dataset as a value: a labelled population, checked, and not yet split.

>>> mine = from_arrays("mine", [[0.0], [2.0], [1.0]], [0, 1, 0], classes=("cat", "dog"))
>>> mine.num_classes, mine.classes, mine.unit_range
(2, ('cat', 'dog'), False)
"""

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Float64, Int, Int32
from numpy.typing import ArrayLike

from pgeom.data.regimes import Regime

REGIMES = "clean symmetric-20 symmetric-40"  # of a dataset that names none
LONGEST_NAME = 100  # of a dataset: it is part of the names of files
UNEVEN = 2  # times as many examples of the largest class as of the smallest
SMALLEST_SCALE = 1e-19  # whose square float32 still has; a feature of less does not vary
# What can be standardised: squares are summed in float64, which has that of 1e150 ten million times
# over, but the mean is subtracted in the precision of the features.
LARGEST_FEATURE = {np.float32: 1e38, np.float64: 1e150}


class Moments(NamedTuple):
    """What standardises features: x enters a model as (x − mean) / scale."""

    mean: Float64[np.ndarray, " d"]
    scale: Float64[np.ndarray, " d"]

    def apply(self, features: Float[np.ndarray, "n d"]) -> Float32[np.ndarray, "n d"]:
        """The features standardised, in float32; a missing value is still missing."""
        mean, scale = (moment.astype(features.dtype) for moment in self)
        return ((features - mean) / scale).astype(np.float32, copy=False)

    def relative_to(self, other: "Moments") -> "Moments":
        """What standardises features that were standardised by other moments before."""
        return Moments((self.mean - other.mean) / other.scale, self.scale / other.scale)


def fit_moments(features: Float[np.ndarray, "n d"]) -> Moments:
    """The mean and scale of each feature; missing values have no part in them.

    The scale is the population standard deviation, and 1 for a feature that is constant, to within
    1e-19. That of a feature that is always missing is infinite, which makes it zero wherever it is
    there after all.
    """
    from sklearn.preprocessing import StandardScaler

    empty = np.isnan(features).all(axis=0)
    scaler = StandardScaler().fit(np.where(empty, 0, features))
    mean, scale = np.asarray(scaler.mean_, np.float64), np.asarray(scaler.scale_)
    scale = np.where(scale < SMALLEST_SCALE, 1.0, scale)
    return Moments(mean, np.where(empty, np.inf, scale))


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

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.classes)

    @cached_property
    def class_sizes(self) -> Int[np.ndarray, " K"]:
        """The number of examples of each class."""
        return np.bincount(self.labels)

    @property
    def is_uneven(self) -> bool:
        """Whether the largest class has at least twice as many examples as the smallest."""
        return bool(self.class_sizes.max() >= UNEVEN * self.class_sizes.min())

    @cached_property
    def unit_range(self) -> bool:
        """Whether every feature lies in [0, 1]."""
        return bool(self.features.min() >= 0 and self.features.max() <= 1)

    @cached_property
    def moments(self) -> Moments:
        """Of all features."""
        return fit_moments(self.features)

    @cached_property
    def standardised(self) -> Float32[np.ndarray, "n d"]:
        """All features, standardised by their moments, which float32 holds without loss."""
        return self.moments.apply(self.features)

    @cached_property
    def digest(self) -> str:
        """A hash of all that determines a split: the arrays, and the name of the streams."""
        content = hashlib.sha256(self.name.encode())
        for array in (self.features, self.labels):
            content.update(f"{array.dtype.str}{array.shape}".encode())
            content.update(np.ascontiguousarray(array).data)
        return content.hexdigest()


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
    impute: bool = False,
    dtype: type[np.floating] = np.float64,
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
      impute: whether features may be NaN, to be imputed in each split.
      dtype: of the features; float32 takes half the memory.
    """
    x = _checked_features(np.asarray(features), dtype, impute)
    y = _checked_labels(np.asarray(labels), len(x))
    K = int(y.max()) + 1
    names = tuple(map(str, range(K) if classes is None else classes))
    if len(names) != K or len(set(names)) != K:
        raise ValueError(f"classes must be {K} different names, got {list(names)}")
    if image_shape is not None and math.prod(image_shape) != x.shape[1]:
        raise ValueError(f"image_shape must have {x.shape[1]} entries, got {image_shape}")
    if noise_map is not None and (len(noise_map) != K or not set(noise_map) <= set(range(K))):
        raise ValueError(f"noise_map must be {K} classes in 0 … {K - 1}, got {list(noise_map)}")
    for array in (x, y):
        array.setflags(write=False)
    return Dataset(
        name=name,
        features=x,
        labels=y,
        regimes=tuple(map(Regime.parse, regimes.split())),
        classes=names,
        image_shape=image_shape,
        noise_map=None if noise_map is None else tuple(map(int, noise_map)),
        notes=tuple(notes),
    )


def safe_name(stem: str) -> str:
    """The name of a file without what could lead elsewhere in the name of another."""
    return re.sub(r"[^\w.-]+", "-", stem).strip("-.")[:LONGEST_NAME] or "dataset"


def _checked_features(features, dtype, impute):
    if features.dtype.kind not in "fiu":
        raise ValueError(f"features must be real numbers, got dtype {features.dtype}")
    if features.ndim != 2 or features.size == 0:
        raise ValueError(f"features must be a non-empty [n, d] array, got shape {features.shape}")
    if not impute and np.isnan(features).any():
        raise ValueError("features must be finite, got nan; impute=True fills in what is missing")
    if (large := np.abs(features) > LARGEST_FEATURE[dtype]).any():
        limit = f"within ±{LARGEST_FEATURE[dtype]:.0e} to be standardised"
        must = f"finite, and {limit}, got {features[large][0]}"
        raise ValueError(f"features must be {must}")
    return features.astype(dtype)


def _checked_labels(labels, length):
    if labels.dtype.kind not in "iu":
        raise ValueError(f"labels must be integers, got dtype {labels.dtype}")
    if labels.shape != (length,):
        raise ValueError(f"labels must have shape [{length}] like features, got {labels.shape}")
    present = np.unique(labels)
    if len(present) < 2:
        raise ValueError(f"labels must have at least 2 classes, got only {present[0]}")
    if not np.array_equal(present, np.arange(len(present))):
        got = f"{len(present)} different ones in {present[0]} … {present[-1]}"
        raise ValueError(f"labels must be 0 … K−1 with all present, got {got}")
    return labels.astype(np.int32)
