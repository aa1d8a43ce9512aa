"""The probability simplex: points and directions, softmax, log-cosh and powers.

Points and directions of the probability simplex.

>>> import jax.numpy as jnp
>>> project(jnp.array([0.9, 0.5, -2.0]))
Array([0.7, 0.3, 0. ], dtype=float32)

Helpers for derivative rules written by hand.

A rule registered with `defjvp(..., symbolic_zeros=True)` can see which of its tangents are zero
without being computed. These helpers skip the work for those.

>>> from functools import partial
>>> import jax
>>> @jax.custom_jvp
... def product(x, y): return x * y
>>> @partial(product.defjvp, symbolic_zeros=True)
... def product_jvp(primals, tangents):
...     (x, y), (x_dot, y_dot) = primals, tangents
...     out = product(x, y)
...     return out, sum_of_slopes(out, (x_dot, lambda dot: y * dot), (y_dot, lambda dot: x * dot))
>>> float(jax.grad(product)(2.0, 3.0))
3.0

Probabilities, log-probabilities and log-odds of logits, accurate close to a vertex too.

>>> import jax.numpy as jnp
>>> softmax_cross_entropy(jnp.array([20.0, 0.0]), 0)  # log(1 + e^−20): p_y rounds to one
Array(2.0612e-09, dtype=float32)

log cosh and its Bregman divergence, accurate at every scale.

>>> import jax.numpy as jnp
>>> log_cosh_divergence(jnp.array([0.0]), jnp.array([1e-4]))    # ½ h² for small h
Array([5.000e-09], dtype=float32)

The Bregman divergence of the powers, x ↦ (x^α − x)/(α − 1), accurate at every scale.

    D_α(q, p) = [q^α − p^α − α p^{α−1}(q − p)]/(α − 1)

It is the contribution of one class to the divergence of the Tsallis entropy; at α = 1, where
x ↦ x log x, to that of Shannon's. As written, the formula cancels where p is close to q and where
α is close to 1. With L = log(q/p), β = α − 1 and R(x) = (eˣ − 1)/x it is

    p^α Σ_{n≥2} α(1 + α + … + α^{n−2}) Lⁿ/n!        for small |L|, all terms of one sign for q > p
    q^α [L R(−βL) − e^{−βL}(1 − e^{−L})]            for p < q and α ≥ 1
    q^α [α L R(−βL) − (1 − e^{−αL})]                for p < q and α < 1
    p^α [e^L L R(βL) − (e^L − 1)]                   for p > q
    p^α [(1 − e^{αL}) − α(1 − e^L)]/(1 − α)         for p > q and α < ½

>>> import jax.numpy as jnp
>>> q, p = jnp.array([1.0]), jnp.array([0.999])
>>> power_divergence(q, q - p, jnp.log(p), 1.0)    # −log 0.999 − 0.001
Array([5.003e-07], dtype=float32)

Tempered logarithm and exponential, with their ordinary namesakes as exact limits.

    log_t(x) = (x^{1−t} − 1)/(1 − t),   exp_t(x) = [1 + (1 − t)x]₊^{1/(1−t)}

Both use expm1 and log1p, so that no digits are lost as t → 1.

>>> import jax.numpy as jnp
>>> tempered_log(jnp.array([0.25]), jnp.array([1.0]))
Array([-1.3863], dtype=float32)
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from pgeom import checks
from pgeom.types import Label, Number


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
    checks.check_num_classes(K)
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
    checks.check_num_classes(K)
    # drawn as one vector: a two-dimensional draw takes XLA five times as long to compile
    draws = jax.random.exponential(key, (count * K,)).reshape(count, K)
    return draws / jnp.sum(draws, axis=1, keepdims=True)


Tangent: TypeAlias = Any
"""An array, or what JAX passes for a tangent that is zero or that belongs to an integer."""


def sum_of_slopes(
    out: Float[ArrayLike, "*shape"], *terms: tuple[Tangent | list[Tangent], Callable]
) -> Float[Array, "*shape"]:
    """Σ rule(tangent) over the pairs `(tangent, rule)` whose tangent is not known to be zero.

    Args:
      out: the output of the function, for its shape and dtype.
      terms: pairs of a tangent and a rule that is linear in it. A tangent may be a list; its rule
        then takes the list, with None for those known to be zero.

    Returns:
      The tangent of `out`.
    """
    moving = [(_nonzero(tangent), rule) for tangent, rule in terms]
    slopes = [rule(tangent) for tangent, rule in moving if tangent is not None]
    return sum(slopes[1:], slopes[0]) if slopes else jnp.zeros_like(out)


def pushforward(
    function: Callable, primals: Sequence[Any], tangents: Sequence[Tangent]
) -> Float[Array, "..."]:
    """The tangent of `function(*primals)`, where a tangent of None is zero and costs nothing."""
    moving = [i for i, tangent in enumerate(tangents) if tangent is not None]

    def restricted(*moved):
        arguments = list(primals)
        for i, value in zip(moving, moved, strict=True):
            arguments[i] = value
        return function(*arguments)

    return jax.jvp(restricted, [primals[i] for i in moving], [tangents[i] for i in moving])[1]


def _nonzero(tangent: Tangent | list[Tangent]) -> Tangent | list[Tangent] | None:
    """The tangent, or None if it, or every one in the list, is known to be zero."""
    if not isinstance(tangent, list):
        return None if isinstance(tangent, SymbolicZero) else tangent
    moving = [_nonzero(one) for one in tangent]
    return moving if any(one is not None for one in moving) else None


@jax.custom_jvp
def sigmoid(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """σ(u) = 1/(1 + e^{−u}), elementwise."""
    return jax.nn.sigmoid(u)


@sigmoid.defjvp
def _sigmoid_jvp(primals, tangents):
    # By hand because JAX computes σ(1 − σ), where 1 − σ is all rounding for u ≫ 0.
    (u,), (u_dot,) = primals, tangents
    return sigmoid(u), sigmoid(u) * sigmoid(-u) * u_dot


@jax.custom_jvp
def softplus(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """log(1 + eᵘ), elementwise."""
    return jax.nn.softplus(u)


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    # By hand because the second derivative is σ(u)σ(−u), as above.
    (u,), (u_dot,) = primals, tangents
    return softplus(u), sigmoid(u) * u_dot


def centred(logits: Float[Array, "*batch K"]) -> Float[Array, "*batch K"]:
    """The logits less the largest of them, on which no loss depends.

    What multiplies them rounds relative to the gaps between them, not to what they have in common.
    """
    largest = jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
    return logits - jnp.where(jnp.isfinite(largest), largest, 0.0)


@jax.custom_jvp
def log_odds_against(
    logits: Float[Array, " K"], label: Label, offsets: Float[Array, " K"] | None = None
) -> Float[Array, ""]:
    """u = log(Σ_{j≠y} e^{z_j}) − z_y, the log-odds against the label.

    p_y = σ(−u), 1 − p_y = σ(u) and −log p_y = softplus(u), each accurate near p_y = 0 and p_y = 1
    alike; log_softmax is accurate only near 0. A logit of −∞ rules its class out.

    Args:
      logits: z.
      label: y.
      offsets: to be added to z, of which they need not be a small part to keep their digits.
    """
    top, terms = _terms_of_others(logits, label, offsets)
    # the difference of logits first, which loses nothing that they have in common
    ahead = top - pick(logits, label)
    if offsets is not None:
        ahead = ahead - offsets[label]
    return ahead + jnp.log(jnp.sum(terms))


@log_odds_against.defjvp
def _log_odds_against_jvp(primals, tangents):
    # By hand because autodiff divides zero by zero where all other classes are ruled out.
    (logits, label, offsets), (logits_dot, _, offsets_dot) = primals, tangents
    shares = _shares_of_others(logits, label, offsets)
    dot = logits_dot if offsets is None else logits_dot + offsets_dot
    slope = jnp.sum(shares * dot) - pick(dot, label)
    return log_odds_against(logits, label, offsets), slope


@jax.custom_jvp
def _shares_of_others(logits, label, offsets):
    """p_j/(1 − p_y) for j ≠ y, and zero for y; zeros where all others are ruled out."""
    _, terms = _terms_of_others(logits, label, offsets)
    total = jnp.sum(terms)
    return terms / jnp.where(total > 0, total, 1.0)


@_shares_of_others.defjvp
def _shares_of_others_jvp(primals, tangents):
    # By hand for the same reason as `softmax`.
    (logits, label, offsets), (logits_dot, _, offsets_dot) = primals, tangents
    shares = _shares_of_others(logits, label, offsets)
    dot = logits_dot if offsets is None else logits_dot + offsets_dot
    return shares, _change(shares, shares, gaps_to_dominant(shares, dot))


def _terms_of_others(logits, label, offsets):
    """z_m, the largest logit of the other classes, and e^{z_j − z_m} for each of them."""
    mine = jnp.arange(logits.shape[-1]) == label
    others = jnp.where(mine, -jnp.inf, logits if offsets is None else logits + offsets)
    top = jax.lax.stop_gradient(jnp.max(others))
    top = jnp.where(top > -jnp.inf, top, 0.0)
    if offsets is not None:
        others = jnp.where(mine, -jnp.inf, (logits - top) + offsets)
        return top, jnp.exp(others)
    return top, jnp.exp(others - top)


@jax.custom_jvp
def softmax_cross_entropy(
    logits: Float[Array, " K"], label: Label, offsets: Float[Array, " K"] | None = None
) -> Float[Array, ""]:
    """−log softmax(z + offsets)_y, without rounding p_y to zero or one."""
    return softplus(log_odds_against(logits, label, offsets))


@softmax_cross_entropy.defjvp
def _cross_entropy_jvp(primals, tangents):
    # By hand because in second derivatives the parts of p_y and of the shares of others cancel.
    (logits, label, offsets), (logits_dot, _, offsets_dot) = primals, tangents
    dot = logits_dot if offsets is None else logits_dot + offsets_dot
    slope = jnp.sum(_residual(logits, label, offsets) * dot)
    return softmax_cross_entropy(logits, label, offsets), slope


@jax.custom_jvp
def _residual(logits, label, offsets):
    """p − e_y, with −(1 − p_y) as the sum of the others."""
    mine = jnp.arange(logits.shape[-1]) == label
    rest = sigmoid(log_odds_against(logits, label, offsets))
    return rest * jnp.where(mine, -1.0, _shares_of_others(logits, label, offsets))


@_residual.defjvp
def _residual_jvp(primals, tangents):
    # By hand for the same reason as `softmax`.
    (logits, label, offsets), (logits_dot, _, offsets_dot) = primals, tangents
    dot = logits_dot if offsets is None else logits_dot + offsets_dot
    p = rule_softmax(logits if offsets is None else centred(logits) + offsets)
    return _residual(logits, label, offsets), _change(p, p, gaps_to_dominant(p, dot))


@jax.custom_jvp
def expected_cross_entropy(logits: Float[Array, " K"], eta: Float[Array, " K"]) -> Float[Array, ""]:
    """Σ_k η_k (−log softmax(z)_k) of any weights η ≥ 0, without rounding any p_k to zero or one.

    With m the largest logit it is Σ_k η_k (z_m − z_k) + log(1 + Σ_{j≠m} e^{z_j − z_m}): no term is
    negative, and a class of weight zero may have a logit of −∞.
    """
    below = logits - jnp.max(logits)
    behind = jnp.sum(jnp.where(eta > 0, eta * -below, 0.0))
    return behind + jnp.sum(eta) * _log_sum_below(below)


def _log_sum_below(below):
    """log Σ_k e^{x_k} for numbers with maximum 0, which is not rounded to zero."""
    powers = jnp.sum(jnp.where(below < 0, jnp.exp(below), 0.0))
    ties = jnp.sum(jnp.where(below < 0, 0.0, 1.0).astype(below.dtype)) - 1
    return jnp.log1p(powers + ties)


@partial(expected_cross_entropy.defjvp, symbolic_zeros=True)
def _expected_cross_entropy_jvp(primals, tangents):
    # By hand because autodiff rounds the slope p Ση − η close to a vertex.
    (logits, eta), (logits_dot, eta_dot) = primals, tangents
    out = expected_cross_entropy(logits, eta)

    def slope_in_logits(dot):
        p = rule_softmax(logits)
        return jnp.sum(move_dominant(p, jnp.sum(eta) * p - eta) * dot)

    # only where η is differentiated: a constant η of zero may meet log p = −∞
    eta_term = (eta_dot, lambda dot: -jnp.sum(log_softmax(logits) * dot))
    return out, sum_of_slopes(out, (logits_dot, slope_in_logits), eta_term)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def softmax(logits: Float[Array, " K"], floored: bool = False) -> Float[Array, " K"]:
    """softmax(z), with derivatives that are accurate close to a vertex.

    Args:
      logits: z.
      floored: whether to differentiate at `simplex.interior` of it, so that a gradient that
        diverges on the boundary is multiplied by a p that is not zero.
    """
    return jax.nn.softmax(logits)


@softmax.defjvp
def _softmax_jvp(floored, primals, tangents):
    # By hand because close to a vertex the Jacobian removes the common part of a score's gradient
    # by a difference that loses every digit. Moving the entry close to one by minus the sum of the
    # others subtracts that class's component first, and exactly.
    (logits,), (logits_dot,) = primals, tangents
    p = rule_softmax(logits, floored)
    return p, _change(p, _inside(p, logits, floored), logits_dot)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def rule_softmax(logits, floored=False):
    """softmax(z), for use in rules of first derivatives, such as its own."""
    return jax.nn.softmax(logits)


@rule_softmax.defjvp
def _softmax_again_jvp(floored, primals, tangents):
    # As above. Besides, the tangents are reduced to gaps first: the change of a small p_k, which is
    # p_k Σ_j p_j (ż_k − ż_j), may be far below the rounding of ż. Gradients alone do not need that,
    # and would have one more sum to compute: hence the two functions.
    (logits,), (logits_dot,) = primals, tangents
    p = rule_softmax(logits, floored)
    return p, _change(p, _inside(p, logits, floored), gaps_to_dominant(p, logits_dot))


def _inside(p, logits, floored):
    return jnp.where(logits > -jnp.inf, interior(p, LOWEST), 0.0) if floored else p


def _change(p, scale, logits_dot):
    """scale_k Σ_j p_j (ż_k − ż_j): for scale = p, the change of p = softmax(z)."""
    return move_dominant(p, scale * (logits_dot - jnp.sum(p * logits_dot)))


@jax.custom_jvp
def log_softmax(logits: Float[Array, " K"]) -> Float[Array, " K"]:
    """log softmax(z), accurate close to a vertex, and so is its derivative."""
    return rule_log_softmax(logits)


@log_softmax.defjvp
def _log_softmax_jvp(primals, tangents):
    # By hand for the same reason as `softmax`.
    (logits,), (logits_dot,) = primals, tangents
    return rule_log_softmax(logits), _log_change(logits, logits_dot)


@jax.custom_jvp
def rule_log_softmax(logits):
    """log softmax(z), for use in rules of first derivatives, such as its own."""
    below = logits - jnp.max(logits)
    return below - _log_sum_below(below)


@rule_log_softmax.defjvp
def _log_softmax_again_jvp(primals, tangents):
    # By hand for the same reason as `rule_softmax`.
    (logits,), (logits_dot,) = primals, tangents
    return rule_log_softmax(logits), _log_change(
        logits, gaps_to_dominant(rule_softmax(logits), logits_dot)
    )


def _log_change(logits, logits_dot):
    """The change of log softmax(z)."""
    p = rule_softmax(logits)
    slope = jnp.where(logits > -jnp.inf, logits_dot - jnp.sum(p * logits_dot), 0.0)
    dominant = p > 0.5
    moved = move_dominant(p, p * slope) / jnp.where(dominant, p, 1.0)
    return jnp.where(dominant, moved, slope)


SMALL = 0.5  # |κ| below which the divergence is computed by series
LARGE = 40.0  # κ above which e^κ is avoided


@jax.custom_jvp
def log_cosh(v: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """log cosh v, elementwise, without overflow."""
    return jnp.logaddexp(v, -v) - math.log(2)


@log_cosh.defjvp
def _log_cosh_jvp(primals, tangents):
    # By hand because autodiff of logaddexp computes two more exponentials than tanh.
    (v,), (v_dot,) = primals, tangents
    return log_cosh(v), _tanh(v) * v_dot


@jax.custom_jvp
def _tanh(v):
    return jnp.tanh(v)


@_tanh.defjvp
def _tanh_jvp(primals, tangents):
    # By hand because 1 − tanh² is all rounding on a saturated ridge; as a product, sech² is exact.
    (v,), (v_dot,) = primals, tangents
    S = _smaller_probability(v)
    return _tanh(v), 4 * S * (1 - S) * v_dot


def _smaller_probability(v):
    """S = σ(−2|v|) ≤ ½."""
    E = jnp.exp(-2 * jnp.abs(v))
    return E / (1 + E)


def log_cosh_divergence(
    v: Float[Array, "*#shape"], h: Float[Array, "*#shape"]
) -> Float[Array, "*#shape"]:
    """log cosh(v + h) − log cosh(v) − h tanh(v), elementwise.

    It is the cumulant generating function of a Bernoulli variable less its mean,

        log(1 − S + S e^κ) − Sκ,   S = σ(−2|v|) ≤ ½,   κ = −2h sign(v),

    which for small κ is S(e^κ − 1 − κ) − φ(S(e^κ − 1)) with φ(x) = x − log(1 + x): a difference
    that never cancels more than half, because S ≤ ½.
    """
    S = _smaller_probability(v)
    kappa = jnp.where(v >= 0, -2 * h, 2 * h)  # the same sign at v = 0 as the slope of |v| there
    small, moderate = jnp.abs(kappa) < SMALL, kappa < LARGE
    k = jnp.where(small, kappa, 0.0)
    excess = _expm1_minus(k)
    near = S * excess - minus_log1p(S * (k + excess))
    # where e^κ or, in derivatives, its square may overflow:
    # log(1 − S + S e^κ) = log(1 + e^c) + log(1 − S) with c = κ − 2|v|
    c = kappa - 2 * jnp.abs(v)
    beyond = jnp.maximum(c, 0.0)
    power = jnp.exp(jnp.where(moderate, kappa, c - 2 * beyond))
    grown = jnp.where(moderate, S * (power - 1), power * (1 - S) - S)
    far = jnp.where(moderate, 0.0, beyond) + jnp.log1p(grown) - S * kappa
    return jnp.where(small, near, far)


@jax.custom_jvp
def log_cosh_divergence_to(
    m: Float[Array, "*shape"], h: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """The divergence from v = m − h to m, elementwise. Its slope in h is h sech² v."""
    return log_cosh_divergence(m - h, h)


@partial(log_cosh_divergence_to.defjvp, symbolic_zeros=True)
def _log_cosh_divergence_to_jvp(primals, tangents):
    # By hand because the other terms of the slope in h cancel in exact arithmetic only.
    (m, h), (m_dot, h_dot) = primals, tangents
    out = log_cosh_divergence_to(m, h)

    def slope_in_h(dot):
        S = _smaller_probability(m - h)
        return 4 * S * (1 - S) * h * dot

    def slope_in_m(dot):
        return jax.jvp(lambda v: log_cosh_divergence(v, h), (m - h,), (dot,))[1]

    return out, sum_of_slopes(out, (h_dot, slope_in_h), (m_dot, slope_in_m))


def _expm1_minus(x):
    """eˣ − 1 − x for |x| < ½, by its series."""
    return x**2 * _polynomial(x, [1 / math.factorial(k) for k in range(2, _last(x, 8, 14) + 1)])


def minus_log1p(x):
    """φ(x) = x − log(1 + x) for −0.2 < x < 0.33, by its series."""
    return x**2 * _polynomial(-x, [1 / k for k in range(2, _last(x, 14, 32) + 1)])


def _polynomial(x, coefficients: list[float]):
    """c₀ + c₁x + c₂x² + …, by Horner's rule."""
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _last(x, single: int, double: int) -> int:
    """The last exponent of a series whose next term is below the rounding of x."""
    return double if x.dtype == jnp.float64 else single


