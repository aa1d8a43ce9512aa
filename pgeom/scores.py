"""Divergences and scores: of any function with an error bound, and by closed forms.

D_F(q, p) for any function F, with an error bound.

The definition F(q) − F(p) − ⟨∇F(p), d⟩, d = q − p, holds for every F, up to a few units in the
last place of its terms: its error is at most C·ε·size, where

    size = |F(q)| + |F(p)| + Σ_j |∂_jF(p)|(p_j + q_j).

Close to q that error dominates: in float32 at 1 − p_y = 1e-4 many of the values are negative. The
integral ∫₀¹ (1 − t) dᵀH(p + td)d dt, a sum of nonnegative terms, keeps its digits there, but is
valid only if F is smooth along the path: a kink, with H zero on both sides, is invisible to it. So
the integral is used where it agrees with the definition to within the rounding of the latter, and
the definition elsewhere. For any F the error stays below a small multiple of ε·size; where F is
smooth, it is small relative to the value too.

>>> import jax.numpy as jnp
>>> kinked = lambda p: jnp.sum(p**2) + jnp.maximum(p[0] - 0.9, 0.0)
>>> q, p = jnp.array([[1.0, 0.0]]), jnp.array([[0.8, 0.2]])
>>> any_divergence(kinked, lambda q, p: (q, q - p))(q, p)
Array([0.18], dtype=float32)

From a convex generator to its divergence and its strictly proper score, Eqs. (1)–(4).

    D_F(q, p) = F(q) − F(p) − ⟨∇F(p), q − p⟩,    ℓ_F(p, y) = D_F(e_y, p)

>>> import jax.numpy as jnp
>>> score = bregman_score(lambda p: jnp.sum(p**2))      # Brier
>>> score(jnp.array([0.7, 0.2, 0.1]), jnp.array(0))
Array(0.14000, dtype=float32)
>>> score(jnp.array([0.7, 0.2, 0.1]), jnp.array([0.5, 0.5, 0.0]))    # its mean over two labels
Array(0.64, dtype=float32)

Scores as losses on logits.

>>> import jax.numpy as jnp
>>> from pgeom.scores import bregman_score
>>> def cubic(p): return jnp.sum(p**3)
>>> loss = on_logits(bregman_score(cubic))
>>> loss(jnp.array([[2.0, 0.0, 1.0]]), jnp.array([0]))
Array([0.29194], dtype=float32)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float, Int

from pgeom import checks, simplex
from pgeom.derivatives import pushforward, sum_of_slopes
from pgeom.functions import closure_converted, scalar_function
from pgeom.generators import closed_forms, sum_over_parts
from pgeom.simplex import centred, softmax
from pgeom.types import Generator, Labels, Loss, Score, Vectors

AGREEMENT = 8  # units of ε·size within which the definition and the integral are the same number
NODES = {4: 6, 8: 12}  # of the quadrature, by the bytes per number
AT_ONCE = 1_000_000  # numbers up to which all nodes of all examples are evaluated at once
EXACT_ENOUGH = {4: 16, 8: 1024}  # size/value up to which the definition is as good as the integral


def any_divergence(F: Generator, displace: Callable) -> Callable[[Array, Array], Array]:
    """D_F(q, p) for a batch, which skips the integral if none of its examples needs it.

    Its derivative in p is −H(p)d, one Hessian-vector product.

    Args:
      F: any function `F(p[K]) -> scalar`.
      displace: `(target, p[n, K]) -> q[n, K], d[n, K]`, the points that targets (labels, say)
        stand for, and d = q − p, which it may compute more accurately than as a difference.

    Returns:
      `divergence(target, p[n, K]) -> [n]`.
    """
    F = scalar_function(F)

    def divergence(target, p):
        pure, parameters = closure_converted(F, jnp.sum(p, axis=0))
        return _divergence(pure, displace)(target, p, *parameters)

    return divergence


def vertex_values(F: Generator, K: int, dtype: DTypeLike) -> Float[Array, " {K}"]:
    """F(e_1), …, F(e_K): by K evaluations where no closed form is known."""
    return sum_over_parts(lambda part: _vertex_values(part, K, dtype), F, dtype)


def values_at(F: Generator, q: Float[Array, "n K"]) -> Float[Array, " n"]:
    """F at each row of q; where that is NaN, as for 0·log 0, F at a point just inside."""
    q = _flush_subnormal(q)
    undefined = jnp.isnan(jax.vmap(F)(q))  # not where it is +∞: a score may be infinite
    return jax.vmap(F)(jnp.where(undefined[:, None], _inside(q), q))


def _flush_subnormal(p):
    """`p`, with zeros for subnormal numbers, which some operations of a program take for zeros."""
    subnormal = jnp.abs(p) < jnp.finfo(p.dtype).tiny
    return p - jax.lax.stop_gradient(jnp.where(subnormal, p, 0))


def slopes(F: Generator, p: Float[Array, "n K"]) -> Float[Array, "n K"]:
    """∇F at each row of p, or just inside where p is on the boundary."""
    return jax.vmap(jax.grad(F))(_inside(p))


def _vertex_values(F: Generator, K: int, dtype: DTypeLike) -> Array:
    if (form := closed_forms(F).vertex_values) is not None:
        return form(K, dtype)

    def vertex_value(label):
        e_y, function = simplex.vertex(label, K, dtype), scalar_function(F)
        value = function(simplex.interior(e_y))  # for 0·log 0 as close as numbers come
        value = jnp.where(jnp.isnan(function(e_y)), value, function(e_y))
        return jnp.where(jnp.isnan(value), values_at(function, e_y[None])[0], value)

    return jax.lax.map(vertex_value, jnp.arange(K), batch_size=min(K, 64))


def _divergence(F: Callable, displace: Callable) -> Callable:
    """`divergence(target, p, *parameters)` of `F(p, *parameters)`, with its derivative rule."""

    def value(target, p, *parameters):
        return _value(lambda x: F(x, *parameters), partial(_displace, displace), target, p)

    divergence, hessian_products = jax.custom_jvp(value), _hessian_products(F)

    def divergence_jvp(primals, tangents):
        # By hand because ∇F(p) cancels from the derivative in p, −H(p)d, in exact arithmetic only.
        (target, p, *parameters), (target_dot, p_dot, *parameter_dots) = primals, tangents
        out = divergence(*primals)

        def slope_in_p(dot):
            _, d = displace(target, p)
            return -jnp.sum(hessian_products(p, d, *parameters) * dot, axis=1)

        def slope_in_others(dots):
            # of the definition, because a change of F may change which of the two is valid
            def definition(target, *parameters):
                bound, (q, d) = lambda x: F(x, *parameters), _displace(displace, target, p)
                return _definition(bound, p, q, d, values_at(bound, q), values_at(bound, p))[0]

            return pushforward(definition, [target, *parameters], dots)

        others = ([target_dot, *parameter_dots], slope_in_others)
        return out, sum_of_slopes(out, (p_dot, slope_in_p), others)

    divergence.defjvp(divergence_jvp, symbolic_zeros=True)
    return divergence


def _displace(displace: Callable, target, p):
    """q and d; in a `shard_map`, q must vary over devices as the p does that F was traced with."""
    q, d = displace(target, p)
    return q + jax.lax.stop_gradient(0 * p), d


def _value(F: Generator, displace: Callable, target, p):
    """The value of each example; a large batch is computed in chunks that fit in the cache.

    The integrals of a chunk are skipped if the definition is accurate enough for all of it.
    """
    n, K = p.shape
    chunk = max(1, AT_ONCE // (K * NODES[p.dtype.itemsize]))
    if not isinstance(n, int) or n <= chunk:  # of a batch exported without a size nothing is known
        return _careful_value(F, displace, target, p)

    def chunk_values(indices):
        some = target[indices], p[indices]
        q, d = displace(*some)
        definition, size = _definition(F, some[1], q, d, jax.vmap(F)(q), jax.vmap(F)(some[1]))
        exact = definition >= size / EXACT_ENOUGH[p.dtype.itemsize]
        careful = partial(_careful_value, F, displace, *some)
        return jax.lax.cond(jnp.all(exact), lambda: definition, careful)

    chunks = jnp.arange(-(-n // chunk) * chunk).reshape(-1, chunk)
    return jax.lax.map(chunk_values, jnp.minimum(chunks, n - 1)).reshape(-1)[:n]


def _careful_value(F: Generator, displace: Callable, target, p):
    """The integral where it agrees with the definition, and the definition elsewhere."""
    q, d = displace(target, p)
    definition, size = _definition(F, p, q, d, values_at(F, q), values_at(F, p))
    integral = jax.vmap(lambda q, d: _integral(F, q, d))(q, d)
    same = jnp.abs(integral - definition) <= AGREEMENT * jnp.finfo(p.dtype).eps * size
    return jnp.where(same & jnp.isfinite(definition), integral, definition)


def _definition(F: Generator, p, q, d, F_q, F_p) -> tuple[Array, Array]:
    """F(q) − F(p) − ⟨∇F(p), d⟩, and the size of its terms."""
    slope = slopes(F, p)
    size = jnp.abs(F_q) + jnp.abs(F_p) + jnp.sum(jnp.abs(slope) * (p + q), axis=1)
    return F_q - F_p - jnp.sum(slope * d, axis=1), jax.lax.stop_gradient(size)


def _integral(F: Generator, q, d):
    """∫₀¹ (1 − t) dᵀH(q − (1 − t)d)d dt of one example."""
    left, weights = _graded_nodes(q.dtype)
    return jnp.sum(weights * jax.vmap(lambda t: _curvature(F, q - t * d, d))(left))


def _graded_nodes(dtype: np.dtype) -> tuple[Array, Array]:
    """1 − t and weights of Gauss–Legendre in s, 1 − t = (1 − s)²; the weights include 1 − t.

    The grading concentrates nodes where the path meets the boundary and H may diverge.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES[dtype.itemsize])
    left = (1 - nodes) / 2  # 1 − s
    # (1 − t) dt = 2(1 − s)³ ds, ds = ½ dnode
    return jnp.asarray(left**2, dtype), jnp.asarray(weights * left**3, dtype)


