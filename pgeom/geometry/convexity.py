"""Is a user's function a generator? Finite at the vertices, convex, strictly convex.

>>> import jax.numpy as jnp
>>> report = check_generator(lambda p: -jnp.sum(p**2), K=3)
>>> report.convex, report.witness is not None
(False, True)
"""

from functools import singledispatch
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import edge
from pgeom.geometry import simplex
from pgeom.geometry.curvature import envelope
from pgeom.geometry.generators import Hyperbolic, Quadratic
from pgeom.geometry.search import maximise
from pgeom.types import Generator

ROUNDING = 1e-13  # of a float64 divergence, relative to the terms it is made of
APART = 0.05  # the least distance of a pair on which flatness is judged


class Witness(NamedTuple):
    """A pair on which a claim fails: D_F(eta, p) = R(η, p) − R(η, η) is not positive."""

    eta: np.ndarray
    p: np.ndarray
    divergence: float


class GeneratorReport(NamedTuple):
    """What was found about a function F on the simplex of K classes.

    `witness` is a pair with D_F(η, p) < 0 where F is not convex, one with D_F(η, p) = 0 and
    η ≠ p where it is convex but not strictly, and None otherwise. `how` says how far to trust it.
    """

    finite_at_vertices: bool
    convex: bool
    strictly_convex: bool
    witness: Witness | None
    how: str


@singledispatch
def check_generator(F: Generator, K: int) -> GeneratorReport:
    """Look for whatever would keep D_F from being a strictly proper score.

    Args:
      F: any function `F(p[K]) -> scalar` of JAX operations.
      K: the number of classes.

    Returns:
      A `GeneratorReport`, by the eigenvalues of A for `quadratic`, by the closed form for
      `hyperbolic`, and for any other F by a search, in float64, over pairs of points: random
      ones, vertices, and the two ends of the flattest direction at each point.
    """
    edge.number_of_classes(K)
    with jax.enable_x64(True):
        _refuse_unless_scalar(F, K)
        points = simplex.probe_points(jax.random.key(1), K, 128)
        found = jax.jit(lambda *at: _examine(F, *at))(points, jnp.eye(K))
    at_vertices, eta, p, divergence, size = map(np.asarray, found)
    finite = bool(np.all(np.isfinite(at_vertices)))
    how = f"searched: {len(p)} pairs in float64, no proof"
    if not np.all(np.isfinite(divergence)):
        first = int(np.argmin(np.isfinite(divergence)))
        witness = Witness(eta[first], p[first], float(divergence[first]))
        return GeneratorReport(finite, False, False, witness, how + "; F is not finite inside")
    relative = divergence / size
    apart = np.linalg.norm(eta - p, axis=1) > APART
    worst = int(np.argmin(relative))
    flattest = int(np.argmin(np.where(apart, relative, np.inf)))
    convex, strict = relative[worst] >= -ROUNDING, relative[flattest] > ROUNDING
    chosen = None if convex and strict else worst if not convex else flattest
    witness = None if chosen is None else Witness(eta[chosen], p[chosen], float(divergence[chosen]))
    return GeneratorReport(finite, bool(convex), bool(convex and strict), witness, how)


@check_generator.register(Quadratic)
@check_generator.register(Hyperbolic)
def _(F, K: int) -> GeneratorReport:
    found = envelope(F, K)
    if not found.m_tangent > ROUNDING * found.M:  # built past its factory: look for a witness
        return check_generator.dispatch(object)(F, K)
    how = f"{found.how}: the smallest tangent eigenvalue is {found.m_tangent:.6g}"
    return GeneratorReport(True, True, True, None, how)


def _refuse_unless_scalar(F: Generator, K: int) -> None:
    shape = jax.eval_shape(F, jax.ShapeDtypeStruct((K,), jnp.float64)).shape
    if shape != ():
        raise ValueError(f"F must return a scalar for p[{K}], got shape {shape}")


def _examine(F: Generator, points: jax.Array, vertices: jax.Array) -> tuple[jax.Array, ...]:
    """F at the vertices, and pairs (η, p) with their D_F(η, p) and the size of its terms.

    The vertices are an argument because XLA takes 0 · log 0 for 0 where it knows the first.
    """
    eta, p = _pairs(F, points)
    divergence, size = jax.vmap(lambda q, p: _definition(F, q, p))(eta, p)
    return jax.vmap(F)(vertices), eta, p, divergence, size


def _pairs(F: Generator, points: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Pairs (η, p), `[n, K]` each, p inside the simplex."""
    K = points.shape[1]
    basis = jnp.asarray(simplex.tangent_basis(K))

    def inward(p):
        return (1 - 1e-6) * p + 1e-6 / K

    def flattest(p):
        values, vectors = jnp.linalg.eigh(jnp.nan_to_num(basis.T @ jax.hessian(F)(p) @ basis))
        return values[0], basis @ vectors[:, 0]

    def ends(p):
        """As far as the flattest direction stays inside, and a tenth of it, both ways."""
        _, v = flattest(p)
        reach = jnp.min(jnp.where(v < 0, p / jnp.where(v < 0, -v, 1.0), jnp.inf))
        back = jnp.min(jnp.where(v > 0, p / jnp.where(v > 0, v, 1.0), jnp.inf))
        return jnp.stack(
            [p + c * v for c in (0.9 * reach, 0.09 * reach, -0.9 * back, -0.09 * back)]
        )

    lowest = maximise(lambda p: -flattest(inward(p))[0], points).point
    centres = inward(jnp.concatenate([points, lowest[None]]))
    far, inside = jax.vmap(ends)(centres), centres[:-1]
    eta = [points, jnp.roll(points, 1, axis=0), jnp.roll(points, 7, axis=0), far.reshape(-1, K)]
    p = [jnp.roll(inside, 3, axis=0), inside, inside, jnp.repeat(centres, far.shape[1], axis=0)]
    return jnp.concatenate(eta), jnp.concatenate(p)


def _definition(F: Generator, q, p):
    """D_F(q, p) as it is defined, and the size of the terms it is the difference of."""
    d = q - p
    F_p, slope = jax.jvp(F, (p,), (d,))
    F_q = F(simplex.interior(q))
    return F_q - F_p - slope, jnp.abs(F_q) + jnp.abs(F_p) + jnp.abs(slope) + jnp.sum(d**2)
