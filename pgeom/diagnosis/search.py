"""The one search of the simplex, of whose findings everything that is said of a function is a view.

What a formula does not say of F is looked for in float64: its curvature in every direction, at many
points, at those that are conspicuous, and uphill from there; kinks, along segments; and pairs with
D_F(η, p) < 0, of which one is enough to refute convexity. In the order of the file: findings,
points, kinks, curvature, the verdict.

>>> import jax.numpy as jnp
>>> findings = find(lambda p: jnp.sum(p**2) + jnp.maximum(p[0] - 0.7, 0), 3)
>>> findings.convex, round(findings.envelope.m_tangent, 4), findings.kinks[0].point[0].round(4)
(True, 2.0, np.float64(0.7))
>>> find(lambda p: -jnp.sum(p**2), 3).witness.divergence < 0
True
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pgeom import checks, simplex
from pgeom.compilation import quick_jit
from pgeom.diagnosis.formulas import Envelope, known_formulas
from pgeom.functions import trace
from pgeom.generators import ClosedGenerator, as_pytree
from pgeom.types import AnyArray, Generator, Row

# What cannot change between two calls: an object of a user's class can, and is searched again.
IMMUTABLE = (FunctionType, jax.stages.Wrapped, jax.custom_jvp, jax.custom_vjp, ClosedGenerator)


class Witness(NamedTuple):
    """A pair on which a claim fails: D_F(eta, p) = R(η, p) − R(η, η) is not positive."""

    eta: Float[np.ndarray, " K"]
    p: Float[np.ndarray, " K"]
    divergence: float


class Kink(NamedTuple):
    """A point `[K]` where the slope of F jumps, and by how much along a unit direction."""

    point: np.ndarray
    jump: float


def describe_point(x: np.ndarray) -> str:
    """A point of the simplex, on one line."""
    return " ".join(np.array2string(x, precision=6, separator=", ", threshold=12).split())


def describe_pair(eta: np.ndarray, p: np.ndarray) -> str:
    """Two points of the simplex, on one line."""
    return f"η = {describe_point(eta)}, p = {describe_point(p)}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """What a formula or a search says of F on K classes.

    Attributes:
      K: the number of classes.
      envelope: the curvature envelope.
      how: how the answers were obtained.
      finite_at_vertices: whether F is finite there; if not, no score is finite.
      finite_inside: whether F is finite wherever it was evaluated.
      kinks: where the slope of F jumps, the sharpest first, ten at most.
      convex, strictly_convex: True, False, or None if rounding hides the answer.
      witness: a pair with D_F(η, p) < 0 if F is not convex, one with η ≠ p and D_F(η, p) = 0 up to
        rounding if F is not known to be strictly convex, and None otherwise.
      rounding: a bound on the rounding error of the witness's divergence.
      precision: the relative rounding error of F's values.
      resolution: dents and ridges narrower than this may have been missed; None if none can be.
    """

    K: int
    envelope: Envelope
    how: str
    finite_at_vertices: bool = True
    finite_inside: bool = True
    kinks: tuple[Kink, ...] = ()
    convex: bool | None = True
    strictly_convex: bool | None = True
    witness: Witness | None = None
    rounding: float | None = None
    precision: float = float(np.finfo(float).eps)
    resolution: float | None = None


_remembered: WeakKeyDictionary[Generator, dict[int, Findings]] = WeakKeyDictionary()


def find(F: Generator, K: int, *, thorough: bool = True) -> Findings:
    """The findings about F on K classes, which are remembered if F cannot change.

    A search that is not thorough is for convexity alone, in a fraction of the time: it sees no
    kinks, and may miss what is not convex in a small part of the simplex only.
    """
    checks.check_num_classes(K)
    K = int(K)
    if not isinstance(F, IMMUTABLE):
        return _find((lambda p: F(p)) if jax.tree_util.all_leaves([F]) else F, K, thorough)
    known = _remembered.setdefault(F, {})
    if thorough and K not in known:
        known[K] = _find(F, K, thorough)
    return known[K] if K in known else _find(F, K, thorough)


def _find(F: Generator, K: int, thorough: bool) -> Findings:
    known = known_formulas(F, K)
    if known is not None and known.m_tangent > 1e-13 * known.M:
        how = f"{known.how}: the smallest tangent eigenvalue is at least {known.m_tangent:.6g}"
        return Findings(K=K, envelope=known.envelope, how=how)
    with jax.enable_x64(True):
        return _search(F, K, thorough)


def _search(F: Generator, K: int, thorough: bool) -> Findings:
    """What a search says of F, in the precision of JAX's default dtype."""
    trace(F, jax.ShapeDtypeStruct((K,), jnp.float64))  # raises if F is no generator
    F = as_pytree(F)
    at_vertices, bounded = _at_vertices(F, K)
    seen = _survey(F, K, 0.0 if bounded else INSIDE, thorough)
    _check_float32(F, K)
    verdict = _judge(F, seen)
    kinks = _kinks(seen.jumps, verdict.precision)
    return Findings(
        K=K,
        envelope=_envelope(seen.spectra, bounded and not kinks, verdict.convex),
        how=f"searched: {len(seen.points)} points in every direction, in float64, no proof",
        finite_at_vertices=at_vertices,
        finite_inside=bool(np.all(np.isfinite(seen.spectra.value))),
        kinks=kinks,
        resolution=seen.resolution,
        **verdict._asdict(),
    )


