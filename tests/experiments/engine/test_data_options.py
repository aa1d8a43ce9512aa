"""Datasets, class maps and validation labels that a command line asks for."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.engine.cells import prepare
from experiments.engine.identity import describe, identify
from experiments.engine.options import Options, make_study, parse_noise_map
from experiments.engine.study import Cell
from experiments.shell.errors import UsageError
from pgeom.data.regimes import Regime

X = np.random.default_rng(0).normal(size=(60, 4))
ANIMALS = np.array(["cat", "dog", "a:b"])[np.arange(60) % 3]
NOISY = Options(validation="noisy")


@pytest.fixture
def animals(tmp_path):
    np.savez(tmp_path / "animals.npz", X=X, y=ANIMALS)
    return str(tmp_path / "animals.npz")


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (["cat:dog"], (0, 2, 2)),
        (["cat:dog", "dog:cat"], (0, 2, 1)),
        (["a:b:cat", "cat:a:b"], (1, 0, 2)),
        ([], (0, 1, 2)),
    ],
)
def test_a_map_is_read_by_the_names_of_classes(pairs, expected):
    assert parse_noise_map(pairs, ("a:b", "cat", "dog")) == expected


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (["cat"], "--noise-map: must be pairs FROM:TO of classes, got 'cat'"),
        (["cat:dgo"], "unknown class in --noise-map: 'dgo'; did you mean 'dog'?"),
        (["act:dog"], "unknown class in --noise-map: 'act'; did you mean 'cat'?"),
        (["cat:cat"], "--noise-map: must change the class, got 'cat:cat'"),
        (["cat:dog", "cat:a:b"], "--noise-map: 'cat' must have one target, got two"),
    ],
)
def test_a_map_that_is_none_is_refused(pairs, said):
    with pytest.raises(UsageError) as error:
        parse_noise_map(pairs, ("a:b", "cat", "dog"))
    assert str(error.value).startswith(said)


ASYMMETRIC = Cell(Regime("asymmetric", 40), 0)
SYMMETRIC = Cell(Regime("symmetric", 40), 0)
CLEAN = Cell(Regime("clean"), 0)


def test_a_map_is_part_of_the_identity_of_asymmetric_runs_alone(animals):
    options = Options(noise_map=("cat:dog",))
    regimes = ("clean", "symmetric-40", "asymmetric-40")
    one = make_study("noise", options, animals, regimes=regimes)
    two = make_study("noise", replace(options, noise_map=("dog:cat",)), animals, regimes=regimes)
    first, second = identify(one), identify(two)
    assert first.runs(ASYMMETRIC) != second.runs(ASYMMETRIC)
    for cell in (CLEAN, SYMMETRIC):
        assert first.runs(cell) == second.runs(cell)
    assert first.cell_parts(ASYMMETRIC)["noise_map"] == "1:2"
    noise = prepare(one, ASYMMETRIC).noise
    assert noise.transition[1, 2] > 0.2 and noise.transition[0, 0] == noise.transition[2, 2] == 1


def test_asymmetric_noise_without_a_map_is_refused(animals):
    with pytest.raises(UsageError, match="--regimes: asymmetric-40 needs a class map"):
        make_study("noise", Options(), animals, regimes=("asymmetric-40",))
    own = make_study("noise", Options(), "digits", regimes=("asymmetric-40",))
    assert identify(own).cell_parts(ASYMMETRIC)["noise_map"] == "2:7 3:8 5:6 6:5 7:1"


@pytest.mark.parametrize("regimes", [(), ("clean", "symmetric-40")])
def test_a_map_that_nothing_reads_is_refused(animals, regimes):
    with pytest.raises(UsageError, match="--noise-map is for asymmetric noise"):
        make_study("noise", Options(noise_map=("cat:dog",)), animals, regimes=regimes)


def test_noisy_validation_is_another_run_wherever_there_is_noise():
    clean, noisy = (make_study("noise", options, "digits") for options in (Options(), NOISY))
    first, second = identify(clean), identify(noisy)
    assert first.runs(SYMMETRIC) != second.runs(SYMMETRIC)
    assert first.runs(CLEAN) == second.runs(CLEAN), "the same numbers"
    assert second.cell_parts(SYMMETRIC)["validation"] == "noisy"
    assert "validation" not in first.cell_parts(SYMMETRIC)


def test_by_default_the_parts_of_a_run_are_those_of_the_study():
    plain = identify(make_study("noise", Options(), "digits"))
    for cell in (CLEAN, SYMMETRIC):
        assert plain.cell_parts(cell) == plain.parts


@pytest.mark.parametrize("regime", ["symmetric-40", "asymmetric-40", "instance-40", "clean"])
def test_noisy_validation_changes_validation_labels_and_nothing_else(regime):
    cell = Cell(Regime.parse(regime), 0)
    before, after = (
        prepare(make_study("noise", options, "digits"), cell) for options in (Options(), NOISY)
    )
    np.testing.assert_array_equal(before.data.arrays.y, after.data.arrays.y)
    np.testing.assert_array_equal(before.data.initial, after.data.initial)
    np.testing.assert_array_equal(before.split.test.labels, after.split.test.labels)
    changed = np.mean(before.split.validation.labels != after.split.validation.labels)
    assert changed == after.validation_noise and before.validation_noise == 0
    assert (changed > 0.1) == (regime != "clean")
    np.testing.assert_array_equal(after.data.arrays.validation_y, after.split.validation.labels)


def test_the_manifest_names_the_classes(animals):
    study = make_study("noise", Options(), animals)
    (described,) = describe(study)["dataset"].values()
    assert described["class_names"] == ["a:b", "cat", "dog"] and described["classes"] == 3
