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
from pgeom.geometry import bounds
from pgeom.geometry.generators import Hyperbolic
from proofs_numeric import configurations, probes
from proofs_numeric.check import Check, attainment, check_each, upper_bound
from proofs_numeric.configurations import Configurations

LABEL = "Eq. (hessian-lipschitz)"
DIRECTIONS = 4


def checks(K: int, *, bound: Callable = bounds.hessian_lipschitz) -> list[Check]:
    """Every check of the Lipschitz bound on K classes, with the bound under test."""
    cases = configurations.hyperbolics(K).select("R=4", "R=16", "random", "one ridge", "two", "off")
    starts = np.concatenate([probes.points(K, count=1)[:1], probes.draws(K, count=2, seed=6)])
    results = _steepest(cases.stacked, _directions(cases), starts)
    full, tangent, hessians = map(np.asarray, results)
    paper, sharp = cases.evaluate(bound, "paper", "sharp")
    how = f"ascents on ‖∂H/∂h‖ for {DIRECTIONS} directions h"
    local = {"observed": tangent, "paper": paper, "sharp": sharp}
    i = cases.names.index("extremal: one ridge")
    attained = {key: values[i] for key, values in local.items()}
    one, met = cases.select("one ridge"), "R = 1, Σw = 0, |v| = artanh(1/√3) is met"
    chords, pairs = _chords(starts, hessians), f"chords of {len(starts)} points"
    claim = "‖H(p) − H(q)‖ ≤ L_H‖p − q‖"
    return [
        *check_each(upper_bound, "‖∂H(p)/∂h‖ ≤ L_H", LABEL, cases, how, observed=full, paper=paper),
        *check_each(upper_bound, "tangent: ‖Π∂HΠ/∂h‖ ≤ L_T ≤ L_H", LABEL, cases, how, **local),
        *check_each(upper_bound, claim, LABEL, cases, pairs, observed=chords, paper=paper),
        *check_each(attainment, "L_H = L_T is attained", LABEL, one, met, **attained),
    ]


def _directions(cases: Configurations[Hyperbolic]) -> np.ndarray:
    """Unit tangent directions `[c, n, K]`: along each ridge, and the tops of L_T's matrix."""
    a, rho, w = (np.asarray(x) for x in (cases.stacked.a, cases.stacked.rho, cases.stacked.w))
    w = w - w.mean(axis=2, keepdims=True)
    weight = a / rho * np.linalg.norm(w, axis=2)
    steepest = np.take_along_axis(w, np.argsort(-weight, axis=1)[:, : DIRECTIONS - 2, None], axis=1)
    top = np.linalg.eigh(np.einsum("crk,cr,crl->ckl", w, weight, w))[1][:, :, -2:]
    chosen = np.concatenate([steepest, top.transpose(0, 2, 1)], axis=1)
    norm = np.linalg.norm(chosen, axis=2, keepdims=True)
    return chosen / np.where(norm > 1e-12, norm, 1.0)


@quick_jit
def _steepest(stacked, directions, starts):
    """The largest ‖∂H/∂h‖ on the whole space and on the tangent space, `[c]` each; H(starts)."""
    K = starts.shape[1]
    onto = jnp.stack([jnp.eye(K), jnp.eye(K) - 1 / K])

    def one(F, h, P):
        def norm(p):
            slope = jax.jvp(jax.hessian(F), (p,), (h,))[1]
            return jnp.max(jnp.abs(jnp.linalg.eigvalsh(jnp.dot(P, jnp.dot(slope, P)))))

        return probes.maximise_inside(norm, starts).value

    over_spaces = jax.vmap(one, in_axes=(None, None, 0))
    over_directions = jax.vmap(over_spaces, in_axes=(None, 0, None))
    norms = jax.vmap(over_directions, in_axes=(0, 0, None))(stacked, directions, onto)
    full, tangent = jnp.max(norms, axis=1).T
    return full, tangent, jax.vmap(lambda F: jax.vmap(jax.hessian(F))(starts))(stacked)


def _chords(points: np.ndarray, hessians: np.ndarray) -> np.ndarray:
    """The largest ‖H(p) − H(q)‖/‖p − q‖ over pairs of the points, `[c]`."""
    first, second = np.triu_indices(len(points), 1)
    distance = np.linalg.norm(points[first] - points[second], axis=1)
    spectra = np.linalg.eigvalsh(hessians[:, first] - hessians[:, second])
    change, apart = np.abs(spectra).max(axis=2), distance > 1e-3
    return np.max(change[:, apart] / distance[apart], axis=1)
