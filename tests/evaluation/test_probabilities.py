"""Metrics of probabilities refuse what is no distribution, where they can see it."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.evaluation import metrics

LABELS = jnp.array([0, 2])
NAMES = ("brier", "ece", "classwise_ece", "debiased_ece", "smooth_ece", "reliability")
OF_PROBABILITIES = {name: getattr(metrics, name) for name in NAMES}
every_metric = pytest.mark.parametrize("metric", OF_PROBABILITIES.values(), ids=OF_PROBABILITIES)


@every_metric
@pytest.mark.parametrize(
    "rows",
    [
        [[0.2, 0.3, 0.5], [2.0, -1.0, 0.5]],  # logits
        [[0.2, 0.3, 0.5], [1.5, -0.5, 0.0]],  # logits that happen to sum to one
        [[0.2, 0.3, 0.5], [0.2, 0.3, 0.4]],  # not normalised
        [[-0.2, -0.3, -0.5], [-1.0, -2.0, -3.0]],  # logarithms
    ],
)
def test_what_is_no_distribution_is_refused(metric, rows):
    with pytest.raises(ValueError, match="probabilities must be nonnegative and sum to one"):
        metric(jnp.array(rows), LABELS)


@every_metric
def test_a_diverged_run_passes_and_is_nan(metric):
    p = np.full((2, 2, 3), 1 / 3, np.float32)
    p[1, 0, 1] = np.nan
    value = metric(p, LABELS)
    good, diverged = (jax.tree.map(lambda x, run=run: x[run], value) for run in (0, 1))
    chex.assert_tree_all_finite(good)
    chex.assert_trees_all_equal(diverged, jax.tree.map(lambda x: jnp.full_like(x, jnp.nan), good))


@every_metric
def test_traced_values_pass(metric):
    logits = jnp.array([[1.0, 2.0, 3.0], [3.0, 0.0, -1.0]])
    assert jax.tree.leaves(jax.jit(metric)(logits, LABELS))
    assert jax.tree.leaves(jax.vmap(metric)(logits[None], LABELS[None]))


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "confusion_matrix"])
def test_metrics_that_only_compare_scores_take_logits(name):
    logits = jnp.array([[1.0, 2.0, 3.0], [3.0, 0.0, -1.0]])
    metric = getattr(metrics, name)
    np.testing.assert_array_equal(metric(logits, LABELS), metric(jax.nn.softmax(logits), LABELS))
