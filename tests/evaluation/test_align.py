"""Scores and labels are aligned explicitly, and mistakes are refused or become NaN."""

import chex
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.evaluation import metrics


@pytest.mark.parametrize("lead", [(), (4,), (2, 4)])
def test_labels_of_fewer_dimensions_are_shared(lead):
    labels = np.array([2, 0, 1], np.uint8)
    aligned = metrics.align(np.ones((*lead, 3, 3), np.float32), labels)
    chex.assert_type(aligned.labels, jnp.int32)
    chex.assert_trees_all_equal(np.asarray(aligned.labels), np.broadcast_to(labels, (*lead, 3)))


def test_a_label_outside_the_classes_poisons_its_example_only():
    aligned = metrics.align(jnp.ones((4, 3)), jnp.array([-1, 0, 2, 3]))
    np.testing.assert_array_equal(jnp.isnan(aligned.scores).all(-1), [True, False, False, True])
    np.testing.assert_array_equal(jnp.isnan(aligned.scores).any(-1), [True, False, False, True])


@pytest.mark.parametrize(
    "label", [np.int8(-1), np.uint8(255), np.uint32(2**32 - 1), np.int64(2**32), np.uint64(2**63)]
)
def test_no_label_outside_the_classes_wraps_around_into_them(label):
    aligned = metrics.align(jnp.ones((2, 200)), np.array([label, 0], label.dtype))
    np.testing.assert_array_equal(jnp.isnan(aligned.scores).all(-1), [True, False])


@pytest.mark.parametrize(
    ("scores", "labels", "error", "said"),
    [
        (jnp.ones(3), jnp.array([0]), ValueError, r"got \(3,\) and \(1,\)"),
        (jnp.ones((2, 3)), jnp.array(0), ValueError, r"got \(2, 3\) and \(\)"),
        (jnp.ones((2, 3)), jnp.array([0]), ValueError, r"got \(2, 3\) and \(1,\)"),
        (jnp.ones((1, 3)), jnp.array([0, 1]), ValueError, r"got \(1, 3\) and \(2,\)"),
        (jnp.ones((2, 3)), jnp.array([0.0, 1.0]), TypeError, "labels must be integers"),
        (jnp.ones((2, 3), int), jnp.array([0, 1]), TypeError, "scores must be floating-point"),
    ],
)
def test_shapes_and_dtypes_that_cannot_be_meant_are_refused(scores, labels, error, said):
    with pytest.raises(error, match=said):
        metrics.align(scores, labels)
