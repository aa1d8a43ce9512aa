"""What a curvature envelope guarantees: range, logit gradient and Hessian-Lipschitz bounds.

Each is given as the paper states it and in a sharper form that is still a bound. A function that
is not convex has none, and is refused.

>>> import jax.numpy as jnp
>>> from pgeom.geometry.generators import quadratic
>>> loss_range(quadratic(jnp.diag(jnp.array([1.0, 3.0]))), 2)    # the loss never exceeds it
Bound(paper=3.0, sharp=2.0, how='exact')
"""

import math
from functools import singledispatch
from typing import NamedTuple

import jax
import numpy as np

from pgeom import edge
from pgeom.geometry import log_cosh
from pgeom.geometry.closed_forms import Combination, parts
from pgeom.geometry.envelopes import Envelope, ridge_range
from pgeom.geometry.findings import find
from pgeom.geometry.generators import Hyperbolic, Quadratic, SquaredNorm
from pgeom.types import Generator

SHARP_GRADIENT = 8 * math.sqrt(2) / 27  # attained at K = 2, A = I, p_y = 1/3


class Bound(NamedTuple):
    """An upper bound as in the paper, a sharper one, and how it is known.

    `how` is 'exact' (the sharper one is attained), 'closed form' (a true bound) or 'searched'
    (from the extremes that a search met: the true bound may be larger).
    """

    paper: float
    sharp: float
    how: str


def loss_range(F: Generator, K: int) -> Bound:
    """The largest value of ℓ_F: the paper's M, and sharper, Props. (capm, hpg).

    For any F it is M_T, because ½‖e_y − p‖² ≤ 1 with e_y − p tangent; infinite where the
    curvature is, at the vertices or at a kink.
    """
    found = _envelope_of_convex(F, K)
    if (known := _known_range(F, found)) is None:
        return Bound(found.M, found.M_tangent, found.how)
    return Bound(found.M, known.sharp, known.how)


def logit_gradient(F: Generator, K: int, *, temperature=1.0) -> Bound:
    """The largest ‖∇_z ℓ_F(softmax(z/T), y)‖₂: M/(√2 T) in the paper, (8√2/27) M_T/T here.

    Eq. (logit-gradient); the sharper constant bounds the softmax Jacobian and the displacement
    together, where the paper bounds each alone.
    """
    edge.check_positive("temperature", temperature)
    found = _envelope_of_convex(F, K)
    how = "closed form" if found.how == "exact" else found.how  # an exact M_T, but not attained
    paper = found.M / (math.sqrt(2) * temperature)
    return Bound(paper, SHARP_GRADIENT * found.M_tangent / temperature, how)


def hessian_lipschitz(F: Generator, K: int) -> Bound:
    """The Lipschitz constant of p ↦ H_F(p), Eq. (hessian-lipschitz), and its tangent form."""
    _envelope_of_convex(F, K)
    if (known := _known_lipschitz(F)) is None:
        raise TypeError(
            "F must be a quadratic or hyperbolic generator, or a sum of such, for a "
            f"Hessian-Lipschitz bound to be known, got {F!r}"
        )
    return known


def _envelope_of_convex(F: Generator, K: int) -> Envelope:
    """The envelope of F, refused unless F is convex as far as is known."""
    found = find(F, K)
    if found.verdict.convex:
        return found.envelope
    if (witness := found.verdict.witness) is None:
        raise ValueError("F must be convex for a bound to hold; whether it is, rounding hides")
    eta, p = (np.array2string(x, precision=6, separator=", ") for x in witness[:2])
    raise ValueError(
        f"F must be convex for a bound to hold, got D_F(η, p) = {witness.divergence:.6g} "
        f"at η = {eta}, p = {p}"
    )


@singledispatch
def _known_range(F: Generator, found: Envelope) -> Bound | None:
    """The range by a formula, where there is one."""
    return None


@_known_range.register
def _(F: SquaredNorm, found: Envelope) -> Bound:
    return Bound(found.M, 2.0, "exact")


@_known_range.register
def _(F: Quadratic, found: Envelope) -> Bound:
    """Exact: the loss is convex in p, so its maximum is at a vertex, ½(e_i − e_j)ᵀA(e_i − e_j)."""
    A = np.asarray(F.A, np.float64)
    diagonal = np.diag(A)
    largest = np.max(0.5 * (diagonal[:, None] + diagonal[None]) - A)
    return Bound(found.M, float(largest), "exact")


@_known_range.register
def _(F: Hyperbolic, found: Envelope) -> Bound:
    """The quadratic part and every ridge at its own worst vertex, or M_T if that is less."""
    with jax.enable_x64(True):
        F = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), F)
        v = (F.w - F.b[:, None]) / F.rho[:, None]
        between = v[:, :, None] - v[:, None, :]  # [R, y, k]
        ridges = jax.jit(log_cosh.divergence)(v[:, None, :], between)
    worst = np.sum((F.a * F.rho**2)[:, None] * np.max(np.asarray(ridges), axis=2), axis=0)
    sharp = float(np.max(F.scale * (F.lam + worst)))
    return Bound(found.M, min(sharp, found.M_tangent), "closed form")


@_known_range.register
def _(F: Combination, found: Envelope) -> Bound | None:
    """The sum of those of its parts, or M_T if that is less."""
    return _sum_of_parts(F, [_known_range(part, found) for _, part in parts(F)], found.M_tangent)


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
    """Σ c_i of the bounds of the parts, where every one is known."""
    if any(bound is None for bound in known):
        return None
    pairs = [(float(c), bound) for (c, _), bound in zip(parts(F), known, strict=True)]
    paper, sharp = (sum(c * getattr(bound, x) for c, bound in pairs) for x in ("paper", "sharp"))
    return Bound(paper, min(sharp, most), "closed form")
