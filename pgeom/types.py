"""The few shapes that every room agrees on.

A *generator* is any convex function of a point of the simplex, a *score* compares a point with
a label, and a *loss* does the same from logits:

>>> import jax.numpy as jnp
>>> def cubic(p): return jnp.sum(p**3)    # a Generator: p[K] -> scalar
"""

from collections.abc import Callable
from typing import NamedTuple

import jax

Generator = Callable[[jax.Array], jax.Array]
"""`F(p[K]) -> scalar`, convex on the simplex."""

Score = Callable[[jax.Array, jax.Array], jax.Array]
"""`score(p[..., K], labels) -> [...]`, one value per example.

Labels are integers `[...]`, or soft targets `[..., K]` where a score takes them.
"""

Loss = Callable[[jax.Array, jax.Array], jax.Array]
"""`loss(logits[..., K], labels) -> [...]`, one value per example; labels as for a score."""


class ClassStats(NamedTuple):
    """What a loss may know of the training partition.

    Attributes:
      counts: `[K]`, how many training examples carry each observed label.
      centroids: `[K, d]`, the mean standardised input of each observed label.
    """

    counts: jax.Array
    centroids: jax.Array


class Annealing(NamedTuple):
    """Where a run stands on its annealing schedule, Eq. (apms-loss).

    Attributes:
      step: optimiser steps taken, t.
      beta0: the initial coefficient, β₀.
      horizon: the steps after which the coefficient is zero, T_s.
    """

    step: jax.Array
    beta0: jax.Array
    horizon: jax.Array


CatalogueLoss = Callable[[jax.Array, jax.Array, Annealing], jax.Array]
"""A loss of the catalogue: `loss(logits[..., K], labels[...], annealing) -> [...]`."""
