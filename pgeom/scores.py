"""Divergences and scores: of any function with an error bound, and by closed forms.

From a convex generator to its divergence and its strictly proper score, Eqs. (1)–(4):

    D_F(q, p) = F(q) − F(p) − ⟨∇F(p), d⟩,  d = q − p,    ℓ_F(p, y) = D_F(e_y, p)

That definition holds for every F, up to a few units in the last place of its terms: its error is at
most C·ε·size, where

    size = |F(q)| + |F(p)| + Σ_j |∂_jF(p)|(p_j + q_j).

Close to q that error dominates: in float32 at 1 − p_y = 1e-4 many of the values are negative. The
integral ∫₀¹ (1 − t) dᵀH(p + td)d dt, a sum of nonnegative terms, keeps its digits there, but is
valid only if F is smooth along the path: a kink, with H zero on both sides, is invisible to it. So
the integral is used where it agrees with the definition to within the rounding of the latter, and
the definition elsewhere. For any F the error stays below a small multiple of ε·size; where F is
smooth, it is small relative to the value too.

>>> import jax.numpy as jnp
>>> score = bregman_score(lambda p: jnp.sum(p**2))      # Brier
>>> score(jnp.array([0.7, 0.2, 0.1]), jnp.array(0))
Array(0.14000, dtype=float32)
>>> score(jnp.array([0.7, 0.2, 0.1]), jnp.array([0.5, 0.5, 0.0]))    # its mean over two labels
Array(0.64, dtype=float32)
>>> loss = on_logits(bregman_score(lambda p: jnp.sum(p**3)))
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
from pgeom.derivatives import derivative_of, pushforward
from pgeom.functions import closure_converted, scalar_function
from pgeom.generators import closed_forms, sum_over_parts
from pgeom.pickling import picklable
from pgeom.simplex import centred, displacement, rule_log_softmax, rule_softmax, softmax
from pgeom.types import Generator, Labels, Loss, Rows, Score, Values, Vectors

AGREEMENT = 8  # units of ε·size within which the definition and the integral are the same number
NODES = {4: 6, 8: 12}  # of the quadrature, by the bytes per number
AT_ONCE = 1_000_000  # numbers up to which all nodes of all examples are evaluated at once
# XLA on a CPU (JAX 0.10) has been seen to compute max(Wp, 0) in float64 wrongly for later rows
MOST_ROWS = 16_384
EXACT_ENOUGH = {4: 16, 8: 1024}  # size/value up to which the definition is as good as the integral
FLAT = 1e-4  # powers of p_j that are taken for zero
NEXT_TO_A_VERTEX = 31 / 32  # where a difference to F at the vertex has lost five bits

PairFunction: TypeAlias = Callable[[Vectors, Vectors], Float[Array, "..."]]


# divergences, scores and losses ------------------------------------------------------------------


@picklable
def bregman_divergence(F: Generator) -> PairFunction:
    """The Bregman divergence of a generator.

    Args:
      F: `F(p[K]) -> scalar`, convex.

    Returns:
      `divergence(q[..., K], p[..., K]) -> [...]`, Eq. (bregman). With a conditional distribution
      η as q it is the conditional regret, Lemma (regret).
    """
    return checks.lift_pairs(jax.jit(lambda q, p: _divergence(F, q, p, q - p), inline=True))


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

    Calling it checks the arguments and accepts any leading dimensions; the methods take a batch of
    labels `[n]`, or of soft targets `[n, K]`, for which the value is

        E_{Y∼η} D_F(e_Y, p) = D_F(η, p) + E F(e_Y) − F(η).
    """

    generator: Generator

    def __call__(self, p: Vectors, labels: Labels) -> Values:
        return self._lifted(checks.probabilities("p", p), labels)

    @cached_property
    def _lifted(self) -> Callable:
        return checks.lift_targets(self.values, self.values, name="p")

    def __getstate__(self) -> dict[str, Generator]:
        """What a pickle or a copy holds: not the compiled function, which cannot be pickled."""
        return {"generator": self.generator}

    def values(
        self, p: Rows, target: Int[Array, " n"] | Rows, logits: Rows | None = None
    ) -> Float[Array, " n"]:
        """The score of each p; with logits, see `any_divergence`."""
        soft = target.ndim == 2
        q = target if soft else jax.nn.one_hot(target, p.shape[1], dtype=p.dtype)
        d = jax.vmap(displacement)(q, p, p if soft else q)

        def part_value(F):
            form = closed_forms(F).vertex_divergence
            if soft or form is None:
                return _divergence(F, q, p, d, logits)
            return jax.vmap(form)(target, p, d)

        divergence = sum_over_parts(part_value, self.generator, p.dtype)
        return divergence + _jensen_gap(self.generator, q) if soft else divergence

    def values_on_logits(self, logits: Rows, target: Int[Array, " n"] | Rows) -> Float[Array, " n"]:
        """The score of each softmax(z)."""
        soft = target.ndim == 2

        def part_value(F):
            forms = closed_forms(F)
            if soft and forms.divergence_on_logits is not None:
                divergence = jax.vmap(forms.divergence_on_logits)(target, logits)
                return divergence + _jensen_gap(F, target)
            if not soft and forms.score_on_logits is not None:
                return jax.vmap(forms.score_on_logits)(logits, target)
            p = jax.vmap(softmax)(logits)
            if forms.divergence is None and (soft or forms.vertex_divergence is None):
                return BregmanScore(F).values(jax.lax.stop_gradient(p), target, logits)
            return BregmanScore(F).values(p, target)

        return sum_over_parts(part_value, self.generator, logits.dtype)


