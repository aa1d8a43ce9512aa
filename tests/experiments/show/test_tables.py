"""Tables on terminals of every width, with every cell, and with texts as they are."""

import io

import numpy as np
import pytest
from rich.console import Console

from experiments.shell import command_line
from experiments.show.page import publish
from experiments.show.tables import Grid, OnTerminal, mean_sd, to_csv, to_markdown

HEADER = ["Loss", "Accuracy ↑", "NLL ↓", "Brier ↓", "ECE ↓"]
ROWS = [
    ["CE", "0.920 ± 0.016", "0.310 ± 0.022", "0.140 ± 0.011", "0.052 ± 0.007"],
    ["my[/bold]loss", "0.921 ± 0.016", "0.311 ± 0.022", "0.141 ± 0.011", "0.053 ± 0.007"],
]
GRID = Grid("digits[red], clean", HEADER, ROWS, {(1, 1)}, ["over 5 seeds [link]"])


def printed(grid, width, encoding="utf-8"):
    """What a terminal of that width shows, line by line."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=file, width=width, force_terminal=True, no_color=True).print(OnTerminal(grid))
    file.seek(0)
    return [
        line.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "") for line in file
    ]


@pytest.mark.parametrize("width", [24, 40, 60, 79, 80, 100, 1000])
def test_every_cell_is_shown_at_every_width(width):
    lines = printed(GRID, width)
    assert max(len(line.rstrip("\n")) for line in lines) <= width
    shown = "".join(lines).replace("*", "").split()
    texts = [text for row in ROWS for text in row] + HEADER[1:] + [GRID.title, *GRID.footnotes]
    words = [word for text in texts for word in text.split()]
    assert {word for word in words if shown.count(word) < words.count(word)} == set()


def test_a_wide_terminal_shows_a_table_and_a_narrow_one_blocks():
    wide, narrow = ("".join(printed(GRID, width)) for width in (100, 40))
    assert wide.count("NLL ↓") == 1 and "0.921 ± 0.016*" in wide
    assert narrow.count("NLL ↓") == len(ROWS)
    assert "\nmy[/bold]loss\n  Accuracy ↑ 0.921 ± 0.016*\n" in narrow


class Broken:
    """A command whose output has gone."""

    json, formats = False, ("csv",)

    def __init__(self, out):
        self.out, self.console = out, self

    def print(self, *_):
        assert (self.out / "tables-some.md").read_bytes() == to_markdown(GRID).encode()
        assert (self.out / "tables-some.csv").read_text() == to_csv([GRID])
        raise BrokenPipeError


def test_tables_are_written_in_utf8_before_anything_is_printed(tmp_path):
    with pytest.raises(BrokenPipeError):
        publish(Broken(tmp_path), "some", [GRID, None], None)


def test_a_redirected_table_is_as_wide_as_it_is(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    command_line.make_console().print(OnTerminal(GRID))
    out = capsys.readouterr().out
    assert out.count("NLL ↓") == 1 and ROWS[0][-1] in out and "my[/bold]loss" in out


@pytest.mark.parametrize(
    ("values", "text"),
    [([0.9, 0.92], "0.910 ± 0.014"), ([0.92], "0.920"), ([0.9, np.nan], "diverged"), ([], "–")],
)
def test_mean_and_standard_deviation(values, text):
    assert mean_sd(values) == text
