"""Prop. (hpg), last part: the Hessian of HPG is Lipschitz, Eq. (hessian-lipschitz).

    L_H ≤ s Σ_r 4a_r/(3√3 ρ_r) ‖w_r‖³

Sharper, on the tangent space: L_T = s λ_max(Σ c_r‖Πw_r‖ Πw_r w_rᵀΠ), c_r = (a_r/ρ_r) max|2 tanh
sech²| over the values that v_r has on the simplex.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.numpy.linalg import eigvalsh, norm

from pgeom.diagnosis import bounds
from proofs_numeric.claims import Cases, Claim, Family
from proofs_numeric.configurations import hyperbolics
from proofs_numeric.search import draws, max_abs, maximise, over, points

LABEL = "Eq. (hessian-lipschitz)"
DIRECTIONS = 4


def measure(cases: Cases, change=lambda F: F) -> dict:
    """Ascents on ‖∂H/∂h‖ for the steepest directions h; the paper's bound is of the `change`d F."""
    K = cases.K
    starts = np.concatenate([points(K, count=1)[:1], draws(K, count=2, seed=6)])
    spaces = np.eye(K), np.eye(K) - 1 / K
    directions = np.stack([steepest_directions(cases, P) for P in spaces], axis=1)

    def one(F, directions, starts, spaces):
        def largest(h, P):
            def norm(p):
                slope = jax.jvp(jax.hessian(F), (p,), (h,))[1]
                return max_abs(eigvalsh(P @ slope @ P))

            return maximise(norm, starts).value

        along = jax.vmap(lambda some, P: over(lambda h: largest(h, P), some))
        whole, tangent = along(directions, spaces).max(axis=1)
        hessians = jax.vmap(jax.hessian(F))(starts)
        first, second = np.triu_indices(len(starts), 1)
        distance = norm(starts[first] - starts[second], axis=1)
        change = jnp.abs(eigvalsh(hessians[first] - hessians[second])).max(axis=1)
        chord = jnp.where(distance > 1e-3, change / distance, 0)
        return {"whole": whole, "tangent": tangent, "chord": chord.max()}

    q = cases.map(one, starts, np.stack(spaces), beside=(directions,))
    changed = Cases(K, {name: change(F) for name, F in cases.values.items()})
    stated = changed.evaluate(bounds.hessian_lipschitz, L_H="paper")
    return q | stated | cases.evaluate(bounds.hessian_lipschitz, L_T="sharp")


def steepest_directions(cases: Cases, P: np.ndarray) -> np.ndarray:
    """Unit directions `[c, n, K]` of a space: along the steepest ridges, and those of their sum.

    P projects on the space; what it takes away altogether is no direction, and left at zero.
    """
    F = cases.stacked
    w = F.w @ P
    weight = F.a / F.rho * np.linalg.norm(w, axis=2)
    order = np.argsort(-weight * np.linalg.norm(w, axis=2) ** 2, axis=1)[:, : DIRECTIONS - 2, None]
    top = np.linalg.eigh(np.einsum("crk,cr,crl->ckl", w, weight, w))[1][:, :, -2:]
    chosen = [np.take_along_axis(w, order, axis=1), top.transpose(0, 2, 1)]
    chosen = np.concatenate(chosen, axis=1) @ P
    norm = np.linalg.norm(chosen, axis=2, keepdims=True)
    return chosen / np.where(norm > 1e-12, norm, 1.0)


def squared_norms(F):
    norms = np.linalg.norm(F.w, axis=1)
    return replace(F, a=F.a / np.where(norms > 0, norms, 1.0))


RIDGES = Family(
    hyperbolics,
    measure,
    (
        Claim("‖∂H(p)/∂h‖ ≤ L_H", LABEL, "whole ≤ L_H"),
        Claim("tangent: ‖Π∂HΠ/∂h‖ ≤ L_T ≤ L_H", LABEL, "tangent ≤ L_T ≤ L_H"),
        Claim("‖H(p) − H(q)‖ ≤ L_H‖p − q‖", LABEL, "chord ≤ L_H", how="chords of the starts"),
        # R = 1: L_H along w, whatever Σw is; and where Σw = 0, w is tangent and L_T = L_H
        Claim("L_H is attained along w", LABEL, "whole = L_H", "tilted"),
        Claim("L_H = L_T is attained", LABEL, "tangent = L_T = L_H", "one ridge"),
    ),
    how=f"ascents on the norm for {DIRECTIONS} directions h, those of w_r first",
    false={
        "4/(3√3) → 2/3": {"L_H": 2 / 3 * 3 * 3**0.5 / 4},
        "ρ dropped": {"change": lambda F: replace(F, a=F.a * F.rho)},
        "‖w‖³ → ‖w‖²": {"change": squared_norms},
        "w → Πw": {"change": lambda F: replace(F, w=F.w - F.w.mean(axis=1, keepdims=True))},
        "L_T × 0.999": {"L_T": 0.999},
    },
)
FAMILIES = (RIDGES,)
