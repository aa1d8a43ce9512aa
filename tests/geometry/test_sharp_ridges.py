"""Links of ridges so narrow that curvature jumps: Newton steps overshoot, and gradients crawl."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from tests.geometry import active_set
from tests.geometry.test_links import draw_logits, true_gap

G = pgeom.generators
K, R = 10, 5
DRAWS = {"moderate": (2.0, 20), "steep": (20.0, 20)}


@pytest.fixture(scope="module")
def link():
    """One program for every generator."""
    return jax.jit(lambda F, z: pgeom.canonical_link(F, with_info=True)(z))


def draw_sharp_ridges(rng, steepest):
    """Ridges of widths 1e-4 … 0.5 on a quadratic that may be nearly flat, in float32."""
    w = rng.normal(size=(R, K))
    w /= 1.00001 * np.linalg.norm(w, axis=1, keepdims=True)
    a, rho = 10 ** rng.uniform(-1, np.log10(steepest), R), 10 ** rng.uniform(-4, -0.3, R)
    b, lam = rng.choice([0.0, 0.2]) * rng.normal(size=R), 10 ** rng.uniform(-3, 0)
    values = {"lam": lam, "a": a, "rho": rho, "w": w, "b": b}
    return {name: np.float32(value) for name, value in values.items()}


@pytest.mark.parametrize("kind", DRAWS)
def test_sharp_ridges_are_solved_to_rounding(link, kind):
    steepest, draws = DRAWS[kind]
    rng = np.random.default_rng(0)
    for _ in range(draws):
        ridges = draw_sharp_ridges(rng, steepest)
        z = draw_logits(rng, K, 30)
        z[10:] = 1e-2 * rng.normal(size=(20, K))
        z = z.astype(np.float32)
        p, info = link(G.hyperbolic(**ridges), jnp.asarray(z))
        exact = {name: np.asarray(value, float) for name, value in ridges.items()}
        # curvature times the rounding of p is in every slope
        limit = 1e-6 + np.finfo(np.float32).eps * max(0.0, exact["a"].max() - 2)
        F = active_set.hyperbolic(**exact)
        assert true_gap(F, z.astype(float), np.asarray(p, float)) <= limit, ridges
        assert np.all(np.asarray(info.gap) <= limit * (1 + np.abs(z).max(axis=1))), ridges
