"""The judges: what holds, what is attained, and that no broken number ever holds."""

import json
import math

import numpy as np
import pytest

from proofs_numeric import check_table
from proofs_numeric.check import agreement, attainment, finiteness, lower_bound, upper_bound

JUDGES = (upper_bound, lower_bound, attainment)


def verdict(judge, **values):
    return judge("claim", "label", how="", **values)


@pytest.mark.parametrize(
    ("judge", "values", "holds"),
    [
        (upper_bound, {"observed": 1.0, "paper": 2.0, "sharp": 1.5}, True),
        (upper_bound, {"observed": 1.6, "paper": 2.0, "sharp": 1.5}, False),
        (upper_bound, {"observed": 1.0, "paper": 2.0, "sharp": 2.5}, False),  # not sharper
        (upper_bound, {"observed": -1.0, "paper": 0.0}, True),
        (upper_bound, {"observed": 1e-20, "paper": 0.0}, False),
        (upper_bound, {"observed": -1.0, "paper": -2.0}, False),
        (lower_bound, {"observed": 1.0, "paper": 0.5, "sharp": 0.8}, True),
        (lower_bound, {"observed": 0.7, "paper": 0.5, "sharp": 0.8}, False),
        (lower_bound, {"observed": 1.0, "paper": 0.9, "sharp": 0.8}, False),  # not sharper
        (lower_bound, {"observed": -1.0, "sharp": 0.5}, False),
        (attainment, {"observed": 1.0, "paper": 1.0}, True),
        (attainment, {"observed": 0.999, "paper": 1.0}, False),
        (attainment, {"observed": 1.001, "paper": 1.0}, False),
    ],
)
def test_verdicts(judge, values, holds):
    assert verdict(judge, **values).holds is holds


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_nothing_broken_holds(judge, broken):
    assert not verdict(judge, observed=broken, paper=1.0).holds


@pytest.mark.parametrize("paper", [math.nan, 0.0])
def test_a_broken_bound_does_not_hold(paper):
    assert not verdict(upper_bound, observed=1.0, paper=paper).holds


def test_ratios_say_how_much_of_a_bound_is_used():
    check = verdict(lower_bound, observed=4.0, paper=1.0, sharp=2.0)
    assert (check.ratio_to_paper, check.ratio_to_sharp) == (0.25, 0.5)


def test_agreement_takes_the_largest_error():
    assert agreement("claim", "label", error=[1e-13, 1e-14], tolerance=1e-12, how="").holds
    assert not agreement("claim", "label", error=[1e-13, 1e-11], tolerance=1e-12, how="").holds
    assert not agreement("claim", "label", error=[1e-13, math.nan], tolerance=1e-12, how="").holds


def test_a_verdict_goes_into_json_whatever_the_numbers_are():
    numbers = {"error": np.array([1e-13]), "tolerance": np.float64(1e-12)}
    results = {"group": [agreement("claim", "label", how="", **numbers)]}
    assert json.loads(json.dumps(check_table.to_json(results)))


def test_a_tolerance_is_no_bound_of_the_paper():
    check = agreement("claim", "label", error=[2e-13], tolerance=1e-12, how="")
    assert (check.paper_bound, check.ratio_to_paper, check.sharp_bound) == (None, None, None)
    assert (check.tolerance, check.used) == (1e-12, pytest.approx(0.2))
    (row,) = check_table.rows({"group": [check]})
    numpy = agreement("claim", "label", error=0.0, tolerance=np.float64(1.0), how="")
    assert numpy.holds is True and type(numpy.tolerance) is float  # which JSON can hold
    assert row.numbers == "error 2e-13; tolerance 1e-12; 1 case" and row.ratio == "0.2000"


def test_finiteness_counts_what_is_not():
    assert finiteness("claim", "label", values=[1.0, 2.0], how="").holds
    assert finiteness("claim", "label", values=[1.0, math.inf], how="").observed == 0.5
