"""A table ready to be shown: on the terminal, as Markdown, or its numbers as JSON."""

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text


class Grid(NamedTuple):
    """Texts in rows and columns; cells marked as best are emphasised."""

    title: str
    header: list[str]
    rows: list[list[str]]
    best: set[tuple[int, int]]
    footnotes: list[str]


def publish(
    grids: Sequence[Grid | None], summary: pd.DataFrame, page: Path, console: Console, json: bool
) -> None:
    """Write the grids as Markdown, and print them, or the summary as JSON on stdout."""
    shown = [grid for grid in grids if grid is not None]
    page.write_text("\n".join(map(to_markdown, shown)))
    if json:
        print(to_json(summary))
        return
    for grid in shown:
        console.print(to_rich(grid))


def to_json(frame: pd.DataFrame) -> str:
    """A frame as a list of rows, with null for a missing number."""
    rows = frame.astype(object)
    rows[rows.isna()] = None
    return json_format.dumps(rows.to_dict("records"), indent=2)


def to_rich(grid: Grid) -> Group:
    """A grid for the terminal: its title, the table, its footnotes."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0))
    for place, name in enumerate(grid.header):
        table.add_column(name, justify="left" if place == 0 else "right", no_wrap=True)
    for row, texts in enumerate(grid.rows):
        marked = (
            f"[bold]{text}*[/bold]" if (row, column) in grid.best else text
            for column, text in enumerate(texts)
        )
        table.add_row(*marked)
    notes = (Text(note, style="dim") for note in grid.footnotes)
    return Group(Text(f"\n{grid.title}", style="bold"), table, *notes)


def to_markdown(grid: Grid) -> str:
    """A grid as a Markdown section."""

    def line(texts):
        return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |"

    lines = [f"## {grid.title}", "", line(grid.header), "|" + "---|" * len(grid.header)]
    for row, texts in enumerate(grid.rows):
        marked = (
            f"**{text}**" if (row, column) in grid.best else text
            for column, text in enumerate(texts)
        )
        lines.append(line(marked))
    return "\n".join([*lines, "", *(f"- {note}" for note in grid.footnotes), ""])