@picklable
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
    unscaled = isinstance(temperature, (int, float)) and temperature == 1
    floored = jax.vmap(lambda logits: softmax(logits, True))

    def values(logits, target):
        if not unscaled:
            logits = centred(logits) / jnp.asarray(temperature, logits.dtype)
        if isinstance(score, BregmanScore):
            return score.values_on_logits(logits, target)
        return score(floored(logits), target)

    return checks.lift_targets(values, values)


@picklable
def conditional_risk(score: Score) -> PairFunction:
    """R(η, p) = E_{Y∼η} score(p, Y), for pairs `(eta[..., K], p[..., K])`."""
    if isinstance(score, BregmanScore):
        return lambda eta, p: score(p, eta)

    def risk(eta, p):
        (n, K), labels = p.shape, jnp.arange(p.shape[-1])
        every = score(jnp.repeat(p, K, axis=0), jnp.tile(labels, n))
        return jnp.sum(eta * every.reshape(n, K), axis=1)

    return checks.lift_pairs(risk, ("eta", "p"))


@picklable
def regret(score: Score) -> PairFunction:
    """R(η, p) − R(η, η), for pairs `(eta[..., K], p[..., K])`; of a Bregman score, D_F(η, p)."""
    if isinstance(score, BregmanScore):
        return bregman_divergence(score.generator)
    risk = conditional_risk(score)
    return lambda eta, p: risk(eta, p) - risk(eta, eta)


def _divergence(F: Generator, q, p, d, logits=None):
    """D_F(q, p) of a batch; d = q − p may be known more accurately than the difference."""

    def part_value(F):
        form = closed_forms(F).divergence
        return any_divergence(F, q, p, d, logits) if form is None else jax.vmap(form)(q, p, d)

    return sum_over_parts(part_value, F, p.dtype)


# soft targets ------------------------------------------------------------------------------------


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
    careful = steps - _divergence(F, eta, e_m, jax.vmap(displacement)(eta, e_m))
    rounded = 1 - mine(eta)[:, 0] - jnp.sum(others, axis=1)  # η_m is that much too small
    corrected = gap + rounded * (mine(at_vertices) - mine(slope))[:, 0]
    # the integral ends at the vertex, where few nodes see little of the curvature of Σp^1.5
    apart = jnp.abs(careful - corrected) > AGREEMENT * jnp.finfo(eta.dtype).eps * size
    better = jnp.isfinite(careful) & (jnp.sum(others * reach, axis=1) < size) & ~apart
    return jnp.where(better, careful, jnp.where(jnp.isfinite(corrected), corrected, gap))