NEAR = 0.5  # |1 − p/q| below which log(q/p) is computed from the difference


@jax.custom_jvp
def power_divergence(
    q: Float[Array, "*shape"],
    d: Float[Array, "*shape"],
    log_p: Float[Array, "*shape"],
    alpha: ArrayLike,
) -> Float[Array, "*shape"]:
    """D_α(q, p), elementwise.

    Args:
      q: ≥ 0.
      d: q − p, which the caller may know more accurately than the difference.
      log_p: log p; −∞ where p is zero, and finite where p has underflowed.
      alpha: α > 0, a scalar.

    Returns:
      The divergence; where α < 1 and p is so small that p^{α−1} comes close to overflow, that of
      the smallest p for which it does not.
    """
    return _value(q, d, log_p, jnp.broadcast_to(jnp.asarray(alpha, q.dtype), q.shape))


@partial(power_divergence.defjvp, symbolic_zeros=True)
def _power_divergence_jvp(primals, tangents):
    # By hand because the other terms of the slope in p cancel in exact arithmetic only: it is
    # −α p^{α−2} d. d moves with q and p and has no slope of its own.
    (q, d, log_p, alpha), (q_dot, _, log_p_dot, alpha_dot) = primals, tangents
    wide = jnp.broadcast_to(jnp.asarray(alpha, q.dtype), q.shape)
    out, floored = power_divergence(q, d, log_p, alpha), _floored(log_p)
    L = _log_ratio(jnp.where(q > 0, q, jnp.finfo(q.dtype).tiny), d, floored, wide)
    capped = _capped(floored, wide)
    power = jnp.exp((wide - 1) * capped)  # p^{α−1}

    def slope_in_log_p(dot):
        return jnp.where(q > 0, -wide * power * d, wide * jnp.exp(wide * floored)) * dot

    def slope_in_q(dot):
        # α(q^β − p^β)/β, from the larger power: the ratio to the smaller one may overflow
        x = (wide - 1) * L
        larger = jnp.exp((wide - 1) * capped + jnp.maximum(x, 0.0))
        return wide * larger * L * expm1_ratio(-jnp.abs(x)) * dot

    def slope_in_alpha(dot):
        dots = jnp.broadcast_to(jnp.asarray(dot, q.dtype), q.shape)
        return jax.jvp(lambda a: _value(q, d, log_p, a), (wide,), (dots,))[1]

    return out, sum_of_slopes(
        out,
        (log_p_dot, slope_in_log_p),
        (q_dot, slope_in_q),
        (alpha_dot, slope_in_alpha),
    )


