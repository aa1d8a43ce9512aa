"""Losses proposed for noisy labels: bounded, with a bounded term, or with heavy tails.

All but the bi-tempered one are functions of the log-odds u against the label:
1 − p_y = σ(u), −log p_y = softplus(u).

>>> import jax.numpy as jnp
>>> mean_absolute_error(jnp.array([0.0, 0.0]), jnp.array(1))
Array(1., dtype=float32)
>>> bi_tempered(jnp.array([0.0, 0.0]), jnp.array(1), t1=1.0, t2=1.0)    # cross-entropy, log 2
Array(0.6931472, dtype=float32)
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from pgeom import checks
from pgeom.simplex import (
    argmax_mask,
    expected_cross_entropy,
    gaps_to_dominant,
    log_odds_against,
    log_softmax,
    pick,
    rule_softmax,
    vertex,
)
from pgeom.special import expm1, expm1_ratio, log_tempered_exp, sigmoid, softplus
from pgeom.types import Labels, Number, Row, Values, Vectors


def mean_absolute_error(logits: Vectors, labels: Labels, *, scale: ArrayLike = 2.0) -> Values:
    """scale·(1 − p_y): ‖e_y − p‖₁ for scale 2 (Ghosh et al., 2017), the passive term of APL for 1.

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      scale: > 0.

    Returns:
      `[...]`.
    """
    checks.check_positive("scale", scale)

    def example(logits, label):
        return scale * sigmoid(log_odds_against(logits, label))

    return checks.lift_examples(example)(logits, labels)


def generalized_cross_entropy(logits: Vectors, labels: Labels, *, q: ArrayLike = 0.7) -> Values:
    """(1 − p_y^q)/q: cross-entropy as q → 0, 1 − p_y at q = 1 (Zhang and Sabuncu, 2018).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      q: in (0, 1].

    Returns:
      `[...]`.
    """
    checks.check("q", q, "in (0, 1]", lambda x: (x > 0) & (x <= 1))

    def example(logits, label):
        return -expm1(-(softplus(log_odds_against(logits, label)) * q)) / q

    return checks.lift_examples(example)(logits, labels)


def symmetric_cross_entropy(
    logits: Vectors,
    labels: Labels,
    *,
    alpha: ArrayLike = 0.1,
    beta: ArrayLike = 1.0,
    A: ArrayLike = -4.0,
) -> Values:
    """α·CE − βA(1 − p_y), with A in place of log 0 in the reverse term (Wang et al., 2019).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      alpha: ≥ 0.
      beta: ≥ 0.
      A: < 0; −4 in the authors' text, log 1e-4 in their code.

    Returns:
      `[...]`.
    """
    checks.check_nonnegative("alpha", alpha)
    checks.check_nonnegative("beta", beta)
    checks.check("A", A, "negative", lambda x: x < 0)

    def example(logits, label):
        u = log_odds_against(logits, label)
        return alpha * softplus(u) - beta * A * sigmoid(u)

    return checks.lift_examples(example)(logits, labels)


def active_passive(
    logits: Vectors, labels: Labels, *, alpha: ArrayLike = 1.0, beta: ArrayLike = 1.0
) -> Values:
    """α·NCE + β(1 − p_y) with NCE = log p_y / Σ_k log p_k (Ma et al., 2020).

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      alpha: ≥ 0, the active weight.
      beta: ≥ 0, the passive weight.

    Returns:
      `[...]`.
    """
    checks.check_nonnegative("alpha", alpha)
    checks.check_nonnegative("beta", beta)

    def example(logits, label):
        u = log_odds_against(logits, label)
        others = expected_cross_entropy(logits, 1 - vertex(label, logits.shape[-1], logits.dtype))
        return alpha * _fraction(softplus(u), others) + beta * sigmoid(u)

    return checks.lift_examples(example)(logits, labels)


@jax.custom_jvp
def _fraction(part, rest):
    """part/(part + rest) of two nonnegative numbers, of which one may be infinite."""
    return 1 / (1 + rest / part)


@_fraction.defjvp
def _fraction_jvp(primals, tangents):
    # By hand because the two terms of the quotient rule cancel where the rest is small.
    (part, rest), (part_dot, rest_dot) = primals, tangents
    change = _fraction(rest, part) * part_dot - _fraction(part, rest) * rest_dot
    return _fraction(part, rest), change / (part + rest)


MAX_STEPS = 64  # of the Newton iteration, which needs one to eleven
SERIES = 16  # the last exponent, to float64 precision on |x| < 1/2


def bi_tempered(logits: Vectors, labels: Labels, *, t1: Number = 0.8, t2: Number = 1.2) -> Values:
    """−log_{t1} p_y − (1 − Σ_k p_k^{2−t1})/(2 − t1), with p the tempered softmax at t2.

    At t1 = t2 = 1 it is cross-entropy.

    Args:
      logits: `[..., K]`.
      labels: `[...]`.
      t1: < 2; below 1 the loss is bounded. Neither temperature may be traced.
      t2: > 0; above 1 the tails are heavy, below 1 the support is finite.

    Returns:
      `[...]`.
    """
    checks.require(t1 < 2, "t1", "less than 2", t1)
    checks.check_positive("t2", t2)
    t1, t2 = float(t1), float(t2)

    def example(logits, label):
        log_p = log_tempered_softmax(logits, t2)
        others = jnp.where(jnp.arange(logits.shape[-1]) == label, 0.0, jnp.exp((2 - t1) * log_p))
        return _loss_alone(pick(log_p, label), t1) + jnp.sum(others) / (2 - t1)

    return checks.lift_examples(example)(logits, labels)


def log_tempered_softmax(logits: Row, t: Number) -> Row:
    """log exp_t(z_k − λ(z)) with the λ that makes the probabilities sum to one; t > 0."""
    if t == 1:
        return log_softmax(logits)
    return log_tempered_exp(_less_normaliser(logits - jax.lax.stop_gradient(jnp.max(logits)), t), t)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _less_normaliser(z, t):
    """z − λ(z) for logits with maximum 0, of which λ may be a tiny part."""
    return z - _normaliser_below(z, t)


@_less_normaliser.defjvp
def _less_normaliser_jvp(t, primals, tangents):
    # By hand because ż − λ̇ loses every digit where one class has almost all of the escort
    # distribution, in reverse too, unless its own ż is subtracted first.
    (z,), (z_dot,) = primals, tangents
    x = _less_normaliser(z, t)
    escort = rule_softmax(t * log_tempered_exp(x, t))
    gaps = gaps_to_dominant(escort, z_dot)
    return x, gaps - jnp.sum(escort * gaps)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
@partial(jax.jit, static_argnums=1, inline=True)  # or the loop would be compiled at every call
def _normaliser_below(z, t):
    """λ(z) ≥ 0 for logits with maximum 0, accurate to the last digits even if it is small.

    Newton iteration on (Σ_k exp_t(z_k − λ))^{1−t}, a generalised mean of terms linear in λ. It is
    concave (t > 1) or convex (t < 1) in λ, so that from λ = max z every step stays on one side of
    the root, and if all logits are equal, the first step reaches it.
    """
    largest, info = argmax_mask(z), jnp.finfo(z.dtype)

    def unconverged(state):
        steps, lam, change = state
        # The error after a step is ½|g″/g′| change². For t > 1 the top class bounds it; for
        # t < 1 nothing does at the edge of the support. A negative step is rounding.
        left = t * change**2 / (2 * (1 + (t - 1) * lam)) if t > 1 else change
        resolved = info.eps * jnp.maximum(lam, info.tiny**0.5)  # normal numbers only
        return (steps < MAX_STEPS) & (change > 0) & (left > resolved)

    def newton(state):
        steps, lam, _ = state
        p = jnp.exp(log_tempered_exp(z - lam, t))
        top_excess = expm1(log_tempered_exp(-lam, t))  # p of the top class, less one
        excess = jnp.sum(jnp.where(largest, 0.0, p)) + top_excess  # Σp − 1
        # p^t = p/p^{1−t}, where p^{1−t} is linear in λ, and p = 0 where that is negative
        slope = jnp.sum(p / jnp.where(p > 0, 1 + (1 - t) * (z - lam), 1.0)) / (1 + excess)
        log_total = jnp.log1p(excess)
        change = log_total * expm1_ratio((t - 1) * log_total) / slope
        return steps + 1, lam + change, change

    top = jnp.max(z)  # zero, or NaN; in a `shard_map` it varies over devices as z does
    return jax.lax.while_loop(unconverged, newton, (0, top, top + jnp.inf))[1]


@_normaliser_below.defjvp
def _normaliser_below_jvp(t, primals, tangents):
    # By hand because the iteration should not be unrolled: the implicit function theorem gives
    # ∂λ/∂z_k = p_k^t / Σ_j p_j^t, the escort distribution.
    (z,), (z_dot,) = primals, tangents
    lam = _normaliser_below(z, t)
    escort = jax.nn.softmax(t * log_tempered_exp(z - lam, t))
    return lam, jnp.dot(escort, z_dot)


def _loss_alone(x, t):
    """−log_t(p) − (1 − p^{2−t})/(2 − t) for p = eˣ: the loss, if no other class had a share.

    It is x²/2 to second order, and both terms are x to the first: close to 0 it is the series
    Σ_{n≥2} ((2 − t)^{n−1} − (1 − t)^{n−1}) xⁿ/n!, so that it is neither rounding nor negative.
    """
    small = jnp.abs(x) < 0.5 / max(1.0, 2 - t)
    near, series = jnp.where(small, x, 0.0), jnp.zeros_like(x)
    for n in range(SERIES, 1, -1):
        series = series * near + ((2 - t) ** (n - 1) - (1 - t) ** (n - 1)) / math.factorial(n)
    far = expm1((2 - t) * x) / (2 - t) - _tempered_log_of_exp(x, t)
    return jnp.where(small, near**2 * series, far)


def _tempered_log_of_exp(x, t):
    """log_t(eˣ); −1/(1 − t) at x = −∞ where t < 1."""
    return x if t == 1 else expm1((1 - t) * x) / (1 - t)
