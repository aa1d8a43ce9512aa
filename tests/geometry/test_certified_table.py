"""Some generators with known truth, each on one number of classes, and random compositions.

The commands `tests.geometry.certified_table` and `tests.geometry.random_generators` take all.
"""

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from tests.geometry import certified_table, random_generators
from tests.geometry.certified_table import CLASSES, CONVEX, OTHERS, UNKNOWN

NAMES = [*CONVEX, *OTHERS]
SOME = NAMES[::6]


@cache
def faults(name, K):
    complaints, _, _ = certified_table.faults(name, K)
    return [word for word in complaints if word != "slow"]  # nothing depends on the clock


def some_faults(name):
    return faults(name, CLASSES[SOME.index(name) % len(CLASSES)])


@pytest.mark.parametrize("name", SOME)
def test_no_verdict_is_wrong_and_no_certificate_refused(name):
    assert some_faults(name) in ([], ["unknown"])


def test_little_is_unknown():
    assert len(OTHERS) >= 5 and len(NAMES) >= 100
    unknown = [name for name in SOME if "unknown" in some_faults(name)]
    assert len(unknown) <= UNKNOWN * len(SOME), unknown


@pytest.mark.parametrize("name", ("cubes", "nested", "polynomial", "cubic well"))
def test_slopes_of_terms_that_cancel_are_added_before_they_are_bounded(name):
    """On two classes Σp³ has one curvature, and a bound that it attains is verified."""
    assert faults(name, 2) == []


@pytest.mark.parametrize("K", (2, 3))
def test_the_curvature_of_a_narrow_softplus_is_verified(K):
    assert faults("narrow softplus", K) == []


def test_the_table_sees_a_wrong_verdict(monkeypatch):
    monkeypatch.setitem(certified_table.OTHERS, "false", lambda K: lambda p: jnp.sum(p**2))
    assert certified_table.faults("false", 3)[0] == ["wrong"]


@pytest.mark.parametrize("seed", range(4))
def test_no_search_contradicts_a_certificate(seed):
    complaints, found, shown = random_generators.faults(seed)
    assert not complaints, (shown, found)


def test_the_search_contradicts_a_false_certificate(monkeypatch):
    true = pgeom.certify
    cubes = (lambda p: jnp.sum(p**3), 3, "Σp³")
    monkeypatch.setattr(random_generators, "generator", lambda seed: cubes)
    monkeypatch.setattr(pgeom, "certify", lambda F, K: true(lambda p: F(p) + jnp.sum(p**2), K))
    assert random_generators.faults(0)[0] == ["m_T is too large"]


def test_the_search_finds_curvature():
    low, high, _ = random_generators.search(lambda p: jnp.sum(p**3), 3)
    assert np.min(low) < 0.1 and np.max(high) > 2.5
