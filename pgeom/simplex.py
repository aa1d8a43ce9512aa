"""The probability simplex: its points and directions, and softmax, accurate next to a vertex too.

>>> import jax.numpy as jnp
>>> project(jnp.array([0.9, 0.5, -2.0]))
Array([0.7, 0.3, 0. ], dtype=float32)
>>> softmax_cross_entropy(jnp.array([20.0, 0.0]), 0)  # log(1 + e^−20): p_y rounds to one
Array(2.0612e-09, dtype=float32)
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from pgeom import checks
from pgeom.derivatives import derivative_of
from pgeom.special import sigmoid, softplus
from pgeom.types import Entries, Label, Row, Scalar

LOWEST = 0.95  # a power as of `interior`: 1/p may then be multiplied by numbers up to a hundred


# points and directions ---------------------------------------------------------------------------


def vertex(label: Label, K: int, dtype: DTypeLike = jnp.float32) -> Float[Array, " {K}"]:
    """The vertex e_y of a label."""
    return (jnp.arange(K) == label).astype(dtype)


def pick(values: Row, label: Label) -> Scalar:
    """The entry of `values` at a label, by a select rather than a gather."""
    return jnp.sum(jnp.where(jnp.arange(values.shape[-1]) == label, values, 0.0))


def argmax_mask(values: Row) -> Bool[Array, " K"]:
    """A mask with one True, at the first of the largest values.

    Two plain reductions, because XLA's argmax on a CPU is several times slower to compile and run.
    """
    places = jnp.arange(values.shape[-1])
    first = jnp.min(jnp.where(values == jnp.max(values), places, values.shape[-1]))
    return places == first


def tangent_basis(K: int) -> Float[np.ndarray, " {K} {K}-1"]:
    """An orthonormal basis of {x : Σx = 0}, the Helmert columns, in float64."""
    checks.check_num_classes(K)
    rows, columns = np.arange(K)[:, None], np.arange(1, K)[None, :]
    helmert = np.where(rows < columns, 1.0, np.where(rows == columns, -1.0 * columns, 0.0))
    return helmert / np.linalg.norm(helmert, axis=0)


def project(x: Entries, axis: int = -1) -> Entries:
    """The nearest point of the simplex to x: max(x − θ, 0) with the θ that makes it sum to one.

    The sum is convex in θ, so that Newton's method increases to it, in a few steps of O(K), where
    sorting on a CPU takes XLA tens of times as long.

    Args:
      x: any vectors.
      axis: that of the classes.
    """

    def total(values):
        return jnp.sum(values, axis=axis, keepdims=True)

    def increase(state):
        theta, _ = state
        excess = total(jnp.maximum(x - theta, 0)) - 1
        following = theta + jnp.maximum(excess, 0) / total((x > theta).astype(x.dtype))
        return following, following > theta

    first = increase((jnp.max(x, axis=axis, keepdims=True) - 1, None))
    theta, _ = jax.lax.while_loop(lambda state: jnp.any(state[1]), increase, first)
    return jnp.maximum(x - theta, 0)


def uniform(key: PRNGKeyArray, K: int, count: int) -> Float[Array, " {count} {K}"]:
    """Independent draws from Dirichlet(1): normalised exponentials."""
    checks.check_num_classes(K)
    # drawn as one vector: a two-dimensional draw takes XLA five times as long to compile
    draws = jax.random.exponential(key, (count * K,)).reshape(count, K)
    return draws / jnp.sum(draws, axis=1, keepdims=True)


# next to the boundary and to a vertex ------------------------------------------------------------


def interior(p: Entries, power: float = 1.0) -> Entries:
    """`p`, with no entry below the smallest normal number raised to a power of at most one.

    Generators with a divergent gradient (Shannon, Tsallis α < 1) are not differentiable on the
    boundary, where softmax puts p_j by underflow. With power 1 the floor is 1e-38 in float32 and
    1e-308 in float64, where log p and 1/p are finite; with power 1/2 so is p^(−2).
    The floor counts as a constant: derivatives on the boundary are those next to it.
    """
    floor = jnp.asarray(float(jnp.finfo(p.dtype).tiny) ** power, p.dtype)
    return p + jax.lax.stop_gradient(jnp.maximum(floor - p, 0))


def log_entries(p: Entries) -> Entries:
    """log p, elementwise; −∞ where p is zero, with the derivative next to it."""
    return jnp.log(interior(p)) + jax.lax.stop_gradient(jnp.where(p > 0, 0.0, -jnp.inf))


def move_dominant(p: Row, moved: Row) -> Row:
    """`moved`, but where p is close to one, minus the sum of the other entries."""
    others = jnp.where(p > 0.5, 0.0, moved)
    return jnp.where(p > 0.5, -jnp.sum(others), others)


def gaps_to_dominant(p: Row, values: Row) -> Row:
    """`values`, less that of the entry of p that is close to one, if there is one."""
    gaps = values - jnp.sum(jnp.where(p > 0.5, values, 0.0))
    return jnp.where(p > 0.5, 0.0, gaps)  # so that in reverse the entry is minus the sum of others


def remove_mean(p: Row, weighted: Row) -> Row:
    """p_j(h_j − Σ_k p_k h_k) of `weighted` = p_j h_j: the gradient in the logits of a slope h."""
    dominant = p > 0.5
    slope = jnp.sum(jnp.where(dominant, weighted, 0.0) / jnp.where(dominant, p, 1.0))
    gaps = jnp.where(dominant, 0.0, weighted - p * slope)
    return move_dominant(p, gaps - p * jnp.sum(gaps))


@jax.custom_jvp
def displacement(q: Row, p: Row, near: Row | None = None) -> Row:
    """q − p; in an entry that is close to one, minus the sum of the others, as Σ(q − p) = 0.

    For the vertex q = e_y that is the mass of the competitors, Σ_{j≠y} p_j: 1 − p_y would have lost
    it to rounding.

    Args:
      q, p: points of the simplex.
      near: the one of them that is looked at, p by default.
    """
    return move_dominant(p if near is None else near, q - p)


# By hand because autodiff adds the slope of that entry to those of all others, and rounds theirs
# away. Along the simplex d moves as q − p does.
displacement.defjvps(lambda dot, out, *points: dot, lambda dot, out, *points: -dot, None)


# softmax -----------------------------------------------------------------------------------------


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def softmax(logits: Row, floored: bool = False) -> Row:
    """softmax(z), with derivatives that are accurate close to a vertex.

    Args:
      logits: z.
      floored: whether to differentiate at `interior` of it, so that a gradient that diverges on the
        boundary is multiplied by a p that is not zero.
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
def log_softmax(logits: Row) -> Row:
    """log softmax(z), accurate close to a vertex, and so is its derivative."""
    return rule_log_softmax(logits)


