"""The answer in sentences; every number and every comparison is computed from records."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from experiments.tables.claim_verdicts import REPRODUCED, REVERSED
from experiments.tables.contrasts import CANDIDATES, DIGITS
from experiments.tables.control_effects import PROTOCOL, verdict_counts
from experiments.tables.decisions import DEFAULT
from experiments.tables.effects import interval
from experiments.tables.evidence import Evidence
from experiments.tables.learning_rates import edge_notes
from experiments.tables.margins import METRICS
from experiments.tables.samples import Place
from experiments.tables.summary import convergence_notes
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
