"""What the softmax contributes to a logit gradient, whatever the generator; part of `gradients`.

    J = ∂softmax(z/T)/∂z,    ‖J‖ ≤ 1/(2T)
    J = Diag(p) − ppᵀ (T = 1),    ½(‖J‖‖d‖ + ‖Jd‖) ≤ 8√2/27,    d = p − e_y

The last is searched for the K at hand, and proved for every K in `every_class_count`.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import simplex
from pgeom.compilation import quick_jit
from proofs_numeric import every_class_count, probes
from proofs_numeric.check import Check, attainment, upper_bound

LABEL = "Eq. (logit-gradient)"
SHARPER = "beyond the paper: the constant 8√2/27 and M_T in place of M/√2"
TEMPERATURES = (0.5, 2.0)
ABSENT = -1e4  # z/T of a class without any mass


def checks(K: int, jacobian: Callable[[float], float], constant: float) -> list[Check]:
    """‖J‖ ≤ 1/(2T), and the constant of the sharper gradient bound; both under test."""
    thirds, half = np.zeros((2, K))
    thirds[:2], half[:2] = (1 / 3, 2 / 3), 0.5
    starts = np.concatenate([probes.points(K, count=4), [half]])
    joint, *norms = np.asarray(_extremes(starts))
    at_half = np.asarray(_norms_at(np.where(half > 0, 0.0, ABSENT)))
    at_thirds = float(np.linalg.norm(logit_gradient(thirds)))
    how = f"K={K}: ascents from the best of {len(starts)} starts"
    rows = [
        check
        for T, norm, largest in zip(TEMPERATURES, norms, at_half, strict=True)
        for check in check_jacobian(norm, largest, jacobian(T), f"T={T}, {how}")
    ]
    return [
        *rows,
        upper_bound("½(‖J‖‖d‖ + ‖Jd‖) ≤ 8√2/27", SHARPER, observed=joint, sharp=constant, how=how),
        check_every_class_count(constant),
        attainment(
            "8√2/27 at p_y = 1/3", SHARPER, observed=at_thirds, sharp=constant, how=f"K={K}, A = I"
        ),
    ]


def check_jacobian(norm: float, at_half: float, bound: float, how: str) -> list[Check]:
    """Of softmax(z/T), differentiated: within the bound, and equal to it at (½, ½, 0, …)."""
    claims = "‖J‖ ≤ 1/(2T)", "‖J‖ = 1/(2T) at (½, ½)"
    return [
        upper_bound(claims[0], LABEL, observed=norm, paper=bound, how=how),
        attainment(claims[1], LABEL, observed=at_half, paper=bound, how=how),
    ]


def check_every_class_count(constant: float) -> Check:
    """The proof for all K: what is left undecided may be as large as it likes."""
    proof = every_class_count.prove(constant)
    observed = math.inf if proof.undecided else every_class_count.EDGE
    how = f"every K: {proof.boxes} boxes of three scalars, rounded outward"
    return attainment("8√2/27 is proved", SHARPER, observed=observed, sharp=constant, how=how)


def logit_gradient(p: np.ndarray) -> np.ndarray:
    """Jd `[K]`: the logit gradient of A = I at p, for label 0."""
    d = p - np.eye(len(p))[0]
    return p * (d - p @ d)


def _norm(z, T):
    """‖∂softmax(z/T)/∂z‖, the largest singular value, which is an eigenvalue."""
    return jnp.linalg.eigvalsh(jax.jacobian(lambda z: jax.nn.softmax(z / T))(z))[-1]


@quick_jit
def _norms_at(scaled):
    """‖J‖ at z = T·scaled for each temperature, `[T]`."""
    return jax.vmap(lambda T: _norm(T * scaled, T))(jnp.array(TEMPERATURES))


@quick_jit
def _extremes(starts):
    """The largest ½(‖J‖‖d‖ + ‖Jd‖), label 0, and ‖J‖ at each temperature, over the simplex."""

    def sizes(p):
        d = p - simplex.vertex(jnp.array(0), p.shape[0], p.dtype)
        push = jnp.linalg.norm(p * (d - jnp.dot(p, d)))
        norms = jax.vmap(lambda T: _norm(T * jnp.log(p), T))(jnp.array((1.0, *TEMPERATURES)))
        return norms.at[0].set(0.5 * (norms[0] * jnp.linalg.norm(d) + push))

    def largest(choice):
        return probes.maximise_inside(lambda p: jnp.dot(choice, sizes(p)), starts).value

    return jax.vmap(largest)(jnp.eye(1 + len(TEMPERATURES)))