def _curvature(F: Generator, x, d):
    """dᵀH(x)d, evaluated slightly inside the simplex, where H is finite."""
    return jax.jvp(lambda x: jax.jvp(F, (x,), (d,))[1], (_inside(x, 0.5),), (d,))[1]


def _hessian_products(F: Callable) -> Callable:
    """`products(p, d, *parameters)`: H(p)d of `F(p, *parameters)` for a batch `[n, K]`."""

    @jax.custom_jvp
    def products(p, d, *parameters):
        return _first_products(lambda x: F(x, *parameters), p, d)

    def products_jvp(primals, tangents):
        # By hand because autodiff of p log p passes through 1/p³, which overflows long before the
        # derivative does.
        (p, d, *parameters), (p_dot, d_dot, *parameter_dots) = primals, tangents
        out = products(*primals)

        def slope_in_parameters(dots):
            return pushforward(
                lambda *values: _first_products(lambda x: F(x, *values), p, d), parameters, dots
            )

        def slope_in_p(dot):
            return _second_products(lambda x: F(x, *parameters), p, d, out, dot)

        def slope_in_d(dot):
            return _linear_products(lambda x: F(x, *parameters), p, d, out, dot)

        others = (parameter_dots, slope_in_parameters)
        return out, sum_of_slopes(out, (p_dot, slope_in_p), (d_dot, slope_in_d), others)

    products.defjvp(products_jvp, symbolic_zeros=True)
    return products


