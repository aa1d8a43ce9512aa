"""index.html: questions and their answers, in one file that needs no network.

Everything that is printed is escaped, and a content policy forbids the page to load anything. What
it links to lies beside it.
"""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from experiments.show.item_files import Table
from experiments.show.outline import SECTIONS, Section
from experiments.show.page_parts import figure_item, table_item
from experiments.show.paper_figures import Figure

HERE = Path(__file__).parent
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
TITLE = "Which loss should you train with?"


class Contents(NamedTuple):
    """What the page shows.

    Attributes:
      lead: what was done, in a sentence or two.
      headlines: the findings in short.
      tables: by label.
      figures: by label.
      facts: where the numbers come from, by name.
      bibtex: how to cite them.
    """

    lead: str
    headlines: Sequence[str]
    tables: Mapping[str, Table]
    figures: Mapping[str, Figure]
    facts: Mapping[str, str]
    bibtex: str


def html(contents: Contents) -> str:
    """The whole page."""
    shown = [(section, body) for section in SECTIONS if (body := items(section, contents))]
    first, *others = [
        f'<section id="{section.name}"><h2>{escape(section.question)}</h2>\n{body}</section>'
        for section, body in shown
    ]
    return document(
        f"<header><h1>{escape(TITLE)}</h1><p>{escape(contents.lead)}</p>{navigation(shown)}</header>",
        "<main>",
        first,
        in_short(contents.headlines),
        *others,
        origin(contents),
        "</main>",
    )


def document(*body: str) -> str:
    """A page with the style and the script inside it."""
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(TITLE)}</title>",
        f"<style>{(HERE / 'page.css').read_text('utf-8')}</style>",
    ]
    script = f"<script>{(HERE / 'page.js').read_text('utf-8')}</script>"
    large = '<dialog id="large" aria-label="Enlarged figure"></dialog>'
    text = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en"><head>{"".join(head)}</head>\n'
        f"<body>\n{text}\n{large}{script}</body></html>\n"
    )


def items(section: Section, contents: Contents) -> str:
    """The tables and figures of a section that there are."""
    parts = []
    for name in section.items:
        kind, _, label = name.partition(":")
        if kind == "tab" and label in contents.tables and contents.tables[label].grids:
            parts.append(table_item(label, contents.tables[label]))
        elif kind == "fig" and label in contents.figures:
            parts.append(figure_item(label, contents.figures[label]))
    return "\n".join(parts)


def navigation(shown: Sequence[tuple[Section, str]]) -> str:
    """Links to the questions."""
    links = "".join(
        f'<li><a href="#{section.name}">{escape(section.question)}</a></li>' for section, _ in shown
    )
    last = '<li><a href="#origin">Where do the numbers come from?</a></li>'
    return f'<nav aria-label="Questions"><ul>{links}{last}</ul></nav>'


def in_short(headlines: Sequence[str]) -> str:
    """The findings as a list."""
    if not headlines:
        return ""
    points = "".join(f"<li>{escape(text)}</li>" for text in headlines)
    return f'<section id="short"><h2>What was found, in short</h2><ul>{points}</ul></section>'


def origin(contents: Contents) -> str:
    """Paper, seeds, versions and hardware, and how to cite."""
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in contents.facts.items()
    )
    return (
        '<section id="origin"><h2>Where do the numbers come from?</h2>'
        f'<dl>{rows}</dl><pre tabindex="0" aria-label="BibTeX">{escape(contents.bibtex)}</pre>'
        "</section>"
    )
