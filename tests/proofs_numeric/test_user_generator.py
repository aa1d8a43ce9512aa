"""A user's kinks, ties and flat parts are no violations, and false bounds on them still fail."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.diagnosis.formulas import Envelope
from proofs_numeric import user_generator

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
    rows = [one.check for one in user_generator._scores(F, limits, 3)]
    assert claim in [one.claim for one in rows if not one.holds]
