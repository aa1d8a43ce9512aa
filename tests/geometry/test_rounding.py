"""How little curvature is told from rounding: less than that is neither affirmed nor denied.

For F = 1 + ε‖p‖² the divergence of a pair is ε‖η − p‖², and the terms of its definition add up to
about 2. A verdict of strict convexity needs a relative divergence above 16 units of rounding on
every pair at least .05 apart, which is ε · .05²/2 > 16 · 2⁻⁵², or ε > 2.8e-12.
"""

import jax.numpy as jnp
import pytest

from pgeom.diagnosis.search import find


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
