"""What a curvature envelope guarantees: range, logit gradient and Hessian-Lipschitz bounds.

Each bound is given as the paper states it and in a sharper form. A function that is not convex has
none, and raises an error.

>>> import jax.numpy as jnp
>>> from pgeom.generators import quadratic
>>> loss_range(quadratic(jnp.diag(jnp.array([1.0, 3.0]))), 2)    # the loss never exceeds it
Bound(paper=3.0, sharp=2.0, how='exact')
"""

import math
from functools import singledispatch
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import checks, simplex, special
from pgeom.compilation import quick_jit
from pgeom.diagnosis import search
from pgeom.diagnosis.envelopes import Envelope, ridge_range
from pgeom.diagnosis.search import find
from pgeom.generators import Combination, Hyperbolic, Quadratic, SquaredNorm, as_pytree, parts
from pgeom.scores import vertex_values
from pgeom.types import Generator, Number

STARTS = 40_000  # classes × random points from which the largest loss is looked for
ASCENTS, ASCENT_STEPS = 24, 32
FLOORS = (0.0, 1e-100, 1e-200, 1e-300)  # of probabilities on the boundary and close to it
SHARP_GRADIENT = 8 * math.sqrt(2) / 27  # attained at K = 2, A = I, p_y = 1/3


class Bound(NamedTuple):
    """An upper bound as in the paper, a sharper one, and how it was obtained.

    `how` is 'exact' (the sharper one is attained), 'closed form' (a true bound) or 'searched': the
    largest value that a search found, or a bound from the largest curvature that it found. The
    true one may be larger.
    """

    paper: float
    sharp: float
    how: str


def loss_range(F: Generator, K: int) -> Bound:
    """The largest value of ℓ_F: the paper's M, and sharper, Props. (capm, hpg).

    Where no formula is known, the sharper one is the largest loss that a search found; infinite if
    the loss grows without end where a probability vanishes, as cross-entropy does. The paper's is
    infinite if the curvature is, at the vertices or at a kink.
    """
    envelope = _convex_envelope(F, K)
    if (known := _known_range(F, envelope)) is not None:
        return Bound(envelope.M, known.sharp, known.how)
    with jax.enable_x64(True):
        return Bound(envelope.M, _largest_loss(as_pytree(F), K), "searched")


def logit_gradient(F: Generator, K: int, *, temperature: Number = 1.0) -> Bound:
    """The largest ‖∇_z ℓ_F(softmax(z/T), y)‖₂: M/(√2 T) in the paper, (8√2/27) M_T/T here.

    Eq. (logit-gradient); the sharper constant bounds the product of the softmax Jacobian and the
    displacement, where the paper bounds each factor.
    """
    checks.check_positive("temperature", temperature)
    envelope = _convex_envelope(F, K)
    # an exact M_T does not make the bound attained
    how = "closed form" if envelope.how == "exact" else envelope.how
    paper = envelope.M / (math.sqrt(2) * temperature)
    return Bound(paper, SHARP_GRADIENT * envelope.M_tangent / temperature, how)


def hessian_lipschitz(F: Generator, K: int) -> Bound:
    """The Lipschitz constant of p ↦ H_F(p), Eq. (hessian-lipschitz), and its tangent form."""
    _convex_envelope(F, K)
    if (known := _known_lipschitz(F)) is None:
        raise TypeError(
            "F must be a quadratic or hyperbolic generator, or a sum of such, for a "
            f"Hessian-Lipschitz bound to be known, got {F!r}"
        )
    return known


def _convex_envelope(F: Generator, K: int) -> Envelope:
    """The envelope of F, after checking that F is convex as far as is known."""
    findings = find(F, K)
    if findings.verdict.convex:
        return findings.envelope
    if (witness := findings.verdict.witness) is None:
        raise ValueError(
            "F must be convex for a bound to hold, got an F whose convexity rounding hides"
        )
    eta, p = (np.array2string(x, precision=6, separator=", ") for x in witness[:2])
    raise ValueError(
        f"F must be convex for a bound to hold, got D_F(η, p) = {witness.divergence:.6g} "
        f"at η = {eta}, p = {p}"
    )


