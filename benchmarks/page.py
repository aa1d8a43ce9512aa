"""A page of Markdown from what was measured of the parts."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import Processes

Rows = list[dict]


class Part(NamedTuple):
    """A part of the benchmarks: a section of the page with one table.

    Attributes:
      title: of the section.
      introduction: what stands before the table.
      measure: `measure(processes, seeds, epochs)` makes rows, as they are kept.
      columns: the heading of each column, and the format of a line in it.
      notes: what stands below; formats, too.
      summarise: the lines of the table, each a mapping, from the rows, and what notes say of all.
    """

    title: str
    introduction: str
    measure: Callable[[Processes, int, int], Iterable[dict]]
    columns: Mapping[str, str]
    notes: tuple[str, ...]
    summarise: Callable[[Rows], tuple[Rows, dict]] = lambda rows: (rows, {})


def section(part: Part, rows: Rows) -> str:
    """The title, the introduction, the table and its notes."""
    lines, of_all = part.summarise(rows)
    cells = [[form.format(**line) for form in part.columns.values()] for line in lines]
    table = [part.columns, ["---"] * len(part.columns), *cells]
    markdown = "\n".join("| " + " | ".join(line) + " |" for line in table).replace(" nan |", " – |")
    notes = "\n".join("- " + note.format(**of_all) for note in part.notes)
    return "\n\n".join(["## " + part.title, part.introduction, markdown, notes])


def write_page(path: Path, parts: Mapping[str, Part], measured: Mapping[str, dict]) -> None:
    """Write the sections of the parts that were measured, and where that was."""
    made = "; ".join(dict.fromkeys(found["made"] for found in measured.values()))
    sections = [section(parts[name], found["rows"]) for name, found in measured.items()]
    path.write_text("\n\n".join(["# Speed", made + ".", *sections]) + "\n", encoding="utf-8")


def spread(values, form: str = "{:,.2f}") -> str:
    """The median, with the range."""
    median, least, most = map(form.format, (values.median(), values.min(), values.max()))
    return f"{median} ({least}–{most})"
