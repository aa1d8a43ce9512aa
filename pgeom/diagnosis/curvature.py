"""The Hessian of a generator: its envelope over the simplex, its mean, and matching its mean.

Two envelopes: the paper's mI ⪯ H(p) ⪯ MI, and the tangent one, the extreme eigenvalues m_T, M_T of
H on {x : Σx = 0}. Displacements on the simplex lie in that space, so m_T and M_T may replace m and
M in every bound on regret, range and logit gradient.

>>> import jax.numpy as jnp
>>> from pgeom.generators import quadratic
>>> envelope(quadratic(jnp.diag(jnp.array([1.0, 3.0]))), 2)
Envelope(m=1.0, M=3.0, m_tangent=2.0, M_tangent=2.0, how='exact')
"""

from collections.abc import Callable
from functools import singledispatch

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from pgeom import checks, simplex
from pgeom.diagnosis.formulas import Envelope
from pgeom.diagnosis.search import find
from pgeom.functions import scalar_function, trace
from pgeom.generators import ClosedGenerator, Combination, Hyperbolic, Quadratic, parts, rescale
from pgeom.types import Generator, Row, Scalar, Vectors

DRAWS = 4096  # Dirichlet(1) draws for a mean curvature
VERTICES = 32  # at most, of those that curvature is averaged over


def hessian(F: Generator) -> Callable[[Vectors], Float[Array, "..."]]:
    """`H(p[..., K]) -> [..., K, K]`, the Hessian of F."""

    def matrix(p):
        trace(F, p)  # refuses an index out of range
        return jax.hessian(scalar_function(F))(p)

    lifted = jnp.vectorize(matrix, signature="(k)->(k,k)")
    return lambda p: lifted(checks.vectors("p", p))


def envelope(F: Generator, K: int) -> Envelope:
    """The curvature envelope of F on K classes, the same as that of `diagnose`.

    Args:
      F: a generator.
      K: the number of classes.

    Returns:
      An `Envelope`: exact for `quadratic`, in closed form for `hyperbolic` and sums of the two, and
      found by a search for any other F; infinite if H is not finite at the vertices or F has a
      kink.
    """
    return find(F, K).envelope


def mean_curvature(F: Generator, K: int, *, key: PRNGKeyArray) -> Scalar:
    """The mean of trace(H(p))/K over Dirichlet(1) draws.

    It estimates the mean over the simplex where that is finite; that of −Σ√p is infinite.
    """
    points = simplex.interior(simplex.uniform(key, K, DRAWS))
    return jnp.mean(jax.lax.map(lambda p: _trace(F, p), points, batch_size=64)) / K


@singledispatch
def _trace(F: Generator, p: Row) -> Scalar:
    """trace(H(p))."""
    return jnp.trace(hessian(F)(p))


@_trace.register
def _(F: Quadratic, p):
    checks.check_same_classes("F", F.A.shape[0], len(p))
    return jnp.trace(F.A)


@_trace.register
def _(F: Hyperbolic, p):
    """s[λK + Σ_r a_r sech²(v_r)‖w_r‖²], without a K×K matrix."""
    checks.check_same_classes("F", F.w.shape[1], len(p))
    sech2 = 1 - jnp.tanh((jnp.dot(F.w, p.astype(F.w.dtype)) - F.b) / F.rho) ** 2
    return F.scale * (F.lam * len(p) + jnp.sum(F.a * sech2 * jnp.sum(F.w**2, axis=1)))


@_trace.register
def _(F: Combination, p):
    first, *others = [c * _trace(part, p) for c, part in parts(F)]
    return sum(others, first)


def matching_curvature(F: Generator, K: int) -> Scalar:
    """The curvature of F that its scale is judged by: at uniform probabilities, or at the vertices.

    The mean over the directions of the simplex, tr(PHP)/(K − 1) with P = I − 11ᵀ/K. Where training
    begins with uniform probabilities, the gradient of the score on the logits is PH(p − e_y)/K, and
    this is its size. Training ends close to the vertices: where the curvature is less there, that
    counts, but no less than a tenth of the other. It is finite for every F that is smooth at the
    centre, whatever its curvature elsewhere.
    """

    def curvature(p):
        displaced = jax.hessian(lambda d: F(p + (d - jnp.mean(d))))
        return jnp.trace(displaced(jnp.zeros_like(p))) / (K - 1)

    centre = curvature(jnp.full(K, 1 / K))
    some = jnp.asarray(np.unique(np.linspace(0, K - 1, min(K, VERTICES)).astype(int)))
    ends = jnp.mean(jax.lax.map(lambda y: curvature(simplex.vertex(y, K)), some))
    lower = jnp.clip(ends, 0.1 * centre, centre)
    return jnp.where(jnp.isnan(ends), centre, lower)


def measure_curvature(F: Generator, K: int, *, key: PRNGKeyArray | None = None) -> float:
    """`matching_curvature`, or with a key `mean_curvature`, as a number: also while tracing."""
    with jax.ensure_compile_time_eval(), jax.enable_x64(False):  # the same one in either precision
        if key is None:
            return float(jax.jit(lambda: matching_curvature(F, K))())
        # the key is an argument, to compile one small program and not one per operation
        return float(jax.jit(lambda key: mean_curvature(F, K, key=key))(key))


def match_curvature(
    F: Generator, K: int, *, target: ArrayLike, key: PRNGKeyArray
) -> ClosedGenerator:
    """F rescaled so that its mean curvature over the same draws is `target`."""
    checks.check_positive("target", target)
    return rescale(F, target / mean_curvature(F, K, key=key))
