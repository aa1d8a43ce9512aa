"""Every claim holds, its sharper bounds are bounds, and no false claim in its place would hold.

One file, because all of it shares the programs of a claim: each is a compilation.
"""

import re

import numpy as np
import pytest

from proofs_numeric import check_table, penalised_minimum, runner
from proofs_numeric.failures import FLOAT32
from tests.proofs_numeric.mutations import MUTATIONS

# where the regression cases and attained constants of a claim are; each K costs a compilation
CLASSES = dict.fromkeys(runner.CLAIMS, 3) | {"gradients": 2, "displacement": 2, "contamination": 2}
# whose checks compare a bound of the paper with a sharper one
ONE_BOUND = ("margin", "margin_steps", "improper", "graph_weights", "numerics", "canonical_links")
TWO_BOUNDS = [claim for claim in CLASSES if claim not in ONE_BOUND]


@pytest.mark.parametrize("claim", CLASSES)
def test_claims_hold(claim, checked):
    assert not [check for check in checked(claim, CLASSES[claim]) if not check.holds]


@pytest.mark.parametrize("claim", TWO_BOUNDS)
def test_sharp_bounds_are_sharper_and_valid(claim, checked):
    both = [
        check
        for check in checked(claim, CLASSES[claim])
        if check.paper_bound is not None and check.sharp_bound is not None
    ]
    assert both
    assert all(check.ratio_to_sharp <= 1 + 1e-9 for check in both)
    assert all(check.ratio_to_paper <= check.ratio_to_sharp * (1 + 1e-9) for check in both)


@pytest.mark.parametrize("claim", TWO_BOUNDS)
def test_medians_are_reported_for_every_claim_with_two_bounds(claim, checked):
    medians = check_table.median_sharpness({claim: list(checked(claim, CLASSES[claim]))})
    assert medians
    assert all(name.startswith(f"{claim}: ") for name in medians)
    if claim == "displacement":
        assert medians["displacement: ‖p*−η‖ ≤ √2β/m"] < 0.5


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_no_mutation_survives(mutation, checked):
    claim, K, changed = MUTATIONS[mutation]
    assert all(check.holds for check in checked(claim, K)), "the true claim must hold"
    broken = [check for check in runner.CLAIMS[claim].checks(K, **changed) if not check.holds]
    assert broken, f"{mutation} went unnoticed"


def test_every_claim_is_mutated():
    assert {claim for claim, _, _ in MUTATIONS.values()} == set(runner.CLAIMS)


@pytest.mark.parametrize("claim", ["margin", "improper"])
def test_cheap_claims_hold_for_a_hundred_classes(claim, checked):
    assert all(check.holds for check in checked(claim, 100))


def only(checks, part):
    (match,) = [check for check in checks if part in check.claim]
    return match


def test_the_global_minimum_is_found_and_the_local_one_reported(checked):
    check = only(checked("displacement", 2), "global minimum is at x = 1")
    assert "(0.75, 0.25)→0.78465 (f=0.1487823)" in check.how
    assert "(1, 0)→1.00000 (f=0.1483034)" in check.how


def test_the_supremum_off_the_vertices_is_found(checked):
    assert only(checked("loss_range", 3), "1.5 vertex maximum").observed >= 1.5


def test_the_counterexample(checked):
    check = only(checked("improper", 2), "−0.308687")
    assert check.holds
    assert check.observed <= 1e-6


def test_the_extremal_family_uses_one_minus_two_e(checked):
    check = only(checked("displacement", 2), "√2β/m is attained")
    np.testing.assert_allclose(check.ratio_to_paper, 1 - 2e-3, rtol=1e-6)


def test_starts_are_the_target_the_centre_every_vertex_and_draws():
    starts = penalised_minimum.all_starts(np.array([0.5, 0.3, 0.2]))
    assert starts.shape == (13, 3)
    np.testing.assert_allclose(starts.sum(axis=1), 1)
    np.testing.assert_array_equal(starts[2:5], np.eye(3))


@pytest.mark.parametrize("claim", CLASSES)
def test_every_label_is_the_papers_or_says_in_words_what_goes_beyond(claim, checked):
    stated = re.compile(r"(Lemma|Props?\.|Eq\.|Fig\.|App\.) \(.+\)|beyond the paper: \w.+ \w.+")
    labels = {check.paper_label for check in checked(claim, CLASSES[claim])} - {FLOAT32}
    assert [label for label in labels if not stated.fullmatch(label)] == []
