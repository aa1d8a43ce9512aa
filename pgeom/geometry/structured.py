"""The paper's structured generators: a class-aware quadratic, and log-cosh ridges.

>>> import jax.numpy as jnp
>>> ridge = hyperbolic(lam=1.0, a=0.5, rho=0.1, w=jnp.array([[0.6, -0.8]]), b=0.0)
>>> ridge(jnp.array([0.5, 0.5]))
Array(0.00216, dtype=float32)
"""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pgeom import edge
from pgeom.geometry import log_cosh, simplex
from pgeom.geometry.closed_forms import ClosedForms, ClosedGenerator, Parameter
from pgeom.geometry.derivatives import sum_of_slopes
from pgeom.types import Numbers, Point


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Quadratic(ClosedGenerator):
    """F(p) = ½ (p − u)ᵀA(p − u) with u the centre of the simplex, Eq. (capm-generator)."""

    A: Parameter

    def __call__(self, p: Point) -> Float[Array, ""]:
        return self._half_square(p - 1 / p.shape[-1])

    @property
    def closed_forms(self) -> ClosedForms:
        """The divergence is ½ dᵀAd, at any q."""
        return ClosedForms(
            divergence=lambda q, p, d: self._half_square(d), vertex_values=self._vertex_values
        )

    def _half_square(self, d):
        edge.check_same_classes("A", self.A.shape[-1], d.shape[-1])
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


@partial(_half_square.defjvp, symbolic_zeros=True)
def _half_square_jvp(primals, tangents):
    # By hand because autodiff cannot know that A is symmetric, and multiplies by Aᵀ as well.
    (A, d), (A_dot, d_dot) = primals, tangents
    out = _half_square(A, d)
    d_term = (d_dot, lambda dot: jnp.dot(jnp.dot(A, d), dot))
    A_term = (A_dot, lambda dot: 0.5 * jnp.dot(d, jnp.dot(dot, d)))
    return out, sum_of_slopes(out, d_term, A_term)


def quadratic(A: Numbers) -> Quadratic:
    """The quadratic generator of a symmetric matrix `A[K, K]`.

    A must be positive semidefinite, and definite on the tangent space {x : Σx = 0}: only then is
    the score strictly proper.
    """
    A = edge.real(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] < 2:
        raise ValueError(f"A must have shape [K, K] with K >= 2, got {A.shape}")
    if (known := edge.concrete(A)) is not None:
        size = np.abs(known).max()
        edge.require(np.abs(known - known.T) <= 1e-6 * size, "A", "symmetric", A)
        basis = simplex.tangent_basis(len(known))
        spectrum = np.linalg.eigvalsh(known)
        edge.require(spectrum > -1e-6 * size, "A", "free of negative eigenvalues", spectrum)
        spectrum = np.linalg.eigvalsh(basis.T @ known @ basis)
        must = "positive definite on the tangent space"
        edge.require(spectrum > 1e-7 * size, "A", must, spectrum)
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

    def __call__(self, p: Point) -> Float[Array, ""]:
        F = self._like(p)
        ridges = F.a * F.rho**2 * log_cosh.log_cosh((jnp.dot(F.w, p) - F.b) / F.rho)
        return F.scale * (F.lam / 2 * jnp.sum((p - 1 / p.shape[-1]) ** 2) + jnp.sum(ridges))

    @property
    def closed_forms(self) -> ClosedForms:
        """Sums of the divergences of the parts; at a vertex, w·q is a column of w."""
        return ClosedForms(
            divergence=lambda q, p, d: self._divergence(jnp.dot(self._like(d).w, q), d),
            vertex_divergence=lambda label, p, d: self._divergence(self._like(d).w[:, label], d),
            vertex_values=self._vertex_values,
        )

    def _divergence(self, w_q, d):
        """From w·q `[R]` and d `[K]`."""
        F = self._like(d)
        m, h = (w_q - F.b) / F.rho, jnp.dot(F.w, d) / F.rho
        ridges = F.a * F.rho**2 * log_cosh.divergence_to(m, h)
        return F.scale * (F.lam / 2 * jnp.sum(d**2) + jnp.sum(ridges))

    def _vertex_values(self, K, dtype):
        F = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), self)
        ridges = log_cosh.log_cosh((F.w - F.b[:, None]) / F.rho[:, None])
        return F.scale * (F.lam / 2 * (1 - 1 / K) + jnp.dot(F.a * F.rho**2, ridges))

    def rescaled(self, factor: ArrayLike) -> "Hyperbolic":
        return replace(self, scale=self.scale * factor)

    def _like(self, p: Point) -> "Hyperbolic":
        """The same generator in the dtype of p, after checking the number of classes."""
        edge.check_same_classes("w", self.w.shape[-1], p.shape[-1])
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, p.dtype), self)


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
    edge.check_scalar("lam", lam)
    edge.check_scalar("scale", scale)
    edge.check_positive("lam", lam)
    edge.check_nonnegative("a", a)
    edge.check_positive("rho", rho)
    edge.check_positive("scale", scale)
    if (known := edge.concrete(w)) is not None:
        norms = np.linalg.norm(known, axis=1)
        edge.require(norms <= 1 + 1e-6, "w", "of row norms at most 1", norms)
    ridges = {name: jnp.broadcast_to(value, w.shape[:1]) for name, value in ridges.items()}
    lam, scale = jnp.asarray(lam, w.dtype), jnp.asarray(scale, w.dtype)
    return Hyperbolic(lam=lam, w=w, scale=scale, **ridges)
