"""Generators: convex functions `F(p[K]) -> scalar` on the simplex, sums and multiples of them.

A user's generator is any function. Those of the library also have closed forms of their
divergences, and are pytrees of their parameters: they can be vmapped over seeds and differentiated
with respect to their parameters. Divergences and scores are linear in the generator, so that a sum
with nonnegative coefficients keeps every closed form of its parts.

>>> import jax.numpy as jnp
>>> brier_generator = quadratic(2 * jnp.eye(3))
>>> brier_generator(jnp.array([1.0, 0.0, 0.0]))
Array(0.6666666, dtype=float32)
>>> mixture = shannon + 0.5 * brier_generator + (lambda p: jnp.sum(p**3))
>>> mixture(jnp.array([1.0, 0.0, 0.0]))
Array(1.3333333, dtype=float32)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float

from pgeom import checks, simplex
from pgeom.derivatives import derivative_of
from pgeom.functions import call
from pgeom.simplex import (
    log_softmax,
    rule_log_softmax,
    rule_softmax,
    softmax,
    softmax_cross_entropy,
)
from pgeom.special import log_cosh, log_cosh_divergence_to, power_divergence, tempered_log
from pgeom.types import Entries, Generator, Numbers, Point, Scalar

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

Parameter: TypeAlias = Any
"""A number or an array; as a leaf of a pytree also a tracer, a shape or whatever JAX puts there."""


# closed forms, sums and multiples -----------------------------------------------------------------


class ClosedForms(NamedTuple):
    """Formulas that need no autodiff and do not cancel; None where there is none.

    Each takes one example and is differentiated as written. d = q − p is passed along with q and p
    because it is known more accurately than their difference.

    Attributes:
      divergence: `(q[K], p[K], d[K]) -> D_F(q, p)`.
      vertex_divergence: `(label, p[K], d[K]) -> D_F(e_y, p)`.
      score_on_logits: `(logits[K], label) -> D_F(e_y, softmax(logits))`.
      divergence_on_logits: `(q[K], logits[K]) -> D_F(q, softmax(logits))`.
      vertex_values: `(K, dtype) -> F(e_1), …, F(e_K)`, `[K]`.
    """

    divergence: Callable | None = None
    vertex_divergence: Callable | None = None
    score_on_logits: Callable | None = None
    divergence_on_logits: Callable | None = None
    vertex_values: Callable | None = None


class ClosedGenerator(ABC):
    """A generator with closed forms, which composes: `F + G`, `c * F`."""

    @abstractmethod
    def __call__(self, p: Point) -> Scalar:
        """F(p)."""

    @property
    def closed_forms(self) -> ClosedForms:
        return ClosedForms()

    def rescaled(self, factor: ArrayLike) -> "ClosedGenerator":
        """c·F."""
        return combine((factor, self))

    def __add__(self, other: Any) -> "ClosedGenerator":
        return combine((1.0, self), (1.0, other)) if callable(other) else NotImplemented

    def __radd__(self, other: Any) -> "ClosedGenerator":
        return combine((1.0, other), (1.0, self)) if callable(other) else NotImplemented

    def __mul__(self, factor: Any) -> "ClosedGenerator":
        return NotImplemented if callable(factor) else rescale(self, factor)

    __rmul__ = __mul__
    __array_ufunc__ = None  # so that NumPy leaves its number times a generator to the generator
    __jax_array__ = None


class SeparableGenerator(ClosedGenerator):
    """A generator Σ_k f(p_k)."""

    @abstractmethod
    def terms(self, p: Entries) -> Entries:
        """f(p_k), entry by entry."""

    def __call__(self, p: Point) -> Scalar:
        return jnp.sum(self.terms(jnp.asarray(p)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Combination(ClosedGenerator):
    """Σ_i c_i F_i."""

    coefficients: tuple[Parameter, ...]
    generators: tuple[Any, ...]

    def __call__(self, p: Point) -> Scalar:
        point = jnp.asarray(p)
        return sum_over_parts(lambda F: F(point), self, point.dtype)

    def rescaled(self, factor: ArrayLike) -> "Combination":
        return Combination(tuple(c * factor for c in self.coefficients), self.generators)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Annotated(ClosedGenerator):
    """A function with the closed forms that its author supplied."""

    function: Any
    forms: Any

    def __call__(self, p: Point) -> Any:  # `scalar_function` checks what it returns
        return self.function(p)

    @property
    def closed_forms(self) -> ClosedForms:
        return self.forms


def generator(F: Generator, **closed_forms: Callable) -> Annotated:
    """F with closed forms supplied by its author, used in place of autodiff and quadrature.

    Args:
      F: `F(p[K]) -> scalar`, convex.
      closed_forms: any of the attributes of `ClosedForms`, by name.
    """
    for name, form in closed_forms.items():
        if name not in ClosedForms._fields:
            known = ", ".join(ClosedForms._fields)
            raise TypeError(f"a closed form must be one of {known}, got {name!r}")
        if not callable(form):
            raise TypeError(f"{name} must be a function, got {type(form).__name__}")
    forms = {name: as_pytree(form) for name, form in closed_forms.items()}
    return Annotated(as_pytree(_checked(F)), ClosedForms(**forms))


def combine(*terms: tuple[Numbers, Generator]) -> Combination:
    """Σ_i c_i F_i, with every closed form of its parts.

    Args:
      terms: pairs (c_i ≥ 0, F_i).
    """
    if not terms:
        raise ValueError("combine must be given at least one pair (coefficient, generator)")
    flat = []
    for factor, F in terms:
        checks.check_scalar("a coefficient", factor)
        checks.check_nonnegative("a coefficient", factor)
        factor = _number(factor)
        flat += [(factor * c, part) for c, part in parts(_checked(F))]
    return Combination(tuple(c for c, _ in flat), tuple(as_pytree(F) for _, F in flat))


def rescale(F: Generator, factor: Numbers) -> ClosedGenerator:
    """c·F for c > 0; of the same class as F if F is one of the library's."""
    checks.check_scalar("factor", factor)
    checks.check_positive("factor", factor)
    factor = _number(factor)
    return F.rescaled(factor) if isinstance(F, ClosedGenerator) else combine((factor, F))


