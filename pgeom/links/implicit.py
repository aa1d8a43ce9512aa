"""Derivatives of a canonical link, from the equations that its value solves.

Where the logits and the parameters of F move, so that z − ∇F(p) at a fixed p would move by r, p
moves along the face that it is on, by the x with

    H(p)x + t1 = r on the support of p,    x = 0 elsewhere,    Σx = 0.

No iteration is differentiated. Each function is linear in r and differentiable in p. Arrays are
class-major, `[K, n]`.

>>> import jax.numpy as jnp
>>> from pgeom.generators import squared_norm
>>> p, r = jnp.array([[0.75], [0.25], [0.0]]), jnp.array([[1.0], [0.0], [0.0]])
>>> diagonal(squared_norm, p, jnp.zeros_like(p), r)
Array([[ 0.25],
       [-0.25],
       [-0.  ]], dtype=float32)
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom import simplex
from pgeom.links.interior_point import bordered
from pgeom.links.threshold import curvatures, row_sum, slopes
from pgeom.types import Generator


def diagonal(
    F: Generator, p: Float[Array, "K n"], s: Float[Array, "K n"], r: Float[Array, "K n"]
) -> Float[Array, "K n"]:
    """For a separable F, by the formula D(r − ⟨D, r⟩/ΣD), D = 1/f″(p)."""
    support = p > 0
    flattest = jnp.sqrt(jnp.finfo(p.dtype).tiny)  # where f″ vanishes, ΣD would overflow
    bends = curvatures(F, jnp.where(support, simplex.interior(p), 0.5))
    D = jnp.where(support, 1 / jnp.maximum(bends, flattest), 0.0)
    share = D / row_sum(D)
    x = D * (r - row_sum(share * r))
    dominant = share > 0.5  # minus the sum of the others, or it would lose their digits
    return jnp.where(dominant, -row_sum(jnp.where(dominant, 0.0, x)), x)


def conjugate_gradients(
    F: Generator, p: Float[Array, "K n"], s: Float[Array, "K n"], r: Float[Array, "K n"]
) -> Float[Array, "K n"]:
    """For an F with bounded curvature, in O(K) memory: by products with its Hessian alone."""
    return solve_on_face(partial(slopes, F), p, r)


def solve_on_face(
    slopes: Callable, p: Float[Array, "K n"], r: Float[Array, "K n"]
) -> Float[Array, "K n"]:
    """x from r and `slopes(p[K, n])`, the gradient of F at each column, by conjugate gradients."""
    support = p > 0
    count = row_sum(support.astype(p.dtype))

    def centre(v):
        kept = jnp.where(support, v, 0.0)
        return jnp.where(support, kept - row_sum(kept) / count, 0.0)

    def multiply(v):
        return centre(jax.jvp(slopes, (p,), (centre(v),))[1])

    return jax.lax.custom_linear_solve(
        multiply, centre(r), lambda _, b: _solve(multiply, centre, b), symmetric=True
    )


def dense(
    F: Generator, p: Float[Array, "K n"], s: Float[Array, "K n"], r: Float[Array, "K n"]
) -> Float[Array, "K n"]:
    """For any F, in O(K²) memory, with the scaled matrix of `interior_point`."""

    def one(p, s, r):
        q = jnp.sqrt(jax.lax.stop_gradient(p))  # a mere scaling, which cancels
        H = jax.hessian(F)(simplex.interior(p, 0.5))
        degenerate = jnp.where(p + s > 0, 0.0, 1.0)
        matrix = bordered(q[:, None] * H * q[None, :] + jnp.diag(s + degenerate), q)
        return q * jnp.linalg.solve(matrix, jnp.append(q * r, jnp.zeros(1, r.dtype)))[:-1]

    s = jax.lax.stop_gradient(s)
    return jax.vmap(one, in_axes=1, out_axes=1)(p, s, r)


class _State(NamedTuple):
    x: Array
    residual: Array
    direction: Array
    square: Array
    steps: Array


def _solve(multiply, centre, b):
    """Conjugate gradients for every column at once, to the rounding of b."""
    size = jnp.max(jnp.abs(b), axis=0, keepdims=True)
    unit = jnp.where(size > 0, size, 1.0)  # squares of a tiny b would underflow
    # what rounding leaves along 1 cannot be solved for, and would be blown up
    b = centre(b / unit)
    smallest = (4 * jnp.finfo(b.dtype).eps) ** 2 * row_sum(b**2)

    def advance(state: _State) -> _State:
        product = multiply(state.direction)
        bend = row_sum(state.direction * product)
        # a column that has settled rests: its direction is all rounding
        moving = (state.square > smallest) & (bend > 0)
        length = jnp.where(moving, state.square / jnp.where(moving, bend, 1.0), 0.0)
        residual = centre(state.residual - length * product)
        square = row_sum(residual**2)
        follow = square / jnp.where(state.square > 0, state.square, 1.0)
        direction = residual + follow * state.direction
        return _State(
            state.x + length * state.direction, residual, direction, square, state.steps + 1
        )

    def unsettled(state: _State):
        return (state.steps < 2 * b.shape[0] + 20) & jnp.any(state.square > smallest)

    first = _State(jnp.zeros_like(b), b, b, row_sum(b**2), jnp.zeros((), jnp.int32))
    return unit * jax.lax.while_loop(unsettled, advance, first).x
