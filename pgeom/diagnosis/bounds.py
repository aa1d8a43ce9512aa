"""What the curvature of a convex function guarantees: range, logit gradient, Hessian-Lipschitz.

Each bound is given as the paper states it and in a sharper form. A function that is not convex has
none, and raises an error.

>>> import jax.numpy as jnp
>>> from pgeom.generators import quadratic
>>> loss_range(quadratic(jnp.diag(jnp.array([1.0, 3.0]))), 2)    # the loss never exceeds it
Bound(paper=3.0, sharp=2.0, how='exact')
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import checks, simplex
from pgeom.compilation import quick_jit
from pgeom.diagnosis import search
from pgeom.diagnosis.formulas import Envelope, known_formulas
from pgeom.generators import as_pytree
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
    if (known := known_formulas(F, K)) is not None:
        return Bound(envelope.M, known.loss_range, known.how)
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
    if (known := known_formulas(F, K)) is None:
        raise TypeError(
            "F must be a quadratic or hyperbolic generator, or a sum of such, for a "
            f"Hessian-Lipschitz bound to be known, got {F!r}"
        )
    return Bound(known.lipschitz, known.tangent_lipschitz, known.how)


def _convex_envelope(F: Generator, K: int) -> Envelope:
    """The envelope of F, after checking that F is convex as far as is known."""
    findings = search.find(F, K)
    if findings.convex:
        return findings.envelope
    if (witness := findings.witness) is None:
        raise ValueError(
            "F must be convex for a bound to hold, got an F whose convexity rounding hides"
        )
    raise ValueError(
        f"F must be convex for a bound to hold, got D_F(η, p) = {witness.divergence:.6g} at "
        f"{search.describe_pair(witness.eta, witness.p)}"
    )


def _largest_loss(F: Generator, K: int) -> float:
    """The largest ℓ(p, y) that a search finds, or infinity.

    The loss of a convex F grows along every ray from e_y, so that it is largest where p_y = 0.
    """
    many = search.many_points(K)
    others = many[:: max(1, len(many) * K // STARTS)]
    others[np.arange(len(others)), np.arange(len(others)) % K] = 0.0
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

    def loss(p, label):  # but for F at the vertex, which no slope depends on
        p = search.inward(p)
        value, change = jax.jvp(F, (p,), (simplex.vertex(label, K, p.dtype) - p,))
        return -value - change

    def limit(p):
        values = jax.vmap(lambda floor: jnp.max(losses(jnp.maximum(p, floor))))
        return _limit(values(jnp.asarray(FLOORS)))

    inside = jax.lax.map(lambda p: losses(search.inward(p)), starts, batch_size=batch)
    _, chosen = jax.lax.top_k(jnp.max(inside, axis=1), min(ASCENTS, len(starts)))
    labels = jnp.argmax(inside[chosen], axis=1)
    _, ends = search.climb(loss, starts[chosen], labels, lengths=search.shrinking(ASCENT_STEPS))
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
