"""Scores and labels are aligned explicitly, and mistakes are refused or become NaN."""

import chex
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.evaluation import metrics


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_sums_are_in_float32_at_least(dtype):
    aligned = metrics.align(jnp.ones((2, 3), dtype), jnp.array([0, 1]))
    assert aligned.scores.dtype == jnp.float32 and aligned.dtype == dtype


def test_float64_stays(x64):
    aligned = metrics.align(jnp.ones((2, 3), jnp.float64), jnp.array([0, 1]))
    assert aligned.scores.dtype == aligned.dtype == jnp.float64


@pytest.mark.parametrize("lead", [(), (4,), (2, 4)])
def test_labels_of_fewer_dimensions_are_shared(lead):
    labels = np.array([2, 0, 1], np.uint8)
    aligned = metrics.align(np.ones((*lead, 3, 3), np.float32), labels)
    chex.assert_type(aligned.labels, jnp.int32)
    chex.assert_trees_all_equal(np.asarray(aligned.labels), np.broadcast_to(labels, (*lead, 3)))


@pytest.mark.parametrize("form", [list, tuple])
def test_lists_and_tuples_are_arrays_too(form):
    rows = form([form([0.25, 0.75]), form([0.5, 0.5]), form([1.0, 0.0])])
    got = metrics.align_probabilities(rows, form([1, 0, 0]))
    chex.assert_trees_all_equal(
        got, metrics.align_probabilities(np.array(rows), np.array([1, 0, 0]))
    )


def test_a_label_outside_the_classes_poisons_its_example_only():
    aligned = metrics.align(jnp.ones((4, 3)), jnp.array([-1, 0, 2, 3]))
    np.testing.assert_array_equal(jnp.isnan(aligned.scores).all(-1), [True, False, False, True])
    np.testing.assert_array_equal(jnp.isnan(aligned.scores).any(-1), [True, False, False, True])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64])
@pytest.mark.parametrize("K", [128, 256, 300])
def test_labels_are_compared_with_classes_that_their_dtype_cannot_hold(dtype, K):
    labels = np.array([0, 5, 127], dtype)
    for given in (labels, jnp.asarray(labels)):
        aligned = metrics.align(jnp.ones((3, K)), given)
        np.testing.assert_array_equal(aligned.labels, labels)
        assert jnp.all(aligned.scores == 1.0)


@pytest.mark.parametrize(
    "label", [np.int8(-1), np.uint8(255), np.uint32(2**32 - 1), np.int64(2**32), np.uint64(2**63)]
)
def test_no_label_outside_the_classes_wraps_around_into_them(label):
    aligned = metrics.align(jnp.ones((2, 200)), np.array([label, 0], label.dtype))
    np.testing.assert_array_equal(jnp.isnan(aligned.scores).all(-1), [True, False])


@pytest.mark.parametrize("label", [np.int64(2**32), np.uint64(2**63)])
def test_no_label_wraps_around_in_x64_either(x64, label):
    aligned = metrics.align(jnp.ones((2, 200)), jnp.asarray(np.array([label, 0], label.dtype)))
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
