"""A user's kinks, ties and flat parts are no violations; what is false fails, with a note."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.diagnosis import GeneratorReport, explain_convexity
from pgeom.diagnosis.formulas import Envelope
from pgeom.diagnosis.search import Witness
from proofs_numeric import numerics, user_generator
from proofs_numeric.claims import Claim

W = np.random.default_rng(0).normal(size=(5, 3))
STRICT = "F is strictly convex on the tangent space"
LOSS, LEAST = "ℓ(p,y) ≤ M", "D(η,p) ≥ ½ m_T‖η−p‖²"


def network(p):
    return jnp.sum(jnp.maximum(jnp.asarray(W, p.dtype) @ p, 0))


def penalised_brier(p):
    return jnp.sum(p**2) + 2 / 3 * jnp.max(p)


KINKED = {  # F, the claims about it that are false, and its largest loss
    "penalised Brier": (penalised_brier, [], 2 + 2 / 3),
    "maximum of lines": (lambda p: jnp.max(2 * p - 0.1), [STRICT], 2),
    "network": (network, [STRICT], None),
}


@pytest.fixture(autouse=True)
def as_users_have_it():
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.mark.parametrize("name", KINKED)
def test_only_what_is_false_fails(name):
    F, false, largest = KINKED[name]
    rows, notes = user_generator.checks(F, 3)
    assert [one.claim for one in rows if not one.holds] == false
    assert len(notes) == len(false)
    by_claim = {one.claim: one for one in rows}
    if largest is not None:
        assert by_claim[LOSS].observed == pytest.approx(largest, rel=1e-6)


@pytest.mark.parametrize(
    ("F", "changes", "claim"),
    [
        (jnp.max, {"m_tangent": 1e-6}, LEAST),
        (penalised_brier, {"M": 2.6, "M_tangent": 2.6}, LOSS),
    ],
)
def test_a_false_bound_on_it_fails(F, changes, claim):
    limits = Envelope(0.0, np.inf, 0.0, np.inf, "by hand")._replace(**changes)
    rows = [one.check for one in user_generator.check_scores(F, limits, 3)]
    assert claim in [one.claim for one in rows if not one.holds]


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
    row = Claim("ℓ ≤ M", "nowhere", f"x ≤ {sharp} ≤ 2").judge({"x": observed}, "by hand")
    assert not row.holds
    assert user_generator.explain_upper_bound(row, "the largest loss").startswith(says)


def test_each_float32_row_that_fails_says_so_and_where(monkeypatch):
    """A float32 loss and gradient off by 0.01 everywhere, worst where both are smallest."""
    exact = numerics.library_loss

    def inexact(F):
        def loss(z, y):
            wrong = 0.01 * (1 + z[0])  # of logits with z[0] = 0
            return exact(F)(z, y) - (wrong if z.dtype == jnp.float32 else 0 * wrong)

        return loss

    monkeypatch.setattr(numerics, "library_loss", inexact)
    rows = user_generator.check_float32(lambda p: jnp.sum(p**3), 2, M=6.0)
    failed = [one for one in rows if not one.check.holds]
    assert {one.check.paper_label for one in rows} == {"arithmetic in float32"}
    assert len(failed) == 3
    assert all(one.failure.startswith("arithmetic in float32: the l") for one in failed)
    assert all(re.search(r"at 1 − p_y = 1e-0\d$", one.failure) for one in failed[:2])


def test_a_score_that_is_zero_has_no_error():
    rows = user_generator.check_float32(lambda p: 0.0 * jnp.sum(p), 2, M=0.0)
    assert all(one.check.holds for one in rows)
