"""The judges: what holds, what is attained, and that no broken number ever holds."""

import math

import pytest

from proofs_numeric.check import above, agrees, attains, below, finite

JUDGES = {"below": below, "above": above, "attains": attains}


def judge(name, **values):
    return JUDGES[name]("claim", "label", how="", **values)


@pytest.mark.parametrize(
    ("name", "values", "holds"),
    [
        ("below", {"observed": 1.0, "paper": 2.0, "sharp": 1.5}, True),
        ("below", {"observed": 1.6, "paper": 2.0, "sharp": 1.5}, False),
        ("below", {"observed": 1.0, "paper": 2.0, "sharp": 2.5}, False),  # not sharper
        ("below", {"observed": -1.0, "paper": 0.0}, True),
        ("below", {"observed": 1e-20, "paper": 0.0}, False),
        ("below", {"observed": -1.0, "paper": -2.0}, False),
        ("above", {"observed": 1.0, "paper": 0.5, "sharp": 0.8}, True),
        ("above", {"observed": 0.7, "paper": 0.5, "sharp": 0.8}, False),
        ("above", {"observed": 1.0, "paper": 0.9, "sharp": 0.8}, False),  # not sharper
        ("above", {"observed": -1.0, "sharp": 0.5}, False),
        ("attains", {"observed": 1.0, "paper": 1.0}, True),
        ("attains", {"observed": 0.999, "paper": 1.0}, False),
        ("attains", {"observed": 1.001, "paper": 1.0}, False),
    ],
)
def test_verdicts(name, values, holds):
    assert judge(name, **values).holds is holds


@pytest.mark.parametrize("name", JUDGES)
@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_nothing_broken_holds(name, broken):
    assert not judge(name, observed=broken, paper=1.0).holds


@pytest.mark.parametrize("paper", [math.nan, 0.0])
def test_a_broken_bound_does_not_hold(paper):
    assert not judge("below", observed=1.0, paper=paper).holds


def test_ratios_say_how_much_of_a_bound_is_used():
    check = judge("above", observed=4.0, paper=1.0, sharp=2.0)
    assert (check.ratio_to_paper, check.ratio_to_sharp) == (0.25, 0.5)


def test_agrees_takes_the_largest_error():
    assert agrees("claim", "label", error=[1e-13, 1e-14], tolerance=1e-12, how="").holds
    assert not agrees("claim", "label", error=[1e-13, 1e-11], tolerance=1e-12, how="").holds
    assert not agrees("claim", "label", error=[1e-13, math.nan], tolerance=1e-12, how="").holds


def test_finite_counts_what_is_not():
    assert finite("claim", "label", values=[1.0, 2.0], how="").holds
    assert finite("claim", "label", values=[1.0, math.inf], how="").observed == 0.5
