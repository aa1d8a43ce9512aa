"""Metrics of probabilities refuse what is no distribution, where they can see it."""

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


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "confusion_matrix"])
def test_metrics_that_only_compare_scores_take_logits(name):
    logits = jnp.array([[1.0, 2.0, 3.0], [3.0, 0.0, -1.0]])
    metric = getattr(metrics, name)
    np.testing.assert_array_equal(metric(logits, LABELS), metric(jax.nn.softmax(logits), LABELS))
