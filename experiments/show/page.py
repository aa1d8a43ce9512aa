"""One page: questions, and the tables and figures that answer them, as HTML or Markdown.

The page is one file that needs no network: what is printed is escaped, a content policy forbids it
to load anything, and figures are part of it. Files of its items lie beside it where they were asked
for.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from jinja2 import Environment
from markupsafe import Markup

from experiments.shell import command_line
from experiments.shell.files import write_text
from experiments.show import style
from experiments.show.style import Figure
from experiments.show.tables import (
    Grid,
    OnTerminal,
    to_csv,
    to_json,
    to_latex,
    to_latex_figure,
    to_markdown,
)

HERE = Path(__file__).parent
PICTURES = ("png", "pdf", "svg")
NUMBER = re.compile(r"[-+−×.\d–]|diverged$")
LONG = 34  # signs, beyond which a column of text wraps


Made = Sequence[Grid | None] | Figure | Path | None
"""What an item is made of: grids, a figure, an SVG; or nothing, where there is nothing to show."""


class Item(NamedTuple):
    """A table or a figure of a page.

    Attributes:
      name: its kind and label, as in `tab:longtail`.
      heading: in words.
      caption: what is drawn, and what was checked of it.
      command: that shows it alone.
      in_paper: whether the paper has it, under this name.
      grids: of a table.
      figure: drawn, or an SVG.
      files: beside the page.
    """

    name: str
    heading: str
    caption: str
    command: str
    in_paper: bool
    grids: list[Grid]
    figure: Figure | Path | None
    files: list[str]

    @property
    def label(self) -> str:
        """The name without its kind."""
        return self.name.partition(":")[2]

    @property
    def svg(self) -> Markup | None:
        """The figure as an element of the page."""
        if self.figure is None:
            return None
        if isinstance(self.figure, Path):
            text = self.figure.read_text("utf-8")
        else:
            text = style.render(self.figure, "svg").decode()
        return inline(text, self.label, self.heading)


class Section(NamedTuple):
    """One question, and what answers it."""

    name: str
    question: str
    items: list[Item]


class Page(NamedTuple):
    """What a page shows.

    Attributes:
      title: its question.
      lead: what was done, in a sentence or two.
      statements: what the numbers support, each checked on these records.
      sections: the first one is shown first.
      facts: where the numbers come from, by name.
      rules: how verdicts are reached.
      bibtex: how to cite it.
    """

    title: str
    lead: str
    statements: Sequence[str]
    sections: Sequence[Section]
    facts: Mapping[str, str]
    rules: Sequence[str]
    bibtex: str = ""


def outline() -> dict[str, Any]:
    """The sections of each page, and what every item is, as `outline.toml` has them."""
    return tomllib.loads((HERE / "outline.toml").read_text("utf-8"))


def make_sections(
    page: str,
    makers: Mapping[str, Callable[[], Made]],
    command,
    findings: Mapping[str, str] | None = None,
) -> list[Section]:
    """The sections of a page, with all their items that have something to show.

    Args:
      page: `report` or `answer`.
      makers: what each item is made of, by its name.
      command: that is running, whose `--formats` are written beside the page.
      findings: by name, what was found about an item, to stand behind its caption.
    """
    known, sections, findings = outline(), [], findings or {}
    for section in known[page]:
        items = []
        for name in section["items"]:
            about: dict[str, Any] = {"caption": "", "in_paper": False} | known["items"][name]
            about["caption"] = f"{about['caption']} {findings.get(name, '')}".strip()
            items.append(_make_item(name, makers[name](), about, command))
        shown = [item for item in items if item is not None]
        if shown:
            sections.append(Section(section["name"], section["question"], shown))
    return sections


def _make_item(name: str, made: Made, about: dict[str, Any], command) -> Item | None:
    if made is None or isinstance(made, Figure | Path):
        figure, grids = made, []
    else:
        figure, grids = None, [grid for grid in made if grid is not None and grid.rows]
    if figure is None and not grids:
        return None
    if isinstance(figure, Path):
        forms = [figure.with_suffix(f".{form}") for form in command.formats]
        files = [path for path in forms if path.exists()]
    else:
        label, caption = name.partition(":")[2], about["caption"] or about["heading"]
        files = write_forms(label, figure, grids, caption, command.out, command.formats)
    about["command"] = f"python -m {about['command']}"
    return Item(name=name, grids=grids, figure=figure, files=[x.name for x in files], **about)


def write_forms(
    label: str,
    figure: Figure | None,
    grids: Sequence[Grid],
    caption: str,
    out: Path,
    forms: Sequence[str],
) -> list[Path]:
    """Write a figure or grids in those of some forms that it can have."""
    if figure is not None:
        pictures = [form for form in PICTURES if form in forms]
        files = style.save(figure, out / label, pictures)
        texts = {"tex": lambda: to_latex_figure(label, caption)}
    else:
        files = []
        texts = {
            "md": lambda: "\n".join(map(to_markdown, grids)),
            "tex": lambda: "\n".join(to_latex(grid, label) for grid in grids),
            "csv": lambda: to_csv(grids),
        }
    return files + [
        write_text(out / f"{label}.{form}", text()) for form, text in texts.items() if form in forms
    ]


def publish(
    command,
    name: str,
    grids: Sequence[Grid | None],
    summary: pd.DataFrame,
    figures: Mapping[str, Figure | None] | None = None,
) -> list[Path]:
    """Write the tables and figures of a command, and print the tables, or a summary as JSON.

    Printing comes last: whatever becomes of the output, the files are there.

    Args:
      command: that is running.
      name: of the tables.
      grids: the tables.
      summary: what `--json` prints on stdout.
      figures: by name.
    """
    shown = [grid for grid in grids if grid is not None]
    forms = command.formats
    written = write_forms(f"tables-{name}", None, shown, "", command.out, ("md", *forms))
    for label, figure in (figures or {}).items():
        if figure is not None:
            pictures = forms if set(forms) & set(PICTURES) else ("png", *forms)
            written += write_forms(label, figure, [], "", command.out, pictures)
    if command.json:
        print(to_json(summary), file=command_line.results())
    else:
        for grid in shown:
            command.console.print(OnTerminal(grid))
    return written


def finish(page: Page, decisions: Grid | None, summary: pd.DataFrame, command) -> list[Path]:
    """Write the page as HTML, and print its decisions and statements, or a summary as JSON."""
    target = write_text(command.out / "index.html", to_html(page))
    if command.json:
        print(to_json(summary), file=command_line.results())
        return [target]
    if decisions is not None:
        command.console.print(OnTerminal(decisions))
    for text in page.statements:
        command.console.print(f"• {text}", soft_wrap=True)
    command.console.print(f"open {target}", soft_wrap=True)
    return [target]


def to_html(page: Page) -> str:
    """The whole page, with its style and script inside."""
    css, script, template = (
        (HERE / name).read_text("utf-8") for name in ("page.css", "page.js", "page.html")
    )
    made = Environment(autoescape=True).from_string(template)
    return made.render(page=page, kinds=kinds, css=Markup(css), script=Markup(script)) + "\n"


def kinds(grid: Grid) -> list[str]:
    """The classes of the columns: numbers stand at the right, and long texts wrap.

    >>> kinds(Grid("", ["Loss", "NLL"], [["CE", "0.912 ± 0.021"], ["HPG", "–"]], set(), []))
    ['', 'number']
    """
    columns = zip(*grid.rows, strict=True)
    return [
        ("long" if max(map(len, texts)) > LONG else "")
        + ("number" if place and all(map(NUMBER.match, texts)) else "")
        for place, texts in enumerate(columns)
    ]


def inline(text: str, prefix: str, label: str) -> Markup:
    """A figure as SVG that can stand in a page among others, as wide as there is room.

    >>> file = '<?xml?><svg width="72pt"><g id="axes"><path id="p1"/><use href="#p1"/></g></svg>'
    >>> head, body = str(inline(file, "loss", "A loss")).split("<g", 1)
    >>> head
    '<svg style="max-width:96px" role="img" aria-label="A loss">'
    >>> body
    '><path id="loss-p1"/><use href="#loss-p1"/></g></svg>'

    Args:
      text: a file as matplotlib writes it.
      prefix: of the names within, which no other figure of the page may have.
      label: what a reader who cannot see it is told.
    """
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    rename = lambda found: f' id="{prefix}-{found[1]}"' if found[1] in used else ""  # noqa: E731
    text = re.sub(r'\sid="([^"]*)"', rename, text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", text)
    head, body = text.split(">", 1)
    width = re.search(r'width="([\d.]+)pt"', head)
    head = re.sub(r'\s(?:width|height)="[\d.]+pt"', "", head)
    limit = f' style="max-width:{float(width[1]) * 4 / 3:.0f}px"' if width else ""  # CSS pixels
    return Markup(f'{head}{limit} role="img" aria-label="{escape(label)}">{body}')


def write_markdown(page: Page, target: Path) -> Path:
    """The page as Markdown, with its pictures beside it."""
    parts = [f"# {page.title}", page.lead, _bullets(page.statements)]
    for section in page.sections:
        parts.append(f"## {section.question}")
        for item in section.items:
            if isinstance(item.figure, Figure):
                path = target.with_name(f"{target.stem}-{item.label}")
                (picture,) = style.save(item.figure, path)
                parts += [f"![{item.heading}]({picture.name})", f"*{item.caption}*"]
            parts += [f"#{to_markdown(grid).strip()}" for grid in item.grids]
    parts += ["## How it was decided", _bullets(page.rules)]
    return write_text(target, "\n\n".join(filter(None, parts)) + "\n")


def _bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)
