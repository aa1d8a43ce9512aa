"""D_F(q, p) of any function F, with an error bound.

The definition F(q) − F(p) − ⟨∇F(p), d⟩, d = q − p, is right for every F, up to a few units in the
last place of its terms: its error is at most C·ε·size, where

    size = |F(q)| + |F(p)| + Σ_j |∂_jF(p)|(p_j + q_j).

Close to q that is everything: in float32 at 1 − p_y = 1e-4 many of its values are negative. The
integral ∫₀¹ (1 − t) dᵀH(p + td)d dt, a sum of nonnegative terms, keeps its digits there, but is
right only where F is smooth along the path: at a kink H vanishes on both sides, and nothing in the
integral can tell. So the integral is taken where it agrees with the definition to within the
rounding of the latter, and the definition elsewhere. Whatever F is, the error stays below a small
multiple of ε·size; where F is smooth, it is small relative to the value too.

>>> import jax.numpy as jnp
>>> kinked = lambda p: jnp.sum(p**2) + jnp.maximum(p[0] - 0.9, 0.0)
>>> q, p = jnp.array([[1.0, 0.0]]), jnp.array([[0.8, 0.2]])
>>> any_divergence(kinked, lambda q, p: (q, q - p))(q, p)
Array([0.18], dtype=float32)
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from pgeom.geometry import simplex
from pgeom.geometry.closed_forms import closed_forms, parts
from pgeom.geometry.derivatives import pushforward, sum_of_slopes
from pgeom.types import Generator

AGREEMENT = 8  # units of ε·size within which the definition and the integral are the same number
NODES = {4: 6, 8: 12}  # of the quadrature, by the bytes of a number
AT_ONCE = 1_000_000  # numbers up to which every node of every example is evaluated at once
EXACT_ENOUGH = {4: 16, 8: 1024}  # size/value up to which the definition is as good as the integral


def any_divergence(F: Generator, displace: Callable) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """D_F(q, p) of a batch, so that what none of its examples needs is not computed.

    Its derivative in p is −H(p)d, one Hessian-vector product.

    Args:
      F: any function `F(p[K]) -> scalar`.
      displace: `(target, p[n, K]) -> q[n, K], d[n, K]`, the points that targets (labels, say)
        stand for, and d = q − p, which it may know better than as a difference.

    Returns:
      `divergence(target, p[n, K]) -> [n]`.
    """
    F = scalar_function(F)

    def divergence(target, p):
        pure, parameters = _closure_converted(F, jnp.sum(p, axis=0))
        return _divergence(pure, displace)(target, p, *parameters)

    return divergence


def vertex_values(F: Generator, K: int, dtype) -> jax.Array:
    """F(e_1), …, F(e_K), `[K]`: by K evaluations where no closed form is known."""
    return sum(jnp.asarray(c, dtype) * _vertex_values(part, K, dtype) for c, part in parts(F))


def values_at(F: Generator, q: jax.Array) -> jax.Array:
    """F at each of `q[n, K]`, or where that is not a number, as 0·log 0, F next to it; `[n]`."""
    undefined = jnp.isnan(jax.vmap(F)(q))  # +∞ is a number: a score may be infinite
    return jax.vmap(F)(jnp.where(undefined[:, None], _inside(q), q))


def scalar_function(F: Generator) -> Generator:
    """F, refused unless it returns one real number, in the dtype of its argument."""

    def checked(p):
        value = F(p)
        kind = (
            jnp.result_type(value)
            if isinstance(value, (float, np.generic, np.ndarray, jax.Array))
            else None
        )
        if kind is None or not jnp.issubdtype(kind, jnp.floating):
            got = kind or type(value).__name__
            raise TypeError(f"F must return a real scalar for p[{p.shape[-1]}], got {got}")
        if jnp.shape(value) != ():
            shape = jnp.shape(value)
            raise ValueError(f"F must return a scalar for p[{p.shape[-1]}], got shape {shape}")
        return jnp.asarray(value, p.dtype)

    return checked


def _vertex_values(F: Generator, K: int, dtype) -> jax.Array:
    if (form := closed_forms(F).vertex_values) is not None:
        return form(K, dtype)

    def at_vertex(label):
        return values_at(scalar_function(F), simplex.vertex(label, K, dtype)[None])[0]

    return jax.lax.map(at_vertex, jnp.arange(K), batch_size=min(K, 64))


def _closure_converted(F: Generator, p: jax.Array) -> tuple[Callable, list]:
    """`pure(p, *parameters)` and the traced values that F closes over.

    custom_jvp needs as arguments all that may be differentiated or mapped; `jax.closure_convert`
    would leave out integers and booleans.
    """
    program = jax.make_jaxpr(F)(p)
    traced = [i for i, value in enumerate(program.consts) if isinstance(value, jax.core.Tracer)]

    def pure(x, *parameters):
        values = list(program.consts)
        for i, value in zip(traced, parameters, strict=True):
            values[i] = value
        return jaxpr_as_fun(program.replace(consts=values))(x)[0]

    return pure, [program.consts[i] for i in traced]


def _divergence(F: Callable, displace: Callable) -> Callable:
    """`divergence(target, p, *parameters)` of `F(p, *parameters)`, with its derivative rule."""

    def value(target, p, *parameters):
        return _value(lambda x: F(x, *parameters), partial(_displace, displace), target, p)

    divergence = jax.custom_jvp(value)

    def divergence_jvp(primals, tangents):
        # By hand because ∇F(p) cancels from the derivative in p, −H(p)d, only on paper.
        (target, p, *parameters), (target_dot, p_dot, *parameter_dots) = primals, tangents
        out = divergence(*primals)

        def in_p(dot):
            _, d = displace(target, p)
            return -jnp.sum(_hessian_products(lambda x: F(x, *parameters), p, d) * dot, axis=1)

        def slope_in_others(dots):
            # of the definition, which sees kinks: which of the two is right may change with F
            def at_p(target, *parameters):
                at, (q, d) = lambda x: F(x, *parameters), _displace(displace, target, p)
                return _definition(at, p, q, d, values_at(at, q), values_at(at, p))[0]

            return pushforward(at_p, [target, *parameters], dots)

        others = ([target_dot, *parameter_dots], slope_in_others)
        return out, sum_of_slopes(out, (p_dot, in_p), others)

    divergence.defjvp(divergence_jvp, symbolic_zeros=True)
    return divergence


def _displace(displace: Callable, target, p):
    """q and d; in a `shard_map` q must vary over devices as p does, for which F was converted."""
    q, d = displace(target, p)
    return q + jax.lax.stop_gradient(0 * p), d


def _value(F: Generator, displace: Callable, target, p):
    """The value of each example; a large batch in chunks, which stay small and near.

    The integrals of a chunk are left out where its definitions are all good enough.
    """
    n, K = p.shape
    chunk = max(1, AT_ONCE // (K * NODES[p.dtype.itemsize]))
    if n <= chunk:
        return _careful_value(F, displace, target, p)

    def of_chunk(indices):
        some = target[indices], p[indices]
        q, d = displace(*some)
        definition, size = _definition(F, some[1], q, d, jax.vmap(F)(q), jax.vmap(F)(some[1]))
        exact = definition >= size / EXACT_ENOUGH[p.dtype.itemsize]
        careful = partial(_careful_value, F, displace, *some)
        return jax.lax.cond(jnp.all(exact), lambda: definition, careful)

    chunks = jnp.arange(-(-n // chunk) * chunk).reshape(-1, chunk)
    return jax.lax.map(of_chunk, jnp.minimum(chunks, n - 1)).reshape(-1)[:n]


def _careful_value(F: Generator, displace: Callable, target, p):
    """The integral where it agrees with the definition, else the definition."""
    q, d = displace(target, p)
    definition, size = _definition(F, p, q, d, values_at(F, q), values_at(F, p))
    integral = jax.vmap(lambda q, d: _integral(F, q, d))(q, d)
    same = jnp.abs(integral - definition) <= AGREEMENT * jnp.finfo(p.dtype).eps * size
    return jnp.where(same & jnp.isfinite(definition), integral, definition)


def _definition(F: Generator, p, q, d, F_q, F_p) -> tuple[jax.Array, jax.Array]:
    """F(q) − F(p) − ⟨∇F(p), d⟩, and the size of its terms."""
    slope = jax.vmap(jax.grad(F))(_inside(p))
    size = jnp.abs(F_q) + jnp.abs(F_p) + jnp.sum(jnp.abs(slope) * (p + q), axis=1)
    return F_q - F_p - jnp.sum(slope * d, axis=1), jax.lax.stop_gradient(size)


def _integral(F: Generator, q, d):
    """∫₀¹ (1 − t) dᵀH(q − (1 − t)d)d dt of one example."""
    left, weights = _graded_nodes(q.dtype)
    return jnp.sum(weights * jax.vmap(lambda t: _curvature(F, q - t * d, d))(left))


def _graded_nodes(dtype) -> tuple[jax.Array, jax.Array]:
    """1 − t and weights of Gauss–Legendre in s, 1 − t = (1 − s)²; with the factor 1 − t.

    The grading puts nodes where the path meets the boundary and H may diverge.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES[dtype.itemsize])
    left = (1 - nodes) / 2  # 1 − s
    # (1 − t) dt = 2(1 − s)³ ds, ds = ½ dnode
    return jnp.asarray(left**2, dtype), jnp.asarray(weights * left**3, dtype)


