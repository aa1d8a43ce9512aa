"""The paper's claims against planted runs: true ones are reproduced, and false ones reversed."""

import numpy as np
import pytest

from experiments import ablation
from experiments.engine.measures import ATTACKS, NATURAL
from experiments.show import claims as paper
from experiments.show.claims import (
    ABLATION,
    CLAIMS,
    PROBES,
    PROTOCOL,
    Claim,
    check_claims,
    claims_grid,
)
from experiments.show.contrasts import (
    CANDIDATES,
    CLEAN,
    DIGITS,
    EVERYWHERE,
    PAIRS,
    PLAIN,
    ROBUST,
    TAIL,
    differences,
    more_variable,
)
from experiments.show.metrics import Samples
from pgeom.data import sources
from pgeom.losses.catalogue import GENERAL, LOSSES
from tests.experiments.show.planted import planted_runs


def label_of(claim, shifts=None, **more):
    checked = check_claims({claim.source: Samples(planted_runs(shifts, **more))}, (claim,))
    return checked["label"].item()


def make_claim(says, contrasts, **more):
    return Claim("text", "where", says, contrasts, **more)


GAIN = differences((DIGITS,), ("hpg",), ("ce",))
LOSSES_HERE = {"losses": ("ce", "hpg", "apms"), "places": (DIGITS, PAIRS)}


@pytest.mark.parametrize(
    ("says", "shift", "label"),
    [
        ("above", 0.01, "reproduced"),
        ("above", -0.01, "reversed"),
        ("above", 0.0, "undetermined"),
        ("below", -0.01, "reproduced"),
        ("below", 0.01, "reversed"),
        ("close", 0.0, "reproduced"),
        ("close", 0.02, "reversed"),
        ("close", -0.02, "reversed"),
        ("close", 0.005, "undetermined"),
        ("at least", 0.01, "reproduced"),
        ("at least", 0.0, "reproduced"),
        ("at least", -0.02, "reversed"),
        ("at most", -0.01, "reproduced"),
        ("at most", 0.02, "reversed"),
        ("at most", 0.005, "undetermined"),
    ],
)
def test_what_a_claim_may_say(says, shift, label):
    claim = make_claim(says, GAIN)
    assert label_of(claim, {(DIGITS, "hpg", "accuracy"): shift}, **LOSSES_HERE) == label


def test_all_contrasts_must_hold_or_one():
    two = differences((DIGITS, PAIRS), ("hpg",), ("ce",))
    shifts = {(DIGITS, "hpg", "accuracy"): 0.01}
    against = shifts | {(PAIRS, "hpg", "accuracy"): -0.01}
    every, some = make_claim("above", two), make_claim("above", two, some=True)
    assert label_of(every, shifts, **LOSSES_HERE) == "undetermined"
    assert label_of(some, shifts, **LOSSES_HERE) == "reproduced"
    assert label_of(every, against, **LOSSES_HERE) == "reversed"
    assert label_of(some, against, **LOSSES_HERE) == "reproduced"
    lost = {key: -0.01 for key in against}
    assert label_of(some, lost, **LOSSES_HERE) == "reversed"


def test_the_deciding_contrast_is_the_weakest_of_all_and_the_strongest_of_some():
    two = differences((DIGITS, PAIRS), ("hpg",), ("ce",))
    shifts = {(DIGITS, "hpg", "accuracy"): 0.01, (PAIRS, "hpg", "accuracy"): 0.05}
    samples = {PROTOCOL: Samples(planted_runs(shifts, **LOSSES_HERE))}
    every = check_claims(samples, (make_claim("above", two),)).iloc[0]
    some = check_claims(samples, (make_claim("above", two, some=True),)).iloc[0]
    assert every["deciding"] == "HPG − CE, digits, symmetric-40"
    assert some["deciding"] == "HPG − CE, digits, pair-flip-40"
    assert every["difference"] == pytest.approx(0.01, abs=0.002)
    assert some["low"] < 0.05 < some["high"]
    assert (every["published"], some["published"]) == pytest.approx((0.005, 0.035))
    assert (every["hold"], every["contradicted"], every["contrasts"]) == (2, 0, 2)


