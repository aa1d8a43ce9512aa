"""Which claims are planned for which numbers of classes."""

import pytest

from proofs_numeric import experiment_metrics, runner


@pytest.fixture
def planned():
    """`planned(*classes, only=())`: what is checked, by claim and number of classes."""

    def plan(*classes, only=()):
        return {(job.claim, job.K): job.checks for job in runner.plan_jobs(only, classes)}

    return plan


def test_a_claim_is_checked_in_full_for_the_classes_that_are_given(planned):
    for K in (2, 6, 7):
        assert planned(K) == {(name, K): claim.checks for name, claim in runner.CLAIMS.items()}


def test_by_default_capm_is_checked_for_every_dataset(planned):
    jobs = planned()
    for (name, K), checks in jobs.items():
        assert checks is getattr(
            runner.CLAIMS[name], "checks" if K in runner.CLASSES else "check_capm"
        )
    for K in experiment_metrics.dataset_classes().values():
        assert {name for name, claim in runner.CLAIMS.items() if claim.check_capm} <= {
            name for name, classes in jobs if classes == K
        }


def test_a_dataset_with_other_classes_brings_its_own_jobs(planned, monkeypatch):
    monkeypatch.setattr(experiment_metrics, "dataset_classes", lambda: {"one": 5, "other": 3})
    assert set(planned(only=("margin", "regret"))) == {
        *(("regret", K) for K in (2, 3, 5, 10)),
        *(("margin", K) for K in (2, 3, 10, 100)),
    }


def test_jobs_are_sorted_and_unique():
    jobs = runner.plan_jobs(("margin", "regret", "margin"), (3, 2, 3))
    assert [job[:2] for job in jobs] == [
        ("regret", 2),
        ("regret", 3),
        ("margin", 2),
        ("margin", 3),
    ]
