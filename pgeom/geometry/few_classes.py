"""Canonical links of dense generators from the few classes that have any probability.

One product with the matrix of a `quadratic` costs K² per example, and logits that differ by more
than the slopes of F leave a few classes in the support. So maximise over the √K classes with the
largest logits, which takes O(K) time and memory per step, and look at all classes only then: where
a class left out has the larger residual, it joins, and the others leave. What is still not optimal
after that, or has too large a support, is only a start for a method over all classes. Arrays are
class-major, `[K, n]`.

>>> import jax.numpy as jnp
>>> from pgeom.geometry.generators import quadratic
>>> slope = restricted_slopes(quadratic(2 * jnp.eye(4)), jnp.array([[0], [3]]), 4)
>>> slope(jnp.array([[0.75], [0.25]]))
Array([[1.],
       [0.]], dtype=float32)
"""

from collections.abc import Callable
from functools import singledispatch
from math import isqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pgeom.geometry.closed_forms import parts
from pgeom.geometry.generators import Hyperbolic, Quadratic, SquaredNorm
from pgeom.types import Generator

FEWEST = 16  # classes that are worth the search for them
ROUNDS = 4

Slopes = Callable[[Float[Array, "m n"]], Float[Array, "m n"]]


class Start(NamedTuple):
    """Points, whether each is the maximiser over all classes, and the number of steps taken."""

    p: Float[Array, "K n"]
    settled: Array
    steps: Int[Array, ""]


class _State(NamedTuple):
    p: Array
    score: Array
    settled: Array
    crowded: Array
    steps: Array
    rounds: Array


def are_enough(F: Generator, K: int) -> bool:
    """Whether F has a dense matrix, and K is so large that √K classes may be enough."""
    return isqrt(K) >= FEWEST and any(isinstance(part, Quadratic) for _, part in parts(F))


def search(F: Generator, z: Float[Array, "K n"], *, solve: Callable, judge: Callable) -> Start:
    """Maximise over √K classes, exchanged until no class left out is missed.

    Args:
      F: a sum of `quadratic`, `hyperbolic` and `squared_norm`.
      z: logits, the largest zero.
      solve: `(slopes, z[m, n]) -> Maximum`, the maximiser over m classes.
      judge: `p[K, n] -> (residual[K, n], settled[1, n])`, over all classes.
    """
    m = isqrt(z.shape[0])

    def advance(state: _State) -> _State:
        classes = jax.lax.top_k(state.score.T, m)[1].T
        found = solve(restricted_slopes(F, classes, z.shape[0]), jnp.take_along_axis(z, classes, 0))
        p = jnp.put_along_axis(jnp.zeros_like(z), classes, found.p, axis=0, inplace=False)
        p = jnp.where(state.settled, state.p, p)
        residual, settled = judge(p)
        score = jnp.where(p > 0, jnp.inf, residual)
        crowded = jnp.sum(p > 0, axis=0, keepdims=True) == m
        return _State(p, score, settled, crowded, state.steps + found.steps, state.rounds + 1)

    def unsettled(state: _State):
        missed = jnp.any(~state.settled) & ~jnp.any(state.crowded & ~state.settled)
        return (state.rounds < ROUNDS) & missed

    none, zero = jnp.zeros_like(z[:1], bool), jnp.zeros((), jnp.int32)
    last = jax.lax.while_loop(unsettled, advance, _State(z, z, none, none, zero, zero))
    return Start(last.p, last.settled, last.steps)


def restricted_slopes(F: Generator, classes: Int[Array, "m n"], K: int) -> Slopes:
    """∇F at points whose support is among some classes, in these classes alone."""
    terms = [(c, _restricted(part, classes, K)) for c, part in parts(F)]

    def slopes(p):
        first, *others = [jnp.asarray(c, p.dtype) * slope(p) for c, slope in terms]
        return sum(others, first)

    return slopes


@singledispatch
def _restricted(F: Generator, classes, K: int) -> Slopes:
    raise TypeError(f"{type(F).__name__} is not known to have bounded curvature")


@_restricted.register
def _(F: SquaredNorm, classes, K: int) -> Slopes:
    return lambda p: 2 * p


@_restricted.register
def _(F: Quadratic, classes, K: int) -> Slopes:
    A = (F.A + F.A.T) / 2
    block, centre = A[classes[:, None], classes[None]], jnp.mean(A, axis=1)[classes]
    return lambda p: jnp.sum(block.astype(p.dtype) * p[None], axis=1) - centre.astype(p.dtype)


@_restricted.register
def _(F: Hyperbolic, classes, K: int) -> Slopes:
    w = F.w[:, classes]  # [R, m, n]

    def slopes(p):
        G = jax.tree.map(lambda leaf: jnp.asarray(leaf, p.dtype), F)
        across = (jnp.sum(w.astype(p.dtype) * p[None], axis=1) - G.b[:, None]) / G.rho[:, None]
        pull = (G.a * G.rho)[:, None] * jnp.tanh(across)
        return G.scale * (G.lam * (p - 1 / K) + jnp.sum(w.astype(p.dtype) * pull[:, None], axis=0))

    return slopes