def _first_products(F: Generator, p, d):
    """H(p)d for a batch.

    Where autodiff overflows, as for p log p, through 1/p² long before 1/p does, the entry is
    computed slightly inside the simplex and extrapolated to p like 1/p_j, which keeps p_j(Hd)_j.
    """

    def products(power):
        def product(p, d):
            return jax.jvp(jax.grad(F), (_inside(p, power),), (d,))[1]

        return jax.vmap(product)(p, d)

    lowest, most = products(1.0), jnp.finfo(p.dtype).max / 16  # room for what multiplies it
    inside = products(0.5) * (simplex.interior(p, 0.5) / simplex.interior(p, simplex.LOWEST))
    return jnp.clip(jnp.where(jnp.isfinite(lowest), lowest, inside), -most, most)


def _linear_products(F: Generator, p, d, products, d_dot):
    """H(p)ḋ, extrapolated where and as `products` = H(p)d is: linear in ḋ."""

    def product(x, d):
        return jax.jvp(jax.grad(F), (x,), (d,))[1]

    lowest = _inside(p)
    overflows = ~jnp.isfinite(jax.vmap(product)(lowest, d))
    x = jnp.where(overflows, _inside(p, 0.5), lowest)
    ratio = simplex.interior(p, 0.5) / simplex.interior(p, simplex.LOWEST)
    growth = _growth(overflows, ratio, products, jax.vmap(product)(x, d))
    return jax.vmap(product)(x, d_dot) * growth