def _value(q, d, log_p, alpha):
    absent = q <= 0
    present = jnp.where(absent, 1.0, q)
    L = _log_ratio(present, d, _floored(log_p), alpha)
    small = jnp.abs(L) * jnp.maximum(alpha, 1.0) < 1
    above = L >= 0  # q ≥ p
    # a second where, so that no derivative sees the branch that is not taken
    S, beta = jnp.where(small, 1.0, jnp.abs(L)), alpha - 1
    R, E = expm1_ratio(-beta * S), expm1(-S)
    tall = jnp.where(alpha < 1, alpha * S * R + expm1(-alpha * S), S * R + (1 - beta * S * R) * E)
    low = -jnp.exp(-S) * S * R - E  # 1 + E would have lost e^{−S}
    slight = jnp.minimum(alpha, 0.5)
    low = jnp.where(alpha < 0.5, (slight * E - expm1(-slight * S)) / (1 - slight), low)
    far = jnp.where(above, tall, low)
    near = _series(jnp.where(small, L, 0.0), alpha)
    log_scale = jnp.where(above & ~small, jnp.log(present), jnp.where(absent, 0.0, log_p))
    value = jnp.exp(alpha * log_scale) * jnp.where(small, near, far)
    mass = jnp.where(log_p == -jnp.inf, 0.0, jnp.exp(alpha * _floored(log_p)))  # p^α
    return jnp.where(absent, mass, value)


