"""The answer as a page of Markdown, written from records with the commands that made it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.shell.files import write_file, write_text
from experiments.tables.evidence import Evidence
from experiments.tables.grid import Grid, to_markdown
from experiments.tables.headlines import headlines
from experiments.tables.summary import version_notes
from pgeom.messages import count

SECTIONS = {  # the labels of the tables, in order, and the heading of each
    "decisions": "Which loss",
    "claims": "What becomes of the paper's claims",
    "controls": "The loss or the protocol?",
    "ranks": "Mean ranks",
    "against-ce": "Every loss against cross-entropy",
    "against-brier": "Every loss against Brier",
    "means": "Means",
}
FIGURES = {  # the section of each figure, and what it shows
    "forest-accuracy": (
        "against-ce",
        "Differences in {headline} from cross-entropy: seeds, means and 95% intervals",
    ),
    "forest-nll": ("against-ce", "Differences in NLL from cross-entropy"),
    "forest-brier-calibrated-nll": (
        "against-brier",
        "Differences in calibrated NLL from the Brier score",
    ),
    "critical-difference": ("ranks", "Mean ranks; bars join losses that are not told apart"),
}


def write_page(
    page: Path,
    evidence: Evidence,
    tables: Mapping[str, Sequence[Grid]],
    figures: Mapping[str, Path],
    command: str,
) -> Path:
    """Write the page, and copies of its figures beside it.

    Args:
      page: the file to write.
      evidence: as `weigh` gives it.
      tables: by label.
      figures: the files in PNG by name.
      command: that made the page.
    """
    parts = [_head(evidence, command)]
    for label, heading in SECTIONS.items():
        grids = tables.get(label) or ()
        if grids:
            shown = [name for name in figures if FIGURES[name][0] == label]
            words = evidence.samples.headline.words
            pictures = [_picture(name, figures[name], page, words) for name in shown]
            parts.append("\n".join([f"## {heading}", "", *pictures, *_bodies(grids)]))
    return write_text(page, "\n".join([*parts, _foot(evidence)]))


def _head(evidence: Evidence, command: str) -> str:
    seeds = int(evidence.effects["seeds"].max()) if len(evidence.effects) else 0
    controlled = [frame["seed"].nunique() for frame in evidence.control_runs.values()]
    controls = f" (controls: {max(controlled)})" if controlled else ""
    findings = "\n".join(f"- {text}" for text in headlines(evidence))
    return (
        "# Which loss, by how much, how sure\n\n"
        f"Made by `{command}`, over {count(seeds, 'seed')}{controls}. Every number and every "
        f"sentence below is computed from the records.\n\n{findings}\n"
    )


def _bodies(grids: Sequence[Grid]) -> list[str]:
    """The grids as subsections; a single one needs no heading of its own."""
    sections = [to_markdown(grid).removeprefix("## ") for grid in grids]
    if len(sections) == 1:
        return [sections[0].partition("\n\n")[2]]
    return [f"### {text[0].upper()}{text[1:]}" for text in sections]


def _foot(evidence: Evidence) -> str:
    """How verdicts are reached, and what the results do not cover."""
    samples = evidence.samples
    margins = ", ".join(f"±{one.margin:g} {one.label[:-2]}" for one in samples.metrics)
    datasets = count(len({place.dataset for place in samples.places}), "dataset")
    noise = ", synthetic noise" if any(place.is_noisy for place in samples.places) else ""
    notes = "".join(f"- {note}\n" for note in version_notes(samples.runs))
    return (
        "## How it was decided\n\n"
        "- Losses share data, initial weights and batches with each seed, so that differences are "
        "paired. Intervals are 95% BCa bootstrap intervals of the mean difference.\n"
        f"- *Equivalent*: two one-sided t-tests at 5% place the mean difference within the margin, "
        f"stated before any comparison: {margins}. It comes first, and is not corrected for the "
        "number of comparisons.\n"
        "- *Better* and *worse*: the interval excludes zero, and the exact Wilcoxon test, "
        "Holm-corrected over the losses of one cell, metric and reference, has p ≤ .05.\n"
        "- *Undetermined*: neither.\n"
        f"- {datasets}, one model{noise}: nothing here is about others.\n"
        f"{notes}"
    )


def _picture(name: str, source: Path, page: Path, headline: str) -> str:
    target = page.with_name(f"{page.stem}-{name}{source.suffix}")
    write_file(target, lambda file: file.write(source.read_bytes()))
    caption = FIGURES[name][1].format(headline=headline)
    return f"![{caption}]({target.name})\n\n*{caption}.*\n"