def parts(F: Generator) -> list[tuple[Parameter, Generator]]:
    """The pairs (c_i, F_i) that F is the sum of: only (1, F) unless F is a `Combination`."""
    if isinstance(F, Combination):
        return list(zip(F.coefficients, F.generators, strict=True))
    return [(1.0, F)]


def closed_forms(F: Generator) -> ClosedForms:
    """The closed forms of F; none for a plain function, whatever its attributes are called."""
    return F.closed_forms if isinstance(F, ClosedGenerator) else ClosedForms()


def sum_over_parts(
    function: Callable[[Generator], Array], F: Generator, dtype: DTypeLike
) -> Float[Array, "..."]:
    """Σ_i c_i function(F_i): divergences and scores are linear in the generator."""
    first, *others = [jnp.asarray(c, dtype) * function(part) for c, part in parts(F)]
    return sum(others, first)


def _number(factor: Numbers) -> int | float | Array:
    """A floating-point factor: strict promotion would not multiply by an integer array."""
    return factor if isinstance(factor, (int, float)) else checks.real(factor)


def as_pytree(F: Callable) -> Callable:
    """F itself if it is a pytree with parameters, else F as a pytree without any."""
    return jax.tree_util.Partial(F) if jax.tree_util.all_leaves([F]) else F


def _checked(F: Generator) -> Generator:
    if not callable(F):
        raise TypeError(f"a generator must be a function F(p[K]), got {type(F).__name__}")
    return F


# entropies, norms and other functions -------------------------------------------------------------


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Tsallis(SeparableGenerator):
    """F(p) = (Σ p^α − 1)/(α − 1), written Σ p log_{2−α} p; α → 1 is Shannon, α = 2 is Brier."""

    alpha: Parameter

    def terms(self, p: Entries) -> Entries:
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
        return jnp.sum(power_divergence(q, d, simplex.log_entries(p), self.alpha))

    def _score_on_logits(self, logits, label):
        return self._divergence_on_logits(
            simplex.vertex(label, logits.shape[-1], logits.dtype), logits
        )

    def _divergence_on_logits(self, q, logits):
        """From log p, which does not underflow with p; a logit of −∞ may make it infinite."""
        d = simplex.displacement(q, softmax(logits))
        value = jnp.sum(power_divergence(q, d, log_softmax(logits), self.alpha))
        ruled_out = jnp.any((q > 0) & (logits == -jnp.inf)) & (jnp.asarray(self.alpha) <= 1)
        return jnp.where(ruled_out, jnp.inf, value)


