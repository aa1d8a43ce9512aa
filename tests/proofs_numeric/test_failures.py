"""Each row of a user's generator that fails has a note that names what failed."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.diagnosis import GeneratorReport, explain_convexity
from pgeom.diagnosis.search import Witness
from proofs_numeric import failures, numerics, user_float32
from proofs_numeric.check import upper_bound


def cubic(p):
    return jnp.sum(p**3)


@pytest.mark.parametrize(
    ("convex", "divergence", "says"),
    [
        (False, -0.25, "F is not convex, so its score is not proper: R(η,p) < R(η,η)"),
        (True, 0.0, "F is not strictly convex, so its score is not strictly proper"),
        (False, np.nan, "F or its gradient is not finite: D(η,p) = nan"),
    ],
)
def test_a_property_that_fails_has_its_witness(convex, divergence, says):
    witness = Witness(np.array([1.0, 0.0]), np.array([0.5, 0.5]), divergence)
    text = explain_convexity(GeneratorReport(True, convex, False, witness, "by hand"))
    assert text.startswith(says)
    assert text.endswith("at η = [1., 0.], p = [0.5, 0.5]")


@pytest.mark.parametrize(
    ("observed", "sharp", "says"),
    [
        (3.0, 1.5, "the searched bound is too small: the largest loss found is 3, above the 1.5"),
        (1.0, 2.5, "the searched bounds on the largest loss are inconsistent: 2.5 by M_T, 2 by M"),
        (np.nan, 1.5, "the largest loss is not finite: nan"),
    ],
)
def test_a_bound_that_fails_was_searched_too_low(observed, sharp, says):
    row = upper_bound("ℓ ≤ M", "nowhere", observed=observed, paper=2.0, sharp=sharp, how="by hand")
    assert not row.holds
    assert failures.explain_upper_bound(row, "the largest loss").startswith(says)


def test_each_float32_row_that_fails_says_so_and_where(monkeypatch):
    """A float32 loss and gradient off by 0.01 everywhere, worst where both are smallest."""
    exact = numerics.library_loss

    def inexact(F):
        def loss(z, y):
            wrong = 0.01 * (1 + z[0])  # of logits with z[0] = 0
            return exact(F)(z, y) - (wrong if z.dtype == jnp.float32 else 0 * wrong)

        return loss

    monkeypatch.setattr(numerics, "library_loss", inexact)
    with jax.enable_x64(True):
        rows = user_float32.diagnostics(cubic, 2, M=6.0)
    failed = [one for one in rows if not one.check.holds]
    assert {one.check.paper_label for one in rows} == {"arithmetic in float32"}
    assert len(failed) == 3
    assert all(one.failure.startswith("arithmetic in float32: the l") for one in failed)
    assert all(re.search(r"at 1 − p_y = 1e-0\d$", one.failure) for one in failed[:2])


def test_a_score_that_is_zero_has_no_error():
    with jax.enable_x64(True):
        rows = user_float32.diagnostics(lambda p: 0.0 * jnp.sum(p), 2, M=0.0)
    assert all(one.check.holds for one in rows)