def test_variability_is_compared_by_distances_from_the_mean():
    runs = planted_runs(losses=PLAIN)
    here = (runs["dataset"] == PAIRS.dataset) & (runs["regime"] == PAIRS.regime)
    middle = runs.loc[here, "accuracy"].mean()
    runs.loc[here, "accuracy"] = middle + 5 * (runs.loc[here, "accuracy"] - middle)
    claim = make_claim("above", more_variable(PAIRS))
    assert len(claim.contrasts) == 4 * 3
    checked = check_claims({PROTOCOL: Samples(runs)}, (claim,))
    assert checked["label"].item() == "reproduced" and np.isnan(checked["published"].item())


def test_a_diverged_run_decides_nothing():
    runs = planted_runs({(DIGITS, "hpg", "accuracy"): 0.05}, **LOSSES_HERE)
    runs.loc[(runs["loss"] == "hpg") & (runs["seed"] == 3), "accuracy"] = np.nan
    checked = check_claims({PROTOCOL: Samples(runs)}, (make_claim("above", GAIN),))
    assert checked["label"].item() == "undetermined" and np.isnan(checked["low"].item())


def test_claims_without_runs_are_left_out():
    samples = Samples(planted_runs(losses=("ce", "gce"), places=(DIGITS,)))
    assert check_claims({PROTOCOL: samples}).empty
    assert claims_grid(check_claims({PROTOCOL: samples})) is None


def test_every_claim_is_about_runs_that_the_studies_have():
    """Names are checked here, because a claim with a name that is wrong would be left out."""
    variants = {loss.name for family in ablation.families().values() for loss in family}
    known = {
        PROTOCOL: lambda c: c.loss in (LOSSES if c.place == TAIL else GENERAL),
        ABLATION: lambda c: (
            c.loss in variants and c.place.regime in ablation.CELLS[c.place.dataset]
        ),
        PROBES: lambda c: c.loss in GENERAL and c.metric in {**NATURAL, **ATTACKS},
    }
    for place in EVERYWHERE:
        assert place.regime in map(str, sources.load(place.dataset).regimes)
    for claim in CLAIMS:
        columns = [part.column for contrast in claim.contrasts for part in contrast.parts]
        assert columns and all(known[claim.source](column) for column in columns), claim.text
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)


def test_runs_as_published_reproduce_what_the_paper_says_and_others_reverse_it():
    """The differences of the published tables, planted, and then with the opposite sign."""
    published = {
        **{(None, loss, "accuracy"): 0.0 for loss in CANDIDATES},
        **{(PAIRS, loss, "accuracy"): 0.035 for loss in CANDIDATES},
        **{(DIGITS, loss, "accuracy"): 0.006 for loss in CANDIDATES},
        **{(DIGITS, loss, "accuracy"): 0.02 for loss in ROBUST},
        **{(DIGITS, loss, metric): -0.4 for loss in ROBUST for metric in ("nll", "brier")},
    }
    for sign, label in ((1, "reproduced"), (-1, "reversed")):
        shifts = {key: sign * value for key, value in published.items()}
        checked = check_claims({PROTOCOL: Samples(planted_runs(shifts))}).set_index("claim")
        labels = checked[checked["where"] == "tab:digits-noise"]["label"]
        assert len(labels) == 7 and set(labels) == {label}
        assert checked.loc[CLAIMS[2].text, "label"] == label
        assert checked.loc[CLAIMS[3].text, "label"] == label


def test_the_table_has_every_claim_with_both_numbers():
    checked = check_claims({PROTOCOL: Samples(planted_runs())})
    grid = claims_grid(checked)
    assert len(grid.rows) == sum(claim.source == PROTOCOL for claim in paper.CLAIMS)
    assert all(len(row) == len(grid.header) for row in grid.rows)
    assert CLEAN[0].dataset in "".join(row[4] for row in grid.rows)
