"""Which method finds the canonical link of a generator, and the derivatives of link and loss.

Where the logits and the parameters of F move, so that z − ∇F(p) at a fixed p would move by r, p
moves along the face that it is on, by the x with

    H(p)x + t1 = r on the support of p,    x = 0 elsewhere,    Σx = 0.

No iteration is differentiated. Arrays are class-major, `[K, n]` with one example per column.

>>> import jax.numpy as jnp
>>> from pgeom.generators import squared_norm
>>> z = jnp.array([[0.0], [-1.0]])
>>> solve_link(squared_norm, z).p
Array([[0.75],
       [0.25]], dtype=float32)
>>> solve_loss(squared_norm, z, jnp.array([[0.0], [1.0]]))
Array([1.125], dtype=float32)
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float

from pgeom import simplex
from pgeom.derivatives import derivative_of, pushforward
from pgeom.functions import closure_converted, scalar_function
from pgeom.generators import (
    Combination,
    Hyperbolic,
    Quadratic,
    Separable,
    SeparableGenerator,
    Spherical,
    SquaredNorm,
    parts,
)
from pgeom.links import interior_point, projected_gradient, threshold
from pgeom.links.projected_gradient import gap_and_rounding, multipliers, slopes
from pgeom.links.threshold import Columns, Maximum
from pgeom.scores import bregman_divergence, values_at
from pgeom.types import Generator

FARTHEST = 1e18  # logits further below the largest, in the unit of F, change nothing
ACCEPTED = 1e4  # units of rounding up to which a gap is an answer


class Method(NamedTuple):
    """How a link is computed.

    Attributes:
      maximise: `(F, z) -> Maximum`, for logits whose largest is zero.
      respond: `(F, p, z, r) -> x`, its derivative, as above.
    """

    maximise: Callable
    respond: Callable


BY_THRESHOLD = Method(threshold.maximise, threshold.respond)
SPHERICAL = Method(threshold.maximise, projected_gradient.respond)
BY_GRADIENTS = Method(projected_gradient.maximise, projected_gradient.respond)
BY_INTERIOR_POINTS = Method(interior_point.maximise, interior_point.respond)


def choose_method(F: Generator) -> Method:
    """By a threshold, by projected gradients, or by an interior-point method."""
    every = [part for _, part in parts(F)]
    if all(isinstance(part, SeparableGenerator) for part in every):
        return BY_THRESHOLD
    if len(every) == 1 and isinstance(every[0], Spherical):
        return SPHERICAL
    if all(isinstance(part, (Quadratic, Hyperbolic, SquaredNorm)) for part in every):
        return BY_GRADIENTS
    return BY_INTERIOR_POINTS


def in_unit(F: Generator, z: Columns) -> tuple[Generator, Columns, Array]:
    """F and z in a unit in which the slopes of F are not small, the largest logit at zero.

    In it no tolerance depends on the units of the user. It is a power of two, by which no digit
    changes, and at most one where a tiny loss is exact and would underflow. In a `shard_map` z then
    varies over every axis of devices over which z or F do: loops and traced functions keep such
    types, and the gradient of F at a point that is the same on every device would be the sum over
    devices.
    """
    K, function = len(z), scalar_function(F)
    centre = jnp.full_like(jnp.sum(z, axis=1), 1 / K)
    centre = centre + jnp.zeros_like(function(centre))
    first, last = ((centre + simplex.vertex(k, K, z.dtype)) / 2 for k in (0, K - 1))
    middle, *others = (jax.grad(function)(p) for p in (centre, first, last))
    apart = jnp.maximum(*(jnp.max(jnp.abs(other - middle)) for other in others))
    size = jnp.max(jnp.abs(middle)) + apart
    by_interior_points = choose_method(F) is BY_INTERIOR_POINTS
    size = size if by_interior_points else jnp.minimum(size, 1.0)
    unit = jnp.exp2(jnp.floor(jnp.log2(jnp.where((size > 0) & (size < jnp.inf), size, 1.0))))
    largest, unit = jax.lax.stop_gradient((jnp.max(z, axis=0, keepdims=True), unit))
    if by_interior_points:
        divided = Combination((1 / unit,), (function,))
    else:
        divided = jax.tree.map(lambda x: jnp.asarray(x, z.dtype), F).rescaled(1 / unit)
    return divided, (z - largest) / unit, unit


def solve_link(F: Generator, z: Columns) -> Maximum:
    """p(z), with its derivatives in z and in the parameters of F."""
    method = choose_method(F)
    parameters, tree = jax.tree.flatten(_with_parameters(F, z))

    below = jnp.maximum(z, -FARTHEST)
    fixed = jax.lax.stop_gradient((parameters, below))
    found = method.maximise(tree.unflatten(fixed[0]), fixed[1])
    # a search may take no step from NaN, and end where it began
    found = found._replace(p=jnp.where(jnp.any(jnp.isnan(below), axis=0), jnp.nan, found.p))

    @jax.custom_jvp
    def point(p, z, parameters):
        return p

    # By hand because the iteration need not be differentiated.
    @derivative_of(point)
    def rules(p, found, z, parameters):
        def respond(residual):
            return method.respond(tree.unflatten(parameters), p, z, residual)

        def slopes_at(*parameters):
            return slopes(tree.unflatten(parameters), simplex.interior(p))

        def respond_to_parameters(dots):
            return respond(-pushforward(slopes_at, parameters, dots))

        return None, respond, respond_to_parameters

    return found._replace(p=point(found.p, below, parameters))


def solve_loss(F: Generator, z: Columns, eta: Columns) -> Float[Array, " n"]:
    """F*(z) − ⟨z, η⟩ + F(η), whose gradient in z is p(z) − η."""
    parameters, tree = jax.tree.flatten(_with_parameters(F, z))

    @jax.custom_jvp
    def loss(p, z, eta, parameters):
        return _value(tree.unflatten(parameters), p, z, eta)

    # By hand because by the envelope theorem the slope in p is zero, but not in rounding.
    @derivative_of(loss)
    def rules(out, p, z, eta, parameters):
        def slope_in_z(dot):
            away = jax.vmap(simplex.displacement, in_axes=1, out_axes=1)(eta, p)
            return -jnp.sum(away * dot, axis=0)

        def slope_in_eta(dot):
            slope = slopes(tree.unflatten(parameters), simplex.interior(eta))
            return jnp.sum((slope - jnp.maximum(z, jnp.finfo(z.dtype).min)) * dot, axis=0)

        def difference(*parameters):
            F = tree.unflatten(parameters)
            return values_at(F, eta.T) - values_at(F, p.T)

        def slope_in_parameters(dots):
            return pushforward(difference, parameters, dots)

        return None, slope_in_z, slope_in_eta, slope_in_parameters

    return loss(solve_link(F, z).p, z, eta, parameters)


def _with_parameters(F: Generator, z) -> Generator:
    """F as a pytree, with what its functions close over among its leaves."""
    if choose_method(F) is BY_INTERIOR_POINTS:
        return _closed(F, jnp.sum(z, axis=1))
    if isinstance(F, Combination):
        return replace(F, generators=tuple(_with_parameters(part, z) for part in F.generators))
    return Separable(_closed(F.function, jnp.sum(z))) if isinstance(F, Separable) else F


def _closed(function: Callable, x) -> Partial:
    pure, parameters = closure_converted(function, x)
    return Partial(lambda *values: pure(values[-1], *values[:-1]), *parameters)


def _value(F: Generator, p, z, eta):
    """D_F(η, p) + ⟨s, η⟩: no term is negative, and the first has closed forms."""
    inside = simplex.interior(p)
    s = multipliers(F, p, z)
    by_interior_points = choose_method(F) is BY_INTERIOR_POINTS
    s = s if by_interior_points else jnp.where(p > 0, 0.0, s)  # the other methods know the support
    pull = jnp.where(eta > 0, eta * s, 0.0)  # 0 · ∞ counts as 0
    value = bregman_divergence(F)(eta.T, inside.T) + jnp.sum(pull, axis=0)
    if not by_interior_points:
        return value
    # at a kink of F the multipliers are those of one side, and the sum is some other number
    return jnp.where(judge(F, p, z)[1], value, jnp.nan)


def judge(F: Generator, p: Columns, z: Columns) -> tuple[Array, Array]:
    """The optimality gap of each column, and whether p is an answer, `[n]`."""
    slope = slopes(F, simplex.interior(p))
    gap, rounding = gap_and_rounding(p, jnp.maximum(z, -FARTHEST), slope)
    return gap, gap <= ACCEPTED * rounding
