"""Points and directions of the probability simplex.

>>> import jax.numpy as jnp
>>> project(jnp.array([0.9, 0.5, -2.0]))
Array([0.7, 0.3, 0. ], dtype=float32)
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from pgeom import edge
from pgeom.types import Label


def vertex(label: Label, K: int, dtype: DTypeLike = jnp.float32) -> Float[Array, " {K}"]:
    """The vertex e_y of a label."""
    return (jnp.arange(K) == label).astype(dtype)


def pick(values: Float[Array, " K"], label: Label) -> Float[Array, ""]:
    """The entry of `values` at a label, by a select rather than a gather."""
    return jnp.sum(jnp.where(jnp.arange(values.shape[-1]) == label, values, 0.0))


def argmax_mask(values: Float[Array, " K"]) -> Bool[Array, " K"]:
    """A mask with one True, at the first of the largest values.

    Two plain reductions, because XLA's argmax on a CPU is several times slower to compile and run.
    """
    places = jnp.arange(values.shape[-1])
    first = jnp.min(jnp.where(values == jnp.max(values), places, values.shape[-1]))
    return places == first


LOWEST = 0.95  # a power as below: 1/p may then be multiplied by numbers up to a hundred


def interior(p: Float[Array, "*shape"], power: float = 1.0) -> Float[Array, "*shape"]:
    """`p`, with no entry below the smallest normal number raised to a power of at most one.

    Generators with a divergent gradient (Shannon, Tsallis α < 1) are not differentiable on the
    boundary, where softmax puts p_j by underflow. With power 1 the floor is 1e-38 in float32 and
    1e-308 in float64, where log p and 1/p are finite; with power 1/2 so is p^(−2).
    The floor counts as a constant: derivatives on the boundary are those next to it.
    """
    floor = jnp.asarray(float(jnp.finfo(p.dtype).tiny) ** power, p.dtype)
    return p + jax.lax.stop_gradient(jnp.maximum(floor - p, 0))


def flush_subnormal(p: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """`p`, with zeros for subnormal numbers, which some operations of a program take for zeros."""
    subnormal = jnp.abs(p) < jnp.finfo(p.dtype).tiny
    return p - jax.lax.stop_gradient(jnp.where(subnormal, p, 0))


def log_entries(p: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """log p, elementwise; −∞ where p is zero, with the derivative next to it."""
    return jnp.log(interior(p)) + jax.lax.stop_gradient(jnp.where(p > 0, 0.0, -jnp.inf))


def move_dominant(p: Float[Array, " K"], moved: Float[Array, " K"]) -> Float[Array, " K"]:
    """`moved`, but where p is close to one, minus the sum of the other entries."""
    others = jnp.where(p > 0.5, 0.0, moved)
    return jnp.where(p > 0.5, -jnp.sum(others), others)


def gaps_to_dominant(p: Float[Array, " K"], values: Float[Array, " K"]) -> Float[Array, " K"]:
    """`values`, less that of the entry of p that is close to one, if there is one."""
    gaps = values - jnp.sum(jnp.where(p > 0.5, values, 0.0))
    return jnp.where(p > 0.5, 0.0, gaps)  # so that in reverse the entry is minus the sum of others


def towards_vertex(
    p: Float[Array, " K"], label: Label
) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
    """The vertex e_y and the displacement d = e_y − p, exact however close p is.

    d_y is the mass of the competitors, Σ_{j≠y} p_j: 1 − p_y would have lost it to rounding.
    """
    e_y = vertex(label, p.shape[-1], p.dtype)
    return e_y, _vertex_less(e_y, p)


@jax.custom_jvp
def _vertex_less(e_y, p):
    """e_y − p."""
    competitors = jnp.where(e_y > 0, 0.0, p)
    return jnp.where(e_y > 0, jnp.sum(competitors), -competitors)


@_vertex_less.defjvp
def _vertex_less_jvp(primals, tangents):
    # By hand because autodiff adds the slope of d_y to that of every competitor, and rounds theirs
    # away. Along the simplex d moves as −p does.
    (e_y, p), (e_y_dot, p_dot) = primals, tangents
    return _vertex_less(e_y, p), e_y_dot - p_dot


@jax.custom_jvp
def displacement(q: Float[Array, " K"], p: Float[Array, " K"]) -> Float[Array, " K"]:
    """q − p; where p is close to one, minus the sum of the other entries, as Σ(q − p) = 0."""
    return move_dominant(p, q - p)


@displacement.defjvp
def _displacement_jvp(primals, tangents):
    # By hand for the same reason as in `towards_vertex`.
    return displacement(*primals), tangents[0] - tangents[1]


def tangent_basis(K: int) -> Float[np.ndarray, " {K} {K}-1"]:
    """An orthonormal basis of {x : Σx = 0}, the Helmert columns, in float64."""
    edge.check_num_classes(K)
    rows, columns = np.arange(K)[:, None], np.arange(1, K)[None, :]
    helmert = np.where(rows < columns, 1.0, np.where(rows == columns, -1.0 * columns, 0.0))
    return helmert / np.linalg.norm(helmert, axis=0)


def project(x: Float[Array, "*batch K"]) -> Float[Array, "*batch K"]:
    """The nearest point of the simplex to x: max(x − θ, 0) with the θ that makes it sum to one."""
    descending = jnp.sort(x, axis=-1, descending=True)
    ranks = jnp.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    thresholds = (jnp.cumsum(descending, axis=-1) - 1) / ranks.reshape((1,) * (x.ndim - 1) + (-1,))
    # the thresholds increase up to the size of the support and decrease after it
    return jnp.maximum(x - jnp.max(thresholds, axis=-1, keepdims=True), 0)


def uniform(key: PRNGKeyArray, K: int, count: int) -> Float[Array, " {count} {K}"]:
    """Independent draws from Dirichlet(1): normalised exponentials."""
    edge.check_num_classes(K)
    # drawn as one vector: a two-dimensional draw takes XLA five times as long to compile
    draws = jax.random.exponential(key, (count * K,)).reshape(count, K)
    return draws / jnp.sum(draws, axis=1, keepdims=True)
