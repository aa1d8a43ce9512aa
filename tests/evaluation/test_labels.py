"""Labels of 8 bits, as image datasets come with, and more classes than 8 bits can count."""

import chex
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.evaluation import calibration, metrics

NAMES = ("accuracy", "balanced_accuracy", "brier", "nll", "ece", "confusion_matrix")
MEASURES = {name: getattr(metrics, name) for name in NAMES}
MEASURES["temperature"] = lambda p, labels: calibration.fit_temperature(p, labels).temperature


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("name", MEASURES)
def test_labels_of_eight_bits_give_what_wider_ones_do(name, dtype):
    scores = np.random.default_rng(0).dirichlet(np.ones(256), 3)
    scores, labels = jnp.asarray(scores, jnp.float32), np.array([0, 100, 127])
    narrow, wide = (MEASURES[name](scores, labels.astype(d)) for d in (dtype, np.int32))
    chex.assert_tree_all_finite(narrow)
    chex.assert_trees_all_equal(narrow, wide)
