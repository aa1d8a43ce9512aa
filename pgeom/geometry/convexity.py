"""Whether F is convex, and strictly, judged from a survey, with a pair of points as evidence.

The criterion is D_F(η, p) itself, compared with the rounding errors of its terms: a negative
eigenvalue counts only if the definition confirms it along its eigenvector.

>>> import jax, jax.numpy as jnp
>>> from pgeom.geometry.survey import survey
>>> F = lambda p: -jnp.sum(p**2)
>>> with jax.enable_x64(True):
...     verdict = judge(F, survey(F, 3))
>>> verdict.convex, verdict.witness.divergence < 0
(False, True)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from pgeom.geometry.closed_forms import as_pytree
from pgeom.geometry.sampling import NUMBERS, inward, map_points
from pgeom.geometry.survey import Survey
from pgeom.types import Generator

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