@jax.custom_jvp
def _tsallis_term(p, alpha):
    return jnp.where(p > 0, p * tempered_log(p, 2 - alpha), 0.0)


@derivative_of(_tsallis_term)
def _tsallis_rules(out, p, alpha):
    # By hand because the product rule involves p^(α−3), which overflows where the second derivative
    # α p^(α−2) does not.
    def rule_of_alpha(dot):
        slope = jax.jvp(lambda a: tempered_log(p, 2 - a), (alpha,), (dot,))[1]
        return jnp.where(p > 0, p * slope, 0.0)  # 0 · ∞ counts as 0, for every α

    return lambda dot: (1 + alpha * tempered_log(p, 2 - alpha)) * dot, rule_of_alpha


def tsallis(alpha: Numbers) -> Tsallis:
    """The negative Tsallis entropy of order α > 0."""
    checks.check_scalar("alpha", alpha)
    checks.check_positive("alpha", alpha)
    return Tsallis(alpha)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Shannon(SeparableGenerator):
    """F(p) = Σ p log p, the negative entropy; its score is −log p_y, cross-entropy."""

    def terms(self, p: Entries) -> Entries:
        return _entropy_term(p)

    @property
    def closed_forms(self) -> ClosedForms:
        limit = Tsallis(1.0).closed_forms
        return limit._replace(score_on_logits=softmax_cross_entropy)


@jax.custom_jvp
def _entropy_term(p):
    return jax.scipy.special.xlogy(p, p)


# By hand because autodiff divides by p² on the way to the second derivative 1/p, and overflows
# where that does not.
_entropy_term.defjvps(lambda dot, out, p: (1 + jnp.log(p)) * dot)

shannon = Shannon()


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Spherical(ClosedGenerator):
    """F(p) = ‖p‖₂; its score is 1 − p_y/‖p‖₂, the spherical score."""

    def __call__(self, p: Point) -> Scalar:
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


@derivative_of(_sine_divergence)
def _sine_divergence_rules(out, q, p, d):
    # By hand because autodiff cannot know that H(p)p = 0, hence −H(p)d = −H(p)q: the shorter of the
    # two vectors loses no digits. d moves with q and p and has no slope of its own.
    norm, inner = spherical(p), jnp.sum(p * q)

    def rule_of_p(dot):
        nearby = 2 * inner**2 > norm**2 * jnp.sum(q**2)
        shorter = jnp.where(nearby, d, q)
        across = shorter - p * (jnp.sum(p * shorter) / norm**2)
        return -jnp.sum(across * dot) / norm

    return lambda dot: jnp.sum((q / spherical(q) - p / norm) * dot), rule_of_p, None


@jax.custom_jvp
def _spherical_score(logits, label):
    """1 − p_y/‖p‖, as Σ_{j≠y} u_j²/(1 + u_y) with u = p/‖p‖."""
    powers = jnp.exp(logits - jnp.max(logits))
    unit = powers / jnp.sqrt(jnp.sum(powers**2))
    others = jnp.where(jnp.arange(len(unit)) == label, 0.0, unit**2)
    return jnp.sum(others) / (1 + simplex.pick(unit, label))


@derivative_of(_spherical_score)
def _spherical_rules(out, logits, label):
    # By hand because autodiff subtracts the slope of u_y from that of the others' mass, and rounds
    # a small one away. As u_y² is softmax(2z)_y, the slope is that of cross-entropy times u_y.
    u_y = jnp.exp(-0.5 * softmax_cross_entropy(2 * logits, label))
    slope = u_y * simplex.residual(2 * logits, label, None)
    return lambda dot: jnp.sum(slope * dot), None


@jax.custom_jvp
def _sine_divergence_on_logits(q, logits):
    p = softmax(logits)
    return _sine_divergence(q, p, simplex.displacement(q, p))


