"""Every generator: no NaN on the simplex, no negative score or divergence, none of p from p."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

import pgeom
from pgeom import generators
from tests.fuzz import arrays
from tests.fuzz.arrays import Batch

inputs = arrays.probabilities

RIDGES = {"lam": 0.5, "a": 0.8, "rho": 0.1, "b": 0.2, "scale": 1.3}
ROUNDING = 64  # units of rounding by which a function without closed forms may be off


def cubic(p):
    return jnp.sum(p**3)


def entropy(p):
    return jnp.sum(p * jnp.log(p))


def kinked(p):
    return jnp.sum(p**2) + jnp.maximum(p[0] - 0.9, 0.0)


def library_generators(K: int) -> dict:
    """Generators with closed forms, for K classes."""
    A, w = np.diag(np.arange(1.0, K + 1)) + 0.1, np.eye(K)[:2] - 1 / K
    quadratic, hyperbolic = generators.quadratic(A), generators.hyperbolic(w=w, **RIDGES)
    return {
        "shannon": generators.shannon,
        "tsallis-half": generators.tsallis(0.5),
        "tsallis-1": generators.tsallis(1.0),
        "tsallis-2.5": generators.tsallis(2.5),
        "spherical": generators.spherical,
        "squared_norm": generators.squared_norm,
        "quadratic": quadratic,
        "hyperbolic": hyperbolic,
        "sum": quadratic + 0.5 * hyperbolic + generators.shannon,
    }


OWN = {"cubic": cubic, "entropy": entropy, "kinked": kinked}
INFINITE = {"shannon", "tsallis-half", "tsallis-1", "sum", "entropy"}  # where p_y is zero


def check(batch: Batch) -> None:
    """See the module."""
    with jax.enable_x64(batch.dtype == "float64"):
        results = jax.tree.map(
            np.asarray, _program(batch.vectors.shape[-1])(*map(jnp.asarray, batch))
        )
    for name, values in results.items():
        units = ROUNDING * float(jnp.finfo(batch.vectors.dtype).eps)
        lowest = -units if name in OWN else 0.0
        for kind, value in values.items():
            wide = value.astype(float)
            assert value.dtype == batch.vectors.dtype and value.shape == batch.labels.shape
            assert not np.any(np.isnan(wide)), (name, kind, value)
            assert np.all(wide >= lowest), (name, kind, value)
            assert name in INFINITE or np.all(np.isfinite(wide)), (name, kind, value)
        np.testing.assert_allclose(values["itself"].astype(float), 0, atol=units, err_msg=name)
        _check_certain(name, values, units)


def _check_certain(name: str, values: dict, units: float) -> None:
    """A soft target that is certain is its label."""
    label, certain = (values[kind].astype(float) for kind in ("label", "certain"))
    both = np.isfinite(label) & np.isfinite(certain)
    np.testing.assert_allclose(certain[both], label[both], rtol=units, atol=units, err_msg=name)


@cache
def _program(K: int):
    every = library_generators(K) | OWN

    def evaluate(F, p, labels, targets):
        certain = jax.nn.one_hot(labels, K, dtype=p.dtype)
        score, divergence = pgeom.bregman_score(F), pgeom.bregman_divergence(F)
        return {
            "label": score(p, labels),
            "certain": score(p, certain),
            "target": score(p, targets),
            "divergence": divergence(targets, p),
            "itself": divergence(p, p),
        }

    return jax.jit(lambda *batch: {name: evaluate(F, *batch) for name, F in every.items()})
