"""What a curvature envelope guarantees: range, logit gradient and Hessian-Lipschitz bounds.

Each is given as the paper states it and in a sharper form that is still a bound.

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
from pgeom.geometry.curvature import Hyperbolic, Quadratic, envelope, ridge_range
from pgeom.types import Generator

SHARP_GRADIENT = 8 * math.sqrt(2) / 27  # attained at K = 2, A = I, p_y = 1/3


class Bound(NamedTuple):
    """An upper bound as in the paper, a sharper one, and how it was had (see `Envelope.how`)."""

    paper: float
    sharp: float
    how: str


@singledispatch
def loss_range(F: Generator, K: int) -> Bound:
    """The largest value of ℓ_F: the paper's M, and sharper, Props. (capm, hpg).

    For any F it is M_T, because ½‖e_y − p‖² ≤ 1 with e_y − p tangent.
    """
    found = envelope(F, K)
    return Bound(found.M, found.M_tangent, found.how)


@loss_range.register
def _(F: Quadratic, K: int) -> Bound:
    """Exact: the loss is convex in p, so its maximum is at a vertex, ½(e_i − e_j)ᵀA(e_i − e_j)."""
    found, A = envelope(F, K), np.asarray(F.A, np.float64)
    diagonal = np.diag(A)
    largest = np.max(0.5 * (diagonal[:, None] + diagonal[None]) - A)
    return Bound(found.M, float(largest), "exact")


@loss_range.register
def _(F: Hyperbolic, K: int) -> Bound:
    """The quadratic part and every ridge at its own worst vertex, or M_T if that is less."""
    found = envelope(F, K)
    with jax.enable_x64(True):
        F = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), F)
        v = (F.w - F.b[:, None]) / F.rho[:, None]
        between = v[:, :, None] - v[:, None, :]  # [R, y, k]
        ridges = jax.jit(log_cosh.divergence)(v[:, None, :], between)
    worst = np.sum((F.a * F.rho**2)[:, None] * np.max(np.asarray(ridges), axis=2), axis=0)
    sharp = float(np.max(F.scale * (F.lam + worst)))
    return Bound(found.M, min(sharp, found.M_tangent), "closed form")


def logit_gradient(F: Generator, K: int, *, temperature=1.0) -> Bound:
    """The largest ‖∇_z ℓ_F(softmax(z/T), y)‖₂: M/(√2 T) in the paper, (8√2/27) M_T/T here.

    Eq. (logit-gradient); the sharper constant bounds the softmax Jacobian and the displacement
    together, where the paper bounds each alone.
    """
    edge.positive("temperature", temperature)
    found = envelope(F, K)
    paper = found.M / (math.sqrt(2) * temperature)
    return Bound(paper, SHARP_GRADIENT * found.M_tangent / temperature, found.how)


@singledispatch
def hessian_lipschitz(F: Generator, K: int) -> Bound:
    """The Lipschitz constant of p ↦ H_F(p), Eq. (hessian-lipschitz), and its tangent form."""
    raise TypeError(
        "F must be a quadratic or hyperbolic generator for a Hessian-Lipschitz bound to be known, "
        f"got {F!r}"
    )


@hessian_lipschitz.register
def _(F: Quadratic, K: int) -> Bound:
    edge.same_classes("F", F.A.shape[0], K)
    return Bound(0.0, 0.0, "exact")


@hessian_lipschitz.register
def _(F: Hyperbolic, K: int) -> Bound:
    edge.same_classes("F", F.w.shape[1], K)
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