@derivative_of(_sine_divergence_on_logits)
def _sine_divergence_on_logits_rules(out, q, logits):
    # By hand because H(p)p = 0, so that the slope is −p_k (H(p)q)_k = r_k Σ_j c_j − c_k with
    # r = softmax(2z), the shares p_k²/‖p‖², and c = q√r; by the chain rule, a small p_k would
    # multiply the rounding of far larger numbers.
    half = jnp.exp(0.5 * rule_log_softmax(2 * logits))

    def rule_of_logits(dot):
        r, cosines = rule_softmax(2 * logits), q * half
        return jnp.sum(simplex.move_dominant(r, r * jnp.sum(cosines) - cosines) * dot)

    return lambda dot: jnp.sum((q / spherical(q) - half) * dot), rule_of_logits


spherical = Spherical()


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class SquaredNorm(SeparableGenerator):
    """F(p) = ‖p‖₂²; its score is ‖p − e_y‖₂², the Brier score, for any number of classes."""

    def terms(self, p: Entries) -> Entries:
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

    def terms(self, p: Entries) -> Entries:
        return jnp.vectorize(partial(call, self.function))(p)


def separable(f: Callable[[Array], Array]) -> Separable:
    """The generator Σ_k f(p_k) of a strictly convex function `f(x) -> scalar` on [0, 1].

    As a plain function it would be the same generator; being known to be separable, its canonical
    link takes one threshold per example and O(K) memory.
    """
    if not callable(f):
        raise TypeError(f"f must be a function f(x) -> scalar, got {type(f).__name__}")
    return Separable(as_pytree(f))


# the paper's structured generators ----------------------------------------------------------------


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Quadratic(ClosedGenerator):
    """F(p) = ½ (p − u)ᵀA(p − u) with u the centre of the simplex, Eq. (capm-generator)."""

    A: Parameter

    def __call__(self, p: Point) -> Scalar:
        return self._half_square(p - 1 / p.shape[-1])

    @property
    def closed_forms(self) -> ClosedForms:
        """The divergence is ½ dᵀAd, at any q."""
        return ClosedForms(
            divergence=lambda q, p, d: self._half_square(d), vertex_values=self._vertex_values
        )

    def _half_square(self, d):
        checks.check_same_classes("A", self.A.shape[-1], d.shape[-1])
        A = jnp.asarray(self.A, d.dtype)
        return _half_square((A + A.T) / 2, d)

    def _vertex_values(self, K, dtype):
        """½ (e_y − u)ᵀA(e_y − u) for every y, from the entries of A."""
        A = jnp.asarray(self.A, dtype)
        return 0.5 * (jnp.diag(A) - 2 * jnp.mean(A, axis=1) + jnp.mean(A))

    def rescaled(self, factor: ArrayLike) -> "Quadratic":
        return Quadratic(self.A * factor)


@jax.custom_jvp
def _half_square(A, d):
    """½ dᵀAd of a symmetric A."""
    return 0.5 * jnp.dot(d, jnp.dot(A, d))


@derivative_of(_half_square)
def _half_square_rules(out, A, d):
    # By hand because autodiff cannot know that A is symmetric, and multiplies by Aᵀ as well.
    return (
        lambda dot: 0.5 * jnp.dot(d, jnp.dot(dot, d)),
        lambda dot: jnp.dot(jnp.dot(A, d), dot),
    )


