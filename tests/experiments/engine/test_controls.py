"""What each control changes of a study, and what it leaves as it is."""

from dataclasses import replace

import pytest

from experiments.engine import controls
from experiments.engine.options import Options, make_study
from pgeom.training.settings import PROTOCOL


@pytest.fixture(scope="module")
def study():
    return make_study("protocol", Options(seeds=("2",)), "digits", losses=("ce", "hpg"))


@pytest.mark.parametrize("control", controls.CONTROLS, ids=lambda control: control.name)
def test_losses_seeds_data_and_model_stay(control, study):
    for varied in control.vary(study):
        assert varied.losses == study.losses and varied.seeds == study.seeds
        assert varied.dataset is study.dataset and varied.model == study.model
        assert varied.name != study.name
        assert varied.training != study.training or varied.noisy_validation or "rate" in varied.name


def test_the_grid_of_rates_holds_the_paper_s_and_goes_beyond_its_ends(study):
    rates = [one.training.learning_rate for one in controls.vary_rates(study)]
    assert {3e-4, 1e-3, 3e-3} < set(rates) and max(rates) > 3e-3
    assert all(
        replace(one.training, learning_rate=1e-3) == PROTOCOL for one in controls.vary_rates(study)
    )


def test_long_training_has_epochs_and_patience(study):
    (longer,) = controls.train_longer(study)
    assert longer.training.epochs == 405 and longer.training.stopping.patience == 40


def test_nothing_stops(study):
    (free,) = controls.never_stop(study)
    assert free.training.stopping.patience > free.training.epochs == PROTOCOL.epochs


def test_calibrated_stopping_changes_what_is_best(study):
    (stopped,) = controls.stop_on_calibrated(study)
    assert replace(stopped.training, stop_on="nll") == PROTOCOL


def test_noisy_validation_needs_noise(study):
    (noisy,) = controls.corrupt_validation(study)
    assert noisy.noisy_validation and [str(r) for r in noisy.regimes] == [
        "symmetric-20",
        "symmetric-40",
        "pair-flip-40",
    ]
    assert controls.corrupt_validation(replace(study, regimes=study.regimes[:1])) == ()
