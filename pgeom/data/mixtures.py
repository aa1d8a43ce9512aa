"""Gaussian mixtures: datasets whose posterior is known exactly.

`mixture-K-n` has n examples of K classes, which overlap and of which the first is four times as
frequent as the last. With K, the classes are fixed; n alone is how many examples are drawn.

>>> small, large = mixture_dataset("mixture-3-60"), mixture_dataset("mixture-3-6000")
>>> small.features.shape, large.num_classes
((60, 6), 3)
>>> rate = [float((large.labels == k).mean()) for k in range(3)]
>>> bool(np.allclose(large.posterior.mean(axis=0), rate, atol=0.02))
True
"""

import re
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from pgeom.data.dataset import Dataset, from_arrays

FORM = "mixture-CLASSES-EXAMPLES"
MIN_CLASSES, MAX_CLASSES = 2, 10
MAX_EXAMPLES = 1_000_000
PER_CLASS = 20  # examples, at least: a fourth of them may be of the rarest class
DIMENSIONS = 6
SPREAD = 0.9  # of the centres, in standard deviations of a class
IMBALANCE = 4.0  # of the first class to the last
SEED = 17


class Mixture(NamedTuple):
    """K classes with normal features of unit variance.

    Attributes:
      shares: the probabilities of the classes, `[K]`.
      centres: their means, `[K, d]`.
    """

    shares: Float[np.ndarray, " K"]
    centres: Float[np.ndarray, "K d"]

    def posterior(self, features: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n K"]:
        """P(y | x) ∝ π_y exp(−‖x − μ_y‖²/2), exactly."""
        from scipy.special import softmax

        distances = np.sum((features[:, None] - self.centres) ** 2, axis=-1)
        return softmax(np.log(self.shares) - distances / 2, axis=-1)


def make_mixture(K: int) -> Mixture:
    """The mixture of K classes."""
    shares = IMBALANCE ** (-np.arange(K) / (K - 1))
    centres = np.random.default_rng([SEED, K]).normal(scale=SPREAD, size=(K, DIMENSIONS))
    return Mixture(shares / shares.sum(), centres)


def is_mixture(name: str) -> bool:
    """Whether a name asks for a mixture."""
    return name.startswith("mixture-")


@cache
def mixture_dataset(name: str) -> Dataset:
    """The dataset `mixture-K-n`, with its posterior.

    Raises:
      ValueError: if K or n is not one that a mixture can have.
    """
    match = re.fullmatch(r"mixture-(\d+)-(\d+)", name, re.ASCII)
    K, n = map(int, match.groups()) if match else (0, 0)
    if not (MIN_CLASSES <= K <= MAX_CLASSES and PER_CLASS * K <= n <= MAX_EXAMPLES):
        sizes = f"{PER_CLASS} to {MAX_EXAMPLES // MAX_CLASSES} examples of each"
        must = f"{FORM} with {MIN_CLASSES} to {MAX_CLASSES} classes and {sizes}"
        raise ValueError(f"a mixture must be {must}, got {name!r}")
    mixture, rng = make_mixture(K), np.random.default_rng([SEED, K, n])
    labels = rng.choice(K, size=n, p=mixture.shares)
    features = mixture.centres[labels] + rng.normal(size=(n, DIMENSIONS))
    dataset = from_arrays(name, features, labels, "clean symmetric-40")
    return replace(dataset, posterior=mixture.posterior(features))
