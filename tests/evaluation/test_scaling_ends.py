"""Temperature scaling at the ends of its search."""

import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.evaluation.calibration import fit_temperature


@pytest.mark.parametrize("log_temperature", [11.5, 10.0, 3.0, -2.0])
def test_a_minimum_far_out_is_found_and_is_no_bound(log_temperature, x64):
    """Two examples, one right and one wrong, by a margin of one: b = log(w_right/w_wrong)."""
    b = np.exp(-log_temperature)
    right = 1 / (1 + np.exp(-b))
    weights = jnp.array([right, 1 - right])
    logits, labels = jnp.array([[1.0, 0.0], [1.0, 0.0]]), jnp.array([0, 1])
    found = fit_temperature(logits, labels, prior=0.0, weights=weights)
    np.testing.assert_allclose(found.temperature, 1 / b, rtol=1e-6)
    assert not found.at_bound
