"""Prop. (hpg), last part: the Hessian of HPG is Lipschitz, Eq. (hessian-lipschitz).

    L_H ≤ s Σ_r 4a_r/(3√3 ρ_r) ‖w_r‖³

Sharper, on the tangent space: L_T = s λ_max(Σ c_r‖Πw_r‖ Πw_r w_rᵀΠ), c_r = (a_r/ρ_r) max|2 tanh
sech²| over the values that v_r has on the simplex.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.diagnosis import bounds
from pgeom.generators import Hyperbolic
from proofs_numeric import configurations, probes
from proofs_numeric.check import Check, attainment, check_each, upper_bound
from proofs_numeric.configurations import Configurations

LABEL = "Eq. (hessian-lipschitz)"
DIRECTIONS = 4


def checks(K: int, *, bound: Callable = bounds.hessian_lipschitz) -> list[Check]:
    """Every check of the Lipschitz bound on K classes, with the bound under test."""
    cases = configurations.hyperbolics(K).select("R=4", "R=16", "random", "ridge", "two", "off")
    starts = np.concatenate([probes.points(K, count=1)[:1], probes.draws(K, count=2, seed=6)])
    onto = np.stack([np.eye(K), np.eye(K) - 1 / K])  # the whole space, the tangent space
    directions = np.stack([_directions(cases, P) for P in onto], axis=1)
    full, tangent, hessians = map(np.asarray, _steepest(cases.stacked, directions, onto, starts))
    paper, sharp = cases.evaluate(bound, "paper", "sharp")
    how = f"ascents on ‖∂H/∂h‖ for {DIRECTIONS} directions h of the whole space, w_r first"
    local = {"observed": tangent, "paper": paper, "sharp": sharp}
    along = f"ascents on ‖Π∂HΠ/∂h‖ for {DIRECTIONS} directions h of the simplex"
    chords, pairs = _chords(starts, hessians), f"chords of {len(starts)} points"
    claim = "‖H(p) − H(q)‖ ≤ L_H‖p − q‖"
    return [
        *check_each(upper_bound, "‖∂H(p)/∂h‖ ≤ L_H", LABEL, cases, how, observed=full, paper=paper),
        *check_each(upper_bound, "tangent: ‖Π∂HΠ/∂h‖ ≤ L_T ≤ L_H", LABEL, cases, along, **local),
        *check_each(upper_bound, claim, LABEL, cases, pairs, observed=chords, paper=paper),
        *check_attained(cases, full, local),
    ]


def check_attained(cases: Configurations, full: np.ndarray, local: dict) -> list[Check]:
    """R = 1: L_H along w, whatever Σw is; and where Σw = 0, w is tangent and L_T = L_H."""
    tilted, one = cases.select("tilted ridge"), cases.select("one ridge")
    i, j = (cases.names.index(few.names[0]) for few in (tilted, one))
    along = {"observed": full[i], "paper": local["paper"][i]}
    attained = {key: values[j] for key, values in local.items()}
    both, met = "L_H = L_T is attained", "|v| = artanh(1/√3) is met"
    return [
        *check_each(attainment, "L_H is attained along w", LABEL, tilted, f"R = 1, {met}", **along),
        *check_each(attainment, both, LABEL, one, f"R = 1, Σw = 0, {met}", **attained),
    ]


def _directions(cases: Configurations[Hyperbolic], P: np.ndarray) -> np.ndarray:
    """Unit directions `[c, n, K]` of a space: along the steepest ridges, and those of their sum.

    P projects on the space; what it takes away altogether is no direction, and left at zero.
    """
    a, rho, w = (np.asarray(x) for x in (cases.stacked.a, cases.stacked.rho, cases.stacked.w))
    w = w @ P
    weight = a / rho * np.linalg.norm(w, axis=2)
    order = np.argsort(-weight * np.linalg.norm(w, axis=2) ** 2, axis=1)[:, : DIRECTIONS - 2, None]
    steepest = np.take_along_axis(w, order, axis=1)
    top = np.linalg.eigh(np.einsum("crk,cr,crl->ckl", w, weight, w))[1][:, :, -2:]
    chosen = np.concatenate([steepest, top.transpose(0, 2, 1)], axis=1) @ P
    norm = np.linalg.norm(chosen, axis=2, keepdims=True)
    return chosen / np.where(norm > 1e-12, norm, 1.0)


@quick_jit
def _steepest(stacked, directions, onto, starts):
    """The largest ‖∂H/∂h‖ on the whole space and on the tangent space, `[c]` each; H(starts).

    The directions `[c, 2, n, K]` and projections `[2, K, K]` are of the two spaces, in this order.
    """

    def one(F, h, P):
        def norm(p):
            slope = jax.jvp(jax.hessian(F), (p,), (h,))[1]
            return jnp.max(jnp.abs(jnp.linalg.eigvalsh(jnp.dot(P, jnp.dot(slope, P)))))

        return probes.maximise_inside(norm, starts).value

    over_directions = jax.vmap(one, in_axes=(None, 0, None))
    over_spaces = jax.vmap(over_directions, in_axes=(None, 0, 0))
    norms = jax.vmap(over_spaces, in_axes=(0, 0, None))(stacked, directions, onto)
    full, tangent = jnp.max(norms, axis=2).T
    return full, tangent, jax.vmap(lambda F: jax.vmap(jax.hessian(F))(starts))(stacked)


def _chords(points: np.ndarray, hessians: np.ndarray) -> np.ndarray:
    """The largest ‖H(p) − H(q)‖/‖p − q‖ over pairs of the points, `[c]`."""
    first, second = np.triu_indices(len(points), 1)
    distance = np.linalg.norm(points[first] - points[second], axis=1)
    spectra = np.linalg.eigvalsh(hessians[:, first] - hessians[:, second])
    change, apart = np.abs(spectra).max(axis=2), distance > 1e-3
    return np.max(change[:, apart] / distance[apart], axis=1)
