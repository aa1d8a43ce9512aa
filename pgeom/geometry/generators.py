"""Convex generators on the simplex: each is a function `F(p[K]) -> scalar`.

Parameterised generators are callables that are also pytrees: they can be vmapped over seeds and
differentiated in their parameters. A user's generator is any function; nothing here is special.

>>> import jax.numpy as jnp
>>> brier_generator = quadratic(2 * jnp.eye(3))
>>> brier_generator(jnp.array([1.0, 0.0, 0.0]))
Array(0.6666666, dtype=float32)
"""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from pgeom import edge
from pgeom.geometry import log_cosh, simplex
from pgeom.geometry.tempered import tempered_log
from pgeom.types import Generator


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Shannon:
    """F(p) = Σ p log p, the negative entropy; its score is −log p_y, cross-entropy."""

    def __call__(self, p: jax.Array) -> jax.Array:
        return jnp.sum(jax.scipy.special.xlogy(p, p))

    def score_on_logits(self, logits: jax.Array, label: jax.Array) -> jax.Array:
        """−log softmax(z)_y, which never rounds p_y to zero."""
        return jax.nn.softplus(simplex.log_odds_against(logits, label))


shannon = Shannon()


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Tsallis:
    """F(p) = (Σ p^α − 1)/(α − 1), written Σ p log_{2−α} p; α → 1 is Shannon, α = 2 is Brier."""

    alpha: jax.Array

    def __call__(self, p: jax.Array) -> jax.Array:
        return jnp.sum(_tsallis_term(p, jnp.asarray(self.alpha, p.dtype)))


@jax.custom_jvp
def _tsallis_term(p: jax.Array, alpha: jax.Array) -> jax.Array:
    return jnp.where(p > 0, p * tempered_log(p, 2 - alpha), 0.0)


@partial(_tsallis_term.defjvp, symbolic_zeros=True)
def _tsallis_term_jvp(primals, tangents):
    # By hand because the product rule passes through p^(α−3), which overflows where the second
    # derivative α p^(α−2) does not.
    (p, alpha), (p_dot, alpha_dot) = primals, tangents
    out_dot = jnp.zeros_like(p)
    if not isinstance(p_dot, SymbolicZero):
        out_dot += (1 + alpha * tempered_log(p, 2 - alpha)) * p_dot
    if not isinstance(alpha_dot, SymbolicZero):
        out_dot += p * jax.jvp(lambda a: tempered_log(p, 2 - a), (alpha,), (alpha_dot,))[1]
    return _tsallis_term(p, alpha), out_dot


def tsallis(alpha) -> Tsallis:
    """The negative Tsallis entropy of order α > 0."""
    edge.scalar("alpha", alpha)
    edge.positive("alpha", alpha)
    return Tsallis(alpha)


def spherical(p: jax.Array) -> jax.Array:
    """F(p) = ‖p‖₂; its score is 1 − p_y/‖p‖₂, the spherical score."""
    return jnp.sqrt(jnp.sum(p**2))


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class SquaredNorm:
    """F(p) = ‖p‖₂²; its score is ‖p − e_y‖₂², the Brier score, for any number of classes."""

    def __call__(self, p: jax.Array) -> jax.Array:
        return jnp.sum(p**2)

    def divergence(self, q: jax.Array, d: jax.Array) -> jax.Array:
        """‖d‖², at any q."""
        return jnp.sum(d**2)


squared_norm = SquaredNorm()


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Quadratic:
    """F(p) = ½ (p − u)ᵀA(p − u) with u the centre of the simplex, Eq. (capm-generator)."""

    A: jax.Array

    def __call__(self, p: jax.Array) -> jax.Array:
        return self.divergence(p, p - 1 / p.shape[-1])

    def divergence(self, q: jax.Array, d: jax.Array) -> jax.Array:
        """½ dᵀAd, at any q."""
        edge.same_classes("A", self.A.shape[-1], d.shape[-1])
        A = jnp.asarray(self.A, d.dtype)
        return _half_square((A + A.T) / 2, d)

    def rescaled(self, factor) -> "Quadratic":
        return Quadratic(self.A * factor)


@jax.custom_jvp
def _half_square(A, d):
    """½ dᵀAd of a symmetric A."""
    return 0.5 * jnp.dot(d, jnp.dot(A, d))


@partial(_half_square.defjvp, symbolic_zeros=True)
def _half_square_jvp(primals, tangents):
    # By hand because autodiff cannot know that A is symmetric, and multiplies by Aᵀ as well.
    (A, d), (A_dot, d_dot) = primals, tangents
    out_dot = jnp.zeros((), d.dtype)
    if not isinstance(d_dot, SymbolicZero):
        out_dot += jnp.dot(jnp.dot(A, d), d_dot)
    if not isinstance(A_dot, SymbolicZero):
        out_dot += 0.5 * jnp.dot(d, jnp.dot(A_dot, d))
    return _half_square(A, d), out_dot


