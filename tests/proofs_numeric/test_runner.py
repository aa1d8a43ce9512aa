"""Which claims are planned for which numbers of classes."""

import pytest

from proofs_numeric import configurations, runner


def planned(*classes, only=()):
    return {(job.name, job.K): job.datasets for job in runner.plan_jobs(only, classes)}


@pytest.mark.parametrize("K", (2, 6, 7))
def test_a_claim_is_checked_in_full_for_the_classes_that_are_given(K):
    assert planned(K) == {(name, K): False for name in runner.NAMES}


def test_by_default_capm_is_checked_for_every_dataset():
    jobs = planned()
    assert all(datasets == (K not in runner.CLASSES) for (_, K), datasets in jobs.items())
    for K in configurations.dataset_classes().values():
        assert {*runner.DATASETS} <= {name for name, classes in jobs if classes == K}


def test_a_dataset_with_other_classes_brings_its_own_jobs(monkeypatch):
    monkeypatch.setattr(configurations, "dataset_classes", lambda: {"one": 5, "other": 3})
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
