"""From a convex generator to its divergence and its strictly proper score, Eqs. (1)–(4).

    D_F(q, p) = F(q) − F(p) − ⟨∇F(p), q − p⟩,    ℓ_F(p, y) = D_F(e_y, p)

The equation as it stands loses everything to cancellation when p is close to q: in float32, at
1 − p_y = 1e-4, many of its values are negative. Close by, the same number is therefore taken from
∫₀¹ (1 − t) dᵀH(p + td)d dt, a sum of nonnegative terms, with d taken from the competitors' mass.

>>> import jax.numpy as jnp
>>> score = bregman_score(lambda p: jnp.sum(p**2))      # Brier
>>> score(jnp.array([0.7, 0.2, 0.1]), jnp.array(0))
Array(0.14000, dtype=float32)
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from pgeom import edge
from pgeom.geometry import simplex
from pgeom.types import Generator, Score

# q is close to p where q ≤ p/0.7 in each class; for a vertex, where 1 − p_y ≤ 0.3. There twelve
# nodes give 1e-12 for smooth generators and 1e-5 for ridges of width 0.02; beyond, the definition
# loses less than ten units in the last place.
CLOSE = 1 / 0.7
QUADRATURE_NODES = 12


def bregman_divergence(F: Generator) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """The Bregman divergence of a generator.

    Args:
      F: `F(p[K]) -> scalar`, convex.

    Returns:
      `divergence(q[..., K], p[..., K]) -> [...]`, Eq. (bregman). With a soft target η as q it is
      the conditional regret, Lemma (regret).
    """

    def divergence(q, p):
        if hasattr(F, "divergence"):
            return F.divergence(q, q - p)
        q, p = simplex.interior(q), simplex.interior(p)
        return _divergence(F, q, p, q - p)

    return edge.over_pairs(divergence)


def bregman_score(F: Generator) -> Score:
    """The score of a generator, strictly proper where F is strictly convex.

    Its gradient in p is one Hessian-vector product, H_F(p)(p − e_y), Eq. (prob-gradient).

    Args:
      F: `F(p[K]) -> scalar`, convex.

    Returns:
      `score(p[..., K], labels[...]) -> [...]`, Eq. (score).
    """

    def of_point(p, label):
        e_y, d = simplex.towards_vertex(p, label)
        if hasattr(F, "divergence"):
            return F.divergence(label, d)
        return _divergence(F, simplex.interior(e_y), p, d)

    def example(p, label):
        return of_point(simplex.interior(p), label)

    score = edge.over_examples(example, name="p")
    score.generator, score.of_point = F, of_point
    return score


def conditional_risk(score: Score) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """R(η, p) = E_{Y∼η} score(p, Y), for pairs `(eta[..., K], p[..., K])`."""

    def risk(eta, p):
        K = p.shape[-1]
        return jnp.dot(eta, score(jnp.broadcast_to(p, (K, K)), jnp.arange(K)))

    return edge.over_pairs(risk, ("eta", "p"))


def regret(score: Score) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """R(η, p) − R(η, η), for pairs `(eta[..., K], p[..., K])`."""
    risk = conditional_risk(score)
    return lambda eta, p: risk(eta, p) - risk(eta, eta)


def _divergence(F: Generator, q, p, d):
    """D_F(q, p) of one example, where d = q − p is known better than its difference."""
    # custom_jvp needs as arguments all that may be differentiated, also what F closes over.
    value, value_parameters = jax.closure_convert(lambda *qpd: _value(F, *qpd), q, p, d)
    slope, slope_parameters = jax.closure_convert(lambda p, d: -_hessian_product(F, p, d), p, d)

    @jax.custom_jvp
    def divergence(q, p, d, value_parameters, slope_parameters):
        return value(q, p, d, *value_parameters)

    def divergence_jvp(primals, tangents):
        # By hand because ∇F(p) cancels from the derivative in p, −H_F(p)d, only on paper.
        q, p, d, value_parameters, slope_parameters = primals
        q_dot, p_dot, _, parameters_dot, _ = tangents
        out_dot = jnp.dot(slope(p, d, *slope_parameters), _instantiate(p_dot))
        others_dot = (q_dot, q_dot, parameters_dot)
        if not all(isinstance(leaf, SymbolicZero) for leaf in jax.tree.leaves(others_dot)):
            out_dot += jax.jvp(
                lambda q, d, parameters: value(q, p, d, *parameters),
                (q, d, value_parameters),
                jax.tree.map(_instantiate, others_dot),
            )[1]
        return divergence(q, p, d, value_parameters, slope_parameters), out_dot

    divergence.defjvp(divergence_jvp, symbolic_zeros=True)
    return divergence(q, p, d, value_parameters, slope_parameters)


def _instantiate(tangent):
    return jnp.zeros_like(tangent) if isinstance(tangent, SymbolicZero) else tangent


def _value(F: Generator, q, p, d):
    """D_F(q, p) without cancellation: the integral close by, or else the definition."""
    F_p, F_slope = jax.jvp(F, (p,), (d,))
    return jnp.where(jnp.all(q <= CLOSE * p), _integral(F, q, d), F(q) - F_p - F_slope)


def _integral(F: Generator, q, d):
    """∫₀¹ (1 − t) dᵀH(q − (1 − t)d)d dt, by Gauss–Legendre in s with 1 − t = (1 − s)².

    The grading puts nodes where the path meets the boundary and H may diverge.
    """
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    left = (1 - nodes) / 2  # 1 − s
    weights = jnp.asarray(weights * left**3, q.dtype)  # (1 − t) dt = 2(1 − s)³ ds, ds = ½ dnode
    points = simplex.interior(q[None] - jnp.outer(jnp.asarray(left**2, q.dtype), d))

    def curvature(x):
        return jax.jvp(lambda x: jax.jvp(F, (x,), (d,))[1], (x,), (d,))[1]

    return jnp.dot(weights, jax.vmap(curvature)(points))


def _hessian_product(F: Generator, p, direction):
    return jax.jvp(jax.grad(F), (p,), (direction,))[1]