def quadratic(A) -> Quadratic:
    """The quadratic generator of a symmetric matrix `A[K, K]`.

    A must be positive semidefinite, and definite on the tangent space {x : Σx = 0}: only then is
    the score strictly proper.
    """
    A = edge.real(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] < 2:
        raise ValueError(f"A must have shape [K, K] with K >= 2, got {A.shape}")
    if (known := edge.concrete(A)) is not None:
        size = np.abs(known).max()
        edge.refuse_unless(np.abs(known - known.T) <= 1e-6 * size, "A", "symmetric", A)
        basis = simplex.tangent_basis(len(known))
        spectrum = np.linalg.eigvalsh(known)
        edge.refuse_unless(spectrum > -1e-6 * size, "A", "free of negative eigenvalues", spectrum)
        spectrum = np.linalg.eigvalsh(basis.T @ known @ basis)
        must = "positive definite on the tangent space"
        edge.refuse_unless(spectrum > 1e-7 * size, "A", must, spectrum)
    return Quadratic(A)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Hyperbolic:
    """A quadratic with log-cosh ridges, Eq. (hpg-generator).

    F(p) = s[ λ/2 ‖p − u‖² + Σ_r a_r ρ_r² log cosh((w_rᵀp − b_r)/ρ_r) ]
    """

    lam: jax.Array
    a: jax.Array
    rho: jax.Array
    w: jax.Array
    b: jax.Array
    scale: jax.Array

    def __call__(self, p: jax.Array) -> jax.Array:
        F = self._like(p)
        ridges = F.a * F.rho**2 * log_cosh.log_cosh((jnp.dot(F.w, p) - F.b) / F.rho)
        return F.scale * (F.lam / 2 * jnp.sum((p - 1 / p.shape[-1]) ** 2) + jnp.sum(ridges))

    def divergence(self, q: jax.Array, d: jax.Array) -> jax.Array:
        """The sum of the divergences of its parts, each in closed form.

        With q the label of a vertex, w·q is a column of w.
        """
        F = self._like(d)
        ahead = F.w[:, q] if jnp.ndim(q) == 0 else jnp.dot(F.w, q)
        m, h = (ahead - F.b) / F.rho, jnp.dot(F.w, d) / F.rho
        ridges = F.a * F.rho**2 * log_cosh.divergence_to(m, h)
        return F.scale * (F.lam / 2 * jnp.sum(d**2) + jnp.sum(ridges))

    def rescaled(self, factor) -> "Hyperbolic":
        return replace(self, scale=self.scale * factor)

    def _like(self, p: jax.Array) -> "Hyperbolic":
        """Itself in the dtype of p, which must be of as many classes."""
        edge.same_classes("w", self.w.shape[-1], p.shape[-1])
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, p.dtype), self)


def hyperbolic(*, lam, a, rho, w, b, scale=1.0) -> Hyperbolic:
    """The hyperbolic generator of R ridges over K classes.

    Args:
      lam: λ > 0, the quadratic part.
      a: a_r ≥ 0, `[R]` or a scalar for all ridges.
      rho: ρ_r > 0, the widths, `[R]` or a scalar.
      w: the directions, `[R, K]`, each of norm at most one.
      b: the offsets, `[R]` or a scalar.
      scale: s > 0.
    """
    w = edge.real(w)
    if w.ndim != 2 or w.shape[1] < 2:
        raise ValueError(f"w must have shape [R, K] with K >= 2, got {w.shape}")
    ridges = {
        name: jnp.asarray(value, w.dtype) for name, value in [("a", a), ("rho", rho), ("b", b)]
    }
    for name, value in ridges.items():
        if value.shape not in ((), w.shape[:1]):
            raise ValueError(
                f"{name} must be a scalar or have shape {w.shape[:1]}, got {value.shape}"
            )
    edge.scalar("lam", lam)
    edge.scalar("scale", scale)
    edge.positive("lam", lam)
    edge.nonnegative("a", a)
    edge.positive("rho", rho)
    edge.positive("scale", scale)
    if (known := edge.concrete(w)) is not None:
        norms = np.linalg.norm(known, axis=1)
        edge.refuse_unless(norms <= 1 + 1e-6, "w", "of row norms at most 1", norms)
    ridges = {name: jnp.broadcast_to(value, w.shape[:1]) for name, value in ridges.items()}
    lam, scale = jnp.asarray(lam, w.dtype), jnp.asarray(scale, w.dtype)
    return Hyperbolic(lam=lam, w=w, scale=scale, **ridges)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Scaled:
    """c·F for a generator that does not know how to scale itself."""

    generator: Generator
    factor: jax.Array

    def __call__(self, p: jax.Array) -> jax.Array:
        return jnp.asarray(self.factor, p.dtype) * self.generator(p)

    def rescaled(self, factor) -> "Scaled":
        return Scaled(self.generator, self.factor * factor)


def rescale(F: Generator, factor) -> Generator:
    """c·F, of the kind of F where F is one of this module's."""
    edge.positive("factor", factor)
    if hasattr(F, "rescaled"):
        return F.rescaled(factor)
    plain = jax.tree_util.all_leaves([F])  # a pytree keeps its parameters, a function has none
    return Scaled(jax.tree_util.Partial(F) if plain else F, factor)
