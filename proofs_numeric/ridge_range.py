"""Where the HPG loss is largest, and how large exactly; part of `loss_range`.

Along a ray from e_y the loss grows, d/dt ℓ(e_y + td, y) = t dᵀH(e_y + td)d ≥ m_T t‖d‖², so that its
supremum lies on the face p_y = 0. There, branch and bound finds it: see `exact_range`.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import simplex
from pgeom.compilation import quick_jit
from pgeom.diagnosis import bounds, curvature
from pgeom.scores import bregman_score
from proofs_numeric import exact_range, probes
from proofs_numeric.check import Check, attainment, check_each, lower_bound, upper_bound
from proofs_numeric.configurations import Configurations

RAYS = "beyond the paper: the loss grows along rays from e_y"
EXACT = "beyond the paper: the exact range of an HPG score, by branch and bound"
# whose range takes seconds at most: the others have sharp ridges in many directions
SHOWN = ("R=4", "ridges 0", "ridges 1", "ridges 2", "extremal")
TIMES = (0.1, 0.5, 1.0)
APART = 1e-4  # ‖d‖² below which the slope is a difference of rounded numbers


def checks(
    cases: Configurations,
    found: np.ndarray,
    *,
    exact: Callable = exact_range.largest_loss,
    origin: Callable = simplex.vertex,
    envelope: Callable = curvature.envelope,
) -> list[Check]:
    """Both claims, under test, for the largest losses `found[c]` by a search."""
    few = cases.select(*SHOWN)
    found = found[[cases.names.index(name) for name in few.names]]
    return [*check_growth(cases, origin, envelope), *check_exact(few, found, exact)]


def check_growth(cases: Configurations, origin, envelope) -> list[Check]:
    """The least slope along rays, of every label, and that of H = mI, which has no other."""
    points = probes.points(cases.K, count=2)
    slopes = np.asarray(_slopes(cases.stacked, points, origin=origin))
    (m_T,) = cases.evaluate(envelope, "m_tangent")
    how = f"t = {TIMES} on the rays to {len(points)} points, for each label"
    i, one = cases.names.index("extremal: no ridge"), cases.select("no ridge")
    claim, met = "growth m_T t‖d‖² is attained", {"observed": m_T[i], "sharp": slopes[i]}
    stated = {"observed": slopes, "sharp": m_T}
    return [
        *check_each(lower_bound, "dℓ(e_y + td, y)/dt ≥ m_T t‖d‖²", RAYS, cases, how, **stated),
        *check_each(attainment, claim, RAYS, one, how, **met),
    ]


def check_exact(cases: Configurations, found: np.ndarray, exact) -> list[Check]:
    """The exact range is attained, above what the search found and below the formula's."""
    ranges = [exact(F) for F in cases.generators]
    low, high = (np.array([getattr(one, end) for one in ranges]) for end in ("low", "high"))
    at = np.stack([one.point for one in ranges]), np.array([one.label for one in ranges])
    there = np.asarray(_losses(cases.stacked, *at))
    paper, sharp = cases.evaluate(bounds.loss_range, "paper", "sharp")
    how = f"at most {max(one.simplices for one in ranges)} simplices of the faces p_y = 0"
    point, search = f"{how}; the library's loss at the point", f"{how}; ascents"
    limits = {"observed": low, "paper": paper, "sharp": sharp}
    met = {"observed": there, "sharp": high, "shortfall": 2 * exact_range.GAP}
    searched = {"observed": found, "sharp": high}
    return [
        *check_each(upper_bound, "HPG: exact range ≤ its formula ≤ M", EXACT, cases, how, **limits),
        *check_each(attainment, "HPG: the exact range is attained", EXACT, cases, point, **met),
        *check_each(upper_bound, "HPG: search ≤ exact range", EXACT, cases, search, **searched),
    ]


@partial(quick_jit, static_argnames="origin")
def _slopes(stacked, points, *, origin):
    """The least slope over t‖d‖² on rays from `origin(y, K, dtype)`, `[c]`."""
    K, dtype = points.shape[1], points.dtype

    def slope(F, p, y, t):
        start = origin(y, K, dtype)
        d = probes.move_inside(p) - start
        growth = jax.jvp(lambda p: bregman_score(F)(p, y), (start + t * d,), (d,))[1]
        square = jnp.sum(d**2)
        return jnp.where(square > APART, growth / jnp.where(square > APART, t * square, 1), jnp.inf)

    over_times = jax.vmap(slope, in_axes=(None, None, None, 0))
    over_labels = jax.vmap(over_times, in_axes=(None, None, 0, None))
    over_points = jax.vmap(over_labels, in_axes=(None, 0, None, None))
    each = lambda F: jnp.min(over_points(F, points, jnp.arange(K), jnp.array(TIMES)))  # noqa: E731
    return jax.vmap(each)(stacked)


@quick_jit
def _losses(stacked, points, labels):
    """The library's loss of each generator at its point, `[c]`."""
    return jax.vmap(lambda F, p, y: bregman_score(F)(p, y))(stacked, points, labels)