def _second_products(F: Generator, p, d, products, p_dot):
    """The change of `products` = H(p)d as p moves by ṗ: linear in ṗ.

    Where autodiff overflows on the way, the entry is computed further inside the simplex, for the
    same relative change of p_j, and extrapolated to p as (Hd)_j/p_j.
    """

    def change(x, x_dot, d):
        return jax.jvp(lambda x: jax.jvp(jax.grad(F), (x,), (d,))[1], (x,), (x_dot,))

    lowest = _inside(p)
    overflows = ~jnp.isfinite(jax.vmap(change)(lowest, lowest, d)[1])
    x = jnp.where(overflows, _inside(p, 0.2), lowest)
    ratio = simplex.interior(p, 0.2) / simplex.interior(p, simplex.LOWEST)
    ratio = jnp.where(overflows, ratio, 1.0)
    there, moved = jax.vmap(change)(x, p_dot * ratio, d)
    return moved * _growth(overflows, ratio, products, there)


def _growth(overflows, ratio, products, there):
    """How much larger an entry is at p than inside the simplex, where (Hd)_j is `there`: as much as
    (Hd)_j itself, or by the ratio if that is zero; one where nothing overflows."""
    known = overflows & jnp.isfinite(there) & (there != 0)
    growth = jnp.where(known, products / jnp.where(known, there, 1.0), ratio)
    return jax.lax.stop_gradient(jnp.where(overflows, growth, 1.0))


def _inside(p, power: float = 1.0):
    """p, moved to where F has derivatives: no entry is 0 (see `simplex.interior`) or 1."""
    below_one = 1 - jnp.finfo(p.dtype).epsneg
    floored = simplex.interior(p, power)
    return floored - jax.lax.stop_gradient(jnp.maximum(floored - below_one, 0))


NEXT_TO_A_VERTEX = 31 / 32  # where a difference to F at the vertex has lost five bits

PairFunction: TypeAlias = Callable[[Vectors, Vectors], Float[Array, "..."]]


def bregman_divergence(F: Generator) -> PairFunction:
    """The Bregman divergence of a generator.

    Args:
      F: `F(p[K]) -> scalar`, convex.

    Returns:
      `divergence(q[..., K], p[..., K]) -> [...]`, Eq. (bregman). With a conditional distribution
      η as q it is the conditional regret, Lemma (regret).
    """
    return checks.lift_pairs(
        jax.jit(lambda q, p: _pair_divergence(F, _from_point, q, p), inline=True)
    )


def bregman_score(F: Generator) -> "BregmanScore":
    """The score of a generator, strictly proper where F is strictly convex.

    Its gradient in p is one Hessian-vector product, H_F(p)(p − e_y), Eq. (prob-gradient).

    Args:
      F: `F(p[K]) -> scalar`, convex.

    Returns:
      `score(p[..., K], labels) -> [...]`, Eq. (score). Labels are integers `[...]`, or soft
      targets `[..., K]`, for which the value is the expected score.
    """
    return BregmanScore(F)