def _at_vertices(F: Generator, K: int) -> tuple[bool, bool]:
    """Whether F and its Hessian are finite at the vertices, of which at most 4096 are tried.

    The vertices are an argument because XLA folds 0 · log 0 to 0 if the first factor is a constant.
    """
    vertices = np.eye(K)[:4096]
    values, _, products = map_points(_derivatives, F, vertices, 1 / K - vertices)
    return bool(np.all(np.isfinite(values))), bool(np.all(np.isfinite(products)))


def _check_float32(F: Generator, K: int) -> None:
    """Raise if F, which is searched in float64, is another function in float32."""
    spread = np.random.default_rng(9).dirichlet(np.ones(K), COMPARED).astype(np.float32)
    double, single = (map_points(lambda F, p: F(p), F, p) for p in (spread.astype(float), spread))
    gaps = np.nan_to_num(np.abs(single - double), posinf=0.0)  # it may overflow in float32 alone
    worst = np.argsort(gaps)[-10]  # the rounding of float32 may spoil a few
    if gaps[worst] > DIFFERENT * np.max(np.abs(double), where=np.isfinite(double), initial=0.0):
        raise ValueError(
            f"F must be one function in float32 and in float64, got {single[worst]:.6g} and "
            f"{double[worst]:.6g} at p = {describe_point(spread[worst])}"
        )


def _kinks(jumps: "SlopeJumps", precision: float) -> tuple[Kink, ...]:
    """The ten sharpest kinks, if F has this relative precision."""
    smallest = KINK * jumps.slope + 256 * precision * np.nanmax(jumps.slope, initial=0.0)
    sharp = np.flatnonzero(np.abs(jumps.jump) > smallest)
    order = sharp[np.argsort(-np.abs(jumps.jump[sharp]), kind="stable")][:10]
    return tuple(Kink(jumps.points[i], float(jumps.jump[i])) for i in order)


def _envelope(spectra: "Extremes", bounded: bool, convex: bool | None) -> Envelope:
    """The extremes that were found; if F is convex, those negative only by rounding become zero."""
    m, m_tangent = (float(np.nanmin(x)) for x in (spectra.m, spectra.m_tangent))
    M, M_tangent = (float(np.nanmax(x)) for x in (spectra.M, spectra.M_tangent))
    if convex:
        m_tangent, M_tangent = max(m_tangent, 0.0), max(M_tangent, 0.0)
        m = 0.0 if abs(m) < 1e-13 * M else m
    elif convex is False and m_tangent >= 0:
        m_tangent = -math.inf  # not by curvature: at a concave kink or a jump
    if not bounded:
        M = M_tangent = math.inf
    return Envelope(min(m, m_tangent), max(M, M_tangent), m_tangent, M_tangent, "searched")


# Points

INSIDE = 1e-6  # distance from the boundary for derivatives that diverge on it
NUMBERS = 2_000_000  # the approximate size of one batch of a program
ROWS = 8_192  # of a batch, at most: XLA gets products of some larger numbers of rows wrong

Points = TypeVar("Points", Array, np.ndarray)


