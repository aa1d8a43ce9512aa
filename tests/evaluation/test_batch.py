"""Scores and labels are aligned explicitly, and mistakes are refused or become NaN."""

import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.evaluation import batch


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_sums_are_in_float32_at_least(dtype):
    aligned = batch.align(jnp.ones((2, 3), dtype), jnp.array([0, 1]))
    assert aligned.scores.dtype == jnp.float32 and aligned.dtype == dtype


def test_float64_stays(x64):
    aligned = batch.align(jnp.ones((2, 3), jnp.float64), jnp.array([0, 1]))
    assert aligned.scores.dtype == aligned.dtype == jnp.float64


@pytest.mark.parametrize("lead", [(), (4,), (2, 4)])
def test_labels_of_fewer_dimensions_are_shared(lead):
    labels = np.array([2, 0, 1], np.uint8)
    aligned = batch.align(np.ones((*lead, 3, 3), np.float32), labels)
    assert aligned.labels.shape == (*lead, 3) and aligned.labels.dtype == jnp.int32
    np.testing.assert_array_equal(aligned.labels, np.broadcast_to(labels, (*lead, 3)))


def test_a_label_outside_the_classes_poisons_its_example_only():
    aligned = batch.align(jnp.ones((4, 3)), jnp.array([-1, 0, 2, 3]))
    np.testing.assert_array_equal(jnp.isnan(aligned.scores).all(-1), [True, False, False, True])
    np.testing.assert_array_equal(jnp.isnan(aligned.scores).any(-1), [True, False, False, True])


@pytest.mark.parametrize(
    ("scores", "labels", "error", "said"),
    [
        (jnp.ones(3), jnp.array([0]), ValueError, r"but are \(3,\) and \(1,\)"),
        (jnp.ones((2, 3)), jnp.array(0), ValueError, r"but are \(2, 3\) and \(\)"),
        (jnp.ones((2, 3)), jnp.array([0]), ValueError, r"but are \(2, 3\) and \(1,\)"),
        (jnp.ones((1, 3)), jnp.array([0, 1]), ValueError, r"but are \(1, 3\) and \(2,\)"),
        (jnp.ones((2, 3)), jnp.array([0.0, 1.0]), TypeError, "labels must be integers"),
        (jnp.ones((2, 3), int), jnp.array([0, 1]), TypeError, "scores must be floating"),
    ],
)
def test_shapes_and_dtypes_that_cannot_be_meant_are_refused(scores, labels, error, said):
    with pytest.raises(error, match=said):
        batch.align(scores, labels)
