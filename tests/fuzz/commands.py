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
    calibration,
    comparison,
    longtail,
    lr_sensitivity,
    noise,
    robustness,
    runtime,
)
from experiments.engine.options import Options
from experiments.report import __main__ as report
from experiments.speed import __main__ as speed
from pgeom.frontend import command_line
from proofs_numeric import __main__ as proofs, proof_figures

EXPERIMENTS = (
    ablation,
    calibration,
    comparison,
    longtail,
    lr_sensitivity,
    noise,
    robustness,
    runtime,
)
COMMANDS = {module.__name__: module.main for module in EXPERIMENTS}
COMMANDS |= {"experiments.report": report.main, "experiments.speed": speed.main}
COMMANDS |= {"proofs_numeric": proofs.main, "proofs_numeric.proof_figures": proof_figures.main}
WORK = (  # where a command that has accepted its options begins to work
    "experiments.engine.command.Command.train",
    "experiments.report.theory_figures.drawing",
    "experiments.speed.__main__._measure",
    "proofs_numeric.runner.run",
    "proofs_numeric.user_generator.checks",
    "proofs_numeric.proof_figures.draw",
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
    "only": ["regret", "margin"],
    "parts": ["growth", "kernels", "first"],
    "out": ["here", "here/there"],
    "figures": ["here"],
    "records": ["here"],
}
JUNK = ["", " ", "-1", "0", "1", "nan", "inf", "-inf", "1e400", "0x10", "٤", "1_000", "1,2,x"]
JUNK += ["x" * 300, "a b", "-", "--", "=", ":", "a:b", "math:sqrt", "math:pi", "no.py:f", "\udcff"]
JUNK += ["[/bold]", "[red]", "%s", "{}", "ü", "\u2028", "a\nb", "../..", ".", "/dev/null"]
JUNK += ["None", "true", "99999999999999999999", "digits.csv", "clean-3", "symmetric-0"]
FEW = {"names": ("experiments.noise", "experiments.speed", "proofs_numeric")}
REFUSED, ACCEPTED = command_line.BAD_INPUT, 0


class Working(SystemExit):
    """Raised where a command would begin to work."""


class Line(NamedTuple):
    """A command and its words."""

    name: str
    words: list[str]


def option_names(main) -> list[str]:
    """The options of a command, as they are on its command line."""
    own = list(inspect.signature(main).parameters)
    names = [name for name in own if name != "common"]
    return names + ([field.name for field in fields(Options)] if "common" in own else [])


@st.composite
def inputs(draw, names=tuple(COMMANDS)):
    """A command with options of its own, and words that are good for them or for nothing."""
    name, words = draw(st.sampled_from(names)), []
    known = option_names(COMMANDS[name])
    options = draw(st.lists(st.sampled_from([*known, "help", "version", "no_such"]), max_size=4))
    for option in options:
        good = st.sampled_from(GOOD.get(option, ["1"]))
        values = st.one_of(good, good, good, st.sampled_from(JUNK), st.text(max_size=5))
        words += [f"--{option.replace('_', '-')}"]
        words += draw(st.lists(values, max_size=3 if option in GOOD else 1))
    return Line(name, [word.replace("\0", "") for word in words])


def check(line: Line) -> None:
    """See the module."""
    code, out, err = call(line)
    assert code in (ACCEPTED, REFUSED), (code, err)
    if code == REFUSED:
        assert out == "" and err.startswith("error: ") and err.endswith("\n"), (out, err)
        assert len(err.splitlines()) == 1 and len(err) > len("error: \n"), err
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
            stack.enter_context(patch(place, side_effect=Working(ACCEPTED)))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            command_line.run(COMMANDS[line.name], line.name)
        except SystemExit as stop:
            code = stop.code
    return int(code or 0), out.getvalue(), err.getvalue()
