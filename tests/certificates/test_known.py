"""Functions with known truth: no verdict is wrong, no certificate refused, and little unknown."""

import json
from functools import cache

import jax.numpy as jnp
import pytest

import pgeom
from proofs_numeric import checker
from tests.certificates import functions
from tests.certificates.functions import CONVEX, OTHERS

pytestmark = pytest.mark.usefixtures("unchecked_module")

CLASSES = (2, 3, 5, 10)
UNKNOWN = 0.1  # the share of functions of which something may be unknown
NAMES = [*CONVEX, *OTHERS]
SOME = [name for name in NAMES[::3] if name != "quadratic over linear"]  # of three classes


@cache
def faults(name, K):
    """What is to be said against a certificate: wrong or unknown; a refusal is an error."""
    found = pgeom.certify(functions.make(name, K), K)
    verdicts = found.convex, found.strictly_convex
    pairs = [*zip(verdicts, functions.truth(name, K), strict=True)]
    wrong = any(verdict not in (truth, "unknown") for verdict, truth in pairs)
    checker.verify(json.loads(json.dumps(found.document)))
    return ["wrong"] * wrong + ["unknown"] * ("unknown" in verdicts)


def some_faults(name):
    return faults(name, CLASSES[SOME.index(name) % len(CLASSES)])


@pytest.mark.parametrize("name", SOME)
def test_no_verdict_is_wrong_and_no_certificate_refused(name):
    assert some_faults(name) in ([], ["unknown"])


def test_little_is_unknown():
    unknown = [name for name in SOME if "unknown" in some_faults(name)]
    assert len(unknown) <= UNKNOWN * len(SOME), unknown


@pytest.mark.parametrize("name", ("cubes", "nested", "polynomial", "cubic well"))
def test_slopes_of_terms_that_cancel_are_added_before_they_are_bounded(name):
    """On two classes Σp³ has one curvature, and a bound that it attains is verified."""
    assert faults(name, 2) == []


@pytest.mark.parametrize("K", (2, 3))
def test_the_curvature_of_a_narrow_softplus_is_verified(K):
    assert faults("narrow softplus", K) == []


def test_a_wrong_verdict_is_seen(monkeypatch):
    monkeypatch.setitem(OTHERS, "false", lambda K: lambda p: jnp.sum(p**2))
    assert faults("false", 3)[0] == "wrong"
