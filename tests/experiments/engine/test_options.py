"""The study that a command line asks for: names, regimes and seeds."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import answer, longtail
from experiments.engine.controls import train_longer
from experiments.engine.identity import identify
from experiments.engine.options import Options, make_study, parse_seeds
from experiments.shell.errors import UsageError
from pgeom.data import sources
from pgeom.losses.catalogue import GENERAL
from pgeom.training.settings import PROTOCOL, Rule, Training, fit_to_size


def test_the_protocol_is_the_default():
    study = make_study("noise", Options(), "digits")
    assert study.seeds == (0, 1, 2, 3, 4) and study.runs == 4 * 5 * 13
    assert study.losses == tuple(GENERAL.values())
    assert study.model.width == 96 and study.training == Training()
    training = study.training
    assert (training.epochs, training.batch_size, training.learning_rate) == (45, 512, 1e-3)
    assert training.stopping == Rule(12, 8)
    assert training.optimiser.weight_decay == 1e-4 and training.optimiser.clip == 5


def test_any_regime_on_any_dataset_and_in_the_order_of_the_dataset():
    asked = ("long-tail-5", "symmetric-40", "clean", "clean")
    study = make_study("noise", Options(), "breast-cancer", regimes=asked)
    assert [str(regime) for regime in study.regimes] == ["clean", "symmetric-40", "long-tail-5"]


BAD = {
    "asymetric-40": "unknown regime 'asymetric-40'; did you mean 'asymmetric-40'",
    "symmetric-140": "the level of symmetric must be in 1 … 100, got 140",
    "long-tail-30000": "ratio must be in",
}


@pytest.mark.parametrize("regime", BAD)
def test_a_regime_that_is_none_is_refused(regime):
    with pytest.raises(UsageError, match="--regimes: ") as error:
        make_study("noise", Options(), "digits", regimes=(regime,))
    assert BAD[regime] in str(error.value)


def test_an_unknown_model_is_refused():
    with pytest.raises(UsageError, match="unknown model 'mpl'; did you mean 'mlp'"):
        make_study("noise", Options(model="mpl"), "digits")


@pytest.mark.parametrize(
    ("words", "seeds"),
    [(("5",), (0, 1, 2, 3, 4)), (("0", "3"), (0, 3)), (("7,",), (7,)), (("2,2,0",), (2, 0))],
)
def test_seeds(words, seeds):
    assert parse_seeds(words) == seeds


def test_the_largest_seed():
    assert parse_seeds((f"{2**32 - 1},",)) == (2**32 - 1,)
    with pytest.raises(
        UsageError, match=r"^seeds must be at most 4294967295, got '1099511627776,'$"
    ):
        parse_seeds(("1099511627776,",))


def test_more_seeds_than_can_be_meant():
    hint = r"must be at most 100000 in number, got '1000000000'; the seed itself is '1000000000,'$"
    with pytest.raises(UsageError, match=hint):
        parse_seeds(("1000000000",))


@pytest.mark.parametrize("words", [("0",), ("-2",), (), ("a",), ("0", "-1"), (",",)])
def test_bad_seeds(words):
    with pytest.raises(UsageError, match="seeds must be"):
        parse_seeds(words)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The path of 400 examples of two classes, of which 240 are for training."""
    path = tmp_path_factory.mktemp("own") / "digits.npz"  # named like a dataset of the paper
    features = np.random.default_rng(0).normal(size=(400, 2))
    np.savez(path, X=features, y=np.arange(400) % 2)
    return str(path)


@pytest.mark.parametrize("name", sources.PAPER)
def test_the_paper_s_datasets_have_its_protocol(name):
    study = make_study("noise", Options(), name)
    assert study.training == PROTOCOL and not study.notes
    longer = make_study("noise", Options(epochs=90), name)
    assert longer.training == replace(PROTOCOL, epochs=90) and not longer.notes


def test_other_data_is_trained_by_its_size(table):
    study = make_study("noise", Options(), table)
    assert study.training == fit_to_size(240) != PROTOCOL
    (note,) = study.notes
    assert note == (
        "240 training examples: batches of 64, at most 1000 epochs of 4 steps, stopped after 250 "
        "without a better one (to change it: --epochs, --batch-size)"
    )
    assert make_study("noise", Options(), "wine").training == fit_to_size(106)


def test_what_is_given_wins(table):
    given = make_study("noise", Options(epochs=7, batch_size=100), table)
    assert (given.training.epochs, given.training.batch_size) == (7, 100) and not given.notes
    epochs = make_study("noise", Options(epochs=7, learning_rate=0.1, stop_on="none"), table)
    assert (epochs.training.epochs, epochs.training.batch_size) == (7, 64)
    assert epochs.training.learning_rate == 0.1 and epochs.training.stop_on == "none"
    assert epochs.notes == (
        "240 training examples: batches of 64, at most 7 epochs of 4 steps "
        "(to change it: --batch-size)",
    )


def test_what_was_chosen_is_part_of_the_identity_of_a_run(table):
    chosen = make_study("noise", Options(seeds=("1",)), table, losses=("ce",))
    sizes = {"epochs": chosen.training.epochs, "batch_size": chosen.training.batch_size}
    given = make_study("noise", Options(seeds=("1",), **sizes), table, losses=("ce",))
    other = make_study("noise", Options(seeds=("1",), epochs=99), table, losses=("ce",))
    runs = [identify(study).runs(study.cells[0]) for study in (chosen, given, other)]
    assert runs[0] == runs[1] != runs[2]


def test_a_study_is_trained_by_its_smallest_regime(table):
    asked = {"regimes": ("clean", "long-tail-10")}
    assert make_study("noise", Options(), table, **asked).training == fit_to_size(132)
    for study in longtail.make_studies(Options(), ("ce",), table, "long-tail-10"):
        assert replace(study.training, stopping=fit_to_size(132).stopping) == fit_to_size(132)
        assert "132 training examples" in study.notes[0]


def test_the_answer_keeps_the_protocol_of_own_data_in_one_folder(table, tmp_path):
    plan = answer.make_plan(Options(seeds=("2",)), (), 1, table, ("clean", "long-tail-10"))
    assert {plan.folder(study, tmp_path) for study in plan.protocol} == {tmp_path}


def test_longer_training_is_more_patient_than_what_was_chosen(table):
    study = make_study("noise", Options(), table)
    (longer,) = train_longer(study)
    assert longer.training.stopping.patience == 5 * study.training.stopping.patience