@jax.custom_jvp
def rule_log_softmax(logits):
    """log softmax(z), for use in rules of first derivatives, such as its own."""
    below = logits - jnp.max(logits)
    return below - _log_sum_below(below)


def _log_change(logits, logits_dot):
    """The change of log softmax(z)."""
    p = rule_softmax(logits)
    slope = jnp.where(logits > -jnp.inf, logits_dot - jnp.sum(p * logits_dot), 0.0)
    dominant = p > 0.5
    moved = move_dominant(p, p * slope) / jnp.where(dominant, p, 1.0)
    return jnp.where(dominant, moved, slope)


# By hand for the same reasons as `softmax` and `rule_softmax`.
log_softmax.defjvps(lambda dot, out, logits: _log_change(logits, dot))
rule_log_softmax.defjvps(
    lambda dot, out, logits: _log_change(logits, gaps_to_dominant(rule_softmax(logits), dot))
)


def _log_sum_below(below):
    """log Σ_k e^{x_k} for numbers with maximum 0, which is not rounded to zero."""
    powers = jnp.sum(jnp.where(below < 0, jnp.exp(below), 0.0))
    ties = jnp.sum(jnp.where(below < 0, 0.0, 1.0).astype(below.dtype)) - 1
    return jnp.log1p(powers + ties)


def centred(logits: Float[Array, "*batch K"]) -> Float[Array, "*batch K"]:
    """The logits less the largest of them, on which no loss depends.

    What multiplies them rounds relative to the gaps between them, not to what they have in common.
    """
    largest = jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
    return logits - jnp.where(jnp.isfinite(largest), largest, 0.0)


