"""Every command line: whatever its options are, it is accepted, or refused in one line.

A command stops where it would begin to train, check or draw; nothing of that is done here.
"""

import contextlib
import inspect
import io
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import fields
from typing import NamedTuple
from unittest.mock import patch

import jax
from hypothesis import strategies as st

from experiments import (
    ablation,
    answer,
    calibration,
    export,
    known_truth,
    links,
    longtail,
    lr_sensitivity,
    noise,
    replay,
    report,
    robustness,
    runtime,
)
from experiments.engine.options import Options
from experiments.shell import command_line
from proofs_numeric import __main__ as proofs, proof_figures

EXPERIMENTS = (
    ablation,
    answer,
    calibration,
    export,
    known_truth,
    links,
    longtail,
    lr_sensitivity,
    noise,
    replay,
    robustness,
    runtime,
)
COMMANDS = {module.__name__: module.main for module in EXPERIMENTS}
COMMANDS |= {"experiments.report": report.main}
COMMANDS |= {"proofs_numeric": proofs.main, "proofs_numeric.proof_figures": proof_figures.main}
POSITIONAL = {"run"}  # options that are given without their names
WORK = (  # where a command that has accepted its options begins to work
    "experiments.engine.command.Command.train",
    "experiments.engine.command.Command.train_in",
    "experiments.show.theory.proving",
    "proofs_numeric.runner.run",
    "proofs_numeric.user_generator.checks",
    "proofs_numeric.theory_figures.draw",
)
GOOD = {
    "dataset": ["digits", "breast-cancer", "confusion", "long-tail", "wine"],
    "regimes": ["clean", "symmetric-40", "pair-flip-1", "asymmetric-20", "long-tail-3"],
    "regime": ["long-tail-30", "clean", "symmetric-40"],
    "losses": ["ce", "hpg", "ldam", "apms"],
    "seeds": ["3", "0", "7,", "1,2"],
    "epochs": ["1", "45"],
    "model": ["mlp", "linear", "cnn"],
    "devices": ["1", "2"],
    "memory": ["0.5", "4"],
    "validation": ["clean", "noisy"],
    "noise_map": ["0:1", "2:7"],
    "classes": ["2", "3", "10"],
    "sizes": ["200", "1000"],
    "formats": ["png", "tex", "csv"],
    "stop_on": ["nll", "calibrated-nll", "accuracy", "none"],
    "only": ["regret", "margin"],
    "out": ["here", "here/there"],
    "figures": ["here"],
    "records": ["here"],
    "run": ["3f2a", "0"],
    "control_seeds": ["1", "20"],
    "page": ["here.md"],
}
JUNK = ["", " ", "-1", "0", "1", "nan", "inf", "-inf", "1e400", "0x10", "٤", "1_000", "1,2,x"]
JUNK += ["x" * 300, "a b", "-", "--", "=", ":", "a:b", "math:sqrt", "math:pi", "no.py:f", "\udcff"]
JUNK += ["[/bold]", "[red]", "%s", "{}", "ü", "\u2028", "a\nb", "../..", ".", "/dev/null"]
JUNK += ["None", "true", "99999999999999999999", "digits.csv", "clean-3", "symmetric-0"]
FEW = ("experiments.noise", "experiments.answer", "proofs_numeric")  # for a short run
REFUSED, ACCEPTED = command_line.BAD_INPUT, 0


class Working(BaseException):
    """Raised where a command would begin to work."""


class Line(NamedTuple):
    """A command and its words."""

    name: str
    words: list[str]


def command_options(main) -> dict[str, bool]:
    """The options of a command, and which of them are flags, which take no value."""
    own = {
        name: str(value.annotation) for name, value in inspect.signature(main).parameters.items()
    }
    if own.pop("common", None):
        own |= {field.name: str(field.type) for field in fields(Options)}
    return {name: "bool" in kind for name, kind in own.items()}


@st.composite
def inputs(draw, names=tuple(COMMANDS)):
    """A command with options of its own, and words that are good for them or for nothing."""
    name, words = draw(st.sampled_from(names)), []
    known = command_options(COMMANDS[name])
    strange = st.sampled_from(["help", "version", "no_such"])
    usual = st.sampled_from(list(known))
    for option in draw(st.lists(st.one_of(usual, usual, usual, strange), max_size=4)):
        words += [] if option in POSITIONAL else [f"--{option.replace('_', '-')}"]
        if not known.get(option, True):
            words += draw(_values(option))
    stray = (
        draw(st.lists(st.sampled_from(JUNK), max_size=1)) if draw(st.integers(0, 9)) == 9 else []
    )
    return Line(name, [word.replace("\0", "") for word in words + stray])


def _values(option: str):
    """Mostly values that are good for an option, sometimes others, rarely too few or too many."""
    good = st.sampled_from(GOOD.get(option, JUNK))
    either = st.one_of(good, good, st.sampled_from(JUNK), st.text(max_size=5))
    one = st.lists(either, min_size=1, max_size=1)
    return st.one_of(one, one, one, st.lists(either, max_size=3))


def check(line: Line) -> None:
    """See the module."""
    code, out, err = call(line)
    assert code in (ACCEPTED, REFUSED), (code, err)
    if code == REFUSED:
        assert out == "" and err.startswith("error: ") and err.endswith("\n"), (out, err)
        assert len(err.splitlines()) == 1 and err[len("error: ")] not in "; \n", err
    assert "Traceback" not in err, err


def call(line: Line) -> tuple[int, str, str]:
    """The exit code of a command that does not begin to work, and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(patch.dict(os.environ))
        stack.enter_context(patch.object(sys, "argv", [line.name, *line.words]))
        # the devices of this process are set up already
        stack.enter_context(patch.object(jax.config, "update", lambda *_: None))
        for place in WORK:
            stack.enter_context(patch(place, side_effect=Working))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            command_line.run(COMMANDS[line.name], line.name)
        except SystemExit as stop:
            code = stop.code
        except Working:
            code = ACCEPTED
    return int(code or 0), out.getvalue(), err.getvalue()
