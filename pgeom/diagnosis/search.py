"""The one search of the simplex, and what it says of a function.

Points of the simplex at which to evaluate a function, and its evaluation at many points.

>>> lattice(3, 10)
array([[0. , 0. , 1. ],
       [0. , 0.5, 0.5],
       [0. , 1. , 0. ],
       [0.5, 0. , 0.5],
       [0.5, 0.5, 0. ],
       [1. , 0. , 0. ]])

Scans of segments for what isolated points miss: kinks, and very narrow ridges.

If the slope along a segment changes by more than the curvature accounts for, there is one or the
other. Bisection tells which, because only a kink remains unexplained on every scale.

>>> import jax, jax.numpy as jnp, numpy as np
>>> with jax.enable_x64(True):
...     suspects = scan(lambda p: jnp.sum(p**2) + jnp.maximum(p[0] - 0.7, 0), 3)
>>> bool(np.all(np.abs(suspects.left[suspects.jump > 0.1, 0] - 0.7) < 1e-6))
True

One search of the simplex for the values, curvature and kinks of a function F.

Curvature is evaluated along random directions at many points, in every direction at the most
conspicuous ones, and followed uphill; segments are scanned for what isolated points miss.

>>> import jax, jax.numpy as jnp
>>> with jax.enable_x64(True):
...     seen = survey(lambda p: jnp.sum(p**2) + jnp.maximum(p[0] - 0.7, 0), 3)
>>> round(float(seen.m_tangent.min()), 4), bool(seen.suspects.jump.max() > 0.1)
(2.0, True)

Whether F is convex, and strictly, judged from a survey, with a pair of points as evidence.

The criterion is D_F(η, p) itself, compared with the rounding errors of its terms: a negative
eigenvalue counts only if the definition confirms it along its eigenvector.

>>> import jax, jax.numpy as jnp
>>> from pgeom.diagnosis.search import survey
>>> F = lambda p: -jnp.sum(p**2)
>>> with jax.enable_x64(True):
...     verdict = judge(F, survey(F, 3))
>>> verdict.convex, verdict.witness.divergence < 0
(False, True)

Everything known about a generator, by formula or from one search, cached.

>>> import jax.numpy as jnp
>>> def cubic(p): return jnp.sum(p**3)
>>> find(cubic, 3) is find(cubic, 3)
True
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pgeom import checks, simplex
from pgeom.compilation import quick_jit
from pgeom.diagnosis.envelopes import DENSE, Envelope, Extremes, extremes, known_envelope
from pgeom.functions import trace
from pgeom.generators import ClosedGenerator, as_pytree
from pgeom.types import Generator

INSIDE = 1e-6  # distance from the boundary for derivatives that diverge on it
LATTICE = 4  # classes up to which points form a lattice: beyond, random ones cover as well
LATTICE_POINTS = 8_000
NUMBERS = 2_000_000  # the approximate size of one batch of a program

Points = TypeVar("Points", Array, np.ndarray)


def inward(points: Points, margin: Any = INSIDE) -> Points:
    """Points `[..., K]` moved towards the centre by a fraction of their distance from it."""
    return (1 - margin) * points + margin / points.shape[-1]


def map_points(function: Callable, F: Generator, *columns: Float[np.ndarray, "n K"]) -> Any:
    """`function(F, *row)` for every row of the columns, in one program of bounded memory."""
    count, K = columns[0].shape
    batch = max(1, min(count, NUMBERS // (4 * K * min(K, 32))))
    return jax.tree.map(np.asarray, _mapped(function, batch, F, *columns))


def _map(function, batch, F, *columns):
    return jax.lax.map(lambda row: function(F, *row), columns, batch_size=batch)


_mapped = quick_jit(_map, static_argnums=(0, 1))


def landmarks(K: int) -> Float[np.ndarray, "n {K}"]:
    """The centre, the vertices, points next to them, and edge midpoints of consecutive classes."""
    eye, few = np.eye(K), slice(None, 128)
    midpoints = 0.5 * (eye + np.roll(eye, 1, axis=0))
    near = 0.99 * eye + 0.01 / K
    return np.concatenate([np.full((1, K), 1 / K), eye[few], near[few], midpoints[few]])


def many_points(K: int, rng: np.random.Generator) -> Float[np.ndarray, "n {K}"]:
    """A lattice, or random points: mostly uniform, some near faces, some near the centre."""
    if K <= LATTICE:
        return lattice(K, LATTICE_POINTS)
    count = NUMBERS // (10 * K) * 3
    uniform = rng.standard_exponential((count, K))
    faces, centre = (rng.standard_gamma(c, (count // 4, K)) for c in (0.3, 4.0))
    draws = np.concatenate([uniform, faces + 1e-300, centre])
    return draws / draws.sum(axis=1, keepdims=True)


def lattice(K: int, count: int) -> Float[np.ndarray, "n {K}"]:
    """About `count` points whose entries are multiples of 1/n, for K from 2 to 4."""
    steps = {2: count - 1, 3: int((2 * count) ** 0.5) - 2, 4: int((6 * count) ** (1 / 3)) - 2}[K]
    axes = np.meshgrid(*[np.arange(steps + 1)] * (K - 1), indexing="ij")
    first = np.stack([axis.ravel() for axis in axes], axis=1)
    first = first[first.sum(axis=1) <= steps]
    return np.column_stack([first, steps - first.sum(axis=1)]) / steps


def spacing(points: Float[np.ndarray, "n K"], rng: np.random.Generator) -> float:
    """The distance within which 95% of the simplex has a neighbour among the points."""
    K = points.shape[1]
    probes = rng.standard_exponential((128, K))
    probes /= probes.sum(axis=1, keepdims=True)
    squares = np.sum(points**2, axis=1)[None] - 2 * probes @ points.T
    nearest = np.sum(probes**2, axis=1) + squares.min(axis=1)
    return float(np.quantile(np.sqrt(np.maximum(nearest, 0)), 0.95))


LINES, STATIONS = 192, 129
SUSPECTS = 96  # intervals to bisect
HALVINGS = 30
KINK = 1e-6  # the smallest jump of a slope, relative to the slope, that counts as a kink


class Suspects(NamedTuple):
    """The intervals in which bisection ended.

    Attributes:
      left, right: the two ends.
      jump: the change of the unit-speed slope from left to right that the curvature does not
        account for: zero where F is smooth.
      slope: the size of the slope there.
      step: the change of F itself that the slope does not account for.
    """

    left: Float[np.ndarray, "s K"]
    right: Float[np.ndarray, "s K"]
    jump: Float[np.ndarray, " s"]
    slope: Float[np.ndarray, " s"]
    step: Float[np.ndarray, " s"]

    @property
    def middle(self) -> Float[np.ndarray, "s K"]:
        return (self.left + self.right) / 2

    def smallest_kink(self, precision: float) -> Float[np.ndarray, " s"]:
        """The jump above which each counts as a kink, if F has this relative precision."""
        return KINK * self.slope + 256 * precision * np.nanmax(self.slope, initial=0.0)


def no_suspects(K: int) -> Suspects:
    """Those of a function that was not scanned."""
    nowhere, nothing = np.zeros((0, K)), np.zeros(0)
    return Suspects(nowhere, nowhere, nothing, nothing, nothing)


def derivatives_along(
    F: Generator, x: Float[Array, " K"], direction: Float[Array, " K"]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """F, its slope and its curvature along a direction."""
    (value, slope), (_, curvature) = jax.jvp(
        lambda x: jax.jvp(F, (x,), (direction,)), (x,), (direction,)
    )
    return value, slope, curvature


def scan(F: Generator, K: int) -> Suspects:
    """The most suspicious intervals of random segments through the simplex of K classes."""
    F, rng = as_pytree(F), np.random.default_rng(5)
    starts, ends = rng.dirichlet(np.full(K, max(0.3, 2 / K)), (2, LINES))
    corners = np.arange(LINES // 2)
    starts[corners] = np.eye(K)[corners % K]  # random ends do not reach them if K is large
    starts, ends = inward(starts), inward(ends)
    stations = [np.asarray(x) for x in _stations(F, starts, ends - starts)]
    a, middle, b = ([x[:, i : STATIONS - 2 + i : 2].ravel() for x in stations] for i in range(3))
    # An interval is suspicious if halving it does not shrink the unexplained change, which for a
    # smooth function shrinks eightfold.
    whole = _unexplained(a, b)[1]
    half = np.maximum(_unexplained(a, middle)[1], _unexplained(middle, b)[1])
    relevant = (half > 1e-9 * (np.abs(a[2]) + np.abs(b[2]))) & (whole > 0)
    suspicion = np.where(relevant, half / np.where(relevant, whole, 1.0), 0.0)
    chosen = np.argsort(-np.nan_to_num(suspicion), kind="stable")[:SUSPECTS]
    lines = np.repeat(np.arange(LINES), STATIONS // 2)[chosen]
    a, b = ([x[chosen] for x in end] for end in (a, b))
    return Suspects(*map(np.asarray, _bisect(F, starts[lines], (ends - starts)[lines], a, b)))


@quick_jit
def _stations(F, starts, directions):
    """t, F, its slope and its curvature at the stations of every line, `[LINES, STATIONS]` each."""

    def along_line(line):
        start, direction = line
        return jax.vmap(lambda t: (t, *derivatives_along(F, start + t * direction, direction)))(t)

    t = jnp.linspace(0, 1, STATIONS)
    return jax.lax.map(along_line, (starts, directions), batch_size=32)


@quick_jit
def _bisect(F, starts, directions, a, b):
    """Halve intervals, given by the values at their ends, and keep the worse half."""

    def worse_half(start, direction, a, b):
        t = (a[0] + b[0]) / 2
        middle = [t, *derivatives_along(F, start + t * direction, direction)]
        first = _unexplained(a, middle)[1] > _unexplained(middle, b)[1]
        return jax.tree.map(lambda x, y: jnp.where(first, x, y), (a, middle), (middle, b))

    def halve(_, ab):
        return jax.vmap(worse_half)(starts, directions, *ab)

    a, b = jax.lax.fori_loop(0, HALVINGS, halve, (a, b))
    left, right = (starts + x[0][:, None] * directions for x in (a, b))
    jump, slope = _unexplained(a, b)[0], jnp.maximum(jnp.abs(a[2]), jnp.abs(b[2]))
    speed = jnp.linalg.norm(directions, axis=1)
    step = b[1] - a[1] - (b[0] - a[0]) * (a[2] + b[2]) / 2
    return left, right, jump / speed, slope / speed, step


def _unexplained(a, b):
    """The change of slope that the curvature does not explain; its size plus that of the value.

    a and b are t, F, its slope and its curvature at two points of a line.
    """
    (t, value, slope, curvature), (t_b, value_b, slope_b, curvature_b) = a, b
    by_slope = slope_b - slope - (t_b - t) * (curvature + curvature_b) / 2
    by_value = (value_b - value) / (t_b - t) - (slope + slope_b) / 2
    return by_slope, abs(by_slope) + abs(by_value)


SPECTRA = 40_000  # classes × points at which curvature is evaluated in every direction
ASCENTS = 24  # for each of the four extremes
REFINED, REFINED_STEPS = 4, 128  # points per extreme, and Lanczos steps, if not dense
GLANCE = 24_000  # the same where only convexity is asked for


class Survey(NamedTuple):
    """The results of the search, in float64.

    Attributes:
      points: where spectra were computed.
      values: F there.
      m, M, m_tangent, M_tangent: the extreme eigenvalues there.
      flattest: the tangent direction of least curvature.
      suspects: intervals that may have kinks.
      spacing: the distance within which 95% of the simplex has a point that was evaluated.
    """

    points: Float[np.ndarray, "n K"]
    values: Float[np.ndarray, " n"]
    m: Float[np.ndarray, " n"]
    M: Float[np.ndarray, " n"]
    m_tangent: Float[np.ndarray, " n"]
    M_tangent: Float[np.ndarray, " n"]
    flattest: Float[np.ndarray, "n K"]
    suspects: Suspects
    spacing: float


def survey(F: Generator, K: int, *, margin: float = INSIDE) -> Survey:
    """Evaluate F all over the simplex of K classes, in the precision of JAX's default dtype.

    Args:
      F: any function `F(p[K]) -> scalar` of JAX operations.
      K: the number of classes.
      margin: the distance to keep from the boundary; 0 if F has derivatives on it.
    """
    F, rng = as_pytree(F), np.random.default_rng(0)
    many, suspects = inward(many_points(K, rng), margin), scan(F, K)
    spread = many[:: max(1, len(many) * K // SPECTRA)]
    conspicuous = many[_conspicuous(F, many, rng)]
    known = inward(landmarks(K), margin)
    points = np.concatenate([known, spread, conspicuous, suspects.middle])
    values, spectra = map_points(_spectrum, F, points)
    points, values, spectra = _joined(
        (points, values, spectra), _climbed(F, points, spectra, margin)
    )
    if K > DENSE:
        best = points[_best(spectra, REFINED)]
        points, values, spectra = _joined(
            (points, values, spectra), (best, *map_points(_refined, F, best))
        )
    return Survey(
        points,
        values,
        m=spectra.m,
        M=spectra.M,
        m_tangent=spectra.m_tangent,
        M_tangent=spectra.M_tangent,
        flattest=spectra.flattest,
        suspects=suspects,
        spacing=spacing(many[:20_000], rng),
    )


def glance(F: Generator, K: int, *, margin: float = INSIDE) -> Survey:
    """A survey for convexity alone, in a fraction of the time: at some points, with no ascents.

    What bends the wrong way in a small part of the simplex only may be missed; kinks are not
    looked for. The arguments are those of `survey`.
    """
    F, rng = as_pytree(F), np.random.default_rng(0)
    many = many_points(K, rng)
    few = many[:: max(1, len(many) * K // GLANCE)]
    points = inward(np.concatenate([landmarks(K), few]), margin)
    values, spectra = map_points(_spectrum, F, points)
    return Survey(points, values, *spectra[:5], suspects=no_suspects(K), spacing=np.nan)


def _spectrum(F, p):
    return F(p), extremes(F, p)


def _refined(F, p):
    return F(p), extremes(F, p, steps=REFINED_STEPS)


def _joined(first, second):
    return jax.tree.map(lambda x, y: np.concatenate([x, y]), first, second)


def _best(spectra: Extremes, count: int) -> np.ndarray:
    """The indices of the best points for −m, then for M, −m_T and M_T."""
    signed = [-spectra.m, spectra.M, -spectra.m_tangent, spectra.M_tangent]
    return np.concatenate([np.argsort(-np.nan_to_num(x, nan=-np.inf))[:count] for x in signed])


def _conspicuous(F, points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The indices of points with the smallest and largest curvature along random directions."""
    directions = rng.standard_normal(points.shape)
    directions -= directions.mean(axis=1, keepdims=True)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    curvature = map_points(lambda F, p, v: derivatives_along(F, p, v)[2], F, points, directions)
    order = np.argsort(np.nan_to_num(curvature, nan=-np.inf))
    few = max(16, min(512, SPECTRA // (8 * points.shape[1])))
    return np.concatenate([order[:few], order[-few // 4 :]])


def _climbed(F, points: np.ndarray, spectra: Extremes, margin: float):
    """The best points on ascents of −m, M, −m_T and M_T, with F and its extremes there."""
    count = ASCENTS if points.shape[1] <= DENSE else ASCENTS // 4
    which = np.repeat(np.arange(4), count)
    return jax.tree.map(np.asarray, _ascend(F, points[_best(spectra, count)], which, margin))


@quick_jit
def _ascend(F, points, which, margin):
    """Projected ascents along the slope of an eigenvalue, each with the best point on its way.

    The slope of vᵀHv at a fixed eigenvector v is that of the eigenvalue.
    """
    count = 32 if points.shape[1] <= DENSE else 10

    def evaluate(p, which):
        value, here = _spectrum(F, p)
        v = jnp.where(which % 2 == 0, here.flattest, here.steepest)
        slope = jax.grad(lambda p: derivatives_along(F, p, v)[2])(p)
        objective = jnp.stack([-here.m, here.M, -here.m_tangent, here.M_tangent])[which]
        return objective, (p, value, here), jnp.where(which % 2 == 0, -slope, slope)

    def keep_better(better, new, old):
        return jax.tree.map(lambda x, y: jnp.where(better, x, y), new, old)

    def ascend(state, length):
        here, objective, best = state
        objectives, spectra, slopes = jax.vmap(evaluate)(here, which)
        better = ~(objectives <= objective)  # true also if either is NaN
        best = jax.vmap(keep_better)(better, spectra, best)
        slopes = jnp.nan_to_num(slopes - jnp.mean(slopes, axis=1, keepdims=True))
        norms = jnp.linalg.norm(slopes, axis=1, keepdims=True)
        onward = simplex.project(here + length * slopes / jnp.where(norms > 0, norms, 1.0))
        return (inward(onward, margin), jnp.where(better, objectives, objective), best), None

    shapes = jax.eval_shape(jax.vmap(evaluate), points, which)[1]
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    start = (points, jnp.full(len(points), -jnp.inf), nothing)
    lengths = 0.1 * 0.001 ** (jnp.arange(count) / count)
    return jax.lax.scan(ascend, start, lengths)[0][2]


ROUNDING = 16  # units of F's rounding, relative to the size of the terms, taken for errors
APART = 0.05  # the smallest distance within a pair that flatness is judged on
LADDER = 0.6 ** np.arange(40)  # steps along a direction, as fractions of the way to a face
CANDIDATES = 24  # points whose flattest direction is followed down the ladder
FLAT_ENDS = 192  # points whose flattest direction is followed to both ends
RANDOM_PAIRS = 768
NEAR_PAIRS = 4_096  # or fewer of many classes
STEP = 1e-6  # the relative step of the differences that show the rounding of F
CHECKED = 256  # points at which the rounding of F is measured


class Witness(NamedTuple):
    """A pair on which a claim fails: D_F(eta, p) = R(η, p) − R(η, η) is not positive."""

    eta: Float[np.ndarray, " K"]
    p: Float[np.ndarray, " K"]
    divergence: float


class Verdict(NamedTuple):
    """True, False, or None if rounding errors hide the answer; with the pair that shows a False.

    Attributes:
      finite_inside: whether F is finite wherever it was evaluated.
      convex, strictly_convex: the verdicts.
      precision: the relative rounding error of F's values, estimated.
      witness: a pair with D_F(η, p) < 0, or one where it cannot be distinguished from 0.
      rounding: a bound on the rounding error of that divergence, computed by its definition.
    """

    finite_inside: bool
    convex: bool | None
    strictly_convex: bool | None
    precision: float
    witness: Witness | None = None
    rounding: float | None = None


class _Pairs(NamedTuple):
    """Pairs (η, p), their divergence, and the size of the terms of its definition."""

    eta: Float[np.ndarray, "n K"]
    p: Float[np.ndarray, "n K"]
    divergence: Float[np.ndarray, " n"]
    size: Float[np.ndarray, " n"]

    def witness(self, i: int | np.integer) -> Witness:
        return Witness(self.eta[i], self.p[i], float(self.divergence[i]))


def judge(F: Generator, seen: Survey) -> Verdict:
    """Whether F is finite inside, convex and strictly convex, as far as the survey can tell."""
    F, broken = as_pytree(F), ~np.isfinite(seen.values)
    seen = seen._replace(points=inward(seen.points))  # pairs need room on every side
    if np.any(broken):
        p, eta = seen.points[np.argmax(broken)], seen.points[np.argmin(broken)]
        return Verdict(False, False, False, np.nan, Witness(eta, p, np.nan))
    precision, pairs = _precision(F, seen), _examined(F, seen)
    relative, rounding = pairs.divergence / pairs.size, ROUNDING * precision
    negative = np.flatnonzero(relative < -rounding)
    if len(negative) and (shown := _confirmed(F, pairs, negative, precision)) is not None:
        return Verdict(True, False, False, precision, *shown)
    if len(negative) or _unconfirmed(seen, precision):
        return Verdict(True, None, None, precision)
    apart = np.linalg.norm(pairs.eta - pairs.p, axis=1) > APART
    flattest = int(np.argmin(np.where(apart, relative, np.inf)))
    if relative[flattest] > rounding:
        return Verdict(True, True, True, precision)
    shown = pairs.witness(flattest), rounding * float(pairs.size[flattest])
    return Verdict(
        True, True, False if _is_flat(F, shown[0], precision) else None, precision, *shown
    )


def _precision(F, seen: Survey) -> float:
    """The relative rounding error of F's values: in float64, or the precision F computes in."""
    chosen = np.random.default_rng(2).integers(len(seen.points), size=CHECKED)
    value_errors, _ = _rounding_errors(F, seen.points[chosen])
    return max(float(np.finfo(float).eps), float(np.quantile(value_errors, 0.9)))


def _confirmed(F, pairs: _Pairs, negative: np.ndarray, precision: float):
    """The most negative pair that the rounding of F at its ends cannot explain, or None."""
    order = negative[np.argsort(pairs.divergence[negative] / pairs.size[negative])]
    chosen = order[np.linspace(0, len(order) - 1, CHECKED // 2).astype(int)]
    ends = inward(np.concatenate([pairs.eta[chosen], pairs.p[chosen]]))
    local = np.max([x.reshape(2, -1) for x in _rounding_errors(F, ends)], axis=(0, 1))
    rounding = ROUNDING * np.maximum(local, precision) * pairs.size[chosen]
    real = np.flatnonzero(pairs.divergence[chosen] < -rounding)
    if len(real) == 0:
        return None
    return pairs.witness(int(chosen[real[0]])), float(rounding[real[0]])


def _rounding_errors(F, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The relative rounding errors of F and, less sharply, of its slope at each point.

    F(p + h) + F(p − h) − 2F(p) is hᵀHh, and F(p + h) − F(p − h) is 2⟨∇F(p), h⟩, up to higher orders
    of h; the rest is rounding.
    """
    steps = STEP * points * np.random.default_rng(6).standard_normal(points.shape)
    value_errors, slope_errors = map_points(_difference_errors, F, points, steps)
    return np.nan_to_num(value_errors, nan=np.inf), np.nan_to_num(slope_errors, nan=np.inf)


def _difference_errors(F, p, h):
    (value, slope), curvature = jax.value_and_grad(F)(p), _curvature_and_size(F, p, h)[0]
    size = jnp.abs(value) + jnp.sum(jnp.abs(slope) * p) + jnp.finfo(p.dtype).tiny
    ahead, behind = F(p + h), F(p - h)
    value_error = jnp.abs(ahead + behind - 2 * value - curvature)
    slope_error = jnp.abs(ahead - behind - 2 * jnp.sum(slope * h)) / (2 * STEP)
    return value_error / size, slope_error / size


def _examined(F, seen: Survey) -> _Pairs:
    """Pairs where convexity or strict convexity is most likely to fail."""
    groups = [
        _random_pairs(seen.points),
        _down_the_ladder(*_most_suspicious(seen)),
        _across_kinks(seen),
        _to_both_ends(*_flattest(seen)),
    ]
    K = seen.points.shape[1]
    eta, p = (np.concatenate([group[i].reshape(-1, K) for group in groups]) for i in (0, 1))
    return _Pairs(eta, p, *map_points(_definition, F, eta, p))


def _definition(F, q, p):
    """D_F(q, p) by its definition, and the size of the terms that it is the difference of."""
    F_p, slope = jax.value_and_grad(F)(p)
    F_q = F(q)
    size = jnp.abs(F_q) + jnp.abs(F_p) + jnp.sum(jnp.abs(slope) * (p + q))
    return F_q - F_p - jnp.sum(slope * (q - p)), jnp.maximum(size, jnp.finfo(p.dtype).tiny)


def _random_pairs(points: np.ndarray):
    rng = np.random.default_rng(1)
    near = min(NEAR_PAIRS, NUMBERS // points.shape[1])
    eta, p = points[rng.integers(len(points), size=(2, RANDOM_PAIRS + near))]
    closer = np.concatenate([np.ones(RANDOM_PAIRS), 0.5 ** rng.uniform(1, 10, near)])
    return p + closer[:, None] * (eta - p), p  # a concave kink shows only in what is close to it


def _most_suspicious(seen: Survey):
    """Points with the smallest eigenvalue, absolute and relative to the largest."""
    relative = seen.m_tangent / _scale(seen)
    orders = [np.argsort(x, kind="stable")[: CANDIDATES // 2] for x in (relative, seen.m_tangent)]
    chosen = np.concatenate(orders)
    return seen.points[chosen], seen.flattest[chosen]


def _flattest(seen: Survey):
    order = np.argsort(seen.m_tangent / _scale(seen), kind="stable")
    spread = np.linspace(0, len(order) - 1, FLAT_ENDS // 2).astype(int)
    chosen = np.concatenate([order[: FLAT_ENDS // 2], order[spread]])
    return seen.points[chosen], _snapped(seen.flattest[chosen])


def _down_the_ladder(points: np.ndarray, directions: np.ndarray):
    """Pairs at decreasing distances from each point, ahead and behind."""
    return _moved(points, directions, 0.9 * np.concatenate([LADDER, -LADDER]))


def _to_both_ends(points: np.ndarray, directions: np.ndarray):
    return _moved(points, directions, np.array([0.9, 0.09, -0.09, -0.9]))


def _moved(points, directions, fractions):
    """η at each fraction of the way from each point p to the first face in the direction."""
    p, v = points[:, None], np.where(fractions[:, None] >= 0, 1, -1) * directions[:, None]
    with np.errstate(divide="ignore"):
        reach = np.min(np.where(v < 0, p / np.where(v < 0, -v, 1.0), np.inf), axis=-1)
    eta = p + (np.abs(fractions) * reach)[..., None] * v
    return np.maximum(eta, 0), np.broadcast_to(p, eta.shape)


def _across_kinks(seen: Survey):
    """Pairs across the sharpest jumps of slope and value, at decreasing distances, both ways."""
    suspects = seen.suspects
    orders = (np.argsort(x, kind="stable") for x in (suspects.jump, -np.abs(suspects.step)))
    chosen = np.concatenate([order[: CANDIDATES // 3] for order in orders])
    middle, across = suspects.middle[chosen], (suspects.right - suspects.left)[chosen]
    norms = np.linalg.norm(across, axis=1, keepdims=True)
    directions = across / np.where(norms > 0, norms, 1.0)
    ahead, _ = _moved(middle, directions, 0.5 * LADDER)
    behind, _ = _moved(middle, directions, -0.5 * LADDER)
    return np.stack([ahead, behind]), np.stack([behind, ahead])


def _unconfirmed(seen: Survey, precision: float) -> bool:
    """Whether a negative eigenvalue or a concave kink exceeds rounding, but no pair shows it."""
    tolerance = 4 * ROUNDING * precision
    # relative to the largest curvature: a small one may be the difference of large terms
    negative = np.any(seen.m_tangent < -tolerance * np.nanmax(_scale(seen)))
    concave = np.any(seen.suspects.jump < -seen.suspects.smallest_kink(precision))
    return bool(negative or concave)


def _is_flat(F, witness: Witness, precision: float) -> bool:
    """Whether F has no curvature between the pair, up to the rounding of the terms of vᵀHv."""
    t = np.linspace(0.05, 0.95, 9)[:, None]
    points = (1 - t) * witness.p + t * witness.eta
    direction = np.broadcast_to(_snapped((witness.eta - witness.p)[None]), points.shape)
    curvature, size = map_points(_curvature_and_size, F, points, direction)
    return bool(np.all(curvature <= 4 * ROUNDING * precision * size))


def _curvature_and_size(F, p, v):
    product = jax.jvp(jax.grad(F), (p,), (v,))[1]
    return jnp.sum(v * product), jnp.sum(jnp.abs(v * product))


def _snapped(directions: np.ndarray) -> np.ndarray:
    """Directions `[n, K]` with entries at rounding level set to zero."""
    largest = np.max(np.abs(directions), axis=1, keepdims=True)
    return np.where(np.abs(directions) > 1e-9 * largest, directions, 0.0)


def _scale(seen: Survey) -> np.ndarray:
    return np.maximum(np.maximum(np.abs(seen.m), np.abs(seen.M)), np.finfo(float).tiny)


CACHE_SIZE = 32
COMPARED = 500  # points at which F in float32 is compared with F in float64
DIFFERENT = 0.05  # of the largest value of F, beyond which it is another function
# What cannot change between two calls: an object of a user's class can, and is searched again.
IMMUTABLE = (FunctionType, jax.stages.Wrapped, jax.custom_jvp, jax.custom_vjp, ClosedGenerator)


class Kink(NamedTuple):
    """A point `[K]` where the slope of F jumps, and by how much along a unit direction."""

    point: np.ndarray
    jump: float


class Findings(NamedTuple):
    """What is known about F on K classes; see `pgeom.diagnose`."""

    finite_at_vertices: bool
    verdict: Verdict
    kinks: tuple[Kink, ...]
    envelope: Envelope
    spacing: float | None
    how: str
    seconds: float


_cache: OrderedDict[tuple[int, int], tuple[Generator, Findings]] = OrderedDict()


def find(F: Generator, K: int) -> Findings:
    """The findings about F on K classes, by formula or search; cached if F cannot change."""
    checks.check_num_classes(K)
    if not isinstance(F, IMMUTABLE):
        return _find(_searchable(F), int(K))
    key = id(F), int(K)
    if key not in _cache:
        _cache[key] = F, _find(F, int(K))  # with F itself, so that its id is not reused
    _cache.move_to_end(key)
    if len(_cache) > CACHE_SIZE:
        _cache.popitem(last=False)
    return _cache[key][1]


def glance_at_convexity(F: Generator, K: int) -> tuple[bool, Verdict]:
    """Whether F is finite at the vertices, and convex as far as a short search can tell.

    A False comes with its witness, as from `find`, of whose search this is a small part; what is
    not convex in a small part of the simplex only may be missed.
    """
    checks.check_num_classes(K)
    if (key := (id(F), int(K))) in _cache:
        return _cache[key][1].finite_at_vertices, _cache[key][1].verdict
    if (known := _by_formula(F, int(K))) is not None:
        return known.finite_at_vertices, known.verdict
    at_vertices, _, _, verdict = _search(_searchable(F), int(K), glance)
    return at_vertices, verdict


def _searchable(F: Generator) -> Generator:
    """F, or a function that calls it if it is an object that may change."""
    if isinstance(F, IMMUTABLE) or not jax.tree_util.all_leaves([F]):
        return F
    return lambda p: F(p)


def _by_formula(F: Generator, K: int) -> Findings | None:
    start = time.perf_counter()
    if (known := known_envelope(F, K)) is None or known.m_tangent <= 1e-13 * known.M:
        return None
    verdict = Verdict(True, True, True, float(np.finfo(float).eps))
    how = f"{known.how}: the smallest tangent eigenvalue is at least {known.m_tangent:.6g}"
    return Findings(True, verdict, (), known, None, how, time.perf_counter() - start)


def _search(F: Generator, K: int, look: Callable) -> tuple[bool, bool, Survey, Verdict]:
    """Whether F and its Hessian are finite at the vertices, what a survey saw, and the verdict."""
    with jax.enable_x64(True):
        trace(F, jax.ShapeDtypeStruct((K,), jnp.float64))  # raises if F is no generator
        F = as_pytree(F)
        at_vertices, bounded = _at_vertices(F, K)
        seen = look(F, K, margin=0.0 if bounded else INSIDE)
        _check_float32(F, seen.points)
        return at_vertices, bounded, seen, judge(F, seen)


def _find(F: Generator, K: int) -> Findings:
    if (known := _by_formula(F, K)) is not None:
        return known
    start = time.perf_counter()
    at_vertices, bounded, seen, verdict = _search(F, K, survey)
    kinks = _kinks(seen, verdict)
    envelope = _envelope(seen, bounded and not kinks, verdict)
    how = f"searched: {len(seen.points)} points in every direction, in float64, no proof"
    seconds = time.perf_counter() - start
    return Findings(at_vertices, verdict, kinks, envelope, seen.spacing, how, seconds)


def _check_float32(F: Generator, points: np.ndarray) -> None:
    """Raise if F, which is searched in float64, is another function in float32."""
    spread = points[:: 1 + len(points) // COMPARED].astype(np.float32)
    double, single = (map_points(lambda F, p: F(p), F, p) for p in (spread.astype(float), spread))
    apart = np.abs(single - double)
    both = np.isfinite(apart)  # what overflows in float32 alone is still the same function
    if np.any(both) and np.max(apart[both]) > DIFFERENT * np.max(np.abs(double[both])):
        i = np.argmax(np.where(both, apart, 0))
        at = np.array2string(spread[i], precision=4, separator=", ")
        raise ValueError(
            "F must be one function in float32 and in float64, "
            f"got {single[i]:.6g} and {double[i]:.6g} at p = {at}"
        )


def _at_vertices(F: Generator, K: int) -> tuple[bool, bool]:
    """Whether F and its Hessian are finite at the vertices, of which at most 4096 are tried.

    The vertices are an argument because XLA folds 0 · log 0 to 0 if the first factor is a constant.
    """
    vertices = np.eye(K)[:4096]
    directions = np.random.default_rng(3).standard_normal(vertices.shape)

    def look(F, vertex, direction):
        return F(vertex), jax.jvp(jax.grad(F), (vertex,), (direction,))[1]

    values, products = map_points(look, F, vertices, directions)
    return bool(np.all(np.isfinite(values))), bool(np.all(np.isfinite(products)))


def _kinks(seen: Survey, verdict: Verdict) -> tuple[Kink, ...]:
    """The sharpest kinks, at most ten."""
    suspects = seen.suspects
    smallest = suspects.smallest_kink(verdict.precision)
    sharp = np.flatnonzero(np.abs(suspects.jump) > smallest)
    order = sharp[np.argsort(-np.abs(suspects.jump[sharp]), kind="stable")][:10]
    return tuple(Kink(suspects.middle[i], float(suspects.jump[i])) for i in order)


def _envelope(seen: Survey, bounded: bool, verdict: Verdict) -> Envelope:
    """The extremes that were found; if F is convex, those negative only by rounding become zero."""
    m, M = float(np.nanmin(seen.m)), float(np.nanmax(seen.M))
    m_tangent, M_tangent = float(np.nanmin(seen.m_tangent)), float(np.nanmax(seen.M_tangent))
    if verdict.convex:
        m_tangent, M_tangent = max(m_tangent, 0.0), max(M_tangent, 0.0)
        m = 0.0 if abs(m) < 1e-13 * M else m
    if verdict.convex is False and m_tangent >= 0:
        m_tangent = -np.inf  # not by curvature: at a concave kink or a jump
    M, M_tangent = (max(M, M_tangent), M_tangent) if bounded else (np.inf, np.inf)
    return Envelope(min(m, m_tangent), M, m_tangent, M_tangent, "searched")
