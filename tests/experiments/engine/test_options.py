"""The study that a command line asks for."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import answer, longtail
from experiments.engine import controls, user_files
from experiments.engine.cells import prepare
from experiments.engine.identity import describe, identify
from experiments.engine.options import Options, make_study, parse_noise_map, parse_seeds
from experiments.engine.study import Cell
from experiments.shell.errors import UsageError
from pgeom.data import sources
from pgeom.data.regimes import Regime
from pgeom.losses.catalogue import GENERAL
from pgeom.models.cnn import CNN
from pgeom.models.model import MLP, Linear
from pgeom.training.settings import PROTOCOL, Rule, fit_to_size
from tests.models import modules


def test_the_protocol_is_the_default():
    study = make_study("noise", Options(), "digits")
    assert study.seeds == (0, 1, 2, 3, 4) and study.runs == 4 * 5 * len(GENERAL)
    assert study.losses == tuple(GENERAL.values()) and study.model.width == 96
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epochs": 0}, "--epochs must be at least 1, got 0"),
        ({"batch_size": 0}, "--batch-size must be at least 1, got 0"),
        ({"learning_rate": float("inf")}, "--learning-rate must be positive, got inf"),
        ({"memory": -1.0}, "--memory must be positive, got -1"),
    ],
)
def test_numbers_that_no_command_can_work_with(options, said):
    with pytest.raises(UsageError, match=said):
        Options(**options).check()


@pytest.mark.parametrize(
    ("words", "seeds"),
    [
        (("5",), (0, 1, 2, 3, 4)),
        (("0", "3"), (0, 3)),
        (("7,",), (7,)),
        (("2,2,0",), (2, 0)),
        ((f"{2**32 - 1},",), (2**32 - 1,)),
    ],
)
def test_seeds(words, seeds):
    assert parse_seeds(words) == seeds


@pytest.mark.parametrize(
    "words",
    [("0",), ("-2",), (), ("a",), ("0", "-1"), (",",), (f"{2**32},",), ("1000000000",)],
)
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
    assert study.notes == (
        "240 training examples: batches of 64, at most 1000 epochs of 4 steps, stopped after 250 "
        "without a better one (to change it: --epochs, --batch-size)",
    )
    assert make_study("noise", Options(), "wine").training == fit_to_size(106)


def test_what_is_given_wins(table):
    given = make_study("noise", Options(epochs=7, batch_size=100), table)
    assert (given.training.epochs, given.training.batch_size) == (7, 100) and not given.notes
    epochs = make_study("noise", Options(epochs=7, learning_rate=0.1, stop_on="none"), table)
    assert (epochs.training.epochs, epochs.training.batch_size) == (7, 64)
    assert epochs.training.learning_rate == 0.1 and epochs.training.stop_on == "none"
    assert epochs.notes[0].endswith("at most 7 epochs of 4 steps (to change it: --batch-size)")


def test_a_study_is_trained_by_its_smallest_regime(table):
    asked = {"regimes": ("clean", "long-tail-10")}
    assert make_study("noise", Options(), table, **asked).training == fit_to_size(132)
    for study in longtail.make_studies(Options(), ("ce",), table, "long-tail-10"):
        assert replace(study.training, stopping=fit_to_size(132).stopping) == fit_to_size(132)
        assert "132 training examples" in study.notes[0]


def test_the_answer_keeps_the_protocol_of_own_data_in_one_folder(table, tmp_path):
    plan = answer.make_plan(Options(seeds=("2",)), (), 1, table, ("clean", "long-tail-10"))
    assert {plan.folder(study, tmp_path) for study in plan.protocol} == {tmp_path}


def test_what_each_control_changes(table):
    study = make_study("protocol", Options(seeds=("2",)), "digits", losses=("ce",))
    for varied in (one for control in controls.CONTROLS for one in control.vary(study)):
        assert (varied.losses, varied.seeds) == (study.losses, study.seeds)
        assert (varied.dataset, varied.model) == (study.dataset, study.model)
        assert varied.name != study.name
    rates = controls.vary_rates(study)
    assert {3e-4, 1e-3, 3e-3} < {one.training.learning_rate for one in rates}
    assert all(replace(one.training, learning_rate=1e-3) == PROTOCOL for one in rates)
    (longer,), (free,) = controls.train_longer(study), controls.never_stop(study)
    assert longer.training.epochs == 405 and longer.training.stopping.patience == 40
    assert free.training.stopping.patience > free.training.epochs == PROTOCOL.epochs
    (stopped,), (noisy,) = controls.stop_on_calibrated(study), controls.corrupt_validation(study)
    assert replace(stopped.training, stop_on="nll") == PROTOCOL and noisy.noisy_validation
    assert [str(one) for one in noisy.regimes] == ["symmetric-20", "symmetric-40", "pair-flip-40"]
    assert controls.corrupt_validation(replace(study, regimes=study.regimes[:1])) == ()
    own = make_study("noise", Options(), table)
    (longer,) = controls.train_longer(own)
    assert longer.training.stopping.patience == 5 * own.training.stopping.patience


@pytest.fixture
def animals(tmp_path):
    features = np.random.default_rng(0).normal(size=(60, 4))
    labels = np.array(["cat", "dog", "eel"])[np.arange(60) % 3]
    np.savez(tmp_path / "animals.npz", X=features, y=labels)
    return str(tmp_path / "animals.npz")


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [(["cat:dog"], (1, 1, 2)), (["cat:dog", "dog:cat"], (1, 0, 2)), ([], (0, 1, 2))],
)
def test_a_map_is_read_by_the_names_of_classes(pairs, expected):
    assert parse_noise_map(pairs, ("cat", "dog", "eel")) == expected


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (["cat"], "--noise-map must be pairs FROM:TO of classes, each with one target, got 'cat'"),
        (["cat:dgo"], "unknown class in --noise-map: 'dgo'; did you mean 'dog'?"),
        (["cat:cat"], "--noise-map must be pairs"),
        (["cat:dog", "cat:eel"], "--noise-map must be pairs"),
    ],
)
def test_a_map_that_is_none_is_refused(pairs, said):
    with pytest.raises(UsageError) as error:
        parse_noise_map(pairs, ("cat", "dog", "eel"))
    assert str(error.value).startswith(said)


ASYMMETRIC, SYMMETRIC = Cell(Regime("asymmetric", 40), 0), Cell(Regime("symmetric", 40), 0)
CLEAN = Cell(Regime("clean"), 0)


def test_a_map_is_part_of_the_identity_of_asymmetric_runs_alone(animals):
    regimes = ("clean", "symmetric-40", "asymmetric-40")
    studies = [
        make_study("noise", Options(noise_map=(pair,)), animals, regimes=regimes)
        for pair in ("cat:dog", "dog:cat")
    ]
    first, second = map(identify, studies)
    assert first.runs(ASYMMETRIC) != second.runs(ASYMMETRIC)
    for cell in (CLEAN, SYMMETRIC):
        assert first.runs(cell) == second.runs(cell)
    assert first.cell_parts(ASYMMETRIC)["noise_map"] == "0:1"
    noise = prepare(studies[0], ASYMMETRIC).noise
    assert noise.transition[0, 1] > 0.2 and noise.transition[1, 1] == noise.transition[2, 2] == 1


def test_asymmetric_noise_without_a_map_is_refused(animals):
    with pytest.raises(UsageError, match="--regimes: asymmetric-40 needs a class map"):
        make_study("noise", Options(), animals, regimes=("asymmetric-40",))
    own = make_study("noise", Options(), "digits", regimes=("asymmetric-40",))
    assert identify(own).cell_parts(ASYMMETRIC)["noise_map"] == "2:7 3:8 5:6 6:5 7:1"


@pytest.mark.parametrize("regimes", [(), ("clean", "symmetric-40")])
def test_a_map_that_nothing_reads_is_refused(animals, regimes):
    with pytest.raises(UsageError, match="--noise-map is for asymmetric noise"):
        make_study("noise", Options(noise_map=("cat:dog",)), animals, regimes=regimes)


@pytest.mark.parametrize("regime", ["symmetric-40", "asymmetric-40", "instance-40", "clean"])
def test_noisy_validation_changes_validation_labels_and_nothing_else(regime):
    cell, asked = Cell(Regime.parse(regime), 0), (Options(), Options(validation="noisy"))
    studies = [make_study("noise", options, "digits") for options in asked]
    before, after = (prepare(study, cell) for study in studies)
    np.testing.assert_array_equal(before.data.arrays.y, after.data.arrays.y)
    np.testing.assert_array_equal(before.data.initial, after.data.initial)
    np.testing.assert_array_equal(before.split.test.labels, after.split.test.labels)
    changed = np.mean(before.split.validation.labels != after.split.validation.labels)
    assert changed == after.validation_noise and before.validation_noise == 0
    assert (changed > 0.1) == (regime != "clean")
    np.testing.assert_array_equal(after.data.arrays.validation_y, after.split.validation.labels)
    clean, noisy = map(identify, studies)
    assert (clean.runs(cell) == noisy.runs(cell)) == (regime == "clean")
    assert ("validation" in noisy.cell_parts(cell)) == (regime != "clean")


def test_the_description_names_the_classes(animals):
    (described,) = describe(make_study("noise", Options(), animals))["dataset"].values()
    assert described["class_names"] == ["cat", "dog", "eel"] and described["classes"] == 3


DIGITS, CANCER = sources.load("digits"), sources.load("breast-cancer")


def own(name):
    return f"tests.models.modules:{name}"


def test_models_are_made_for_the_dataset():
    assert user_files.make_model("mlp", DIGITS) == MLP(64, 10)
    assert user_files.make_model("linear", CANCER) == Linear(30, 2)
    assert user_files.make_model("cnn", DIGITS) == CNN((8, 8), 10)
    study = make_study("test", Options(model="linear"), "digits", regimes=("clean",))
    assert study.model == Linear(64, 10)


def test_a_module_of_ones_own_takes_images_if_there_are_any():
    model = user_files.make_model(own("Net"), DIGITS)
    assert (model.module, model.input_shape) == (modules.Net(10), (8, 8))
    assert user_files.make_model(own("Net"), CANCER).input_shape == (30,)
    assert user_files.make_model(own("Net"), CANCER) == user_files.make_model(own("Net"), CANCER)
    flat = replace(DIGITS, image_shape=None)
    assert user_files.make_model(own("Net"), flat).input_shape == (64,), "no image, but a table"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mpl", "unknown model 'mpl'; did you mean 'mlp'"),
        ("cnn", r"needs images: of a .npz file, an array X\[n, height, width\]$"),
        (own("TwoResults"), r"--model: model TwoResults raised .* must return logits \[n, 2\]"),
        (own("Normalised"), "batch statistics are not supported: "),
        (own("Raising"), "Raising raised RuntimeError: no luck; it is called as module"),
        (own("NeedsMore"), "NeedsMore raised TypeError.*width"),
        (own("function"), "model must be a name, a Flax module or a function, got <function"),
        (own("number"), "must be a flax.linen.Module, got int"),
        ("nowhere.py:Net", "--model: there is no file 'nowhere.py'"),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(name, message):
    with pytest.raises(UsageError, match=message) as caught:
        user_files.make_model(name, CANCER)
    assert "\n" not in str(caught.value)
