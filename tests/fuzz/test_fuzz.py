"""A few random examples of everything; `python -m tests.fuzz` tries many."""

import numpy as np
import pytest

from tests.fuzz import arrays, commands, losses, scores
from tests.fuzz.__main__ import TARGETS, main, run
from tests.fuzz.arrays import Batch
from tests.test_house import sources

SHORT = dict.fromkeys(("losses", "scores", "evaluation"), arrays.FEW) | {"commands": commands.FEW}


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_examples(name):
    target = TARGETS[name]
    tried, error = run(target.check, target.inputs(SHORT[name]), 25, number=0)
    if error is not None:
        raise error
    assert tried >= 25


def test_every_command_is_among_them():
    runs = {path for path, text in sources().items() if "    command_line.run(" in text}
    names = {path.removesuffix(".py").removesuffix("/__main__").replace("/", ".") for path in runs}
    assert names == set(commands.COMMANDS)


def test_flags_are_told_from_options():
    found = commands.command_options(commands.COMMANDS["experiments.noise"])
    assert {"dataset", "regimes", "seeds", "json"} <= set(found)
    assert found["json"] and found["impute"] and not found["seeds"] and not found["out"]


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--dataset", "digits", "--seeds", "2"], 0), (["--dataset", "dgits"], 2), (["--help"], 0)],
)
def test_a_command_is_stopped_before_it_works(words, code):
    assert commands.call(commands.Line("experiments.noise", words))[0] == code


def test_a_traceback_would_be_seen(monkeypatch):
    def broken(dataset: str = "digits") -> None:
        """A command that is broken."""
        raise KeyError(dataset)

    monkeypatch.setitem(commands.COMMANDS, "experiments.noise", broken)
    with pytest.raises(KeyError):
        commands.check(commands.Line("experiments.noise", ["--dataset", "digits"]))


def test_a_negative_score_and_a_nan_would_be_seen(monkeypatch):
    logits = np.zeros((4, 3), np.float32)
    batch = Batch(logits, np.zeros(4, np.int32), np.full((4, 3), 1 / 3, np.float32))
    for wrong in (-1.0, np.nan):
        monkeypatch.setattr(
            losses,
            "_program",
            lambda K, wrong=wrong: (
                lambda *_: ({"brier": np.full(4, wrong, np.float32)}, {}, {}, {"brier": logits})
            ),
        )
        with pytest.raises(AssertionError, match="brier"):
            losses.check(batch)


def test_every_failure_is_shown_with_its_example(monkeypatch, capsys):
    def check(batch):
        assert batch.labels[0] != 1, "the first"
        if batch.labels[0] == 2:
            raise KeyError("the second")

    monkeypatch.setattr(scores, "check", check)
    monkeypatch.setattr(scores, "inputs", lambda: arrays.probabilities(arrays.FEW))
    assert main(["--only", "scores", "--examples", "200"]) == 1
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("the first", "the second", "labels=array([1"))


def test_the_command_counts_and_fails(monkeypatch, capsys):
    monkeypatch.setattr(scores, "check", lambda batch: None)
    assert main(["--only", "scores", "--examples", "30"]) == 0
    assert "30 examples" in capsys.readouterr().out
    monkeypatch.setattr(scores, "check", lambda batch: 1 / 0)
    assert main(["--only", "scores", "--examples", "30"]) == 1
    assert "FAILED" in capsys.readouterr().out
