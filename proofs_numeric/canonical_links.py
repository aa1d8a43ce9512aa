"""Canonical links: the Fenchel–Young loss is convex in the logits, and its gradient is bounded.

    p(z) = argmax_p ⟨z, p⟩ − F(p),    L(z, y) = F*(z) − z_y + F(e_y),    ∇L = p(z) − e_y

‖∇L‖ ≤ √2 whatever the curvature of F, where softmax has (8√2/27) M_T; and ‖∂p/∂z‖ ≤ 1/m_T. Inside
the simplex L is D_F(e_y, p(z)), and on its boundary it is larger.
"""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.diagnosis import curvature
from pgeom.links import canonical_link, fenchel_young, inverse_link
from pgeom.scores import bregman_score
from proofs_numeric import configurations, probes
from proofs_numeric.check import Check, agreement, attainment, check_each, upper_bound
from proofs_numeric.configurations import Configurations

LABEL = "beyond the paper: canonical links"
SHARPER = 100.0  # a factor of F that its gradient bound must not show
FAR = 10.0  # the size of logits, in units of the largest slope, with p on the boundary
TOLERANCE = 1e-9


def lipschitz_bound(m_tangent):
    """1/m_T, of the link."""
    return 1 / m_tangent


def checks(
    K: int,
    *,
    link: Callable = canonical_link,
    loss: Callable = fenchel_young,
    lipschitz: Callable = lipschitz_bound,
    gradient: float = math.sqrt(2),
) -> list[Check]:
    """Every check of links on K classes, with what is claimed under test."""
    metrics = configurations.quadratics(K).select("random metric 1", "pair metric")
    ridges = configurations.hyperbolics(K).select("R=4", "random ridges 0", "one ridge")
    return [
        *check_generators(metrics, link, loss, lipschitz, gradient, attained=True),
        *check_generators(ridges, link, loss, lipschitz, gradient),
    ]


def check_generators(
    cases: Configurations, link, loss, lipschitz, gradient, *, attained: bool = False
) -> list[Check]:
    """The checks of generators of one kind; a quadratic attains its Lipschitz constant."""
    points = probes.move_inside(jnp.asarray(probes.points(cases.K, count=1)))
    # one after the other: a batch of generators would take the steps of the slowest
    each = [_observe(F, points, link, loss) for F in cases.generators]
    found = jax.tree.map(lambda *values: np.stack(values), *each)
    (m_tangent,) = cases.evaluate(curvature.envelope, "m_tangent")
    how = f"{len(points)} points inside and as many logits with p on the boundary, every label"
    rows = [
        *(
            row
            for claim, key in (
                ("L = F*(z) − z_y + F(e_y)", "definition"),
                ("L = D_F(e_y, p) inside", "inside"),
                ("L ≥ D_F(e_y, p) on the boundary", "boundary"),
                ("∇L = p − e_y", "slope"),
                ("L is convex in z", "concavity"),
            )
            for row in check_each(
                agreement, claim, LABEL, cases, how, error=found[key], tolerance=TOLERANCE
            )
        ),
        *check_each(
            attainment if attained else upper_bound,
            "‖∂p/∂z‖ ≤ 1/m_T",
            LABEL,
            cases,
            how,
            observed=found["lipschitz"],
            paper=lipschitz(m_tangent),
        ),
    ]
    for factor, key in ((1.0, "steepest"), (SHARPER, "steepest of the sharper")):
        rows += check_each(
            attainment,
            "‖∇L‖ ≤ √2, whatever M is",
            LABEL,
            cases,
            f"{factor:g} F, {how}",
            observed=found[key],
            paper=gradient,
        )
    return rows


@partial(quick_jit, static_argnames=("link", "loss"))
def _observe(F, points, link, loss) -> dict[str, jax.Array]:
    """Errors of the identities, and the extremes of what is bounded, for one generator."""
    n, K = points.shape
    size = 1 + jnp.max(jnp.abs(jax.vmap(jax.grad(F))(jnp.eye(K))))
    z = _logits(F, points, FAR * size)
    halfway = (z + jnp.roll(z, 1, axis=0)) / 2
    values, slopes = _values_and_slopes(loss(F), jnp.concatenate([z, halfway]))
    (values, middle), slopes = jnp.split(values, 2), slopes[: len(z)]
    p, hessians = _link_and_slope(link(F), z)
    at_vertices = jax.vmap(F)(jnp.eye(K))
    stated = jnp.sum(z * p, axis=1)[:, None] - jax.vmap(F)(p)[:, None] - z + at_vertices[None]
    score = _every_label(bregman_score(F), p).reshape(-1, K)
    above = middle - (values + jnp.roll(values, 1, axis=0)) / 2
    spectra = jnp.linalg.eigvalsh(hessians)
    _, sharper = _values_and_slopes(loss(SHARPER * F), SHARPER * z)
    return {
        "definition": jnp.max(jnp.abs(values - stated)) / (1 + jnp.max(jnp.abs(z))),
        "inside": jnp.max(jnp.abs(values - score)[:n]) / size,
        "boundary": jnp.maximum(jnp.max((score - values)[n:]), 0.0) / size,
        "slope": jnp.max(jnp.abs(slopes - (p[:, None] - jnp.eye(K)[None]))),
        "concavity": jnp.maximum(jnp.max(above) / size, -jnp.min(spectra)),
        "lipschitz": jnp.max(spectra),
        "steepest": jnp.max(jnp.linalg.norm(slopes, axis=2)),
        "steepest of the sharper": jnp.max(jnp.linalg.norm(sharper, axis=2)),
    }


def _logits(F, points, far):
    """Those of the points, then some with p on the boundary, then some with p at each vertex."""
    K = points.shape[1]
    outside = far * (points - jnp.roll(points, 1, axis=0))
    return jnp.concatenate([inverse_link(F)(points), outside, far * jnp.eye(K)])


def _values_and_slopes(loss, z):
    """L and ∇L for every label, `[n, K]` and `[n, K, K]`."""
    n, K = z.shape
    repeated, labels = jnp.repeat(z, K, axis=0), jnp.tile(jnp.arange(K), n)

    def total(z):
        values = loss(z, labels)
        return jnp.sum(values), values

    slopes, values = jax.grad(total, has_aux=True)(repeated)
    return values.reshape(n, K), slopes.reshape(n, K, K)


def _link_and_slope(link, z):
    """p `[n, K]` and ∂p/∂z `[n, K, K]`."""

    def column(e):
        return jax.jvp(link, (z,), (jnp.broadcast_to(e, z.shape),))

    p, columns = jax.vmap(column)(jnp.eye(z.shape[1]))
    return p[0], jnp.moveaxis(columns, 0, 2)


def _every_label(function, rows):
    """`function(rows, y)` for every label y, `[n K]`."""
    n, K = rows.shape
    return function(jnp.repeat(rows, K, axis=0), jnp.tile(jnp.arange(K), n))
