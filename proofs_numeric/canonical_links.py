"""Canonical links: the Fenchel–Young loss is convex in the logits, and its gradient is bounded.

    p(z) = argmax_p ⟨z, p⟩ − F(p),    L(z, y) = F*(z) − z_y + F(e_y),    ∇L = p(z) − e_y

‖∇L‖ ≤ √2 whatever the curvature of F, where softmax has (8√2/27) M_T; and ‖∂p/∂z‖ ≤ 1/m_T. Inside
the simplex L is D_F(e_y, p(z)), and on its boundary it is larger.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.numpy.linalg import eigvalsh, norm

from pgeom.compilation import quick_jit
from pgeom.diagnosis import curvature
from pgeom.links import canonical_link, fenchel_young, inverse_link
from pgeom.scores import bregman_score, on_logits
from proofs_numeric.claims import Cases, Claim, Family
from proofs_numeric.configurations import hyperbolics, quadratics
from proofs_numeric.search import max_abs, move_inside, points

LABEL = "beyond the paper: canonical links"
FAR = 10.0  # the size of logits, in units of the largest slope, with p on the boundary


def with_sharper(cases: Cases, factor: str) -> Cases:
    """The cases, and a hundred times each, which the bound on its gradient must not show."""
    sharper = {
        f"100 × {name}": replace(F, **{factor: 100 * getattr(F, factor)})
        for name, F in cases.values.items()
    }
    return Cases(cases.K, cases.values | sharper)


def measure(cases: Cases, link=canonical_link, loss=fenchel_young) -> dict:
    """Errors of the identities, and the extremes of what is bounded."""
    inside = move_inside(jnp.asarray(points(cases.K, count=1)))
    # one after the other: a batch of generators would take the steps of the slowest
    found = [_observe(F, inside, link=link, loss=loss) for F in cases.values.values()]
    q = jax.tree.map(lambda *values: np.stack(values), *found)
    m_T = cases.evaluate(curvature.envelope, m_T="m_tangent")["m_T"]
    return q | {"1/m_T": 1 / m_T, "√2": np.sqrt(2)}


@partial(quick_jit, static_argnames=("link", "loss"))
def _observe(F, points, *, link, loss) -> dict[str, jax.Array]:
    n, K = points.shape
    eye, F_at_vertices = jnp.eye(K), jax.vmap(F)(jnp.eye(K))
    size = 1 + max_abs(jax.vmap(jax.grad(F))(eye))
    # of the points, then some with p on the boundary, then some with p at each vertex
    outside = FAR * size * jnp.concatenate([points - jnp.roll(points, 1, axis=0), eye])
    z = jnp.concatenate([inverse_link(F)(points), outside])
    halfway = (z + jnp.roll(z, 1, axis=0)) / 2
    values, slopes = _values_and_slopes(loss(F), jnp.concatenate([z, halfway]))
    (values, middle), slopes = jnp.split(values, 2), slopes[: len(z)]

    def column(e):
        return jax.jvp(link(F), (z,), (jnp.broadcast_to(e, z.shape),))

    p, columns = jax.vmap(column)(eye)
    p, spectra = p[0], eigvalsh(jnp.moveaxis(columns, 0, 2))
    conjugate = jnp.sum(z * p, axis=1) - jax.vmap(F)(p)
    stated = conjugate[:, None] - z + F_at_vertices[None]
    score = jax.vmap(lambda y: bregman_score(F)(p, jnp.full(len(p), y)), out_axes=1)(jnp.arange(K))
    above = middle - (values + jnp.roll(values, 1, axis=0)) / 2
    return {
        "definition": max_abs(values - stated) / (1 + max_abs(z)),
        "inside": jnp.max(jnp.abs(values - score)[:n]) / size,
        "boundary": jnp.maximum(jnp.max((score - values)[n:]), 0.0) / size,
        "slope": max_abs(slopes - (p[:, None] - eye[None])),
        "concavity": jnp.maximum(jnp.max(above) / size, -jnp.min(spectra)),
        "lipschitz": jnp.max(spectra),
        "steepest": jnp.max(norm(slopes, axis=2)),
    }


def _values_and_slopes(loss, z):
    """L and ∇L for every label, `[n, K]` and `[n, K, K]`."""
    n, K = z.shape
    repeated, labels = jnp.repeat(z, K, axis=0), jnp.tile(jnp.arange(K), n)
    values, pull = jax.vjp(lambda z: loss(z, labels), repeated)
    return values.reshape(n, K), pull(jnp.ones_like(values))[0].reshape(n, K, K)


CLAIMS = (
    Claim("L = F*(z) − z_y + F(e_y)", LABEL, "definition ~ 1e-9"),
    Claim("L = D_F(e_y, p) inside", LABEL, "inside ~ 1e-9"),
    Claim("L ≥ D_F(e_y, p) on the boundary", LABEL, "boundary ~ 1e-9"),
    Claim("∇L = p − e_y", LABEL, "slope ~ 1e-9"),
    Claim("L is convex in z", LABEL, "concavity ~ 1e-9"),
    Claim("‖∂p/∂z‖ ≤ 1/m_T", LABEL, "lipschitz ≤ 1/m_T"),
    Claim("‖∇L‖ ≤ √2, whatever M is", LABEL, "steepest = √2"),
)
FALSE = {
    "√2 → 1.41": {"√2": 1.41 / 2**0.5},
    "√2 → 2": {"√2": 2**0.5},
    "softmax in the place of the link": {
        # whose composite is neither convex in z nor has the gradient p − e_y
        "link": lambda F: jax.nn.softmax,
        "loss": lambda F: on_logits(bregman_score(F)),
    },
}
METRICS = Family(
    lambda K: with_sharper(quadratics(K).select("random metric 1|pair metric"), "A"),
    measure,
    # a quadratic attains its Lipschitz constant
    (*CLAIMS, Claim("‖∂p/∂z‖ ≤ 1/m_T", LABEL, "lipschitz = 1/m_T")),
    how="logits of points inside and as many with p on the boundary, every label",
    false={**FALSE, "1/m_T × 0.999": {"1/m_T": 0.999}, "1/m_T → 2/m_T": {"1/m_T": 2}},
)
RIDGES = Family(
    lambda K: with_sharper(hyperbolics(K).select("R=4|random ridges 0|one ridge"), "scale"),
    measure,
    CLAIMS,
    how=METRICS.how,
    false=FALSE,
)
FAMILIES = METRICS, RIDGES
