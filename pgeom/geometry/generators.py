"""Convex generators on the simplex: each is a function `F(p[K]) -> scalar`.

Parameterised generators are callables that are also pytrees: they can be vmapped over seeds and
differentiated with respect to their parameters. They have closed forms of their divergences, which
sums and multiples keep. A user's generator is any function.

>>> import jax.numpy as jnp
>>> brier_generator = quadratic(2 * jnp.eye(3))
>>> brier_generator(jnp.array([1.0, 0.0, 0.0]))
Array(0.6666666, dtype=float32)
>>> (shannon + 0.5 * brier_generator)(jnp.array([1.0, 0.0, 0.0]))
Array(0.3333333, dtype=float32)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom import edge
from pgeom.geometry import power, simplex
from pgeom.geometry.any_generator import call
from pgeom.geometry.closed_forms import (
    ClosedForms,
    ClosedGenerator,
    Parameter,
    SeparableGenerator,
    as_pytree,
    combine,
    rescale,
)
from pgeom.geometry.derivatives import sum_of_slopes
from pgeom.geometry.softmax import (
    cross_entropy,
    log_softmax,
    rule_log_softmax,
    rule_softmax,
    softmax,
)
from pgeom.geometry.structured import Hyperbolic, Quadratic, hyperbolic, quadratic
from pgeom.geometry.tempered_exponential import tempered_log
from pgeom.types import Numbers, Point

__all__ = [
    "Hyperbolic",
    "Quadratic",
    "SquaredNorm",
    "combine",
    "hyperbolic",
    "quadratic",
    "rescale",
    "separable",
    "shannon",
    "spherical",
    "squared_norm",
    "tsallis",
]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Tsallis(SeparableGenerator):
    """F(p) = (Σ p^α − 1)/(α − 1), written Σ p log_{2−α} p; α → 1 is Shannon, α = 2 is Brier."""

    alpha: Parameter

    def terms(self, p: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return _tsallis_term(p, jnp.asarray(self.alpha, p.dtype))

    @property
    def closed_forms(self) -> ClosedForms:
        return ClosedForms(
            divergence=self._divergence,
            score_on_logits=self._score_on_logits,
            divergence_on_logits=self._divergence_on_logits,
            vertex_values=jnp.zeros,
        )

    def _divergence(self, q, p, d):
        return jnp.sum(power.divergence(q, d, simplex.log_entries(p), self.alpha))

    def _score_on_logits(self, logits, label):
        return self._divergence_on_logits(
            simplex.vertex(label, logits.shape[-1], logits.dtype), logits
        )

    def _divergence_on_logits(self, q, logits):
        """From log p, which does not underflow with p; a logit of −∞ may make it infinite."""
        d = simplex.displacement(q, softmax(logits))
        value = jnp.sum(power.divergence(q, d, log_softmax(logits), self.alpha))
        ruled_out = jnp.any((q > 0) & (logits == -jnp.inf)) & (jnp.asarray(self.alpha) <= 1)
        return jnp.where(ruled_out, jnp.inf, value)


@jax.custom_jvp
def _tsallis_term(p, alpha):
    return jnp.where(p > 0, p * tempered_log(p, 2 - alpha), 0.0)


@partial(_tsallis_term.defjvp, symbolic_zeros=True)
def _tsallis_term_jvp(primals, tangents):
    # By hand because the product rule involves p^(α−3), which overflows where the second derivative
    # α p^(α−2) does not.
    (p, alpha), (p_dot, alpha_dot) = primals, tangents
    out = _tsallis_term(p, alpha)

    def slope_in_alpha(dot):
        slope = jax.jvp(lambda a: tempered_log(p, 2 - a), (alpha,), (dot,))[1]
        return jnp.where(p > 0, p * slope, 0.0)  # 0 · ∞ counts as 0, for every α

    p_term = (p_dot, lambda dot: (1 + alpha * tempered_log(p, 2 - alpha)) * dot)
    return out, sum_of_slopes(out, p_term, (alpha_dot, slope_in_alpha))


def tsallis(alpha: Numbers) -> Tsallis:
    """The negative Tsallis entropy of order α > 0."""
    edge.check_scalar("alpha", alpha)
    edge.check_positive("alpha", alpha)
    return Tsallis(alpha)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Shannon(SeparableGenerator):
    """F(p) = Σ p log p, the negative entropy; its score is −log p_y, cross-entropy."""

    def terms(self, p: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return _entropy_term(p)

    @property
    def closed_forms(self) -> ClosedForms:
        limit = Tsallis(1.0).closed_forms
        return limit._replace(score_on_logits=cross_entropy)


@jax.custom_jvp
def _entropy_term(p):
    return jax.scipy.special.xlogy(p, p)


@_entropy_term.defjvp
def _entropy_term_jvp(primals, tangents):
    # By hand because autodiff divides by p² on the way to the second derivative 1/p, and overflows
    # where that does not.
    (p,), (p_dot,) = primals, tangents
    return _entropy_term(p), (1 + jnp.log(p)) * p_dot


shannon = Shannon()


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Spherical(ClosedGenerator):
    """F(p) = ‖p‖₂; its score is 1 − p_y/‖p‖₂, the spherical score."""

    def __call__(self, p: Point) -> Float[Array, ""]:
        return jnp.sqrt(jnp.sum(p**2))

    @property
    def closed_forms(self) -> ClosedForms:
        return ClosedForms(
            divergence=_sine_divergence,
            score_on_logits=_spherical_score,
            divergence_on_logits=_sine_divergence_on_logits,
            vertex_values=jnp.ones,
        )


@jax.custom_jvp
def _sine_divergence(q, p, d):
    """‖q‖ − ⟨p, q⟩/‖p‖, from the part of d across q: ‖p‖²‖q‖² − ⟨p, q⟩² = ‖q‖²‖d_⊥‖²."""
    square, norm = jnp.sum(q**2), spherical(p)
    across = d - q * (jnp.sum(q * d) / square)
    inner = jnp.sqrt(square) * norm + jnp.sum(p * q)
    return square * jnp.sum(across**2) / (norm * inner)


@partial(_sine_divergence.defjvp, symbolic_zeros=True)
def _sine_divergence_jvp(primals, tangents):
    # By hand because autodiff cannot know that H(p)p = 0, hence −H(p)d = −H(p)q: the shorter of the
    # two vectors loses no digits. d moves with q and p and has no slope of its own.
    (q, p, d), (q_dot, p_dot, _) = primals, tangents
    out, norm, inner = _sine_divergence(q, p, d), spherical(p), jnp.sum(p * q)
    nearby = 2 * inner**2 > norm**2 * jnp.sum(q**2)
    shorter = jnp.where(nearby, d, q)
    across = shorter - p * (jnp.sum(p * shorter) / norm**2)
    p_term = (p_dot, lambda dot: -jnp.sum(across * dot) / norm)
    q_term = (q_dot, lambda dot: jnp.sum((q / spherical(q) - p / norm) * dot))
    return out, sum_of_slopes(out, p_term, q_term)


@jax.custom_jvp
def _direction(logits):
    """p/‖p‖ of p = softmax(z); its squares are softmax(2z)."""
    powers = jnp.exp(logits - jnp.max(logits))
    return powers / jnp.sqrt(jnp.sum(powers**2))


@_direction.defjvp
def _direction_jvp(primals, tangents):
    # By hand for the same reason as `rule_softmax`.
    (logits,), (logits_dot,) = primals, tangents
    unit = _direction(logits)
    shares = unit**2
    gaps = simplex.gaps_to_dominant(shares, logits_dot)
    change = unit * (gaps - jnp.sum(shares * gaps))
    dominant = shares > 0.5
    moved = simplex.move_dominant(shares, unit * change) / jnp.where(dominant, unit, 1.0)
    return unit, jnp.where(dominant, moved, change)


@jax.custom_jvp
def _spherical_score(logits, label):
    """1 − p_y/‖p‖, as Σ_{j≠y} u_j²/(1 + u_y) with u = p/‖p‖."""
    unit = _direction(logits)
    return _mass_of_others(unit, label) / (1 + simplex.pick(unit, label))


@_spherical_score.defjvp
def _spherical_score_jvp(primals, tangents):
    # By hand because autodiff subtracts the slope of u_y from that of the others' mass, and rounds
    # a small one away.
    (logits, label), (logits_dot, _) = primals, tangents
    unit = _direction(logits)
    mine = jnp.arange(logits.shape[-1]) == label
    slope = jnp.where(mine, -_mass_of_others(unit, label), unit**2) * simplex.pick(unit, label)
    return _spherical_score(logits, label), jnp.sum(slope * logits_dot)


def _mass_of_others(unit, label):
    return jnp.sum(jnp.where(jnp.arange(unit.shape[-1]) == label, 0.0, unit**2))


@jax.custom_jvp
def _sine_divergence_on_logits(q, logits):
    p = softmax(logits)
    return _sine_divergence(q, p, simplex.displacement(q, p))


@partial(_sine_divergence_on_logits.defjvp, symbolic_zeros=True)
def _sine_divergence_on_logits_jvp(primals, tangents):
    # By hand because H(p)p = 0, so that the slope is −p_k (H(p)q)_k = r_k Σ_j c_j − c_k with
    # r = softmax(2z), the shares p_k²/‖p‖², and c = q√r; by the chain rule, a small p_k would
    # multiply the rounding of far larger numbers.
    (q, logits), (q_dot, logits_dot) = primals, tangents
    out, half = _sine_divergence_on_logits(q, logits), jnp.exp(0.5 * rule_log_softmax(2 * logits))
    r, cosines = rule_softmax(2 * logits), q * half

    def slope_in_logits(dot):
        return jnp.sum(simplex.move_dominant(r, r * jnp.sum(cosines) - cosines) * dot)

    q_term = (q_dot, lambda dot: jnp.sum((q / spherical(q) - half) * dot))
    return out, sum_of_slopes(out, (logits_dot, slope_in_logits), q_term)


spherical = Spherical()


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class SquaredNorm(SeparableGenerator):
    """F(p) = ‖p‖₂²; its score is ‖p − e_y‖₂², the Brier score, for any number of classes."""

    def terms(self, p: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return p**2

    @property
    def closed_forms(self) -> ClosedForms:
        """The divergence is ‖d‖², at any q."""
        return ClosedForms(divergence=lambda q, p, d: jnp.sum(d**2), vertex_values=jnp.ones)


squared_norm = SquaredNorm()


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Separable(SeparableGenerator):
    """F(p) = Σ_k f(p_k) of a function f of one number."""

    function: Any

    def terms(self, p: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return jnp.vectorize(partial(call, self.function))(p)


def separable(f: Callable[[Array], Array]) -> Separable:
    """The generator Σ_k f(p_k) of a strictly convex function `f(x) -> scalar` on [0, 1].

    As a plain function it would be the same generator; being known to be separable, its canonical
    link takes one threshold per example and O(K) memory.
    """
    if not callable(f):
        raise TypeError(f"f must be a function f(x) -> scalar, got {type(f).__name__}")
    return Separable(as_pytree(f))
