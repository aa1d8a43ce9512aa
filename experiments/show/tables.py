"""Tables as values, and each of their forms: terminal, Markdown, LaTeX, CSV and JSON.

>>> mean_sd(0.92, 0.016), p_value(0.0625)
('0.920 ± 0.016', '.0625')
>>> print(escape("40% of β₀ ± 1_a ↑"))
40\\% of $\\beta$$_0$ $\\pm$ 1\\_a $\\uparrow$
"""

import csv
import io
import json as json_format
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from experiments.shell import command_line
from experiments.shell.command_line import WIDE
from experiments.shell.files import write_text


def mean_sd(mean: float, sd: float) -> str:
    """Mean ± sample standard deviation.

    A NaN standard deviation, of a single run, is left out; a NaN mean is of a run that diverged.
    """
    if math.isnan(mean):
        return "diverged"
    return f"{mean:.3f}" if math.isnan(sd) else f"{mean:.3f} ± {sd:.3f}"


def p_value(value: float) -> str:
    """Four decimals, without the leading zero."""
    return "1" if value == 1 else f"{value:.4f}".lstrip("0")


class Grid(NamedTuple):
    """Texts in rows and columns; cells marked as best are emphasised."""

    title: str
    header: list[str]
    rows: list[list[str]]
    best: set[tuple[int, int]]
    footnotes: list[str]

    def with_notes(self, notes: Sequence[str]) -> "Grid":
        """The grid with more footnotes."""
        return self._replace(footnotes=[*self.footnotes, *notes])


def publish(
    grids: Sequence[Grid | None], summary: pd.DataFrame, page: Path, console: Console, json: bool
) -> None:
    """Write the grids as Markdown, and print them, or the summary as JSON on stdout.

    It comes last: whatever becomes of the output, the figures are there.
    """
    shown = [grid for grid in grids if grid is not None]
    write_text(page, "\n".join(map(to_markdown, shown)))
    if json:
        print(to_json(summary), file=command_line.results())
        return
    for grid in shown:
        console.print(OnTerminal(grid))


def grids_to_json(grids: Sequence[Grid]) -> str:
    """Grids as texts, one object each."""
    fields = ("title", "header", "rows", "footnotes")
    tables = [{name: getattr(grid, name) for name in fields} for grid in grids]
    return json_format.dumps(tables, indent=1, ensure_ascii=False) + "\n"


def to_csv(grid: Grid) -> str:
    """A grid as comma-separated values, the header first."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([grid.header, *grid.rows])
    return text.getvalue()


def to_json(frame: pd.DataFrame) -> str:
    """A frame as a list of rows, with null for a missing number."""
    rows = frame.astype(object)
    rows[rows.isna()] = None
    return json_format.dumps(rows.to_dict("records"), indent=2)


class OnTerminal(NamedTuple):
    """A grid as rich prints it: its title, the table, its footnotes.

    Where the terminal is too narrow for the table, each row is a block with a line per column.
    """

    grid: Grid

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(f"\n{self.grid.title}", style="bold")
        table = self._table()
        unlimited = options.update(max_width=WIDE)
        fits = console.measure(table, options=unlimited).maximum <= options.max_width
        yield from [table] if fits else self._blocks()
        yield from (Text(note, style="dim") for note in self.grid.footnotes)

    def _table(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0))
        for place, name in enumerate(self.grid.header):
            table.add_column(Text(name), justify="left" if place == 0 else "right", no_wrap=True)
        for texts in self._cells():
            table.add_row(*texts)
        return table

    def _blocks(self) -> Iterator[Text | Table]:
        _, *names = self.grid.header
        for heading, *texts in self._cells():
            block = Table.grid(padding=(0, 1))
            block.add_column(overflow="fold")
            block.add_column(overflow="fold")
            for name, text in zip(names, texts, strict=True):
                block.add_row(Text(f"  {name}"), text)
            yield Text("\n") + heading
            yield block

    def _cells(self) -> Iterator[list[Text]]:
        """The texts of each row, those marked as best with a star."""
        for row, texts in enumerate(self.grid.rows):
            yield [
                Text(f"{text}*", style="bold") if (row, column) in self.grid.best else Text(text)
                for column, text in enumerate(texts)
            ]


def to_markdown(grid: Grid) -> str:
    """A grid as a Markdown section."""

    def line(texts):
        escaped = (" ".join(text.splitlines()).replace("|", r"\|") for text in texts)
        return "| " + " | ".join(escaped) + " |"

    title = " ".join(grid.title.splitlines())
    lines = [f"## {title}", "", line(grid.header), "|" + "---|" * len(grid.header)]
    for row, texts in enumerate(grid.rows):
        marked = (
            f"**{text}**" if (row, column) in grid.best else text
            for column, text in enumerate(texts)
        )
        lines.append(line(marked))
    return "\n".join([*lines, "", *(f"- {note}" for note in grid.footnotes), ""])


SIGNS = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "%&_#${}"},
    **{sign: f"{{{sign}}}" for sign in "[]*"},  # which a line break would take for its own
    **{sign: f"${sign}$" for sign in "<>"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "Δ": r"$\Delta$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "⁻": "$^{-}$",
    **{sign: f"$^{power}$" for power, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    "×": r"$\times$",
    "√": r"$\surd$",
    "−": "$-$",
    "–": "--",
    "β": r"$\beta$",
    "η": r"$\eta$",
    "‖": r"$\|$",
    "₀": "$_0$",
    "|": r"$|$",
}


def escape(text: str) -> str:
    """Plain text as LaTeX source, with spaces for line breaks and other characters TeX may obey."""
    return "".join(SIGNS.get(sign, sign if sign.isprintable() else " ") for sign in text)


def to_latex(grid: Grid, label: str) -> str:
    """A grid as a table float with the paper's label."""
    lines = [
        r"\begin{table}[t]",
        rf"\caption{{{escape(_sentence(grid))}}}",
        rf"\label{{tab:{label}}}",
        r"\centering\small",
        rf"\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}",
        r"\toprule",
        _row([escape(name) for name in grid.header]),
        r"\midrule",
    ]
    for row, texts in enumerate(grid.rows):
        marked = (
            rf"\textbf{{{escape(text)}}}" if (row, column) in grid.best else escape(text)
            for column, text in enumerate(texts)
        )
        lines.append(_row(marked))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def to_latex_figure(label: str, caption: str) -> str:
    """A figure float with the paper's label, for the PDF that lies beside it."""
    lines = [
        r"\begin{figure}[t]",
        r"\centering",
        rf"\includegraphics[width=\linewidth]{{{label}.pdf}}",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{fig:{label}}}",
        r"\end{figure}",
        "",
    ]
    return "\n".join(lines)


def _sentence(grid: Grid) -> str:
    return ". ".join([grid.title[:1].upper() + grid.title[1:], *grid.footnotes]) + "."


def _row(texts) -> str:
    return " & ".join(texts) + r"\\"