def _series(L, alpha):
    """Σ_{n≥2} α(1 + α + … + α^{n−2}) Lⁿ/n!, for |L| max(1, α) < 1."""
    last = 20 if L.dtype == jnp.float64 else 13
    total, sums, term = jnp.zeros_like(L), jnp.ones_like(L), L**2 / 2
    for n in range(2, last + 1):
        total = total + sums * term
        sums, term = 1 + alpha * sums, term * L / (n + 1)
    return alpha * total


def _log_ratio(q, d, log_p, alpha):
    """log(q/p), computed from the difference where the two are close."""
    ratio = d / q
    near = jnp.abs(ratio) < NEAR
    close = -jnp.log1p(-jnp.where(near, ratio, 0.0))
    return jnp.where(near, close, jnp.log(q) - _capped(log_p, alpha))


def _floored(log_p):
    """log p, with the smallest normal number in place of an exact zero."""
    return jnp.where(log_p == -jnp.inf, jnp.log(jnp.finfo(log_p.dtype).tiny), log_p)


def _capped(log_p, alpha):
    """log p, but no lower than where the divergence nears overflow; the bound counts as a constant.

    For α < 1 it grows like p^{α−1} max(α/(1 − α), 1): up to the largest number over e³.
    """
    beta = jnp.maximum(1 - alpha, 1e-6)
    room = jnp.log(jnp.finfo(log_p.dtype).max) - 3 - jnp.log(jnp.maximum(alpha / beta, 1.0))
    return log_p + jax.lax.stop_gradient(jnp.maximum(-room / beta - log_p, 0.0))