def _largest_loss(F: Generator, K: int) -> float:
    """The largest ℓ(p, y) that a search finds, or infinity.

    The loss of a convex F grows along every ray from e_y, so that it is largest where p_y = 0.
    """
    rng = np.random.default_rng(8)
    many = search.many_points(K, rng)
    others = many[:: max(1, len(many) * K // STARTS)]
    others[np.arange(len(others)), rng.integers(K, size=len(others))] = 0.0
    others = others[others.sum(axis=1) > 0]
    vertices = np.eye(K)[:4096]
    midpoints = 0.5 * (vertices + np.roll(vertices, 1, axis=0))
    starts = np.concatenate([vertices, midpoints, others / others.sum(axis=1, keepdims=True)])
    return float(_climb_losses(F, starts))


@quick_jit
def _climb_losses(F, starts):
    """The largest limit of a loss at the starts, and at the ends of ascents from the best."""
    K, batch = starts.shape[1], max(1, search.NUMBERS // (64 * starts.shape[1]))
    at_vertices = vertex_values(F, K, starts.dtype)

    def losses(p):
        value, slope = jax.value_and_grad(F)(p)
        return at_vertices - value + jnp.sum(slope * p) - slope

    def largest(p, floor):
        return jnp.max(losses(jnp.maximum(p, floor)))

    def onward(p, label, length):
        there = search.inward(p)
        away = there - simplex.vertex(label, K, p.dtype)
        slope = jax.jvp(jax.grad(F), (there,), (away,))[1]
        slope = jnp.where(jnp.all(jnp.isfinite(slope)), slope - jnp.mean(slope), 0.0)
        norm = jnp.linalg.norm(slope)
        moved = p + length * slope / jnp.where(norm > 0, norm, 1.0)
        return simplex.project(jnp.where(jnp.arange(K) == label, -K, moved))

    def step(p, length):
        return jax.vmap(onward, (0, 0, None))(p, label, length), None

    inside = jax.lax.map(lambda p: losses(search.inward(p)), starts, batch_size=batch)
    _, chosen = jax.lax.top_k(jnp.max(inside, axis=1), min(ASCENTS, len(starts)))
    label = jnp.argmax(inside[chosen], axis=1)
    lengths = 0.1 * 0.001 ** (jnp.arange(ASCENT_STEPS) / ASCENT_STEPS)
    ends, _ = jax.lax.scan(step, starts[chosen], lengths)

    def limit(p):
        return _limit(jax.vmap(largest, (None, 0))(p, jnp.asarray(FLOORS)))

    return jnp.max(jax.lax.map(limit, jnp.concatenate([starts, ends]), batch_size=batch))


def _limit(losses):
    """The loss on the boundary, of those on it and at decreasing distances from it.

    Where a slope is infinite the definition has no number, and the loss may have a limit, as for
    Σp^1.5 written √p³, or none. A loss whose growth does not slow down has none.
    """
    there, first, second, third = losses
    growth = second - first, third - second
    endless = (growth[1] > 0.5 * growth[0]) & (growth[1] > 1e-6 * jnp.abs(third))
    inside = jnp.where(endless | ~jnp.isfinite(third), jnp.inf, third)
    return jnp.where(jnp.isfinite(there) & ~endless, jnp.maximum(there, 0.0), inside)


@singledispatch
def _known_range(F: Generator, envelope: Envelope) -> Bound | None:
    """The range by formula, or None if there is none."""
    return None


@_known_range.register
def _(F: SquaredNorm, envelope: Envelope) -> Bound:
    return Bound(envelope.M, 2.0, "exact")


@_known_range.register
def _(F: Quadratic, envelope: Envelope) -> Bound:
    """Exact: the loss is convex in p, so its maximum is at a vertex, ½(e_i − e_j)ᵀA(e_i − e_j)."""
    A = np.asarray(F.A, np.float64)
    diagonal = np.diag(A)
    largest = np.max(0.5 * (diagonal[:, None] + diagonal[None]) - A)
    return Bound(envelope.M, float(largest), "exact")


@_known_range.register
def _(F: Hyperbolic, envelope: Envelope) -> Bound:
    """The quadratic part plus every ridge at its own worst vertex, or M_T if that is less."""
    with jax.enable_x64(True):
        F = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), F)
        v = (F.w - F.b[:, None]) / F.rho[:, None]
        between = v[:, :, None] - v[:, None, :]  # [R, y, k]
        ridges = jax.jit(special.log_cosh_divergence)(v[:, None, :], between)
    worst = np.sum((F.a * F.rho**2)[:, None] * np.max(np.asarray(ridges), axis=2), axis=0)
    sharp = float(np.max(F.scale * (F.lam + worst)))
    return Bound(envelope.M, min(sharp, envelope.M_tangent), "closed form")


@_known_range.register
def _(F: Combination, envelope: Envelope) -> Bound | None:
    """The sum of the ranges of the parts, or M_T if that is less."""
    ranges = [_known_range(part, envelope) for _, part in parts(F)]
    return _sum_of_parts(F, ranges, envelope.M_tangent)


@singledispatch
def _known_lipschitz(F: Generator) -> Bound | None:
    return None


@_known_lipschitz.register(SquaredNorm)
@_known_lipschitz.register(Quadratic)
def _(F) -> Bound:
    return Bound(0.0, 0.0, "exact")


@_known_lipschitz.register
def _(F: Hyperbolic) -> Bound:
    F = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), F)
    slope = F.a / F.rho
    peak = 4 / (3 * math.sqrt(3))  # the maximum of |2 tanh v sech² v|, at tanh v = ±1/√3
    paper = F.scale * np.sum(peak * slope * np.linalg.norm(F.w, axis=1) ** 3)

    tangent = F.w - F.w.mean(axis=1, keepdims=True)
    weights = slope * _steepest(*ridge_range(F)) * np.linalg.norm(tangent, axis=1)
    sharp = F.scale * np.linalg.eigvalsh((tangent.T * weights) @ tangent)[-1]
    return Bound(float(paper), float(sharp), "closed form")


def _steepest(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The maximum of |2 tanh v sech² v| over low ≤ v ≤ high."""
    turn = math.atanh(1 / math.sqrt(3))
    candidates = [low, high, np.clip(turn, low, high), np.clip(-turn, low, high)]
    tanh = np.tanh(np.stack(candidates))
    return np.max(np.abs(2 * tanh * (1 - tanh**2)), axis=0)


@_known_lipschitz.register
def _(F: Combination) -> Bound | None:
    return _sum_of_parts(F, [_known_lipschitz(part) for _, part in parts(F)], math.inf)


def _sum_of_parts(F: Combination, known: list[Bound | None], most: float) -> Bound | None:
    """Σ c_i times the bounds of the parts, if all of them are known."""
    paper = sharp = 0.0
    for (c, _), bound in zip(parts(F), known, strict=True):
        if bound is None:
            return None
        paper, sharp = paper + float(c) * bound.paper, sharp + float(c) * bound.sharp
    return Bound(paper, min(sharp, most), "closed form")
