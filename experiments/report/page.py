"""index.html: what was found, every table and every figure, in one file that needs no network.

Everything that is printed is escaped, and a content policy forbids the page to load anything.

>>> cell("<b>", best=False)
'<td>&lt;b&gt;</td>'
"""

import base64
from html import escape
from pathlib import Path

from experiments.report.paper_figures import Figure
from experiments.report.paper_tables import Table
from experiments.tables.grid import Grid

HERE = Path(__file__).parent
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def html(findings: list[str], tables: dict[str, Table], figures: dict[str, Figure]) -> str:
    """The whole page."""
    parts = [
        "<h1>The experiments, reproduced</h1>",
        '<section id="findings"><h2>What was found</h2><ul>',
        *(f"<li>{escape(sentence)}</li>" for sentence in findings),
        "</ul></section>",
        _contents(tables, figures),
        "<h2>Tables</h2><p>A click on a heading sorts by its column; bold marks the best.</p>",
        *(table_section(label, table) for label, table in tables.items()),
        "<h2>Figures</h2>",
        *(figure_section(label, figure) for label, figure in figures.items()),
    ]
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        "<title>The experiments, reproduced</title>",
        f"<style>{(HERE / 'page.css').read_text('utf-8')}</style>",
    ]
    script = f"<script>{(HERE / 'page.js').read_text('utf-8')}</script>"
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head>{"".join(head)}</head>\n'
        f"<body><main>\n{body}\n</main>\n{script}</body></html>\n"
    )


def table_section(label: str, table: Table) -> str:
    """The tables of one label."""
    grids = "\n".join(grid_table(grid) for grid in table.grids)
    name = f"tab:{label}"
    return f'<section id="{escape(name)}">{_heading(name, table)}{grids}</section>'


def figure_section(label: str, figure: Figure) -> str:
    """A figure with its pictures inside the page."""
    name = f"fig:{label}"
    images = "".join(
        f'<img alt="{escape(figure.caption)}" src="data:image/png;base64,'
        f'{base64.b64encode(path.read_bytes()).decode()}">'
        for path in figure.pictures
    )
    caption = f"<figcaption>{escape(figure.caption)}</figcaption>"
    return (
        f'<section id="{escape(name)}">{_heading(name, figure)}'
        f"<figure>{images}{caption}</figure></section>"
    )


def grid_table(grid: Grid) -> str:
    """A sortable table with its title and notes."""
    heads = "".join(
        f'<th scope="col"><button type="button">{escape(name)}</button></th>'
        for name in grid.header
    )
    rows = "\n".join(
        "<tr>" + "".join(cell(t, (row, k) in grid.best) for k, t in enumerate(texts)) + "</tr>"
        for row, texts in enumerate(grid.rows)
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in grid.footnotes)
    return (
        f'<div class="scroll"><table><caption>{escape(grid.title)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        f'<ul class="notes">{notes}</ul>'
    )


def cell(text: str, best: bool) -> str:
    """One escaped cell."""
    return f"<td>{f'<strong>{escape(text)}</strong>' if best else escape(text)}</td>"


def _heading(name: str, item: Table | Figure) -> str:
    where = "in the paper" if item.in_paper else "not in the paper"
    return (
        f"<h3>{escape(name)} <small>{where}</small></h3>"
        f'<p class="command"><code>{escape(item.command)}</code></p>'
    )


def _contents(tables: dict[str, Table], figures: dict[str, Figure]) -> str:
    def links(kind, labels):
        return " ".join(
            f'<a href="#{kind}:{escape(label)}">{escape(label)}</a>' for label in labels
        )

    return (
        f"<nav><p><b>Tables</b> {links('tab', tables)}</p>"
        f"<p><b>Figures</b> {links('fig', figures)}</p></nav>"
    )