def quadratic(A: Numbers) -> Quadratic:
    """The quadratic generator of a symmetric matrix `A[K, K]`.

    A must be positive semidefinite, and definite on the tangent space {x : Σx = 0}: only then is
    the score strictly proper.
    """
    A = checks.real(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] < 2:
        raise ValueError(f"A must have shape [K, K] with K >= 2, got {A.shape}")
    if (known := checks.concrete(A)) is not None:
        size = np.abs(known).max()
        checks.require(np.abs(known - known.T) <= 1e-6 * size, "A", "symmetric", A)
        basis = simplex.tangent_basis(len(known))
        spectrum = np.linalg.eigvalsh(known)
        checks.require(spectrum > -1e-6 * size, "A", "free of negative eigenvalues", spectrum)
        spectrum = np.linalg.eigvalsh(basis.T @ known @ basis)
        must = "positive definite on the tangent space"
        checks.require(spectrum > 1e-7 * size, "A", must, spectrum)
    return Quadratic(A)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Hyperbolic(ClosedGenerator):
    """A quadratic with log-cosh ridges, Eq. (hpg-generator).

    F(p) = s[ λ/2 ‖p − u‖² + Σ_r a_r ρ_r² log cosh((w_rᵀp − b_r)/ρ_r) ]
    """

    lam: Parameter
    a: Parameter
    rho: Parameter
    w: Parameter
    b: Parameter
    scale: Parameter

    def __call__(self, p: Point) -> Scalar:
        F = self._cast(p)
        ridges = log_cosh((jnp.dot(F.w, p) - F.b) / F.rho)
        return F._total(jnp.sum((p - 1 / p.shape[-1]) ** 2), ridges)

    @property
    def closed_forms(self) -> ClosedForms:
        """Sums of the divergences of the parts; at a vertex, w·q is a column of w."""
        return ClosedForms(
            divergence=lambda q, p, d: self._divergence(jnp.dot(self._cast(d).w, q), d),
            vertex_divergence=lambda label, p, d: self._divergence(self._cast(d).w[:, label], d),
            vertex_values=self._vertex_values,
        )

    def _divergence(self, w_q, d):
        """From w·q `[R]` and d `[K]`."""
        F = self._cast(d)
        m, h = (w_q - F.b) / F.rho, jnp.dot(F.w, d) / F.rho
        return F._total(jnp.sum(d**2), log_cosh_divergence_to(m, h))

    def _vertex_values(self, K, dtype):
        F = self._cast(jnp.empty(K, dtype))
        return jax.vmap(lambda w: F._total(1 - 1 / K, log_cosh((w - F.b) / F.rho)))(F.w.T)

    def _total(self, square, ridges):
        """s[ λ/2 square + Σ_r a_r ρ_r² ridges_r ]"""
        return self.scale * (self.lam / 2 * square + jnp.sum(self.a * self.rho**2 * ridges))

    def _cast(self, p: Point) -> "Hyperbolic":
        """The same generator in the dtype of p, after checking the number of classes."""
        checks.check_same_classes("w", self.w.shape[-1], p.shape[-1])
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, p.dtype), self)

    def rescaled(self, factor: ArrayLike) -> "Hyperbolic":
        return replace(self, scale=self.scale * factor)


def hyperbolic(
    *,
    lam: ArrayLike,
    a: Numbers,
    rho: Numbers,
    w: Numbers,
    b: Numbers,
    scale: ArrayLike = 1.0,
) -> Hyperbolic:
    """The hyperbolic generator of R ridges over K classes.

    Args:
      lam: λ > 0, the quadratic part.
      a: a_r ≥ 0, `[R]` or a scalar for all ridges.
      rho: ρ_r > 0, the widths, `[R]` or a scalar.
      w: the directions, `[R, K]`, each with norm at most one.
      b: the offsets, `[R]` or a scalar.
      scale: s > 0.
    """
    w = checks.real(w)
    if w.ndim != 2 or w.shape[1] < 2:
        raise ValueError(f"w must have shape [R, K] with K >= 2, got {w.shape}")
    for name, value in {"lam": lam, "scale": scale}.items():
        checks.check_scalar(name, value)
        checks.check_positive(name, value)
    for name, value in {"a": a, "rho": rho, "b": b}.items():
        if (shape := np.shape(value)) not in ((), w.shape[:1]):
            raise ValueError(f"{name} must be a scalar or have shape {w.shape[:1]}, got {shape}")
    checks.check_nonnegative("a", a)
    checks.check_positive("rho", rho)
    if (known := checks.concrete(w)) is not None:
        norms = np.linalg.norm(known, axis=1)
        checks.require(norms <= 1 + 1e-6, "w", "of row norms at most 1", norms)
    lam, scale = (jnp.asarray(value, w.dtype) for value in (lam, scale))
    a, rho, b = (jnp.broadcast_to(jnp.asarray(x, w.dtype), w.shape[:1]) for x in (a, rho, b))
    return Hyperbolic(lam, a, rho, w, b, scale)
