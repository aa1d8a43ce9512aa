"""The one search: kinks found by bisection, and what rounding leaves open."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.diagnosis.search import find, scan

pytestmark = pytest.mark.usefixtures("unchecked_module")


@pytest.mark.parametrize("sharpness", [0.01, -0.01])
def test_a_slight_kink_is_found_where_curvature_is_a_thousand_times_larger(sharpness):
    """Between two stations curvature changes the slope by more than the kink does."""

    def F(p):
        return 20 * jnp.sum(p**4) + sharpness * jnp.maximum(p[0] - 0.7, 0)

    with jax.enable_x64(True):
        suspects = scan(F, 3)
    found = np.abs(suspects.jump) > 0.1 * abs(sharpness)
    assert np.count_nonzero(found) > 10
    np.testing.assert_allclose(suspects.points[found, 0], 0.7, atol=1e-6)
    # the slope along a unit tangent v changes by |v_0| ≤ √(2/3) times the sharpness
    jumps = suspects.jump[found] / sharpness
    assert np.all(jumps > 0) and 0.7 < np.max(jumps) <= np.sqrt(2 / 3) + 1e-6


def test_a_kink_next_to_a_vertex_is_found_among_many_classes():
    """Where no random point comes: p_4 > 0.9 has a share of 0.1²⁹ of the simplex."""
    with jax.enable_x64(True):
        suspects = scan(lambda p: jnp.sum(p**2) + jnp.maximum(p[4] - 0.9, 0), 30)
    found = suspects.jump > 0.1
    assert np.any(found)
    np.testing.assert_allclose(suspects.points[found, 4], 0.9, atol=1e-6)


def test_the_ten_sharpest_of_many_kinks_are_named():
    def F(p):
        return jnp.sum(p**2) + sum(k * jnp.maximum(p[0] - k / 20, 0) for k in range(1, 15))

    kinks = find(F, 3).kinks
    assert len(kinks) == 10
    jumps = [kink.jump for kink in kinks]
    assert jumps == sorted(jumps, reverse=True)
    np.testing.assert_allclose([kink.point[0] for kink in kinks], 0.7, atol=0.11)


# For F = 1 + ε‖p‖² the divergence of a pair is ε‖η − p‖², and the terms of its definition add up to
# about 2. A verdict of strict convexity needs a relative divergence above 16 units of rounding on
# every pair at least .05 apart, which is ε · .05²/2 > 16 · 2⁻⁵², or ε > 2.8e-12.
@pytest.mark.parametrize(("epsilon", "strictly_convex"), [(3.5e-12, True), (2e-12, None)])
def test_strict_convexity_is_affirmed_above_the_rounding_of_the_terms(epsilon, strictly_convex):
    findings = find(lambda p: 1 + epsilon * jnp.sum(p**2), 3)
    assert findings.precision == 2**-52
    assert findings.convex is True and findings.strictly_convex is strictly_convex
    if strictly_convex is None:
        # the pair that could not be decided, with a bound on its rounding
        assert 0 <= findings.witness.divergence < findings.rounding < 1.2e-14


def test_a_concavity_below_rounding_is_not_called_convex():
    findings = find(lambda p: 1 - 1e-12 * jnp.sum(p**2), 3)
    assert findings.convex is None and findings.strictly_convex is None


def test_a_function_that_is_zero_on_a_part_of_the_simplex_is_searched_without_a_warning():
    W = np.array([[1.0, -1.0, 0.0], [0.3, 0.2, -1.0]])
    assert find(lambda p: jnp.sum(jax.nn.relu(jnp.asarray(W, p.dtype) @ p)), 3).convex is not False
