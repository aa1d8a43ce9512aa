"""Props. (capm, hpg): 0 ≤ ℓ_F(p, y) ≤ M.

Sharper: for CAPM the exact maximum, at a pair of vertices; for HPG each ridge at its own worst
vertex. Along a ray from e_y the loss of HPG grows, d/dt ℓ(e_y + td, y) = t dᵀH(e_y + td)d ≥
m_T t‖d‖², so that its supremum lies on the face p_y = 0, but not always at a vertex of it: there,
branch and bound finds it, see `exact_range`.
"""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import simplex
from pgeom.diagnosis import bounds, curvature
from pgeom.scores import bregman_score
from proofs_numeric import exact_range
from proofs_numeric.claims import Cases, Claim, Family
from proofs_numeric.configurations import hyperbolics, quadratics
from proofs_numeric.regret import ENVELOPE
from proofs_numeric.search import MOST, Proof, draws, maximise, move_inside, over, points

LABEL = "Props. (capm, hpg)"
QUADRATIC = "beyond the paper: the exact range of a quadratic score"
RAYS = "beyond the paper: the loss grows along rays from e_y"
FACES = "beyond the paper: the largest HPG loss need not be at a vertex"
EXACT = "beyond the paper: the exact range of an HPG score, by branch and bound"
TIMES = (0.1, 0.5, 1.0)
NEAR = 1e-4  # ‖d‖² below which the slope is a difference of rounded numbers
GRID = 2001  # points of an edge
# whose exact range takes seconds: the others have sharp ridges in many directions
PROVED = "R=4|ridges [012]|extremal"

RANGE = (
    Claim("−ℓ(p,y) ≤ 0", LABEL, "negative ≤ 0"),
    Claim("ℓ(p,y) ≤ M", LABEL, "largest ≤ sharp ≤ M"),
)


def largest_at_points(F, starts):
    """The largest ℓ_F(p, y) at the starts: of a convex loss, vertices among them suffice."""
    return over(bregman_score(F), starts, jnp.arange(starts.shape[1])).max()


def largest_by_ascents(F, starts):
    """The largest ℓ_F(p, y) that ascents over p find."""
    score = bregman_score(F)
    labels = jnp.arange(starts.shape[1])
    return over(lambda y: maximise(lambda p: score(p, y), starts).value, labels).max()


def measure(cases: Cases, supremum=largest_at_points) -> dict:
    """The least loss at points, the largest at vertices, and the supremum."""
    K = cases.K

    def one(F, points, starts):
        losses = over(bregman_score(F), points, jnp.arange(K))
        found, vertices = supremum(F, starts), largest_at_points(F, jnp.eye(K))
        largest = jnp.maximum(found, vertices)
        return {
            "negative": -losses.min(),
            "vertices": vertices,
            "found": found,
            "largest": largest,
        }

    starts = np.concatenate([np.eye(K)[:2], draws(K, count=2, seed=5)])
    q = cases.map(one, points(K, count=8), starts)
    return q | cases.evaluate(bounds.loss_range, M="paper", sharp="sharp")


def measure_ridges(cases: Cases, supremum=largest_by_ascents, most=MOST) -> dict:
    """The same by ascents; the exact range; on the edges of three classes, that of a grid."""
    K, q = cases.K, measure(cases, supremum=supremum)
    nowhere = Proof(math.nan, math.nan, np.full(K, 1 / K), 0), 0
    exact = [
        exact_range.largest_loss(F, most=most) if re.search(PROVED, name) else nowhere
        for name, F in cases.values.items()
    ]
    at = np.stack([proof.point for proof, _ in exact]), np.array([y for _, y in exact])
    t = np.linspace(0, 1, GRID)
    edge = np.stack([np.zeros(GRID), t, 1 - t], axis=1)
    edges = np.concatenate([np.roll(edge, y, axis=1) for y in range(3)])
    return q | {
        "low": np.array([proof.low for proof, _ in exact]),
        "high": np.array([proof.high for proof, _ in exact]),
        "attained": cases.map(lambda F, p, y: bregman_score(F)(p, y), beside=at),
        "face": cases.map(largest_at_points, edges) if K == 3 else 0.0,
        "above": q["found"] / q["vertices"],
    }


def measure_rays(cases: Cases, origin=simplex.vertex) -> dict:
    """The least slope of the loss over t‖d‖² on rays from `origin(y, K, dtype)`."""
    K = cases.K

    def one(F, points):
        def slope(p, y, t):
            start = origin(y, K, p.dtype)
            d = move_inside(p) - start
            growth = jax.jvp(lambda p: bregman_score(F)(p, y), (start + t * d,), (d,))[1]
            far = jnp.sum(d**2) > NEAR
            return jnp.where(far, growth / jnp.where(far, t * jnp.sum(d**2), 1), jnp.inf)

        return {"growth": over(slope, points, jnp.arange(K), jnp.array(TIMES)).min()}

    return cases.map(one, points(K, count=2)) | cases.evaluate(curvature.envelope, **ENVELOPE)


METRICS = Family(
    quadratics,
    measure,
    (
        *RANGE,
        Claim("CAPM: exact range is the vertex maximum", QUADRATIC, "vertices = sharp"),
        Claim("range M is attained", LABEL, "vertices = M", "pair metric"),
    ),
    how="points, vertices among them, for each label",
    false={"M/2": {"M": 0.5}, "sharp × 1.001": {"sharp": 1.001}},
    datasets=True,
)
RIDGES = Family(
    hyperbolics,
    measure_ridges,
    (
        *RANGE,
        Claim("range M is attained", LABEL, "vertices = M", "wide ridge"),
        Claim("HPG: exact range ≤ its formula ≤ M", EXACT, "low ≤ sharp ≤ M", PROVED),
        Claim(
            "HPG: the exact range is attained",
            EXACT,
            "attained = high",
            PROVED,
            shortfall=2 * exact_range.GAP,
        ),
        Claim("HPG: search ≤ exact range", EXACT, "found ≤ high", PROVED),
        Claim("HPG: supremum ≥ every loss on a face", FACES, "face ≤ found", "off vertex"),
        Claim("HPG: supremum ≥ 1.5 vertex maximum", FACES, "above ≥ 1.5", "off vertex"),
    ),
    how="ascents for each label; branch and bound on the faces p_y = 0",
    false={
        "vertex-only supremum": {"supremum": lambda F, starts: largest_at_points(F, jnp.eye(3))},
        "exact range without branching": {"most": 1},
        "exact range from vertices": {"high": lambda q: q["vertices"]},
        "M/2": {"M": 0.5},
    },
)
GROWTH = Family(
    hyperbolics,
    measure_rays,
    (
        Claim("dℓ(e_y + td, y)/dt ≥ m_T t‖d‖²", RAYS, "growth ≥ m_T"),
        Claim("growth m_T t‖d‖² is attained", RAYS, "m_T = growth", "no ridge"),
    ),
    how=f"t = {TIMES} on the rays to points, for each label",
    false={
        "rays from the centre": {"origin": lambda y, K, dtype: jnp.full(K, 1 / K, dtype)},
        "growth by M_T": {"m_T": lambda q: q["M_T"]},
    },
)
FAMILIES = METRICS, RIDGES, GROWTH
