"""The comparisons under each control: does a difference belong to the loss or to the protocol?"""

from collections.abc import Mapping

import pandas as pd

from experiments.show.contrasts import compare_losses, effect_text, reference_label, rule_note
from experiments.show.metrics import METRICS, Place, Samples
from experiments.show.summary import select_runs
from experiments.show.tables import Grid
from pgeom.evaluation.significance import BETTER, EQUIVALENT, UNDETERMINED, WORSE


def take_last_epoch(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with the metrics of their last epoch in place of those of the kept one."""
    last = {metric: runs[f"last_{metric}"] for metric in METRICS}
    return runs.assign(**last, best_epoch=runs["stopped_epoch"], stop_on="none")


def take_chosen_rate(frames: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """Of each loss and seed the run at the rate of least validation NLL.

    `at_end` says where that is the smallest or the largest rate.
    """
    selected = select_runs(frames)
    ends = (min(frames), max(frames))
    return selected.assign(at_end=selected["learning_rate"].isin(ends))


KEY = ["reference", "metric", "dataset", "regime", "loss"]
PROTOCOL = "the paper's protocol"
OPPOSITE = {(BETTER, WORSE), (WORSE, BETTER)}


def compare_controls(
    protocol: pd.DataFrame, frames: Mapping[str, pd.DataFrame], metrics: tuple[str, ...]
) -> pd.DataFrame:
    """The comparisons of the protocol and of every control; `control` tells them apart.

    Args:
      protocol: as `compare_losses` gives it.
      frames: the runs of each control.
      metrics: to compare in.
    """
    parts = [protocol[protocol["metric"].isin(metrics)].assign(control=PROTOCOL)]
    for name, runs in frames.items():
        parts.append(compare_losses(Samples(runs), metrics=metrics).assign(control=name))
    return pd.concat(parts, ignore_index=True)


def verdict_counts(controls: pd.DataFrame, losses: tuple[str, ...], reference: str) -> pd.DataFrame:
    """How often each verdict was reached for some losses, and how it compares with the protocol's.

    Columns: control, metric, seeds, the four verdicts, and `reversed`: how many that the protocol
    has as better are worse under the control, or the other way round.
    """
    part = controls[controls["loss"].isin(losses) & (controls["reference"] == reference)]
    protocol = part[part["control"] == PROTOCOL].set_index(KEY)["verdict"]
    rows = []
    for (control, metric), group in part.groupby(["control", "metric"], sort=False):
        counts = group["verdict"].value_counts()
        before = protocol.reindex(pd.MultiIndex.from_frame(group[KEY]))
        opposite = sum(pair in OPPOSITE for pair in zip(before, group["verdict"], strict=True))
        verdicts = {name: counts.get(name, 0) for name in (BETTER, EQUIVALENT, WORSE, UNDETERMINED)}
        rows.append(
            {
                "control": control,
                "metric": metric,
                "seeds": group["seeds"].max(),
                **verdicts,
                "reversed": opposite,
            }
        )
    return pd.DataFrame(rows)


def counts_by_control(counts: pd.DataFrame, title: str) -> Grid | None:
    """Verdict counts as a grid, one row per control and metric."""
    if counts.empty:
        return None
    verdicts = [BETTER, EQUIVALENT, WORSE, UNDETERMINED]
    rows = [
        [
            row["control"],
            METRICS[row["metric"]].label,
            *(str(row[name]) for name in (*verdicts, "reversed", "seeds")),
        ]
        for row in counts.to_dict("records")
    ]
    header = ["Control", "Metric", *(name.capitalize() for name in verdicts), "Reversed", "Seeds"]
    notes = [
        "verdicts over all cells of the control; reversed: better under the protocol and worse "
        "under the control, or the other way round; fewer seeds leave more undetermined"
    ]
    return Grid(title, header, rows, set(), notes)


def by_control(controls: pd.DataFrame, place: Place, metric: str, reference: str) -> Grid | None:
    """The differences of every loss in one place: losses down, controls across."""
    here = (controls["dataset"] == place.dataset) & (controls["regime"] == place.regime)
    about = (controls["metric"] == metric) & (controls["reference"] == reference)
    part = controls[here & about]
    if part.empty:
        return None
    names = list(dict.fromkeys(part["control"]))
    labels = dict(zip(part["loss"], part["label"], strict=True))
    cells = {(row["loss"], row["control"]): effect_text(row) for row in part.to_dict("records")}
    rows = [
        [label, *(cells.get((loss, name), "–") for name in names)] for loss, label in labels.items()
    ]
    title = f"{place}: {METRICS[metric].label} against {reference_label(reference)}, by control"
    return Grid(title, ["Loss", *names], rows, set(), [rule_note(part, metric)])


def describe_controls(
    frames: Mapping[str, pd.DataFrame], reasons: Mapping[str, str]
) -> Grid | None:
    """Why each control is there, and whether it does its work.

    Args:
      frames: the runs of each control.
      reasons: what each separates from the loss.
    """
    rows = []
    for name, runs in frames.items():
        unturned = int((runs["best_epoch"] == runs["stopped_epoch"]).sum())
        at_end = str(int(runs["at_end"].sum())) if "at_end" in runs else "–"
        counts = [str(len(runs)), str(runs["seed"].nunique()), str(unturned), at_end]
        rows.append([name, *counts, reasons[name]])
    if not rows:
        return None
    header = ["Control", "Runs", "Seeds", "Kept the last epoch", "Rate at an end", "Because"]
    notes = ["kept the last epoch: validation had not turned; rate at an end: of the grid"]
    return Grid("the controls", header, rows, set(), notes)
