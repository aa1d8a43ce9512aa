"""Every claim holds, and every false version fails; what a verdict is, and that none is broken.

One file, because all of it shares the programs of a claim: each is a compilation.
"""

import math
import re
from importlib import import_module

import numpy as np
import pytest

from proofs_numeric import runner
from proofs_numeric.claims import Claim
from proofs_numeric.numerics import FLOAT32

FAMILIES = {
    f"{name} {i}": family
    for name in runner.NAMES
    for i, family in enumerate(import_module(f"proofs_numeric.{name}").FAMILIES)
}
EVERY = pytest.mark.parametrize("name", FAMILIES)
VERSIONS = [(name, version) for name, family in FAMILIES.items() for version in family.false]


def classes(family):
    """Three, unless the family is about others."""
    return 3 if 3 in family.classes else family.classes[0]


@EVERY
def test_every_claim_holds(name):
    family = FAMILIES[name]
    checks = family.checks(classes(family))
    assert [check for check in checks if not check.holds] == []
    assert {claim.statement for claim in family.claims} - {check.claim for check in checks} <= {
        "the global minimum is at x = 1"  # of two classes
    }


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_every_false_version_fails(name, version):
    assert not all(
        check.holds for check in FAMILIES[name].check_with(FAMILIES[name].false[version])
    )


@EVERY
@pytest.mark.parametrize("factor", [0.998, 1.004])
def test_a_bound_that_is_attained_cannot_be_changed(name, factor):
    family = FAMILIES[name]
    for claim in family.claims:
        if " = " in claim.relation and claim.shortfall < 1e-3:
            _, bound, *_ = re.split(" = ", claim.relation)
            checks = family.check_with({bound: factor, "classes": classes(family)})
            broken = [check.claim for check in checks if not check.holds]
            assert claim.statement in broken or claim.least > classes(family)


def test_labels_are_the_papers_or_say_in_words_what_goes_beyond():
    stated = r"(Lemma|Props?\.|Eq\.|Fig\.|App\.) \(.+\)|beyond the paper: \w.+ \w.+"
    labels = {claim.label for family in FAMILIES.values() for claim in family.claims} - {FLOAT32}
    assert [label for label in labels if not re.fullmatch(stated, label)] == []


def test_the_runner_knows_which_claims_are_cheap_and_about_datasets():
    for names, has in (
        (runner.CHEAP, lambda family: 100 in family.classes),
        (runner.DATASETS, lambda family: family.datasets),
    ):
        assert {name.split()[0] for name, family in FAMILIES.items() if has(family)} == {*names}


@pytest.mark.parametrize("name", ["margin 0", "improper 1"])
def test_cheap_claims_hold_for_a_hundred_classes(name):
    assert all(check.holds for check in FAMILIES[name].checks(100))


def test_two_classes_have_two_minima():
    checks = [one for one in FAMILIES["displacement 0"].checks(2) if "two minima" in one.how]
    assert all(check.holds for check in checks)
    assert "x = 1" in str(checks)
    assert "led to f = 0.1483034, 0.1487823" in checks[0].how


def verdict(relation, label="Eq. 1", **numbers):
    return Claim("claim", label, relation).judge(numbers, "")


@pytest.mark.parametrize(
    ("relation", "numbers", "holds"),
    [
        ("x ≤ 1.5 ≤ 2", [1.0], True),
        ("x ≤ 1.5 ≤ 2", [1.6], False),
        ("x ≤ 2.5 ≤ 2", [1.0], False),  # not sharper
        ("x ≤ 0", [-1.0], True),
        ("x ≤ 0", [1e-20], False),
        ("x ≤ -2", [-1.0], False),
        ("x ≥ 0.8 ≥ 0.5", [1.0], True),
        ("x ≥ 0.8 ≥ 0.5", [0.7], False),
        ("x ≥ 0.8 ≥ 0.9", [1.0], False),  # not sharper
        ("x ≥ 0.5", [-1.0], False),
        ("x = 1", [1.0], True),
        ("x = 1", [0.999], False),
        ("x = 1", [1.001], False),
        ("x = 1 = 2", [1.0], False),
        ("x ~ 1e-12", [1e-13], True),
        ("x ~ 1e-12", [1e-11], False),
        ("x ≈ 3 ± 0.1", [2.95], True),
        ("x ≈ 3 ± 0.1", [3.2], False),
        ("x ≤ nan", [1.0], False),
        *((f"x {sign} 1", [x], False) for sign in "≤≥=~" for x in (math.nan, math.inf)),
    ],
)
def test_verdicts(relation, numbers, holds):
    assert verdict(relation, x=numbers[0]).holds is holds


def test_ratios_say_how_much_of_a_bound_is_used():
    check = verdict("x ≥ 2 ≥ 1", x=4.0)
    assert (check.ratio_to_paper, check.ratio_to_sharp, check.used) == (0.25, 0.5, 0.5)
    alone = verdict("x ≤ 2", label="beyond the paper: words", x=np.float64(1))
    assert (alone.paper_bound, alone.sharp_bound, type(alone.observed)) == (None, 2.0, float)
    exact = verdict("x ~ 1e-12", x=2e-13)
    assert (exact.paper_bound, exact.sharp_bound, exact.used) == (None, None, pytest.approx(0.2))