@dataclass(frozen=True, eq=False)
class BregmanScore:
    """The score of a generator: ℓ_F(p, y) = D_F(e_y, p), and its mean under a soft target.

    Calling it checks the arguments and accepts any leading dimensions; the methods take a batch.
    """

    generator: Generator

    def __call__(self, p: Vectors, labels: Labels) -> Float[Array, "*batch"]:
        return self._lifted(checks.probabilities("p", p), labels)

    @cached_property
    def _lifted(self) -> Callable:
        return checks.lift_targets(self.score_labels, self.score_targets, name="p")

    def __getstate__(self) -> dict[str, Generator]:
        """What a pickle or a copy holds: not the compiled function, which cannot be pickled."""
        return {"generator": self.generator}

    def score_labels(self, p: Float[Array, "n K"], labels: Int[Array, " n"]) -> Float[Array, " n"]:
        """D_F(e_y, p)."""

        def part_value(F):
            if (form := closed_forms(F).vertex_divergence) is None:
                return _pair_divergence(F, _from_vertex, labels, p)
            return jax.vmap(form)(labels, p, _from_vertex(labels, p)[1])

        return sum_over_parts(part_value, self.generator, p.dtype)

    def score_targets(
        self, p: Float[Array, "n K"], targets: Float[Array, "n K"]
    ) -> Float[Array, " n"]:
        """E_{Y∼η} D_F(e_Y, p) = D_F(η, p) + E F(e_Y) − F(η)."""
        divergence = _pair_divergence(self.generator, _from_target, targets, p)
        return divergence + _jensen_gap(self.generator, targets)

    def score_labels_on_logits(
        self, logits: Float[Array, "n K"], labels: Int[Array, " n"]
    ) -> Float[Array, " n"]:
        """D_F(e_y, softmax(z))."""

        def part_value(F):
            if (form := closed_forms(F).score_on_logits) is not None:
                return jax.vmap(form)(logits, labels)
            return BregmanScore(F).score_labels(_softmax(F, logits), labels)

        return sum_over_parts(part_value, self.generator, logits.dtype)

    def score_targets_on_logits(
        self, logits: Float[Array, "n K"], targets: Float[Array, "n K"]
    ) -> Float[Array, " n"]:
        """E_{Y∼η} D_F(e_Y, softmax(z))."""

        def part_value(F):
            if (form := closed_forms(F).divergence_on_logits) is not None:
                return jax.vmap(form)(targets, logits) + _jensen_gap(F, targets)
            return BregmanScore(F).score_targets(_softmax(F, logits), targets)

        return sum_over_parts(part_value, self.generator, logits.dtype)


def conditional_risk(score: Score) -> PairFunction:
    """R(η, p) = E_{Y∼η} score(p, Y), for pairs `(eta[..., K], p[..., K])`."""
    if isinstance(score, BregmanScore):
        return lambda eta, p: score(p, eta)

    def risk(eta, p):
        (n, K), labels = p.shape, jnp.arange(p.shape[-1])
        every = score(jnp.repeat(p, K, axis=0), jnp.tile(labels, n))
        return jnp.sum(eta * every.reshape(n, K), axis=1)

    return checks.lift_pairs(risk, ("eta", "p"))


def regret(score: Score) -> PairFunction:
    """R(η, p) − R(η, η), for pairs `(eta[..., K], p[..., K])`; of a Bregman score, D_F(η, p)."""
    if isinstance(score, BregmanScore):
        return bregman_divergence(score.generator)
    risk = conditional_risk(score)
    return lambda eta, p: risk(eta, p) - risk(eta, eta)


def _pair_divergence(F: Generator, displace: Callable, target, p):
    """D_F(q, p) of a batch, where `displace(target, p)` gives q and d = q − p."""

    def part_value(F):
        if (form := closed_forms(F).divergence) is None:
            return any_divergence(F, displace)(target, p)
        q, d = displace(target, p)
        return jax.vmap(form)(q, p, d)

    return sum_over_parts(part_value, F, p.dtype)


def _softmax(F: Generator, logits):
    """softmax of a batch."""
    # Without a closed form the score's gradient is that of autodiff next to p, where p_j itself may
    # have underflowed to zero: the tangent of softmax is then replaced by the one at that point, or
    # their product would be 0·∞.
    floored = closed_forms(F).divergence is None
    return jax.vmap(lambda z: softmax(z, floored))(logits)


def _from_point(q, p):
    return q, q - p


def _from_vertex(labels, p):
    e_y = jax.nn.one_hot(labels, p.shape[-1], dtype=p.dtype)
    return e_y, jax.vmap(simplex.displacement)(e_y, p)


def _from_target(targets, p):
    return targets, jax.vmap(simplex.displacement)(targets, p)


