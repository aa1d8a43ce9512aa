"""Which method finds the canonical link of a generator, and the derivatives of link and loss.

Everything here takes a batch of logits, class-major: `[K, n]` with one example per column.

>>> import jax.numpy as jnp
>>> from pgeom.generators import squared_norm
>>> link_columns(squared_norm, jnp.array([[1.0], [0.0]])).p
Array([[0.75],
       [0.25]], dtype=float32)
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float

from pgeom import simplex
from pgeom.derivatives import pushforward, sum_of_slopes
from pgeom.functions import closure_converted, scalar_function
from pgeom.generators import ClosedGenerator, Combination, Separable
from pgeom.links import descent, implicit, interior_point, threshold
from pgeom.links.threshold import ACCEPTED, Maximum, gap_and_rounding, row_sum, slopes, unit
from pgeom.scores import bregman_divergence, values_at
from pgeom.types import Generator

FARTHEST = 1e18  # logits further below the largest, in the unit of F, change nothing
NOISE = 16  # units of rounding, below which a multiplier cannot be told from zero


class Method(NamedTuple):
    """How a link is computed.

    Attributes:
      maximise: `(F, z) -> Maximum`, for logits whose largest is zero.
      respond: `(F, p, s, r) -> x`, its derivative; see `implicit`.
    """

    maximise: Callable
    respond: Callable


def choose_method(F: Generator) -> Method:
    """By a threshold, by accelerated gradients, or by an interior-point method."""
    if threshold.is_separable(F):
        return Method(threshold.maximise, implicit.diagonal)
    if threshold.has_threshold(F):
        return Method(threshold.maximise, implicit.conjugate_gradients)
    if descent.has_bounded_curvature(F):
        return Method(descent.maximise, implicit.conjugate_gradients)
    return Method(interior_point.maximise, implicit.dense)


def link_columns(F: Generator, z: Float[Array, "K n"]) -> Maximum:
    """p(z), with its derivatives in z and in the parameters of F."""
    method, (pure, parameters, (z,)) = choose_method(F), hoisted(F, z)

    @jax.custom_jvp
    def link(z, *parameters):
        F = pure(*parameters)
        size = unit(F, z)
        p, steps = method.maximise(_divided(F, size), shifted(z, size))
        return Maximum(p, steps.astype(z.dtype))

    def link_jvp(primals, tangents):
        # By hand because the iteration need not be differentiated: see `implicit`.
        out = link(*primals)
        moved = _response(method, pure, out.p, primals, tangents)
        return out, Maximum(moved, jnp.zeros_like(out.steps))

    link.defjvp(link_jvp, symbolic_zeros=True)
    p, steps = link(
        _below_largest(z), *parameters
    )  # no integers: in a shard_map they have no slope
    return Maximum(p, steps.astype(int))


def loss_columns(
    F: Generator, z: Float[Array, "K n"], eta: Float[Array, "K n"]
) -> Float[Array, " n"]:
    """F*(z) − ⟨z, η⟩ + F(η), whose gradient in z is p(z) − η."""
    pure, parameters, (z, eta) = hoisted(F, z, eta)
    at_point = _loss_at_point(pure)

    def value_and_point(z, eta, *parameters):
        p = link_columns(pure(*parameters), z).p
        return at_point(p, z, eta, *parameters), p

    @jax.custom_jvp
    def loss(z, eta, *parameters):
        return value_and_point(z, eta, *parameters)[0]

    def loss_jvp(primals, tangents):
        # By hand so that a first derivative does not even trace how p moves.
        out, p = value_and_point(*primals)
        return out, _loss_slope(pure, out, p, primals, tangents)

    loss.defjvp(loss_jvp, symbolic_zeros=True)
    return loss(_below_largest(z), eta, *parameters)


def _loss_at_point(pure: Callable) -> Callable:
    """`loss(p, z, eta, *parameters)` for the p of z, which is not differentiated in p."""

    @jax.custom_jvp
    def loss(p, z, eta, *parameters):
        return _value(pure(*parameters), p, z, eta)

    def loss_jvp(primals, tangents):
        # By hand because by the envelope theorem the slope in p is zero, but not in rounding.
        out, (p, *others) = loss(*primals), primals
        return out, _loss_slope(pure, out, p, others, tangents[1:])

    loss.defjvp(loss_jvp, symbolic_zeros=True)
    return loss


def _loss_slope(pure: Callable, out, p, primals, tangents):
    """How the loss moves with z, η and the parameters, where p is that of z."""
    (z, eta, *parameters), (z_dot, eta_dot, *parameter_dots) = primals, tangents

    def slope_in_eta(dot):
        slope = slopes(pure(*parameters), simplex.interior(eta))
        return jnp.sum((slope - jnp.maximum(z, jnp.finfo(z.dtype).min)) * dot, axis=0)

    def slope_in_parameters(dots):
        def difference(*parameters):
            F = pure(*parameters)
            return values_at(F, eta.T) - values_at(F, p.T)

        return pushforward(difference, parameters, dots)

    away = jax.vmap(simplex.displacement, in_axes=1, out_axes=1)(eta, p)
    z_term = (z_dot, lambda dot: -jnp.sum(away * dot, axis=0))
    eta_term, others = (eta_dot, slope_in_eta), (list(parameter_dots), slope_in_parameters)
    return sum_of_slopes(out, z_term, eta_term, others)


def shifted(z: Float[Array, "K n"], size: Float[Array, ""]) -> Float[Array, "K n"]:
    """z over `size` with the largest logit at zero, which changes no link, and −∞ far below it."""
    return jnp.maximum(_below_largest(z) / size, -FARTHEST)


def _below_largest(z):
    return z - jax.lax.stop_gradient(jnp.max(z, axis=0, keepdims=True))


def _divided(F: Generator, size) -> Generator:
    """F/size, of a kind that the same method applies to."""
    return F.rescaled(1 / size) if isinstance(F, ClosedGenerator) else lambda p: F(p) / size


def hoisted(F: Generator, *columns: Array) -> tuple[Callable, list, tuple[Array, ...]]:
    """`pure(*parameters) -> F`, and what custom_jvp needs as arguments: the parameters and columns.

    In a `shard_map` the columns, z first, are made to vary over every axis of devices over which
    one of them or a parameter does: loops and traced functions keep such types, and the gradient of
    F at a point that is the same on every device would be the sum over devices.
    """
    pure, parameters = _with_parameters(F, columns[0])
    zeros = [jnp.sum(jnp.zeros_like(x, columns[0].dtype)) for x in (*columns, *parameters)]
    varying = tuple(x + sum(zeros) for x in columns)
    if any(jax.typeof(x) != jax.typeof(y) for x, y in zip(columns, varying, strict=True)):
        columns = varying
        pure, parameters = _with_parameters(F, columns[0])
    return pure, parameters, columns


def _with_parameters(F: Generator, z) -> tuple[Callable, list]:
    """`pure(*parameters) -> F` and the parameters: leaves of F, or what it closes over."""
    if choose_method(F).maximise is not interior_point.maximise:
        leaves, tree = jax.tree.flatten(_without_closures(F, jnp.sum(z)))
        return lambda *values: tree.unflatten(values), [jnp.asarray(x, z.dtype) for x in leaves]
    function, parameters = closure_converted(scalar_function(F), jnp.sum(z, axis=1))
    return lambda *values: lambda p: function(p, *values), parameters


def _without_closures(F: Generator, x: Float[Array, ""]) -> Generator:
    """F, with what its functions of one number x close over as leaves."""
    if isinstance(F, Combination):
        return replace(F, generators=tuple(_without_closures(part, x) for part in F.generators))
    if not isinstance(F, Separable):
        return F
    function, parameters = closure_converted(F.function, x)
    return Separable(Partial(lambda *values: function(values[-1], *values[:-1]), *parameters))


def _response(method: Method, pure: Callable, p, primals, tangents):
    """How p moves with z and the parameters."""
    (z, *parameters), (z_dot, *parameter_dots) = primals, tangents
    F, inside = pure(*parameters), simplex.interior(p)

    def slope_in_parameters(dots):
        return -pushforward(lambda *values: slopes(pure(*values), inside), parameters, dots)

    moved = sum_of_slopes(p, (z_dot, lambda dot: dot), (parameter_dots, slope_in_parameters))
    size = unit(F, z)
    s = _multipliers(F, p, size * shifted(z, size))
    return method.respond(F, p, s, moved)


def _value(F: Generator, p, z, eta):
    """D_F(η, p) + ⟨s, η⟩: no term is negative, and the first has closed forms."""
    inside = simplex.interior(p)
    s = _multipliers(F, p, z)
    pull = jnp.where(eta > 0, eta * s, 0.0)  # 0 · ∞ counts as 0
    value = bregman_divergence(F)(eta.T, inside.T) + jnp.sum(pull, axis=0)
    if choose_method(F).maximise is not interior_point.maximise:
        return value
    # at a kink of F the multipliers are those of one side, and the sum is some other number
    gap, rounding = scaled_gap(F, p, z)
    return jnp.where((gap > ACCEPTED * rounding)[0], jnp.nan, value)


def scaled_gap(F: Generator, p: Float[Array, "K n"], z: Float[Array, "K n"]):
    """The optimality gap of each column and its rounding, `[1, n]`, in the unit of F and z."""
    size = unit(F, p)
    slope = slopes(F, simplex.interior(p))
    gap, rounding = gap_and_rounding(p, shifted(z, size), slope / size)
    return size * gap, size * rounding


def _multipliers(F: Generator, p, z):
    """s_j = ⟨r, p⟩ − r_j, r = z − ∇F(p); zero where it cannot be told from zero.

    At the maximiser ⟨r, p⟩ is the largest r_k. Of two numbers that rounding alone tells apart it is
    the better one: an entry counts by its probability, and one that is negligible may have a slope
    so large that its r_k is all rounding.
    """
    slope, size = slopes(F, simplex.interior(p)), unit(F, z)
    sizes = size + jnp.abs(slope) - z
    level, noise_of_level = (row_sum(jnp.where(p > 0, p * x, 0.0)) for x in (z - slope, sizes))
    s = level - (z - slope)
    noise = NOISE * jnp.finfo(z.dtype).eps * (sizes + noise_of_level)
    # the support of a threshold is known, and no multiplier of its classes is left to be told
    zero = (p > 0) if threshold.has_threshold(F) else (s < noise)
    return jnp.where(zero | (s < 0), 0.0, s)
