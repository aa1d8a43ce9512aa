"""Every generator: no NaN on the simplex, no negative score or divergence, none of p from p."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

import pgeom
from tests.fuzz import arrays
from tests.fuzz.arrays import Batch
from tests.test_accuracy import GENERATORS

inputs = arrays.probabilities

ROUNDING = 64  # units of rounding by which a function without closed forms may be off
NAMES = ["shannon", "tsallis 0.5", "tsallis 2.5", "spherical", "squared norm", "quadratic"]
NAMES += ["hyperbolic", "tsallis + spherical"]


def cubic(p):
    return jnp.sum(p**3)


def entropy(p):
    return jnp.sum(p * jnp.log(p))


def kinked(p):
    return jnp.sum(p**2) + jnp.maximum(p[0] - 0.9, 0.0)


OWN = {"cubic": cubic, "entropy": entropy, "kinked": kinked}
INFINITE = {"shannon", "tsallis 0.5", "tsallis + spherical", "entropy"}  # where p_y is zero


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
    every = {name: GENERATORS[name](K)[0] for name in NAMES} | OWN

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
