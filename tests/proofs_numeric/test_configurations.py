"""The configurations are those of the experiments, and stacking changes none of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.data import sources
from pgeom.losses import structured
from pgeom.losses.catalogue import LOSSES
from pgeom.paper import objectives
from pgeom.types import ClassStats
from proofs_numeric import configurations, experiment_metrics, instances


def test_every_dataset_and_seed_has_its_metric():
    classes = experiment_metrics.dataset_classes()
    assert set(classes) == set(sources.PAPER)
    names = [name for K in set(classes.values()) for name in configurations.quadratics(K).names]
    for dataset in classes:
        for regime in sources.load(dataset).regimes:
            assert sum(f"CAPM {dataset} {regime} " in name for name in names) == 5


def test_the_metric_is_the_catalogues():
    """CAPM of the catalogue on the same statistics has the same loss."""
    rng = np.random.default_rng(0)
    with jax.enable_x64(False):
        stats = ClassStats(jnp.arange(1.0, 5.0), jnp.asarray(rng.normal(size=(4, 6)), jnp.float32))
        A = experiment_metrics._matrix(stats)
        z, labels = jnp.asarray(rng.normal(size=(4, 4)), jnp.float32), jnp.arange(4)
        ours = objectives.capm(A)(z, labels)
        theirs = LOSSES["capm"].build(stats)(z, labels)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_the_penalty_is_the_catalogues():
    rng = np.random.default_rng(1)
    with jax.enable_x64(False):
        stats = ClassStats(jnp.ones(3), jnp.asarray(rng.normal(size=(3, 2)), jnp.float32))
        z, labels = jnp.asarray(rng.normal(size=(3, 3)), jnp.float32), jnp.arange(3)
        F, constants = structured.hpg_generator(3), configurations.EXPERIMENT._asdict()
        ours = objectives.apms(F, **constants, beta0=0.2, horizon=10)(z, labels, 3)
        theirs = LOSSES["apms"].build(stats, 0.3)(z, labels)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("K", [2, 3])
def test_filling_up_ridges_changes_nothing(K):
    F = instances.random_ridges(K, 0)
    p = np.full(K, 1 / K)
    filled = instances.fill_ridges(F, 16)
    assert filled.w.shape == (16, K)
    np.testing.assert_allclose(filled(jnp.asarray(p)), F(jnp.asarray(p)), rtol=1e-15)


def test_select_and_get_look_up_names():
    cases = configurations.quadratics(3)
    assert cases.select("random").names == ("random metric 0", "random metric 1", "random metric 2")
    np.testing.assert_array_equal(cases.get("extremal: identity").A, np.eye(3))