def inward(points: Points, margin: Any = INSIDE) -> Points:
    """Points `[..., K]` moved towards the centre by a fraction of their distance from it."""
    return (1 - margin) * points + margin / points.shape[-1]


def map_points(function: Callable, F: Generator, *columns: np.ndarray) -> Any:
    """`function(F, *row)` for every row of the columns, in one program of bounded memory."""
    count, K = columns[0].shape
    batch = max(1, min(count, ROWS, NUMBERS // (4 * K * min(K, 32))))
    return jax.tree.map(np.asarray, _map(function, batch, F, *columns))


@partial(quick_jit, static_argnums=(0, 1))
def _map(function, batch, F, *columns):
    return jax.lax.map(lambda row: function(F, *row), columns, batch_size=batch)


def _derivatives(F, p, v):
    """F, its gradient and Hv."""
    (value, gradient), (_, product) = jax.jvp(jax.value_and_grad(F), (p,), (v,))
    return value, gradient, product


def _curvature(F, p, v):
    """vᵀHv."""
    return jax.jvp(lambda p: jax.jvp(F, (p,), (v,))[1], (p,), (v,))[1]


def landmarks(K: int) -> np.ndarray:
    """The centre, the vertices, points next to them, and edge midpoints of consecutive classes."""
    vertices = np.eye(K)[:128]
    midpoints = 0.5 * (vertices + np.roll(vertices, 1, axis=0))
    return np.concatenate([np.full((1, K), 1 / K), vertices, inward(vertices, 0.01), midpoints])


def many_points(K: int) -> np.ndarray:
    """Random points: mostly uniform, some near faces, some near the centre."""
    rng, count = np.random.default_rng(0), min(NUMBERS // (10 * K) * 3, 60_000)
    shares = {1.0: count, 0.3: count // 4, 4.0: count // 4}
    return np.concatenate([rng.dirichlet(np.full(K, c), n) for c, n in shares.items()])


def spacing(points: np.ndarray) -> float:
    """The distance within which 95% of the simplex has a neighbour among the points."""
    probes = np.random.default_rng(7).dirichlet(np.ones(points.shape[1]), 128)
    squares = np.sum(probes**2, axis=1)[:, None] + np.sum(points**2, axis=1)
    nearest = np.min(squares - 2 * probes @ points.T, axis=1)
    return float(np.sqrt(max(np.quantile(nearest, 0.95), 0.0)))


# Kinks, and very narrow ridges, which isolated points miss. If the slope along a segment changes by
# more than the curvature accounts for, there is one or the other. Bisection tells which, because
# only a kink remains unexplained on every scale.

LINES, STATIONS = 192, 129  # random segments, and points on each
BISECTED = 96  # intervals to bisect
HALVINGS = 30
KINK = 1e-6  # the smallest jump of a slope, relative to the slope, that counts as a kink


class SlopeJumps(NamedTuple):
    """Where bisection ended on segments, the most suspicious first.

    Attributes:
      points: `[s, K]`.
      directions: those of the segments, `[s, K]`.
      jump: the change of the unit-speed slope that the curvature does not account for, `[s]`: zero
        where F is smooth.
      slope: the size of the slope there.
    """

    points: np.ndarray
    directions: np.ndarray
    jump: np.ndarray
    slope: np.ndarray


def scan(F: Generator, K: int) -> SlopeJumps:
    """The most suspicious intervals of random segments through the simplex of K classes."""
    F, rng = as_pytree(F), np.random.default_rng(5)
    starts, ends = inward(rng.dirichlet(np.full(K, max(0.3, 2 / K)), (2, LINES)))
    corners = np.arange(LINES // 2)
    starts[corners] = inward(np.eye(K)[corners % K])  # rare among random points of many classes
    v, t = ends - starts, np.tile(np.linspace(0, 1, STATIONS), (LINES, 1))
    stations = np.moveaxis(map_points(_stations, F, starts, v, t), 1, 0)
    a, middle, b = (stations[:, :, i : STATIONS - 2 + i : 2].reshape(4, -1) for i in range(3))
    # An interval is suspicious if halving it does not shrink the unexplained change, which for a
    # smooth function shrinks eightfold.
    half = np.maximum(_unexplained(a, middle)[1], _unexplained(middle, b)[1])
    ratio = half / (_unexplained(a, b)[1] + 1e-9 * half + np.finfo(float).tiny)
    suspicion = np.where(half > 1e-9 * (np.abs(a[2]) + np.abs(b[2])), ratio, 0.0)
    chosen = np.argsort(-np.nan_to_num(suspicion), kind="stable")[:BISECTED]
    lines, a, b = chosen // (STATIONS // 2), a[:, chosen], b[:, chosen]
    starts, v = starts[lines], v[lines]
    for _ in range(HALVINGS):
        middle = map_points(_stations, F, starts, v, (a[0] + b[0])[:, None] / 2)[:, :, 0].T
        first = _unexplained(a, middle)[1] > _unexplained(middle, b)[1]
        a, b = np.where(first, (a, middle), (middle, b))
    speed, slope = np.linalg.norm(v, axis=1), np.maximum(np.abs(a[2]), np.abs(b[2]))
    points = starts + (a[0] + b[0])[:, None] / 2 * v
    return SlopeJumps(points, v, _unexplained(a, b)[0] / speed, slope / speed)


def _stations(F, start, v, t):
    """At each t `[n]` of a line: t, F, its slope and its curvature along it, `[4, n]`."""

    def station(t):
        value, gradient, product = _derivatives(F, start + t * v, v)
        return t, value, jnp.sum(gradient * v), jnp.sum(product * v)

    return jnp.stack(jax.vmap(station)(t))


def _unexplained(a, b):
    """The change of slope that the curvature does not explain; its size plus that of the value."""
    (t, value, slope, curvature), (t_b, value_b, slope_b, curvature_b) = a, b
    by_slope = slope_b - slope - (t_b - t) * (curvature + curvature_b) / 2
    by_value = (value_b - value) / (t_b - t) - (slope + slope_b) / 2
    return by_slope, np.abs(by_slope) + np.abs(by_value)


# Curvature in every direction. Up to 32 classes it is computed from the Hessian; beyond, by Lanczos
# iterations with Hessian-vector products, in memory linear in the number of classes.

DENSE = 32  # classes up to which the Hessian is a matrix
LANCZOS, REFINED = 24, 128  # steps everywhere, and where ascents end
SPECTRA = 40_000  # classes × points, beside conspicuous ones
ASCENTS = 24  # for each of m_T and M_T


class Extremes(NamedTuple):
    """F and m ≤ m_T ≤ M_T ≤ M at a point, and unit tangent vectors of m_T and M_T; or arrays."""

    value: AnyArray
    m: AnyArray
    M: AnyArray
    m_tangent: AnyArray
    M_tangent: AnyArray
    flattest: AnyArray
    steepest: AnyArray


class _Survey(NamedTuple):
    """The points, the extremes there, the kinks; dents narrower than `resolution` may be missed."""

    points: np.ndarray
    spectra: Extremes
    jumps: SlopeJumps
    resolution: float


def _survey(F: Generator, K: int, margin: float, thorough: bool) -> _Survey:
    """Evaluate F all over the simplex, but for a margin at its boundary."""
    many = inward(many_points(K), margin)
    few = many[:: max(1, len(many) * K // SPECTRA)]
    points = np.concatenate([inward(landmarks(K), margin), few])
    if not thorough:
        nowhere, nothing = np.zeros((0, K)), np.zeros(0)
        jumps = SlopeJumps(nowhere, nowhere, nothing, nothing)
        return _Survey(points, map_points(extremes, F, points), jumps, math.nan)

    jumps = scan(F, K)
    ahead = np.roll(many, 1, axis=0) - many  # a random direction for each
    curvature = map_points(_curvature, F, many, ahead) / np.sum(ahead**2, axis=1)
    order = np.argsort(np.nan_to_num(curvature, nan=-np.inf))
    most = max(16, min(512, SPECTRA // (8 * K)))
    conspicuous = many[np.concatenate([order[:most], order[-most // 4 :]])]
    points = np.concatenate([points, conspicuous, jumps.points])
    spectra = map_points(extremes, F, points)

    count = ASCENTS if K <= DENSE else ASCENTS // 4
    lowest, highest = _best(-spectra.m_tangent, count), _best(spectra.M_tangent, count)
    starts, signs = points[np.r_[lowest, highest]], np.repeat([-1.0, 1.0], count)
    ends = np.asarray(_climb_curvature(F, starts, signs, margin))
    seen = (points, spectra), (ends, map_points(_refined_extremes, F, ends))
    points, spectra = jax.tree.map(lambda *both: np.concatenate(both), *seen)
    return _Survey(points, spectra, jumps, spacing(many[:20_000]))


def _best(values: np.ndarray, count: int) -> np.ndarray:
    """The indices of the largest."""
    return np.argsort(-np.nan_to_num(values, nan=-np.inf))[:count]


@quick_jit
def _climb_curvature(F, starts, signs, margin):
    """The best points on ascents of −m_T and M_T, by the signs."""

    def curvature(p, sign):
        # the slope of vᵀHv at a fixed eigenvector v is that of the eigenvalue
        here = extremes(F, jax.lax.stop_gradient(p))
        v = jnp.where(sign < 0, here.flattest, here.steepest)
        return sign * _curvature(F, p, v)

    count = 32 if starts.shape[1] <= DENSE else 10
    return climb(curvature, starts, signs, lengths=shrinking(count), margin=margin)[1]


def shrinking(count: int) -> Float[Array, " {count}"]:
    """Lengths of steps from 0.1 down to 1e-4."""
    return 0.1 * 0.001 ** (jnp.arange(count) / count)


def climb(objective: Callable, starts: Array, *rows: Array, lengths: Array, margin: Any = 0.0):
    """Projected gradient ascents of `objective(p[K], *row)` from each start, `[n, K]`.

    Args:
      objective: a scalar function.
      starts: where to begin.
      rows: what else the objective takes, `[n, ...]`.
      lengths: of the steps, which go along the normalised tangent gradient.
      margin: the distance to keep from the boundary.

    Returns:
      The largest value `[n]` on each way, and the point `[n, K]` that has it.
    """
    evaluate = jax.vmap(jax.value_and_grad(objective))

    def step(state, length):
        points, best, where = state
        values, slopes = evaluate(points, *rows)
        better = values > best  # which a NaN is not
        slopes = jnp.nan_to_num(slopes - jnp.mean(slopes, axis=1, keepdims=True))
        norms = jnp.linalg.norm(slopes, axis=1, keepdims=True)
        onward = simplex.project(points + length * slopes / jnp.where(norms > 0, norms, 1.0))
        best, where = jnp.where(better, values, best), jnp.where(better[:, None], points, where)
        return (inward(onward, margin), best, where), None

    first = starts, jnp.full(len(starts), -jnp.inf, starts.dtype), starts
    return jax.lax.scan(step, first, lengths)[0][1:]


def extremes(F: Generator, p: Row, *, steps: int = LANCZOS) -> Extremes:
    """The extreme eigenvalues of H(p) in the full space and on {x : Σx = 0}.

    Lanczos iterations, with the given number of steps, approach them from inside.

    >>> e = extremes(lambda p: jnp.sum(jnp.array([1.0, 2.0, 6.0]) * p**2), jnp.full(3, 1 / 3))
    >>> [round(float(x), 4) for x in (e.m, e.m_tangent, e.M_tangent, e.M)]
    [2.0, 2.9449, 9.0551, 12.0]
    """
    K = p.shape[0]
    if K <= DENSE:
        H, basis = jax.hessian(F)(p), jnp.asarray(simplex.tangent_basis(K), p.dtype)
        full = jnp.linalg.eigvalsh(H)
        values, vectors = jnp.linalg.eigh(basis.T @ H @ basis)
        vectors = (basis @ vectors).T
    else:

        def product(x):
            return jax.jvp(jax.grad(F), (p,), (x,))[1]

        full, _ = _lanczos(product, lambda x: x, p, steps)
        values, vectors = _lanczos(product, lambda x: x - jnp.mean(x), p, steps)
    # in the order that holds for the true ones
    m, M = jnp.minimum(full[0], values[0]), jnp.maximum(full[-1], values[-1])
    return Extremes(F(p), m, M, values[0], values[-1], vectors[0], vectors[-1])


def _refined_extremes(F, p):
    return extremes(F, p, steps=REFINED)


def _lanczos(product, project, p, steps: int) -> tuple[Array, Array]:
    """Ritz values, ascending, and unit vectors `[steps, K]`, of an operator on a subspace."""
    start = jnp.asarray(np.random.default_rng(0).standard_normal(p.shape), p.dtype)
    nothing = jnp.zeros((min(steps, len(p) - 1), len(p)), p.dtype)

    def step(i, state):
        basis, images, following = state
        # twice is enough for orthogonality to the last digit; where rounding alone is left, as the
        # iteration has met an invariant subspace, it goes on with that
        for _ in range(2):
            following = project(following - basis.T @ (basis @ following))
            following = following / jnp.linalg.norm(following)
        image = project(product(following))
        basis, images = basis.at[i].set(following), images.at[i].set(image)
        return basis, images, image + 1e-100 * jnp.roll(start, i + 1)  # if the image is zero

    basis, images, _ = jax.lax.fori_loop(0, len(nothing), step, (nothing, nothing, start))
    values, vectors = jnp.linalg.eigh(basis @ images.T)
    return values, vectors.T @ basis


# The verdict. The criterion is D_F(η, p) itself, compared with the rounding errors of its terms: a
# negative eigenvalue counts only if the definition confirms it along its eigenvector.

ROUNDING = 16  # units of F's rounding, relative to the size of the terms, taken for errors
DISTANT = 0.05  # the smallest distance within a pair that flatness is judged on
LADDER = 0.9 * 0.6 ** np.arange(40)  # steps along a direction, as fractions of the way to a face
RANDOM_PAIRS, NEAR_PAIRS = 768, 4_096  # fewer of those near each other if there are many classes
SPREAD = 96  # points whose flattest direction is followed, beside the flattest of all
STEP = 1e-6  # the relative step of the differences that show the rounding of F
CHECKED = 256  # pairs by which the rounding of F is measured
COMPARED = 500  # points at which F in float32 is compared with F in float64
DIFFERENT = 0.05  # of the largest value of F, beyond which it is another function


class _Verdict(NamedTuple):
    """The fields of `Findings` of these names."""

    convex: bool | None
    strictly_convex: bool | None
    precision: float
    witness: Witness | None = None
    rounding: float | None = None


def _judge(F: Generator, seen: _Survey) -> _Verdict:
    """Whether F is convex and strictly convex, as far as a survey can tell."""
    points = inward(seen.points)  # pairs need room on every side
    if np.any(broken := ~np.isfinite(seen.spectra.value)):
        witness = Witness(points[np.argmin(broken)], points[np.argmax(broken)], math.nan)
        return _Verdict(False, False, math.nan, witness)
    eta, p = _pairs(points, seen.spectra, seen.jumps)
    divergence, size, errors = map_points(_examine, F, eta, p)
    by_value = np.quantile(errors[:CHECKED, 0], 0.9)  # at random points
    precision = max(float(np.finfo(float).eps), float(by_value))
    rounding = ROUNDING * precision * size

    def verdict(convex, strictly, i, rounding):
        witness = Witness(eta[i], p[i], float(divergence[i]))
        return _Verdict(convex, strictly, precision, witness, float(rounding[i]))

    with np.errstate(over="ignore"):  # next to where F and its slope are zero
        local = np.maximum(rounding, ROUNDING * np.max(errors, axis=1) * size)
    if np.any(negative := divergence < -local):
        worst = int(np.argmin(np.where(negative, divergence / size, np.inf)))
        return verdict(False, False, worst, local)
    # relative to the largest curvature: a small one may be the difference of large terms
    least = -4 * ROUNDING * precision * np.nanmax(_scale(seen.spectra))
    if np.any(divergence < -rounding) or np.any(seen.spectra.m_tangent < least):
        return _Verdict(None, None, precision)  # no pair confirms it

    distant = np.linalg.norm(eta - p, axis=1) > DISTANT
    flattest = int(np.argmin(np.where(distant, divergence / size, np.inf)))
    if divergence[flattest] > rounding[flattest]:
        return _Verdict(True, True, precision)
    flat = _is_flat(F, eta[flattest], p[flattest], precision)
    return verdict(True, False if flat else None, flattest, rounding)


def _examine(F, eta, p):
    """D_F(η, p), the size of its terms, and the rounding errors of F and of its slope."""
    errors = jax.vmap(partial(_rounding_errors, F))(inward(jnp.stack([p, eta])))
    return *definition(F, eta, p), jnp.max(errors, axis=0)


def definition(F: Generator, q: Array, p: Array) -> tuple[Array, Array]:
    """D_F(q, p) by its definition, and the size of the terms that it is the difference of."""
    F_p, slope = jax.value_and_grad(F)(p)
    F_q = F(q)
    size = jnp.abs(F_q) + jnp.abs(F_p) + jnp.sum(jnp.abs(slope) * (p + q))
    return F_q - F_p - jnp.sum(slope * (q - p)), jnp.maximum(size, jnp.finfo(p.dtype).tiny)


def _rounding_errors(F, p):
    """The relative rounding errors of F and, less sharply, of its slope at a point.

    F(p + h) + F(p − h) − 2F(p) is hᵀHh, and F(p + h) − F(p − h) is 2⟨∇F(p), h⟩, up to higher orders
    of h; the rest is rounding.
    """
    h = STEP * p * np.random.default_rng(6).standard_normal(p.shape)
    value, gradient, product = _derivatives(F, p, h)
    ahead, behind = F(p + h), F(p - h)
    by_value = ahead + behind - 2 * value - jnp.sum(product * h)
    by_slope = (ahead - behind - 2 * jnp.sum(gradient * h)) / (2 * STEP)
    size = jnp.abs(value) + jnp.sum(jnp.abs(gradient) * p) + jnp.finfo(p.dtype).tiny
    errors = jnp.abs(jnp.stack([by_value, by_slope])) / size
    return jnp.where(jnp.isnan(errors), jnp.inf, errors)


def _pairs(points: np.ndarray, spectra: Extremes, jumps: SlopeJumps):
    """Pairs η, p, each `[n, K]`, where convexity or strict convexity is most likely to fail.

    They are random; or p has little curvature in the direction of η, absolutely or relative to its
    largest; or they are on both sides of what may be a kink or a step.
    """
    (count, K), rng = points.shape, np.random.default_rng(1)
    near = min(NEAR_PAIRS, NUMBERS // K)
    eta, p = points[rng.integers(count, size=(2, RANDOM_PAIRS + near))]
    closer = np.concatenate([np.ones(RANDOM_PAIRS), 0.5 ** rng.uniform(1, 10, near)])
    eta = p + closer[:, None] * (eta - p)  # a concave kink shows only in what is close to it

    order = np.argsort(spectra.m_tangent / _scale(spectra), kind="stable")
    spread = np.linspace(0, count - 1, min(SPREAD, NUMBERS // (80 * K))).astype(int)
    lowest = np.argsort(spectra.m_tangent, kind="stable")[:12]
    flat = np.concatenate([order[:12], lowest, order[spread]])
    ahead = _down_the_ladder(points[flat], spectra.flattest[flat])
    behind = _down_the_ladder(points[flat], -spectra.flattest[flat])
    here = np.repeat(points[flat], len(LADDER), axis=0)

    sharp = np.r_[np.argsort(jumps.jump)[:8], np.arange(len(jumps.jump))[:8]]
    right = _down_the_ladder(jumps.points[sharp], jumps.directions[sharp])
    left = _down_the_ladder(jumps.points[sharp], -jumps.directions[sharp])
    pairs = (eta, p), (ahead, here), (behind, here), (right, left), (left, right)
    return [np.concatenate(ends) for ends in zip(*pairs, strict=True)]


def _down_the_ladder(points, directions) -> np.ndarray:
    """What is ahead of each point at decreasing fractions of the way to the first face."""
    with np.errstate(divide="ignore"):
        reach = np.min(np.where(directions < 0, points / -directions, np.inf), axis=1)
    ways = (reach[:, None] * directions)[:, None]
    return (points[:, None] + LADDER[:, None] * ways).reshape(-1, points.shape[1])


def _is_flat(F, eta: np.ndarray, p: np.ndarray, precision: float) -> bool:
    """Whether F has no curvature between the pair, up to the rounding of Hv."""
    t = np.linspace(0.05, 0.95, 9)[:, None]
    v = (eta - p) / np.linalg.norm(eta - p)
    _, _, products = map_points(_derivatives, F, (1 - t) * p + t * eta, np.tile(v, (9, 1)))
    return bool(np.all(products @ v <= 4 * ROUNDING * precision * np.linalg.norm(products, axis=1)))


def _scale(spectra: Extremes) -> np.ndarray:
    return np.maximum(np.maximum(np.abs(spectra.m), np.abs(spectra.M)), np.finfo(float).tiny)