def vertex_values(F: Generator, K: int, dtype: DTypeLike) -> Float[Array, " {K}"]:
    """F(e_1), …, F(e_K): by K evaluations where no closed form is known."""
    return sum_over_parts(lambda part: _vertex_values(part, K, dtype), F, dtype)


def _vertex_values(F: Generator, K: int, dtype: DTypeLike) -> Array:
    if (form := closed_forms(F).vertex_values) is not None:
        return form(K, dtype)

    def vertex_value(label):
        e_y, function = simplex.vertex(label, K, dtype), scalar_function(F)
        # for 0·log 0 as close as numbers come, and where 1 − p must not be 0 either, next to that
        value, near, inside = map(function, (e_y, simplex.interior(e_y), _inside(e_y)))
        near = jnp.where(jnp.isnan(near), inside, near)
        return jnp.where(jnp.isnan(value), near, value)

    return jax.lax.map(vertex_value, jnp.arange(K), batch_size=min(K, 64))


def values_at(F: Generator, q: Rows) -> Float[Array, " n"]:
    """F at each row of q; where that is NaN, as for 0·log 0, F at a point just inside."""
    # some operations of a program take subnormal numbers for zeros
    subnormal = jnp.abs(q) < jnp.finfo(q.dtype).tiny
    q = q - jax.lax.stop_gradient(jnp.where(subnormal, q, 0))
    undefined = jnp.isnan(jax.vmap(F)(q))  # not where it is +∞: a score may be infinite
    return jax.vmap(F)(jnp.where(undefined[:, None], _inside(q), q))


def slopes(F: Generator, p: Rows) -> Rows:
    """∇F at each row of p, or just inside where p is on the boundary."""
    return jax.vmap(jax.grad(F))(_inside(p))


# any function ------------------------------------------------------------------------------------


def any_divergence(
    F: Generator, q: Rows, p: Rows, d: Rows, logits: Rows | None = None
) -> Float[Array, " n"]:
    """D_F(q, p) for a batch, which skips the integral if none of its examples needs it.

    Its derivative in p is −H(p)d, one Hessian-vector product, and in the logits −J(p)H(p)d; d has
    no derivative of its own.

    Args:
      F: any function `F(p[K]) -> scalar`.
      q: the points that are compared with.
      p: points of the simplex.
      d: q − p, which may be known more accurately than the difference.
      logits: those whose softmax p is, if it is to be differentiated in them, and not in p.
    """
    pure, parameters = closure_converted(scalar_function(F), jnp.sum(p, axis=0))
    q = q + jax.lax.stop_gradient(0 * p)  # which in a `shard_map` varies over devices as p does
    return _pure_divergence(pure)(q, p, d, logits, parameters)


def _pure_divergence(F: Callable) -> Callable:
    """`divergence(q, p, d, logits, parameters)` of `F(p, *parameters)`, with its derivatives."""

    @jax.custom_jvp
    def divergence(q, p, d, logits, parameters):
        return _value(lambda x: F(x, *parameters), q, p, d)

    products, weighted_products = _hessian_products(F), _hessian_products(F, weighted=True)

    @derivative_of(divergence)
    def rules(out, q, p, d, logits, parameters):
        # By hand because ∇F(p) cancels from the derivative in p, −H(p)d, in exact arithmetic only.
        # The others are those of the definition, because a change of F may change which of the two
        # is valid.
        def definition(q, d, *parameters):
            def bound(x):
                return F(x, *parameters)

            return by_definition(bound, q, p, d, values_at(bound, q), values_at(bound, p))[0]

        def rule_of_p(dot):
            log_p = jnp.log(simplex.interior(p, simplex.LOWEST))
            return -jnp.sum(products(p, log_p, d, parameters) * dot, axis=1)

        def rule_of_logits(dot):
            # p_j(Hd)_j is as large as the loss where (Hd)_j, which is larger by 1/p_j, overflows
            at, log_p = (jax.vmap(f)(logits) for f in (rule_softmax, rule_log_softmax))
            inside = logits > -jnp.inf
            log_p = jnp.where(inside, log_p, jnp.log(jnp.finfo(at.dtype).tiny))
            moving = d - (at - jax.lax.stop_gradient(at))
            # a small d by its largest entry, or products of it underflow on the way to H(p)d
            largest = jax.lax.stop_gradient(jnp.max(jnp.abs(d), axis=1, keepdims=True))
            small = (largest > 0) & (largest < jnp.finfo(d.dtype).eps ** 2)
            unit = jnp.where(small, largest, 1.0)
            products = unit * weighted_products(at, log_p, moving / unit, parameters)
            weighted = jnp.where(inside, products, 0.0)
            return -jnp.sum(jax.vmap(simplex.remove_mean)(at, weighted) * dot, axis=1)

        moving = [q, d, *parameters]
        return (
            lambda dot: pushforward(definition, moving, [dot, dot, *[None] * len(parameters)]),
            rule_of_p,
            None,
            rule_of_logits,
            lambda dots: pushforward(definition, moving, [None, None, *dots]),
        )

    return divergence


