"""Random examples of everything: a few of each, or thousands with the profile `thorough`."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz import arrays, commands, evaluation, losses, scores
from tests.fuzz.arrays import Batch
from tests.sources import sources

THOROUGH = settings().max_examples > 100
KINDS = arrays.KINDS if THOROUGH else arrays.FEW
EXAMPLES = settings().max_examples if THOROUGH else 25
some = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))


@some
@given(losses.inputs(KINDS))
def test_losses(batch):
    losses.check(batch)


@some
@given(scores.inputs(KINDS))
def test_scores(batch):
    scores.check(batch)


@some
@given(evaluation.inputs(KINDS))
def test_evaluation(drawn):
    evaluation.check(drawn)


@some
@given(commands.inputs() if THOROUGH else commands.inputs(commands.FEW))
def test_command_lines(line):
    commands.check(line)


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
