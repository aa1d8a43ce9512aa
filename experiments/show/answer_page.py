"""The answer as a page of Markdown: its sentences, its tables, and the commands that made them.

Every number and every comparison is computed from records.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.shell.files import write_file, write_text
from experiments.show import contrasts as effects, decisions
from experiments.show.claims import REPRODUCED, REVERSED, claims_table
from experiments.show.contrasts import (
    CANDIDATES,
    DIGITS,
    REFERENCES,
    TAIL,
    effects_table,
    interval,
    reference_label,
)
from experiments.show.controls import (
    PROTOCOL,
    by_control,
    counts_by_control,
    describe_controls,
    verdict_counts,
)
from experiments.show.decisions import DEFAULT
from experiments.show.evidence import Evidence
from experiments.show.metrics import METRICS, Place, Samples
from experiments.show.summary import convergence_notes, edge_notes, version_notes
from experiments.show.tables import Grid, mean_sd, to_json, to_latex, to_markdown
from pgeom.evaluation.significance import BETTER, EQUIVALENT, UNDETERMINED, WORSE
from pgeom.messages import count

VERDICTS = (BETTER, EQUIVALENT, WORSE, UNDETERMINED)


def headlines(evidence: Evidence) -> list[str]:
    """The findings for which there are runs."""
    return [text for finding in FINDINGS if (text := finding(evidence))]


def candidates_and_ce(evidence: Evidence) -> str | None:
    return _candidates(evidence, "ce", "cross-entropy")


def candidates_and_brier(evidence: Evidence) -> str | None:
    return _candidates(evidence, "brier", "the plain Brier score, their geometry-free control,")


def best_by_situation(evidence: Evidence) -> str | None:
    """The choices of the decision table."""
    rows = evidence.decisions.to_dict("records")
    if not rows:
        return None
    chosen = [
        f"{row['situation'].lower()}: {row['label']} ({row['effect']:+.3f} "
        f"{interval(row['low'], row['high'])} {METRICS[row['metric']].words} against CE)"
        for row in rows
        if row["loss"] != DEFAULT
    ]
    default = [row["situation"].lower() for row in rows if row["loss"] == DEFAULT]
    kinds = " and ".join(dict.fromkeys(row["evidence"] for row in rows))
    said = [f"What to choose ({kinds} evidence) — {'; '.join(chosen)}."] * bool(chosen)
    said += [f"Nothing is shown to beat CE for: {'; '.join(default)}."] * bool(default)
    return " ".join(said)


def failures(evidence: Evidence) -> str | None:
    """The most that a loss gives away in the headline metric where labels are clean."""
    headline = evidence.samples.headline
    part = _against(evidence.effects, "ce", headline.name)
    lost = part[(part["regime"] == "clean") & (part["verdict"] == WORSE)]
    if lost.empty:
        return None
    worst = lost.loc[lost.groupby("loss")["difference"].idxmin()].sort_values("difference")
    texts = [
        f"{row['label']} {row['difference']:+.3f} on {row['dataset']}"
        for row in worst.to_dict("records")
    ]
    return (
        f"With clean labels these have a lower {headline.words} than cross-entropy: "
        f"{', '.join(texts)}."
    )


def one_temperature(evidence: Evidence) -> str | None:
    """How much of a lead in NLL is left after temperature scaling, at 40% symmetric noise."""
    leads = [
        _at(_against(evidence.effects, "ce", metric), DIGITS, "gce")
        for metric in ("nll", "calibrated_nll")
    ]
    if any(lead is None for lead in leads):
        return None
    raw, scaled = (lead["difference"] for lead in leads if lead is not None)
    if not raw < 0:
        return None
    return (
        f"On {DIGITS}, GCE's NLL is {-raw:.3f} below cross-entropy's and {-scaled:.3f} below it "
        f"once both are temperature-scaled: one temperature is {1 - scaled / raw:.0%} of the lead."
    )


def controls(evidence: Evidence) -> str | None:
    """What becomes of the candidates under the controls."""
    if evidence.controls.empty:
        return None
    texts, headline = [], evidence.samples.headline
    for reference, name in (("ce", "cross-entropy"), ("brier", "Brier")):
        counts = verdict_counts(evidence.controls, CANDIDATES, reference)
        if counts.empty:
            continue
        counts = counts[(counts["metric"] == headline.name) & (counts["control"] != PROTOCOL)]
        each = [f"{row['control']} {_count(row)}" for row in counts.to_dict("records")]
        texts.append(f"against {name}, {'; '.join(each)}")
    if not texts:
        return None
    return f"{headline.label[:-2]} of the candidates under the controls: {'. '.join(texts)}."


def leads(evidence: Evidence) -> str | None:
    """Which leads over cross-entropy are those of the protocol, and not of the loss."""
    if evidence.controls.empty:
        return None
    cell, headline = ["dataset", "regime", "loss"], evidence.samples.headline
    part = _against(evidence.controls, "ce", headline.name)
    led = part[(part["control"] == PROTOCOL) & (part["verdict"] == BETTER)].set_index(cell)
    varied = part[part["control"] != PROTOCOL].set_index(cell)
    varied = varied.join(led["difference"].rename("before"), how="inner")
    if varied.empty:
        return None
    lost = varied[varied["verdict"] == WORSE]
    reversed_leads = lost.index.nunique()
    text = (
        f"Of {count(len(led), 'lead')} in {headline.words} over cross-entropy under the protocol "
        f"{reversed_leads} {'is' if reversed_leads == 1 else 'are'} reversed by a control"
    )
    if not lost.empty:
        text += f", most of all that of {_changed(lost)}"
    largest = varied.loc[[varied["before"].idxmax()]]
    return f"{text}; the largest is that of {_changed(largest)}."


def _changed(varied: pd.DataFrame) -> str:
    """The row of the least difference, beside that of the protocol."""
    row = varied.reset_index().sort_values("difference").iloc[0]
    return (
        f"{row['label']} on {row['dataset']}, {row['regime']} ({row['before']:+.3f}; "
        f"{row['difference']:+.3f} with {row['control']})"
    )


def convergence(evidence: Evidence) -> str | None:
    """Runs that would have gone on, and learning rates that may lie beyond the grid."""
    said = [f"{note}." for note in convergence_notes(evidence.samples.runs)]
    for runs in evidence.control_runs.values():
        if "at_end" in runs:
            said += [f"{note}." for note in edge_notes(int(runs["at_end"].sum()), len(runs))]
    return " ".join(said) or None


def claims(evidence: Evidence) -> str | None:
    """How many claims stand, and which do not."""
    if evidence.claims.empty:
        return None
    labels = evidence.claims["label"].value_counts()
    against = list(evidence.claims[evidence.claims["label"] == REVERSED]["claim"])
    text = (
        f"Of {len(evidence.claims)} empirical claims of the paper {labels.get(REPRODUCED, 0)} are "
        f"reproduced, {labels.get(REVERSED, 0)} reversed and {labels.get(UNDETERMINED, 0)} "
        "undetermined"
    )
    return text + (f". Reversed: {'; '.join(against)}." if against else ".")


def _candidates(evidence: Evidence, reference: str, name: str) -> str | None:
    """The candidates against a reference, over all cells."""
    texts = []
    for metric in (evidence.samples.headline, METRICS["calibrated_nll"]):
        part = _against(evidence.effects, reference, metric.name)
        part = part[part["loss"].isin(CANDIDATES)]
        if part.empty:
            return None
        counts = part["verdict"].value_counts()
        low, high = part["difference"].min(), part["difference"].max()
        texts.append(
            f"in {metric.words} {low:+.3f} to {high:+.3f} "
            f"({_count(counts)} of {count(len(part), 'comparison')})"
        )
    *others, last = dict.fromkeys(part["label"])
    who = f"{', '.join(others)} and {last} differ" if others else f"{last} differs"
    return f"Over {evidence.effects['seeds'].max()} seeds {who} from {name} {'; '.join(texts)}."


def _count(counts: pd.Series | dict) -> str:
    return ", ".join(f"{name} in {counts.get(name, 0)}" for name in VERDICTS)


def _against(effects: pd.DataFrame, reference: str, metric: str) -> pd.DataFrame:
    return effects[(effects["reference"] == reference) & (effects["metric"] == metric)]


def _at(effects: pd.DataFrame, place: Place, loss: str) -> dict | None:
    here = (effects["dataset"] == place.dataset) & (effects["regime"] == place.regime)
    rows = effects[here & (effects["loss"] == loss)].to_dict("records")
    return rows[0] if rows and np.isfinite(rows[0]["difference"]) else None


FINDINGS: tuple[Callable[[Evidence], str | None], ...] = (
    candidates_and_ce,
    candidates_and_brier,
    best_by_situation,
    failures,
    one_temperature,
    controls,
    leads,
    claims,
    convergence,
)


def make_tables(evidence: Evidence, reasons: Mapping[str, str]) -> dict[str, list[Grid]]:
    """The grids of every label; a label without runs has none.

    Args:
      evidence: as `weigh` gives it.
      reasons: for each control.
    """
    metrics = [metric.name for metric in evidence.samples.metrics]
    tables: dict[str, list[Grid | None]] = {
        "decisions": [decisions.decision_table(evidence.decisions)],
        "claims": [claims_table(evidence.claims)],
        "ranks": [effects.ranks_table(evidence.ranked)],
        "means": [means_table(evidence.samples, metric) for metric in metrics],
        "controls": control_tables(evidence, reasons),
    }
    for reference in set(REFERENCES) & set(evidence.effects["reference"]):
        tables[f"against-{reference}"] = [
            effects_table(evidence.effects, reference, metric) for metric in metrics
        ]
    return {label: [grid for grid in grids if grid] for label, grids in tables.items()}


def means_table(samples: Samples, metric: str) -> Grid:
    """Mean ± sample sd over seeds: losses down, places across, the best of each marked."""
    rows, means = [], []
    for loss, label in samples.labels.items():
        values = [
            samples.compared(place, [loss], metric)[0].astype(float)
            if loss in samples.losses(place)
            else np.array([])
            for place in samples.places
        ]
        means.append([one.mean() if len(one) else np.nan for one in values])
        rows.append([label, *map(_mean_sd, values)])
    signed = METRICS[metric].gain(1.0) * np.round(means, 3)
    highest = np.max(signed, axis=0, where=~np.isnan(signed), initial=-np.inf)
    best = {(int(row), int(column) + 1) for row, column in np.argwhere(signed == highest)}
    title = f"{METRICS[metric].label}: mean ± sample sd"
    notes = ["best of each column marked"]
    return Grid(title, ["Loss", *map(str, samples.places)], rows, best, notes)


def control_tables(evidence: Evidence, reasons: Mapping[str, str]) -> list[Grid | None]:
    """Why the controls are there, how the candidates fare under them, and two cells in full."""
    if evidence.controls.empty:
        return []
    grids = [describe_controls(evidence.control_runs, reasons)]
    for reference in REFERENCES:
        counts = verdict_counts(evidence.controls, CANDIDATES, reference)
        title = f"CAPM, HPG and APMS against {reference_label(reference)}, by control"
        grids.append(counts_by_control(counts, title))
    first = evidence.samples.headline.name
    cells = [(DIGITS, metric) for metric in evidence.controlled] + [(TAIL, first)]
    return grids + [by_control(evidence.controls, place, metric, "ce") for place, metric in cells]


def write_tables(tables: Mapping[str, list[Grid]], evidence: Evidence, out: Path) -> list[Path]:
    """Every table as Markdown and LaTeX, and the numbers behind them as CSV and JSON."""
    written = []
    for label, grids in tables.items():
        if grids:
            latex = "\n".join(to_latex(grid, f"answer-{label}") for grid in grids)
            written.append(write_text(out / f"{label}.md", "\n".join(map(to_markdown, grids))))
            write_text(out / f"{label}.tex", latex)
    frames = {name: getattr(evidence, name) for name in ("effects", "decisions", "claims")}
    if not evidence.controls.empty:
        frames["control-effects"] = evidence.controls
    for name, frame in frames.items():
        write_text(out / f"{name}.csv", frame.to_csv(index=False))
        write_text(out / f"{name}.json", to_json(frame))
    return written


def _mean_sd(values: np.ndarray) -> str:
    if not len(values):
        return "–"
    return mean_sd(values.mean(), values.std(ddof=1) if len(values) > 1 else np.nan)


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
