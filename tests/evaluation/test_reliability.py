"""Confidence bins: which one an edge belongs to, how many there are, and what they show."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.evaluation import metrics

compiled_table = jax.jit(metrics.reliability, static_argnums=2)
compiled_ece = jax.jit(metrics.ece, static_argnums=2)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("bins", [1, 15, 20])
def test_a_confidence_at_an_edge_belongs_to_the_bin_below(x64, dtype, bins):
    """(lo, hi], also for edges such as 3/15 that no binary number equals."""
    top = np.arange(bins // 2 + 1, bins + 1) / bins
    p = jnp.asarray(np.stack([top, 1 - top], -1)[:, None], dtype)
    share = compiled_table(p, np.array([0]), bins).share
    np.testing.assert_array_equal(jnp.argmax(share, -1), np.arange(bins // 2, bins))


@pytest.mark.parametrize("bins", [4, 15])
def test_a_confidence_just_above_an_edge_belongs_to_the_bin_above(bins):
    top = np.nextafter(np.float32(np.arange(bins // 2 + 1, bins) / bins), np.float32(1))
    share = compiled_table(np.stack([top, 1 - top], -1)[:, None], np.array([0]), bins).share
    np.testing.assert_array_equal(jnp.argmax(share, -1), np.arange(bins // 2 + 1, bins))


def test_a_confidence_rounded_above_1_stays_in_the_last_bin():
    p = np.array([[1.0000001, 0.0]], np.float32)
    assert compiled_table(p, np.array([0]), 15).share[-1] == 1.0


def test_ece_has_fifteen_bins_by_default():
    top = np.random.default_rng(0).uniform(0.5, 1.0, 20)
    p, labels = np.stack([top, 1 - top], -1), np.array([0, 1] * 10)
    default = float(jax.jit(metrics.ece)(p, labels))
    assert default == float(compiled_ece(p, labels, 15)) != float(compiled_ece(p, labels, 14))
    with pytest.raises(ValueError, match="bins must be at least 1, got 0"):
        metrics.ece(p, labels, bins=0)