def _curvature(F: Generator, x, d):
    """dᵀH(x)d, a little inside the simplex, where H is finite."""
    return jax.jvp(lambda x: jax.jvp(F, (x,), (d,))[1], (_inside(x, 0.5),), (d,))[1]


def _hessian_products(F: Generator, p, d):
    """H(p)d of a batch `[n, K]`.

    Where autodiff overflows, as p log p does through 1/p² long before 1/p, the entry is taken a
    little inside the simplex and carried to p as 1/p_j goes, so that p_j(Hd)_j is that of inside.
    """

    def at_floor(power):
        def product(p, d):
            return jax.jvp(jax.grad(F), (_inside(p, power),), (d,))[1]

        return jax.vmap(product)(p, d)

    lowest, most = at_floor(1.0), jnp.finfo(p.dtype).max
    inside = at_floor(0.5) * (simplex.interior(p, 0.5) / simplex.interior(p))
    return jnp.where(jnp.isfinite(lowest), lowest, jnp.clip(inside, -most, most))


def _inside(p, power: float = 1.0):
    """p, where F has derivatives: no entry at zero (see `simplex.interior`), and none at one."""
    below_one = 1 - jnp.finfo(p.dtype).epsneg
    floored = simplex.interior(p, power)
    return floored - jax.lax.stop_gradient(jnp.maximum(floored - below_one, 0))
