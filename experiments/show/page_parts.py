"""A table and a figure as pieces of the page, each with its finding, its files and a permalink.

>>> cell("<b>", best=False, number=True)
'<td class="number">&lt;b&gt;</td>'
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from experiments.show.inline_svg import inline
from experiments.show.item_files import Table, csv_names
from experiments.show.paper_figures import Figure
from experiments.show.tables import Grid

NUMBER = re.compile(r"[-+−×.\d–]|diverged$")
FILTERED = 8  # rows, beyond which a table can be filtered
LONG = 34  # signs, beyond which a column of text wraps


def table_item(label: str, table: Table) -> str:
    """A table: its heading, what it shows, its grids and its files."""
    name, count = f"tab:{label}", len(table.grids)
    grids = "\n".join(grid_table(grid, titled=count > 1) for grid in table.grids)
    sheets = {
        f"CSV{'' if count == 1 else f' {k + 1}'}": file
        for k, file in enumerate(csv_names(label, count))
    }
    links = file_links(sheets | {"JSON": f"{label}.json", "LaTeX": f"{label}.tex"})
    return _item(name, table, f'<p class="finding">{escape(table.finding)}</p>{grids}', links)


def figure_item(label: str, figure: Figure) -> str:
    """A figure inside the page: its heading, what it shows, the picture and its files."""
    name = f"fig:{label}"
    picture = inline(figure.picture.read_text("utf-8"), label, figure.heading)
    body = (
        f'<figure><figcaption class="finding">{escape(figure.finding)}</figcaption>'
        f'<div class="picture" tabindex="0" role="group" aria-label="{escape(figure.heading)}">'
        f"{picture}</div></figure>"
    )
    data = {"CSV": f"{figure.data}.csv", "JSON": f"{figure.data}.json"} if figure.data else {}
    files = data | {"LaTeX": f"fig-{label}.tex", "PDF": f"{label}.pdf", "PNG": f"{label}.png"}
    enlarge = '<button type="button" class="enlarge">Enlarge</button>'
    return _item(name, figure, body, f"{enlarge}{file_links(files)}")


def file_links(files: dict[str, str]) -> str:
    """Links to files that lie beside the page."""
    return " ".join(
        f'<a href="{escape(quote(file))}">{escape(name)}</a>' for name, file in files.items()
    )


def grid_table(grid: Grid, *, titled: bool) -> str:
    """A table that can be sorted and filtered, with its notes and, if `titled`, its title."""
    columns = list(zip(*grid.rows, strict=True)) or [()] * len(grid.header)
    numbers = [k > 0 and is_numeric(texts) for k, texts in enumerate(columns)]
    heads = "".join(map(_head, grid.header, numbers))
    long = {k for k, texts in enumerate(columns) if max(map(len, texts), default=0) > LONG}
    rows = "\n".join(
        f"<tr>{''.join(_cells(texts, row, grid, numbers, long))}</tr>"
        for row, texts in enumerate(grid.rows)
    )
    title, notes = (
        escape(grid.title),
        "".join(f"<li>{escape(note)}</li>" for note in grid.footnotes),
    )
    search = (
        f'<input type="search" placeholder="Filter rows" aria-label="Filter rows: {title}">'
        if len(grid.rows) > FILTERED
        else ""
    )
    caption = f"<caption>{title}</caption>" if titled else ""
    return (
        f'<div class="table">{search}<div class="scroll" tabindex="0" role="group" '
        f'aria-label="{title}"><table>{caption}<thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{f'<ul class=notes>{notes}</ul>' * bool(notes)}</div>"
    )


def is_numeric(texts: Iterable[str]) -> bool:
    """Whether a column is of numbers: all of them begin like one.

    >>> is_numeric(["0.912 ± 0.021", "–", "+.05"]), is_numeric(["CE", "0.1"])
    (True, False)
    """
    return all(NUMBER.match(text) for text in texts)


def cell(text: str, *, best: bool, number: bool = False, long: bool = False) -> str:
    """One escaped cell."""
    shown = f"<strong>{escape(text)}</strong>" if best else escape(text)
    kind = " ".join(name for name, given in (("number", number), ("long", long)) if given)
    return f'<td class="{kind}">{shown}</td>' if kind else f"<td>{shown}</td>"


def _cells(texts: Sequence[str], row: int, grid: Grid, numbers, long) -> Iterable[str]:
    """The first cell is the heading of its row."""
    wide = ' class="long"' if 0 in long else ""
    yield f'<th scope="row"{wide}>{escape(texts[0])}</th>'
    for k, text in enumerate(texts[1:], start=1):
        yield cell(text, best=(row, k) in grid.best, number=numbers[k], long=k in long)


def _head(name: str, number: bool) -> str:
    kind = ' class="number"' if number else ""
    return f'<th scope="col"{kind}><button type="button">{escape(name)}</button></th>'


def _item(name: str, item: Table | Figure, body: str, links: str) -> str:
    where = f"{name} in the paper" if item.in_paper else "not in the paper"
    heading = escape(item.heading)
    link = f'<a class="permalink" href="#{escape(name)}" aria-label="Link to: {heading}">#</a>'
    return (
        f'<article id="{escape(name)}"><h3>{heading} {link} <small>{escape(where)}</small></h3>'
        f'{body}<p class="files"><code>{escape(item.command)}</code> {links}</p></article>'
    )