def _value(F: Generator, q, p, d):
    """The value of each example; a large batch is computed in chunks that fit in the cache.

    The integrals of a chunk are skipped if the definition is accurate enough for all of it.
    """
    n, K = p.shape
    chunk = min(MOST_ROWS, max(1, AT_ONCE // (K * NODES[p.dtype.itemsize])))
    if not isinstance(n, int) or n <= chunk:  # of a batch exported without a size nothing is known
        return _careful_value(F, q, p, d)

    def chunk_values(start):
        some = [jax.lax.dynamic_slice_in_dim(x, start, chunk) for x in (q, p, d)]
        definition, size = by_definition(F, *some, *map(jax.vmap(F), some[:2]))
        exact = definition >= size / EXACT_ENOUGH[p.dtype.itemsize]
        return jax.lax.cond(jnp.all(exact), lambda: definition, lambda: _careful_value(F, *some))

    starts = jnp.arange(0, n, chunk)
    values = jax.lax.map(chunk_values, jnp.minimum(starts, n - chunk))
    # the last chunk begins where it is whole, among examples that are in the one before it
    return jnp.concatenate([values[:-1].reshape(-1), values[-1, len(starts) * chunk - n :]])


def _careful_value(F: Generator, q, p, d):
    """The integral where it agrees with the definition, and the definition elsewhere."""
    definition, size = by_definition(F, q, p, d, values_at(F, q), values_at(F, p))
    integral = jax.vmap(lambda q, d: _integral(F, q, d))(q, d)
    same = jnp.abs(integral - definition) <= AGREEMENT * jnp.finfo(p.dtype).eps * size
    return jnp.where(same & jnp.isfinite(definition), integral, definition)


def by_definition(F: Generator, q, p, d, F_q, F_p) -> tuple[Array, Array]:
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


def _hessian_products(F: Callable, weighted: bool = False) -> Callable:
    """`products(p, log_p, d, parameters)` of `F(p, *parameters)` for a batch `[n, K]`.

    Those are (H(p)d)_j, or p_j(H(p)d)_j if `weighted`. They move with log p and not with p.
    """

    @jax.custom_jvp
    def products(p, log_p, d, parameters):
        _, factor, values = _extension(lambda x: F(x, *parameters), p, log_p, d, weighted, 1)
        return factor * values

    @derivative_of(products)
    def rules(out, p, log_p, d, parameters):
        # By hand because autodiff of p log p passes through 1/p³, which overflows long before the
        # derivative does.
        x, factor, _ = _extension(lambda x: F(x, *parameters), p, log_p, d, weighted, 2)

        def near(log_p, d, *parameters):
            moving = jnp.exp(log_p - jax.lax.stop_gradient(log_p))  # one, but it moves
            values = factor * _products(lambda x: F(x, *parameters), x * moving, d)
            return values * moving if weighted else values

        def along(log_p_dot, d_dot, dots):
            return pushforward(near, [log_p, d, *parameters], [log_p_dot, d_dot, *dots])

        fixed = [None] * len(parameters)

        def rule_of_log_p(dot):
            if weighted:
                dot = jnp.where(_is_flat(lambda dot: along(dot, None, fixed), d, out), 0.0, dot)
            return along(dot, None, fixed)

        return None, rule_of_log_p, lambda dot: along(None, dot, fixed), partial(along, None, None)

    return products


def _is_flat(change: Callable, d, products):
    """Where q_j > p_j, if the weighted products depend on no such p_j but by rounding.

    Those of p log p are d_j. There autodiff subtracts numbers as large as the gradient, to get one
    as small as p_j; where q_j < p_j, both are no larger than p_j.
    """
    uneven = 0.5 + jnp.arange(d.shape[1], dtype=d.dtype) * 0.309 % 0.5  # or two may cancel
    rounding = AGREEMENT * jnp.finfo(d.dtype).eps * jnp.abs(products)
    flat = jnp.abs(change(jnp.where(d > 0, uneven, 0.0))) <= rounding
    return jnp.all(flat, axis=1, keepdims=True) & (d > 0)


def _products(F: Generator, x, d):
    """H(x)d for a batch, by autodiff."""
    return jax.vmap(lambda x, d: jax.jvp(jax.grad(F), (x,), (d,))[1])(x, d)


def _extension(F: Generator, p, log_p, d, weighted: bool, order: int):
    """A point x, factors c, and H(x)d, of which c_j (H(x)d)_j are the products at p.

    Where autodiff overflows, as for p log p, through 1/p² long before 1/p does, and where p_j
    itself has underflowed, it is replaced by a larger number, and p_j(Hd)_j continued from there
    as the power of p_j that it is at x.

    Args:
      order: the derivative of F's gradient that must not overflow at x, 1 or 2.
    """
    lowest = _inside(p, simplex.LOWEST)
    most = jnp.finfo(p.dtype).max / 16  # with room for what multiplies it
    log_floor = simplex.LOWEST * float(np.log(jnp.finfo(p.dtype).tiny))  # of entries of x

    def weights(x):
        return x if weighted else x / lowest

    def change(x, dot):
        return jax.jvp(lambda x: _products(F, x, d), (x,), (x * dot,))

    here = _products(F, lowest, d) if order == 1 else sum(change(lowest, 1.0))
    far = ~(jnp.abs(weights(lowest) * here) < most) | (log_p < log_floor - 0.01)

    def continued():
        x = jnp.where(far, _inside(p, 0.2), lowest)
        rise = jnp.where(far, log_p - jnp.log(x), 0.0)
        there, moved = change(x, rise)
        growth = rise + moved / jnp.where(there == 0, 1.0, there)
        # what depends on p_j smoothly is no power of it, and ends at x_j
        steep = jnp.abs(growth) > FLAT * jnp.max(-rise, axis=1, keepdims=True)
        growth = jnp.where(steep & jnp.isfinite(growth), growth, 0.0)
        # what may be all rounding: no faster than 1/p_j, and than where q_j > p_j
        fastest = jnp.max(jnp.where(d > 0, growth, 0.0), axis=1, keepdims=True)
        fastest = jnp.maximum(jnp.where(d < 0, -rise, 0.0), fastest)
        # and no further than reverse mode goes without overflow
        room = jnp.log(most / jnp.maximum(weights(x), 1.0)) - jnp.log(jnp.abs(there))
        room = jnp.where(far, room, jnp.inf)
        factor = weights(x) * jnp.exp(jnp.minimum(jnp.minimum(growth, room), fastest))
        same = ~jnp.any(far, axis=1, keepdims=True)  # to the last bit
        return x, factor, jnp.where(same, here, there)

    at_p = lowest, weights(lowest), here
    return jax.lax.stop_gradient(jax.lax.cond(jnp.any(far), continued, lambda: at_p))


def _inside(p, power: float = 1.0):
    """p, moved to where F has derivatives: no entry is 0 (see `simplex.interior`) or 1."""
    below_one = 1 - jnp.finfo(p.dtype).epsneg
    floored = simplex.interior(p, power)
    return floored - jax.lax.stop_gradient(jnp.maximum(floored - below_one, 0))