# log-odds and cross-entropy ----------------------------------------------------------------------


@jax.custom_jvp
def log_odds_against(logits: Row, label: Label, offsets: Row | None = None) -> Scalar:
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


@derivative_of(log_odds_against)
def _log_odds_rules(out, logits, label, offsets):
    # By hand because autodiff divides zero by zero where all other classes are ruled out.
    shares = _shares_of_others(logits, label, offsets)

    def rule(dot):
        return jnp.sum(shares * dot) - pick(dot, label)

    return rule, None, rule


@jax.custom_jvp
def _shares_of_others(logits, label, offsets):
    """p_j/(1 − p_y) for j ≠ y, and zero for y; zeros where all others are ruled out."""
    _, terms = _terms_of_others(logits, label, offsets)
    total = jnp.sum(terms)
    return terms / jnp.where(total > 0, total, 1.0)


@derivative_of(_shares_of_others)
def _shares_rules(shares, logits, label, offsets):
    # By hand for the same reason as `softmax`.
    def rule(dot):
        return _change(shares, shares, gaps_to_dominant(shares, dot))

    return rule, None, rule


def _terms_of_others(logits, label, offsets):
    """z_m, the largest logit of the other classes, and e^{z_j − z_m} for each of them."""
    offsets = jnp.zeros_like(logits) if offsets is None else offsets
    mine = jnp.arange(logits.shape[-1]) == label
    top = jax.lax.stop_gradient(jnp.max(jnp.where(mine, -jnp.inf, logits + offsets)))
    top = jnp.where(top > -jnp.inf, top, 0.0)
    return top, jnp.exp(jnp.where(mine, -jnp.inf, (logits - top) + offsets))


@jax.custom_jvp
def softmax_cross_entropy(logits: Row, label: Label, offsets: Row | None = None) -> Scalar:
    """−log softmax(z + offsets)_y, without rounding p_y to zero or one."""
    return softplus(log_odds_against(logits, label, offsets))


@derivative_of(softmax_cross_entropy)
def _cross_entropy_rules(out, logits, label, offsets):
    # By hand because in second derivatives the parts of p_y and of the shares of others cancel.
    slope = residual(logits, label, offsets)

    def rule(dot):
        return jnp.sum(slope * dot)

    return rule, None, rule


@jax.custom_jvp
def residual(logits, label, offsets):
    """p − e_y, with −(1 − p_y) as the sum of the others."""
    mine = jnp.arange(logits.shape[-1]) == label
    rest = sigmoid(log_odds_against(logits, label, offsets))
    return rest * jnp.where(mine, -1.0, _shares_of_others(logits, label, offsets))


@derivative_of(residual)
def _residual_rules(out, logits, label, offsets):
    # By hand for the same reason as `softmax`.
    p = rule_softmax(logits if offsets is None else centred(logits) + offsets)

    def rule(dot):
        return _change(p, p, gaps_to_dominant(p, dot))

    return rule, None, rule


@jax.custom_jvp
def expected_cross_entropy(logits: Row, eta: Row) -> Scalar:
    """Σ_k η_k (−log softmax(z)_k) of any weights η ≥ 0, without rounding any p_k to zero or one.

    With m the largest logit it is Σ_k η_k (z_m − z_k) + log(1 + Σ_{j≠m} e^{z_j − z_m}): no term is
    negative, and a class of weight zero may have a logit of −∞.
    """
    below = logits - jnp.max(logits)
    behind = jnp.sum(jnp.where(eta > 0, eta * -below, 0.0))
    return behind + jnp.sum(eta) * _log_sum_below(below)


@derivative_of(expected_cross_entropy)
def _expected_cross_entropy_rules(out, logits, eta):
    # By hand because autodiff rounds the slope p Ση − η close to a vertex.
    def rule_of_logits(dot):
        p = rule_softmax(logits)
        return jnp.sum(move_dominant(p, jnp.sum(eta) * p - eta) * dot)

    # only where η is differentiated: a constant η of zero may meet log p = −∞
    return rule_of_logits, lambda dot: -jnp.sum(log_softmax(logits) * dot)