@jax.custom_jvp
def expm1(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """eˣ − 1."""
    return jnp.expm1(x)


@expm1.defjvp
def _expm1_jvp(primals, tangents):
    # By hand because JAX computes the derivative as expm1(x) + 1, which is all rounding for x ≪ 0.
    (x,), (x_dot,) = primals, tangents
    return expm1(x), jnp.exp(x) * x_dot


def expm1_ratio(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """(eˣ − 1)/x, smooth through 0."""
    small = jnp.abs(x) < 0.5
    series = jnp.ones_like(x)
    for k in range(16, 1, -1):  # Σ xⁿ/(n+1)!, to float64 precision on |x| < 1/2
        series = 1 + series * x / k
    safe = jnp.where(small, 1.0, x)  # the second where, so that no gradient sees 0/0
    return jnp.where(small, series, expm1(safe) / safe)


@jax.custom_jvp
def tempered_log(x: Float[Array, "*shape"], t: Float[Array, "..."]) -> Float[Array, "*shape"]:
    """log_t(x) for x > 0, smooth in x and in t, through t = 1 too."""
    return _tempered_log(x, t)


@partial(tempered_log.defjvp, symbolic_zeros=True)
def _tempered_log_jvp(primals, tangents):
    # By hand because x^{−t} is right at x = 0 as well, where the chain rule through log x is 0·∞.
    # The slope in t is that next to zero, for the same reason.
    (x, t), (x_dot, t_dot) = primals, tangents
    out, above = tempered_log(x, t), jnp.maximum(x, jnp.finfo(x.dtype).tiny)

    def slope_in_t(dot):
        return jax.jvp(lambda t: _tempered_log(above, t), (t,), (dot,))[1]

    return out, sum_of_slopes(out, (x_dot, lambda dot: x ** (-t) * dot), (t_dot, slope_in_t))


def _tempered_log(x, t):
    log_x, s = jnp.log(x), 1 - t
    near_one = jnp.abs(s) < 1e-2
    safe = jnp.where(near_one, 1.0, s)  # the second where, so that no gradient sees 0/0
    return jnp.where(near_one, log_x * expm1_ratio(s * log_x), expm1(safe * log_x) / safe)


def log_tempered_exp(x: Float[Array, "*shape"], t: Number) -> Float[Array, "*shape"]:
    """log exp_t(x) = log1p((1 − t)x)/(1 − t), and −∞ outside the support."""
    if t == 1:
        return x
    inside = ~(1 + (1 - t) * x <= 0)  # NaN stays NaN
    safe = jnp.where(inside, x, 0.0)  # the second where, so that no gradient sees log of ≤ 0
    return jnp.where(inside, jnp.log1p((1 - t) * safe) / (1 - t), -jnp.inf)
