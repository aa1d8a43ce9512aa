"""The comparisons under each control: does a difference belong to the loss or to the protocol?"""

from collections.abc import Mapping

import pandas as pd

from experiments.engine.controls import CONTROLS
from experiments.show.contrasts import (
    CANDIDATES,
    DIGITS,
    REFERENCES,
    TAIL,
    compare_losses,
    effects_grid,
    select_effects,
)
from experiments.show.metrics import METRICS, PROBABILITIES, Samples
from experiments.show.summary import select_runs
from experiments.show.tables import Grid
from pgeom.evaluation.significance import BETTER, EQUIVALENT, UNDETERMINED, WORSE
from pgeom.losses.catalogue import LOSSES


def take_last_epoch(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with the metrics of their last epoch in place of those of the kept one."""
    known = ["accuracy", "balanced_accuracy", *(metric.name for metric in PROBABILITIES)]
    last = {name: runs[f"last_{name}"] for name in known}
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

    Columns: control, metric, the four verdicts, `reversed`: how many that the protocol has as
    better are worse under the control, or the other way round; and seeds.
    """
    part = controls[controls["loss"].isin(losses) & (controls["reference"] == reference)]
    protocol = part[part["control"] == PROTOCOL].set_index(KEY)["verdict"]
    rows = []
    for (control, metric), group in part.groupby(["control", "metric"], sort=False):
        counts = group["verdict"].value_counts()
        before = protocol.reindex(pd.MultiIndex.from_frame(group[KEY]))
        pairs = zip(before, group["verdict"], strict=True)
        verdicts = {name: counts.get(name, 0) for name in (BETTER, EQUIVALENT, WORSE, UNDETERMINED)}
        about = {"control": control, "metric": METRICS[metric].label, **verdicts}
        opposite = sum(pair in OPPOSITE for pair in pairs)
        rows.append({**about, "reversed": opposite, "seeds": group["seeds"].max()})
    return pd.DataFrame(rows)


def control_grids(controls: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> list[Grid]:
    """Why each control is there, how the candidates fare under them, and two cells in full.

    Args:
      controls: as `compare_controls` gives it.
      frames: the runs of each control.
    """
    if not frames:
        return []
    grids = [describe_controls(frames)]
    note = (
        "verdicts over all cells of the control; reversed: better under the protocol and worse "
        "under the control, or the other way round; fewer seeds leave more undetermined"
    )
    for reference in REFERENCES:
        counts = verdict_counts(controls, CANDIDATES, reference)
        if not counts.empty:
            label = LOSSES[reference].label
            title = f"CAPM, HPG and APMS against {label}, by control"
            rows = counts.astype(str).to_numpy().tolist()
            grids.append(
                Grid(title, [str(name).capitalize() for name in counts], rows, set(), [note])
            )
    first, *others = dict.fromkeys(controls["metric"])
    for place, metric in [*((DIGITS, one) for one in (first, *others)), (TAIL, first)]:
        part = select_effects(controls, "ce", metric)
        part = part[(part["dataset"] == place.dataset) & (part["regime"] == place.regime)]
        if not part.empty:
            title = f"{place}: {METRICS[metric].label} against CE, by control"
            grids.append(effects_grid(part, title, ["control"]))
    return grids


def describe_controls(frames: Mapping[str, pd.DataFrame]) -> Grid:
    """Why each control is there, and whether it does its work."""
    rows, reasons = [], {control.name: control.reason for control in CONTROLS}
    for name, runs in frames.items():
        unturned = int((runs["best_epoch"] == runs["stopped_epoch"]).sum())
        at_end = str(int(runs["at_end"].sum())) if "at_end" in runs else "–"
        counts = [str(len(runs)), str(runs["seed"].nunique()), str(unturned), at_end]
        rows.append([name, *counts, reasons[name]])
    header = ["Control", "Runs", "Seeds", "Kept the last epoch", "Rate at an end", "Because"]
    notes = ["kept the last epoch: validation had not turned; rate at an end: of the grid"]
    return Grid("the controls", header, rows, set(), notes)
