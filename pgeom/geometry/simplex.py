"""Points and directions of the probability simplex.

>>> import jax.numpy as jnp
>>> project(jnp.array([0.9, 0.5, -2.0]))
Array([0.7, 0.3, 0. ], dtype=float32)
"""

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import edge


def vertex(label: jax.Array, K: int, dtype=jnp.float32) -> jax.Array:
    """The vertex e_y `[K]` of a scalar label."""
    return (jnp.arange(K) == label).astype(dtype)


def pick(values: jax.Array, label: jax.Array) -> jax.Array:
    """The entry of `values[K]` at a scalar label, by a select: no gather, no scatter."""
    return jnp.sum(jnp.where(jnp.arange(values.shape[-1]) == label, values, 0.0))


def argmax_mask(values: jax.Array) -> jax.Array:
    """Where `values[K]` is largest, at the first of equals: a mask `[K]` with one True.

    By two plain reductions: XLA's argmax on a CPU is several times slower to compile and to run.
    """
    places = jnp.arange(values.shape[-1])
    first = jnp.min(jnp.where(values == jnp.max(values), places, values.shape[-1]))
    return places == first


def interior(p: jax.Array, power: float = 1.0) -> jax.Array:
    """`p`, with no entry below the smallest normal number to a power of at most one.

    Generators with a divergent gradient (Shannon, Tsallis α < 1) are not differentiable on the
    boundary, where softmax puts p_j by underflow. At the power 1 the floor is 1e-38 in float32
    and 1e-308 in float64, where log p and 1/p are finite; at 1/2 also p^(−2) is.
    It counts as a constant: derivatives on the boundary are those next to it.
    """
    floor = jnp.asarray(float(jnp.finfo(p.dtype).tiny) ** power, p.dtype)
    return p + jax.lax.stop_gradient(jnp.maximum(floor - p, 0))


def log_entries(p: jax.Array) -> jax.Array:
    """log p: −∞ where p is zero, where the derivative is that next to it."""
    return jnp.log(interior(p)) + jax.lax.stop_gradient(jnp.where(p > 0, 0.0, -jnp.inf))


def move_dominant(p, moved):
    """`moved`, with the entry where p is next to one moved by minus what the others move."""
    others = jnp.where(p > 0.5, 0.0, moved)
    return jnp.where(p > 0.5, -jnp.sum(others), others)


def towards_vertex(p: jax.Array, label: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The vertex e_y and the displacement d = e_y − p, exact however close p is.

    d_y is the mass of the competitors, Σ_{j≠y} p_j: 1 − p_y would have lost it to rounding.

    Args:
      p: `[K]`.
      label: the scalar y.

    Returns:
      `(e_y, d)`, both `[K]`.
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
def displacement(q: jax.Array, p: jax.Array) -> jax.Array:
    """q − p `[K]`, with the entry where p is next to one taken from the others: Σ(q − p) = 0."""
    return move_dominant(p, q - p)


@displacement.defjvp
def _displacement_jvp(primals, tangents):
    # By hand for the reason of `towards_vertex`.
    return displacement(*primals), tangents[0] - tangents[1]


def tangent_basis(K: int) -> np.ndarray:
    """An orthonormal basis `[K, K−1]` of {x : Σx = 0}, the Helmert columns, in float64."""
    edge.check_num_classes(K)
    rows, columns = np.arange(K)[:, None], np.arange(1, K)[None, :]
    helmert = np.where(rows < columns, 1.0, np.where(rows == columns, -1.0 * columns, 0.0))
    return helmert / np.linalg.norm(helmert, axis=0)


def project(x: jax.Array) -> jax.Array:
    """The nearest point of the simplex to `x[..., K]`, by sorting.

    Returns:
      max(x − θ, 0) with the θ that makes it sum to one, `[..., K]`.
    """
    descending = jnp.sort(x, axis=-1, descending=True)
    ranks = jnp.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    thresholds = (jnp.cumsum(descending, axis=-1) - 1) / ranks.reshape((1,) * (x.ndim - 1) + (-1,))
    # the thresholds rise up to the support's size and fall after it
    return jnp.maximum(x - jnp.max(thresholds, axis=-1, keepdims=True), 0)


def uniform(key: jax.Array, K: int, count: int) -> jax.Array:
    """`count` independent points `[count, K]` of Dirichlet(1): normalised exponentials."""
    edge.check_num_classes(K)
    # drawn flat: the two-dimensional form takes XLA five times as long to compile
    draws = jax.random.exponential(key, (count * K,)).reshape(count, K)
    return draws / jnp.sum(draws, axis=1, keepdims=True)