def _jensen_gap(F: Generator, eta):
    """E_{Y∼η} F(e_Y) − F(η) ≥ 0, the expected score of η itself; exactly zero at a vertex."""

    def part_value(F):
        function = scalar_function(F)
        at_vertices = vertex_values(F, eta.shape[-1], eta.dtype)[None]
        weighted = jnp.where(eta > 0, eta * at_vertices, 0.0)  # 0 · ∞ counts as 0
        at_eta = values_at(function, eta)
        gap = jnp.sum(weighted, axis=1) - at_eta
        size = jnp.sum(jnp.abs(weighted), axis=1) + jnp.abs(at_eta)

        one_hot = jnp.sum(eta > 0, axis=1) == 1  # η_m may have been rounded to one
        close = (jnp.max(eta, axis=1) > NEXT_TO_A_VERTEX) & ~one_hot
        gap = jax.lax.cond(
            jnp.any(close),
            lambda: jnp.where(close, _gap_next_to_vertex(F, eta, at_vertices, gap, size), gap),
            lambda: gap,
        )
        # what is left is rounding, which no convex F may make a negative score; whether a function
        # without closed forms is convex, only its gap can tell
        convex = closed_forms(F).divergence is not None
        gap = jnp.maximum(gap, 0.0) if convex else gap
        return jnp.where(one_hot, 0.0, gap)

    return sum_over_parts(part_value, F, eta.dtype)


def _gap_next_to_vertex(F: Generator, eta, at_vertices, gap, size):
    """The same where the largest η_m is close to one, and F(η) to F(e_m).

    E F(e_Y) − F(η) = Σ_{y≠m} η_y D_F(e_y, e_m) − D_F(η, e_m), in terms that are as small as the
    other η_y. Where the slopes at the vertex are too steep for it, as those of entropies, which are
    zero at the vertices and do not cancel, only the rounding of η_m is made good.

    Args:
      F: the generator.
      eta: η, `[n, K]`.
      at_vertices: F(e_1), …, `[1, K]`.
      gap: the gap as a difference, `[n]`.
      size: the sum of the absolute values of its terms, `[n]`.
    """
    m = jax.vmap(simplex.argmax_mask)(eta)
    e_m = m.astype(eta.dtype)
    slope = slopes(scalar_function(F), e_m)

    def mine(values):
        return jnp.sum(jnp.where(m, values, 0.0), axis=1, keepdims=True)

    others = jnp.where(m, 0.0, eta)
    rise, run = at_vertices - mine(at_vertices), slope - mine(slope)
    steps = jnp.sum(jnp.where(others > 0, others * (rise - run), 0.0), axis=1)
    reach = (
        jnp.abs(at_vertices) + jnp.abs(mine(at_vertices)) + jnp.abs(slope) + jnp.abs(mine(slope))
    )
    careful = steps - _pair_divergence(F, _from_target, eta, e_m)
    rounded = 1 - mine(eta)[:, 0] - jnp.sum(others, axis=1)  # η_m is that much too small
    corrected = gap + rounded * (mine(at_vertices) - mine(slope))[:, 0]
    # the integral ends at the vertex, where few nodes see little of the curvature of Σp^1.5
    apart = jnp.abs(careful - corrected) > AGREEMENT * jnp.finfo(eta.dtype).eps * size
    better = jnp.isfinite(careful) & (jnp.sum(others * reach, axis=1) < size) & ~apart
    return jnp.where(better, careful, jnp.where(jnp.isfinite(corrected), corrected, gap))


def on_logits(score: Score, temperature: ArrayLike = 1.0) -> Loss:
    """A score of softmax(z/T), as a loss on the logits z.

    Args:
      score: `score(p[..., K], labels) -> [...]`, from `bregman_score` or any other.
      temperature: T > 0.

    Returns:
      `loss(logits[..., K], labels) -> [...]`. Labels are integers `[...]`, or soft targets
      `[..., K]`, for which the value is the expected score. A logit of −∞ rules its class out.
    """
    checks.check_scalar("temperature", temperature)
    checks.check_positive("temperature", temperature)
    if isinstance(score, BregmanScore):
        label_values = score.score_labels_on_logits
        target_values = score.score_targets_on_logits
    else:
        floored = jax.vmap(lambda logits: softmax(logits, True))
        label_values = target_values = lambda logits, labels: score(floored(logits), labels)

    def tempered(values: Callable) -> Callable:
        if isinstance(temperature, (int, float)) and temperature == 1:
            return values
        return lambda logits, labels: values(
            centred(logits) / jnp.asarray(temperature, logits.dtype), labels
        )

    return checks.lift_targets(tempered(label_values), tempered(target_values))
