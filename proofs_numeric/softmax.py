"""What the softmax contributes to a logit gradient, whatever the generator; part of `gradients`.

    J = Diag(p) − ppᵀ,    ‖J‖ ≤ ½,    ½(‖J‖‖d‖ + ‖Jd‖) ≤ 8√2/27,    d = p − e_y

The last is shown for every K at once. Let s = p_y, t the largest competitor, r = 1 − s − t the
rest, u = min(t, r), and Σp_j² = t² + b·ur over j ≠ y, 0 ≤ b ≤ 1. With c = Σp_j² − s(1 − s),

    ‖d‖² = (1 − s)² + Σp_j²,    ‖J‖ ≤ 2 max(s(1 − s), t(1 − t))        (Gershgorin)
    ‖Jd‖² = s²‖d‖⁴ + Σ p_j²(p_j − c)²

and in the last sum each rest p_j ≤ u, where the convex (p − c)² is below its chord; the weighted
mean of the rest is at least bu (Cauchy–Schwarz) and at most u. That is a function of (s, t, b).
"""

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.geometry import simplex
from proofs_numeric import probes
from proofs_numeric.check import Check, attainment, upper_bound

LABEL = "Eq. (logit-gradient)"
TEMPERATURES = (0.5, 2.0)
GRID = 41  # values of each scalar
REFINEMENTS = 4


def checks(K: int, jacobian: Callable[[float], float], constant: float) -> list[Check]:
    """‖J‖ ≤ 1/(2T), and the constant of the sharper gradient bound; both under test."""
    thirds = np.zeros(K)
    thirds[:2] = 1 / 3, 2 / 3
    half = np.zeros(K)
    half[:2] = 0.5
    starts = np.concatenate([probes.points(K, count=4), [half]])
    norm, joint = np.asarray(_extremes(starts))
    at_half = float(np.linalg.norm(np.diag(half) - np.outer(half, half), 2))
    at_thirds = float(np.linalg.norm(logit_gradient(thirds)))
    how = f"K={K}: ascents from the best of {len(starts)} starts"
    scalars = f"p_y, largest competitor, Σp_j²: {GRID}³ grid, refined {REFINEMENTS} times"
    return [
        *(
            upper_bound(
                "‖J‖ ≤ 1/(2T)", LABEL, observed=norm / T, paper=jacobian(T), how=f"T={T}, {how}"
            )
            for T in TEMPERATURES
        ),
        attainment("‖J‖ = ½ at (½, ½)", LABEL, observed=at_half, paper=jacobian(1.0), how=f"K={K}"),
        upper_bound("½(‖J‖‖d‖ + ‖Jd‖) ≤ 8√2/27", "§2.2", observed=joint, sharp=constant, how=how),
        upper_bound(
            "the same, every K", "§2.2", observed=maximise_scalars(), sharp=constant, how=scalars
        ),
        attainment(
            "8√2/27 at p_y = 1/3", "§2.2", observed=at_thirds, sharp=constant, how=f"K={K}, A = I"
        ),
    ]


def logit_gradient(p: np.ndarray) -> np.ndarray:
    """Jd `[K]`: the logit gradient of A = I at p, for label 0."""
    d = p - np.eye(len(p))[0]
    return p * (d - p @ d)


@cache
def maximise_scalars() -> float:
    """The largest value of the three-scalar bound: a grid, then finer ones around its best."""
    low, high = np.zeros(3), np.ones(3)
    best = 0.0
    for _ in range(1 + REFINEMENTS):
        axes = [np.linspace(*ends, GRID) for ends in zip(low, high, strict=True)]
        values = _bound_by_scalars(*np.meshgrid(*axes, indexing="ij"))
        index = np.unravel_index(np.argmax(values), values.shape)
        best = max(best, float(values[index]))
        centre, width = np.array([axis[i] for axis, i in zip(axes, index, strict=True)]), high - low
        low, high = np.maximum(centre - width / 10, 0), np.minimum(centre + width / 10, 1)
    return best


def _bound_by_scalars(s, share, b):
    """The bound of the module's docstring; t = share·(1 − s)."""
    t = share * (1 - s)
    r = 1 - s - t
    u = np.minimum(t, r)
    square = t**2 + b * u * r
    c, d = square - s * (1 - s), (1 - s) ** 2 + square
    ends = (u - c) ** 2 - c**2
    rest = b * u * r * (c**2 + np.where(ends >= 0, 1.0, b) * ends)
    push = np.sqrt(s**2 * d**2 + t**2 * (t - c) ** 2 + rest)
    return 0.5 * (2 * np.maximum(s * (1 - s), t * (1 - t)) * np.sqrt(d) + push)


@quick_jit
def _extremes(starts):
    """The largest ‖J‖ and the largest ½(‖J‖‖d‖ + ‖Jd‖), label 0, over the simplex."""

    def sizes(p):
        d = p - simplex.vertex(jnp.array(0), p.shape[0], p.dtype)
        norm = jnp.linalg.eigvalsh(jnp.diag(p) - jnp.outer(p, p))[-1]
        push = jnp.linalg.norm(p * (d - jnp.dot(p, d)))
        return jnp.stack([norm, 0.5 * (norm * jnp.linalg.norm(d) + push)])

    def largest(choice):
        return probes.maximise_inside(lambda p: jnp.dot(choice, sizes(p)), starts).value

    return jax.vmap(largest)(jnp.eye(2))
