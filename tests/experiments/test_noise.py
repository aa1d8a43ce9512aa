"""`experiments.noise`: what it writes, that it resumes, and what it says to bad input."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from experiments import noise
from experiments.engine import training
from experiments.engine.store import Store
from experiments.shell import command_line
from pgeom.evaluation import metrics
from tests.experiments.conftest import LOSSES, ONE, THREE, TINY

FIELDS = {
    *("dataset", "regime", "loss", "seed", "label", "identity", "made_from", "cell"),
    *("accuracy", "balanced_accuracy", "nll", "brier", "ece", "classwise_ece", "smooth_ece"),
    *("temperature", "calibrated_nll", "plain_calibrated_nll", "last_nll", "last_calibrated_nll"),
    *("best_epoch", "stopped_epoch", "diverged_epoch", "noise_transition", "versions", "device"),
}


def lines(folder):
    return list(Store(folder).records.values())


def contents(folder):
    files = [path for path in folder.rglob("*") if path.suffix in (".md", ".json")]
    written = {path.relative_to(folder): path.read_bytes() for path in sorted(files)}
    return written, Store(folder).records, Store(folder).descriptions


def test_one_record_per_run_with_every_field(finished):
    records = lines(finished)
    assert len(records) == len({record["identity"] for record in records}) == 2 * 3 * 3
    assert all(set(record) >= FIELDS for record in records)
    described = Store(finished).descriptions
    for part in ("dataset", "model", "training", "loss"):
        assert {record["made_from"][part] for record in records} == set(described[part])
    assert described["training"][records[0]["made_from"]["training"]]["epochs"] == 3


def test_records_are_the_metrics_of_the_stored_logits(finished):
    record = next(r for r in lines(finished) if r["loss"] == "gce" and r["seed"] == 1)
    arrays = Store(finished).logits(record["cell"])
    logits, labels = arrays[record["identity"]], arrays["labels"]
    assert record["nll"] == pytest.approx(float(metrics.nll(logits, labels)), rel=1e-5)
    assert record["accuracy"] == pytest.approx(np.mean(logits.argmax(1) == labels), abs=1e-6)


def test_tables_and_figures_are_written(finished):
    names = {path.name for path in finished.iterdir()}
    assert {"tables-breast-cancer.md", "noise-accuracy-breast-cancer.png"} <= names
    assert "reliability-breast-cancer-symmetric-40.png" in names
    page = (finished / "tables-breast-cancer.md").read_text()
    assert "3 pairs is 0.25, Holm-corrected 0.5: the comparison is descriptive" in page
    assert page.count("| GCE |") == 4 and "**" in page


def test_json_prints_the_table_and_nothing_else(finished, capsys):
    noise.main(**TINY, losses=LOSSES, out=finished, common=replace(THREE, json=True))
    rows = json.loads(capsys.readouterr().out)
    assert [(row["regime"], row["loss"]) for row in rows[:2]] == [("clean", "ce"), ("clean", "gce")]
    ours = [r["nll"] for r in lines(finished) if r["regime"] == "clean" and r["loss"] == "ce"]
    assert rows[0]["nll_mean"] == pytest.approx(np.mean(ours))
    assert rows[0]["nll_sd"] == pytest.approx(np.std(ours, ddof=1))


def test_a_rerun_trains_nothing(finished, monkeypatch, capsys):
    def train(*_):
        raise AssertionError("a finished run was trained again")

    monkeypatch.setattr(training, "train", train)
    before = contents(finished)
    noise.main(**TINY, losses=LOSSES, out=finished, common=THREE)
    assert "0 runs trained, 18 reused" in capsys.readouterr().out.replace("\n", " ")
    assert contents(finished) == before


def test_an_interrupted_job_resumes_to_the_same_records(finished, tmp_path, monkeypatch):
    finish, written = Store.add, []

    def interrupted(self, member, records, arrays):
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(member)
        finish(self, member, records, arrays)

    monkeypatch.setattr(Store, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        noise.main(**TINY, losses=LOSSES, out=tmp_path, common=THREE)
    assert len(lines(tmp_path)) == 9
    monkeypatch.setattr(Store, "add", finish)
    noise.main(**TINY, losses=LOSSES, out=tmp_path, common=THREE)
    assert contents(tmp_path) == contents(finished)


def test_a_further_loss_trains_that_loss_alone(tmp_path, capsys):
    settings = {**TINY, "regimes": ("clean",), "out": tmp_path, "common": ONE}
    noise.main(**settings, losses=("ce",))
    first = lines(tmp_path)
    noise.main(**settings, losses=("ce", "gce"))
    assert "1 run trained, 1 reused" in " ".join(capsys.readouterr().out.split())
    assert lines(tmp_path)[:1] == first
    assert [record["loss"] for record in lines(tmp_path)] == ["ce", "gce"]
    more = {**settings, "common": replace(ONE, seeds=("0", "1"))}
    noise.main(**more, losses=("ce", "hpg"))
    assert "3 runs trained, 1 reused" in " ".join(capsys.readouterr().out.split())
    assert len({record["identity"] for record in lines(tmp_path)}) == len(lines(tmp_path)) == 5


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_names_the_study_and_is_for_terminals(terminal, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
    noise.main(**{**TINY, "regimes": ("clean",)}, losses=("ce",), out=tmp_path, common=ONE)
    printed = capsys.readouterr().out
    assert ("noise, breast-cancer" in printed) == ("1 of 1 runs" in printed) == terminal
    assert ("━" in printed) == terminal


BAD = {
    "regime": (["--regimes", "symetric-20"], "did you mean 'symmetric-20'?"),
    "loss": (["--losses", "ce", "hgp"], "unknown loss 'hgp'; did you mean 'hpg'?"),
    "seeds": (["--seeds", "0"], "--seeds must be at least 1, got '0'"),
    "out": (["--out", __file__], "is a file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_two(case, capsys, monkeypatch):
    arguments, message = BAD[case]
    monkeypatch.setattr(sys, "argv", ["noise", *arguments])
    with pytest.raises(SystemExit) as stop:
        command_line.run(noise.main, "experiments.noise")
    error = capsys.readouterr().err
    assert stop.value.code == 2
    assert message in error and error.count("\n") == 1


def write_people(folder):
    """Mixed types, labels of texts, and missing values of either kind."""
    rng = np.random.default_rng(0)
    ages = ["" if k % 9 == 0 else f"{rng.normal():.5}" for k in range(60)]
    rows = [
        f"{age},{('Rome', 'Oslo', '')[k % 3]},{('nurse', 'clerk')[k % 2]}"
        for k, age in enumerate(ages)
    ]
    (folder / "people.csv").write_text("age,city,job\n" + "\n".join(rows) + "\n")


def test_a_file_of_mixed_types_is_trained_and_said_how(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path)
    options = ["--target", "job", "--impute", "--losses", "ce", "--seeds", "1", "--epochs", "1"]
    options += ["--regimes", "symmetric-40", "--validation", "noisy", "--out", "out"]
    monkeypatch.setattr(sys, "argv", ["noise", "--dataset", "people.csv", *options])
    with pytest.raises(SystemExit) as stop:
        command_line.run(noise.main, "experiments.noise")
    assert not stop.value.code
    said = capsys.readouterr().out
    assert said.count("people.csv: one-hot encoded city (3 values)\n") == 1
    assert "people.csv: 7 missing numbers (age) replaced by the mean of the training part\n" in said
    (record,) = lines(tmp_path / "out")
    assert record["dataset"] == "people" and record["made_from"]["validation"] == "noisy"
    assert record["realised_validation_noise_rate"] > 0
    (described,) = Store(tmp_path / "out").descriptions["dataset"].values()
    assert described["class_names"] == ["clerk", "nurse"]
