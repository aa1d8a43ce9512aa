"""The Hessian of a generator: its envelope over the simplex, its mean, and matching its mean.

Two envelopes: the paper's mI ⪯ H(p) ⪯ MI, and the tangent one, the extreme eigenvalues m_T, M_T of
H on {x : Σx = 0}. Displacements on the simplex lie in that space, so that m_T and M_T may stand
for m and M in every bound on regret, range and logit gradient.

>>> import jax.numpy as jnp
>>> from pgeom.geometry.generators import quadratic
>>> envelope(quadratic(jnp.diag(jnp.array([1.0, 3.0]))), 2)
Envelope(m=1.0, M=3.0, m_tangent=2.0, M_tangent=2.0, how='exact')
"""

from collections.abc import Callable
from functools import singledispatch

import jax
import jax.numpy as jnp

from pgeom import edge
from pgeom.geometry import simplex
from pgeom.geometry.closed_forms import Combination, parts, rescale
from pgeom.geometry.envelopes import Envelope
from pgeom.geometry.findings import find
from pgeom.geometry.generators import Hyperbolic, Quadratic
from pgeom.types import Generator

DRAWS = 4096  # Dirichlet(1) points of a mean curvature


def hessian(F: Generator) -> Callable[[jax.Array], jax.Array]:
    """`H(p[..., K]) -> [..., K, K]`, the Hessian of F."""
    lifted = jnp.vectorize(jax.hessian(F), signature="(k)->(k,k)")
    return lambda p: lifted(edge.vectors("p", p))


def envelope(F: Generator, K: int) -> Envelope:
    """The curvature envelope of F on K classes, as `diagnose` knows it.

    Args:
      F: a generator.
      K: the number of classes.

    Returns:
      An `Envelope`: exact for `quadratic`, in closed form for `hyperbolic` and sums of the two,
      and for any other F searched for; infinite where H is not finite at the vertices, or F has
      a kink.
    """
    return find(F, K).envelope


@singledispatch
def mean_curvature(F: Generator, K: int, *, key: jax.Array) -> jax.Array:
    """The mean of trace(H(p))/K over Dirichlet(1) draws."""
    points = simplex.interior(simplex.uniform(key, K, DRAWS))
    return jnp.mean(jax.lax.map(lambda p: jnp.trace(jax.hessian(F)(p)), points, batch_size=64)) / K


@mean_curvature.register
def _(F: Quadratic, K: int, *, key: jax.Array) -> jax.Array:
    edge.check_same_classes("F", F.A.shape[0], K)
    return jnp.trace(F.A) / K


@mean_curvature.register
def _(F: Hyperbolic, K: int, *, key: jax.Array) -> jax.Array:
    """By trace(H) = s[λK + Σ_r a_r sech²(v_r)‖w_r‖²]: no K×K matrix for each draw."""
    edge.check_same_classes("F", F.w.shape[1], K)
    points = simplex.uniform(key, K, DRAWS).astype(F.w.dtype)
    v = (jnp.dot(points, F.w.T) - F.b[None]) / F.rho[None]
    sech2 = jnp.mean(1 - jnp.tanh(v) ** 2, axis=0)
    return F.scale * (F.lam + jnp.sum(F.a * sech2 * jnp.sum(F.w**2, axis=1)) / K)


@mean_curvature.register
def _(F: Combination, K: int, *, key: jax.Array) -> jax.Array:
    return sum(c * mean_curvature(part, K, key=key) for c, part in parts(F))


def match_curvature(F: Generator, K: int, *, target, key: jax.Array) -> Generator:
    """F rescaled so that its mean curvature over the same draws is `target`."""
    edge.check_positive("target", target)
    return rescale(F, target / mean_curvature(F, K, key=key))
