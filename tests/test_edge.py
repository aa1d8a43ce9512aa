"""Rows that are not distributions are rejected; rounding errors are not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom import checks

REFUSED = "p must be nonnegative and sum to one over the last axis, got "


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("K", [2, 10, 1000])
def test_a_softmax_passes_in_every_precision(x64, dtype, K):
    logits = 4 * np.random.default_rng(0).normal(size=(2, 50, K))
    p = jax.nn.softmax(jnp.asarray(logits, dtype))
    assert checks.probabilities("p", p) is p


@pytest.mark.parametrize("row", [(0.6, 0.4015), (0.6, 0.3985), (1.0, -1e-7), (1.0000001, 0.0)])
def test_rounding_passes(row):
    checks.probabilities("p", jnp.array(row))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([0.5, 0.503], r"\[0.5 *, 0.503\]"),
        ([0.5, 0.497], r"\[0.5 *, 0.497\]"),
        ([1.25, -0.25], r"\[ 1.25, -0.25\]"),
        ([np.inf, -np.inf], r"\[ *inf, -inf\]"),
        ([np.inf, 0.5], r"\[inf, 0.5\]"),
    ],
)
@pytest.mark.parametrize("lead", [(), (2, 1)])
def test_the_first_row_that_is_no_distribution_is_shown(row, said, lead):
    rows = np.full((*lead, 3, 2), 0.5, np.float32)
    rows[..., 1, :], rows[..., 2, :] = row, 7.0
    with pytest.raises(ValueError, match=REFUSED + said):
        checks.probabilities("p", rows)


def test_a_row_with_nan_hides_no_other_row():
    nan = [np.nan, 0.5]
    checks.probabilities("p", np.array([nan, [0.5, 0.5]]))
    with pytest.raises(ValueError, match=REFUSED):
        checks.probabilities("p", np.array([nan, [0.5, 0.6]]))


def test_shape_and_dtype_are_checked_also_of_traced_values():
    with pytest.raises(ValueError, match=r"p must have shape \[..., K\]"):
        jax.eval_shape(lambda p: checks.probabilities("p", p), jnp.ones(()))
    with pytest.raises(TypeError, match="p must be floating-point"):
        checks.probabilities("p", jnp.array([0, 1]))
    assert jax.jit(lambda p: checks.probabilities("p", p))(jnp.array([3.0, 4.0])).shape == (2,)


def test_no_rows_at_all_pass():
    assert checks.probabilities("p", jnp.zeros((0, 3))).shape == (0, 3)
