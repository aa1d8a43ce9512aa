"""Tables as values, and each of their forms: terminal, Markdown, LaTeX, CSV and JSON.

The page shows them as HTML by its template.

>>> mean_sd([0.90, 0.92]), mean_sd([0.9]), mean_sd([0.9, float("nan")]), mean_sd([])
('0.910 ± 0.014', '0.900', 'diverged', '–')
>>> print(escape("40% of β₀ ± 1_a ↑"))
40\\% of $\\beta$$_0$ $\\pm$ 1\\_a $\\uparrow$
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from experiments.shell.command_line import WIDE


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

    def frame(self) -> pd.DataFrame:
        """The texts as a frame of pandas."""
        return pd.DataFrame(self.rows, columns=pd.Index(self.header), dtype=str)


def mean_sd(values, digits: int = 3) -> str:
    """Mean ± sample standard deviation, of a single run the mean alone.

    A NaN is of a run that diverged; where nothing was run there is a dash.
    """
    values = np.asarray(values, float)
    if not len(values):
        return "–"
    return plus_minus(values.mean(), values.std(ddof=1) if len(values) > 1 else np.nan, digits)


def plus_minus(mean: float, sd: float, digits: int = 3) -> str:
    """Mean ± sd; without a NaN sd, and of a NaN mean that a run diverged."""
    if np.isnan(mean):
        return "diverged"
    return f"{mean:.{digits}f}" if np.isnan(sd) else f"{mean:.{digits}f} ± {sd:.{digits}f}"


def means_grid(
    title: str,
    rows: Mapping[Any, str],
    columns: Mapping[Any, str],
    values: Callable[[Any, Any], Any],
    *,
    notes: Sequence[str] = (),
    lower: bool | None = None,
    digits: int = 3,
    corner: str = "Loss",
) -> Grid:
    """Mean ± sample sd over seeds, with the best of each column marked.

    Args:
      title: of the grid.
      rows: labels by key.
      columns: labels by key.
      values: `values(row, column)` are those of the seeds; none where nothing was run.
      notes: footnotes.
      lower: whether the lower values are the better ones, if no arrow of a column says so.
      digits: after the point.
      corner: what stands above the labels of the rows.
    """
    cells = [[np.asarray(values(row, column), float) for column in columns] for row in rows]
    means = np.array([[x.mean() if len(x) else np.nan for x in line] for line in cells])
    is_lower = [lower or label.endswith("↓") for label in columns.values()]
    signed = np.where(is_lower, -1.0, 1.0) * np.round(means, digits)
    highest = np.max(signed, axis=0, where=~np.isnan(signed), initial=-np.inf)
    best = {(int(row), int(column) + 1) for row, column in np.argwhere(signed == highest)}
    texts = [[mean_sd(x, digits) for x in line] for line in cells]
    lines = [[label, *line] for label, line in zip(rows.values(), texts, strict=True)]
    return Grid(title, [corner, *columns.values()], lines, best, list(notes))


def to_json(frame: pd.DataFrame) -> str:
    """A frame as a list of rows, with null for a missing number."""
    rows = frame.astype(object)
    rows[rows.isna()] = None
    return json.dumps(rows.to_dict("records"), indent=2)


def to_csv(grids: Sequence[Grid]) -> str:
    """The grids one below the other, each with its header and, if there are several, its title."""
    texts = [grid.frame().to_csv(index=False, lineterminator="\n") for grid in grids]
    if len(grids) == 1:
        return texts[0]
    return "\n".join(f"{grid.title}\n{text}" for grid, text in zip(grids, texts, strict=True))


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
    rows = map(line, _mark_best(grid, "**{}**"))
    lines = [f"## {title}", "", line(grid.header), "|" + "---|" * len(grid.header), *rows, ""]
    return "\n".join([*lines, *(f"- {note}" for note in grid.footnotes), ""])


def _mark_best(grid: Grid, form: str, escaped: Callable[[str], str] = str) -> list[list[str]]:
    """The rows, with the best cells in a form."""
    return [
        [
            form.format(escaped(text)) if (row, column) in grid.best else escaped(text)
            for column, text in enumerate(texts)
        ]
        for row, texts in enumerate(grid.rows)
    ]


SIGNS = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "%&_#${}"},
    **{sign: f"{{{sign}}}" for sign in "[]*"},  # which a line break would take for its own
    **{sign: f"${sign}$" for sign in "<>|"},
    **{sign: f"$^{power}$" for power, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "⁻": "$^{-}$", "₀": "$_0$"},
    **{"±": r"$\pm$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "Δ": r"$\Delta$"},
    **{"≤": r"$\leq$", "≥": r"$\geq$", "×": r"$\times$", "√": r"$\surd$", "−": "$-$"},
    **{"–": "--", "β": r"$\beta$", "η": r"$\eta$", "‖": r"$\|$"},
}


def escape(text: str) -> str:
    """Plain text as LaTeX source, with spaces for line breaks and other characters TeX may obey."""
    return "".join(SIGNS.get(sign, sign if sign.isprintable() else " ") for sign in text)


def to_latex(grid: Grid, label: str) -> str:
    """A grid as a table float with the paper's label."""
    caption = ". ".join([grid.title[:1].upper() + grid.title[1:], *grid.footnotes]) + "."
    header = pd.Index([escape(name) for name in grid.header])
    frame = pd.DataFrame(_mark_best(grid, r"\textbf{{{}}}", escape), columns=header)
    return frame.to_latex(
        index=False,
        escape=False,
        caption=escape(caption),
        label=f"tab:{label}",
        column_format="l" + "r" * (len(grid.header) - 1),
        position="t",
    )


def to_latex_figure(label: str, caption: str) -> str:
    """A figure float with the paper's label, for the PDF that lies beside it."""
    return (
        "\\begin{figure}[t]\n\\centering\n"
        f"\\includegraphics[width=\\linewidth]{{{label}.pdf}}\n"
        f"\\caption{{{escape(caption)}}}\n\\label{{fig:{label}}}\n\\end{{figure}}\n"
    )
