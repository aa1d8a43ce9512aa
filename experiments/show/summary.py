"""Tables of one study: means over seeds, tests against cross-entropy, calibration, rates."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from experiments.show.metrics import BALANCED, METRICS, compared, headline
from experiments.show.tables import Grid, mean_sd, p_value
from pgeom.evaluation.significance import Wilcoxon, holm, paired_wilcoxon
from pgeom.losses.spec import LossSpec
from pgeom.messages import count

CALIBRATION_ERRORS = {
    "ece": "ECE ↓",
    "debiased_ece": "Debiased ECE ↓",
    "smooth_ece": "Smooth ECE ↓",
    "classwise_ece": "Classwise ECE ↓",
}


def scores(frame: pd.DataFrame) -> dict[str, str]:
    """The metrics of a page about these runs by name, with their labels."""
    return {one.name: one.label for one in compared(frame) if one.name != "calibrated_nll"}


def summarise(
    frame: pd.DataFrame, metrics: Sequence[str] | None = None, by=("regime", "loss")
) -> pd.DataFrame:
    """Mean and sample standard deviation over seeds, one row per (regime, loss), with its label.

    Without `metrics` they are those of `scores`.

    A run without a number (it diverged) leaves its cell without one too.
    """
    metrics = tuple(scores(frame)) if metrics is None else metrics
    groups = frame.groupby(list(by), observed=True)
    columns = {
        "label": groups["label"].first(),
        "seeds": groups.size(),
        "diverged": groups["diverged_epoch"].agg(lambda e: (e > 0).sum()),
    }
    for metric in metrics:
        values = groups[metric]
        columns[f"{metric}_mean"] = values.agg(lambda v: v.astype(float).mean(skipna=False))
        columns[f"{metric}_sd"] = values.agg(lambda v: v.astype(float).std(ddof=1, skipna=False))
    return pd.DataFrame(columns).reset_index()


def performance(
    frame: pd.DataFrame, title: str, regime: str, metrics: Mapping[str, str] | None = None
) -> Grid:
    """Mean ± sample sd of every metric for one regime, the best of each marked.

    Without `metrics` they are those of `scores`.
    """
    metrics = scores(frame) if metrics is None else metrics
    frame = frame[frame["regime"] == regime]
    rows = summarise(frame, tuple(metrics)).reset_index(drop=True)
    best = set()
    for column, (metric, label) in enumerate(metrics.items(), start=1):
        means = rows[f"{metric}_mean"].round(3)
        if means.notna().any():
            extreme = means.max() if "↑" in label else means.min()
            best |= {(row, column) for row in rows.index[means == extreme]}
    text = [
        [row["label"], *(_cell(row, metric) for metric in metrics)]
        for row in rows.to_dict("records")
    ]
    seeds = int(rows["seeds"].max())
    notes = [f"mean ± sample sd over {count(seeds, 'seed')}; best of each column marked"]
    return Grid(title, ["Loss", *metrics.values()], text, best, notes + run_notes(frame))


def crossed(frame: pd.DataFrame, variants: Sequence[LossSpec], title: str, metric: str) -> Grid:
    """Mean ± sample sd of one metric, variants down, places across, the best of each marked."""
    names = [variant.name for variant in variants]
    frame = frame[frame["loss"].isin(names)]
    rows = summarise(frame, (metric,), by=("loss", "place"))
    places = list(dict.fromkeys(frame["place"]))
    cells = {(row["loss"], row["place"]): row for row in rows.to_dict("records")}
    text = [
        [variant.label, *(_cell(cells[variant.name, place], metric) for place in places)]
        for variant in variants
    ]
    best = set()
    for column, place in enumerate(places, start=1):
        means = [round(cells[name, place][f"{metric}_mean"], 3) for name in names]
        best |= {(row, column) for row, mean in enumerate(means) if mean == np.nanmax(means)}
    seeds = count(frame["seed"].nunique(), "seed")
    notes = [f"{METRICS[metric].words}, mean ± sample sd over {seeds}; descriptive"]
    return Grid(title, ["Variant", *places], text, best, notes + run_notes(frame))


def run_notes(frame: pd.DataFrame) -> list[str]:
    """What a reader must know of runs: which diverged or have not converged, several versions."""
    return _diverged(frame) + convergence_notes(frame) + version_notes(frame)


def convergence_notes(frame: pd.DataFrame, epochs: int | None = None) -> list[str]:
    """A note where runs were best in their last epoch: they would have gone on.

    Args:
      frame: the runs.
      epochs: the number that `--epochs` had, where runs had others.
    """
    if "stopped_epoch" not in frame:
        return []
    last = frame[frame["best_epoch"] == frame["stopped_epoch"]]
    last = last[[_is_best_at_the_end(run) for run in last.to_dict("records")]]
    if last.empty:
        return []
    more = 2 * (epochs or int(last["stopped_epoch"].max()))
    were = "was best in its" if len(last) == 1 else "were best in their"
    runs = count(len(frame), "run")
    return [f"{len(last)} of {runs} {were} last epoch: not converged, try --epochs {more}"]


def _is_best_at_the_end(run: dict) -> bool:
    """Whether the last epoch, which was kept, was the best: `--stop-on none` keeps it anyway."""
    if run.get("stop_on") != "none":
        return True
    curves = (run.get(name) for name in ("validation_nll", "validation_loss"))
    values = next((curve for curve in curves if isinstance(curve, list)), [])
    known = [value for value in values if value is not None]
    return not known or values[-1] == min(known)


def version_notes(frame: pd.DataFrame) -> list[str]:
    """A note where the runs were not all made by the same versions."""
    made = pd.DataFrame(list(frame["versions"])) if "versions" in frame else pd.DataFrame()
    several = [name for name in made.columns if made[name].nunique() > 1]
    if not several:
        return []
    counts = [
        f"{name} "
        + " and ".join(f"{v} ({count(n, 'run')})" for v, n in made[name].value_counts().items())
        for name in several
    ]
    return [f"made by several versions: {'; '.join(counts)}"]


def _cell(row: dict, metric: str) -> str:
    return mean_sd(row[f"{metric}_mean"], row[f"{metric}_sd"])


def _diverged(frame: pd.DataFrame) -> list[str]:
    bad = frame[frame["diverged_epoch"] > 0]
    return [
        f"{run.label}, seed {run.seed}: validation NLL not finite from epoch "
        f"{run.diverged_epoch}; scored at its best epoch before, {run.best_epoch}"
        for run in bad.itertuples()
    ]


TEMPERED = {
    "nll": "Raw NLL ↓",
    "calibrated_nll": "Cal. NLL ↓",
    "ece": "Raw ECE ↓",
    "calibrated_ece": "Cal. ECE ↓",
}


def temperature_scaling(frame: pd.DataFrame) -> Grid:
    """The table of clean data, with a note where a temperature is no minimum."""
    title = f"{frame['dataset'].iloc[0]}, clean: temperature scaling"
    grid = performance(frame, title, "clean", TEMPERED)
    at_bound = frame[frame["temperature_at_bound"]]
    notes = [
        f"{run.label}, seed {run.seed}: the best temperature is a bound, {run.temperature:.3g}"
        for run in at_bound.itertuples()
    ]
    return grid.with_notes(notes)


REFERENCE = "ce"


def significance(frame: pd.DataFrame, title: str, regime: str) -> Grid | None:
    """Exact Wilcoxon tests against cross-entropy, in the headline metric and NLL, Holm-corrected.

    None where cross-entropy is not among the losses, or nothing else is.
    """
    metric = headline(frame)
    frame = frame[frame["regime"] == regime]
    labels = dict(zip(frame["loss"], frame["label"], strict=True))
    losses = [loss for loss in labels if loss != REFERENCE]
    if REFERENCE not in labels or not losses:
        return None
    header, columns = ["Loss"], [[labels[loss] for loss in losses]]
    short = "balanced acc" if metric is BALANCED else "acc"
    for field, name in ((metric.name, short), ("nll", "NLL")):
        pivot = frame.pivot(index="seed", columns="loss", values=field).astype(np.float32)
        header += [f"Δ{name}", "p", "Holm", "floor"]
        columns += _columns(pivot, losses)
    pairs = frame["seed"].nunique()
    notes = [
        "p: exact two-sided Wilcoxon on matched seeds; Holm: corrected over the losses",
        f"floor: the least p that the pairs which differ could give; {_floor(pairs, len(losses))}",
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return Grid(f"{title}: against CE", header, rows, set(), notes + version_notes(frame))


def _columns(pivot: pd.DataFrame, losses: list[str]) -> list[list[str]]:
    """Mean difference, p, corrected p and least attainable p of every loss."""
    tests = [_compare(pivot[loss], pivot[REFERENCE]) for loss in losses]
    known = [place for place, test in enumerate(tests) if test is not None]
    p_values = [test.p_value for test in tests if test is not None]
    adjusted = dict(zip(known, holm(p_values), strict=True))
    return [
        [f"{(pivot[loss] - pivot[REFERENCE]).mean():+.3f}" for loss in losses],
        ["–" if test is None else p_value(test.p_value) for test in tests],
        [p_value(adjusted[k]) if k in adjusted else "–" for k in range(len(tests))],
        ["–" if test is None else p_value(test.attainable) for test in tests],
    ]


def _compare(values: pd.Series, reference: pd.Series) -> Wilcoxon | None:
    """The test of one loss, or None where a run has no number to compare."""
    if values.isna().any() or reference.isna().any():
        return None
    return paired_wilcoxon(values.to_numpy(), reference.to_numpy())


def _floor(pairs: int, losses: int) -> str:
    """The least p of so many pairs, and what Holm's correction makes of it for the first loss."""
    least = 2.0 / 2**pairs
    corrected = min(1.0, losses * least)
    text = (
        f"with {count(pairs, 'pair')} at best {least:.4g}, "
        f"Holm-corrected over {losses} {corrected:.4g}"
    )
    return f"{text}, so the comparison is descriptive" if corrected > 0.05 else text


def count_selected(frames: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """How often each learning rate has the least validation NLL: labels down, rates across."""
    selected = select_runs(frames)
    counts = pd.crosstab(selected["label"], selected["learning_rate"])
    order = list(dict.fromkeys(next(iter(frames.values()))["label"]))
    return counts.reindex(index=order, columns=sorted(frames), fill_value=0)


def select_runs(frames: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """Of the runs of a loss with a seed, the one at the rate of least validation NLL."""
    parts = [frame.assign(learning_rate=rate) for rate, frame in frames.items()]
    runs = pd.concat(parts, ignore_index=True)
    runs["least"] = runs["validation_nll"].map(
        lambda curve: min((v for v in curve if v is not None), default=np.inf)
    )
    groups = runs.groupby(["dataset", "regime", "seed", "loss"], observed=True)
    return runs.loc[groups["least"].idxmin()].drop(columns="least")


def edge_notes(at_end: int, chosen: int) -> list[str]:
    """A note where chosen learning rates are at an end of their grid.

    Args:
      at_end: how many are the smallest or the largest.
      chosen: how many there are.
    """
    if not at_end:
        return []
    rates, are = count(chosen, "chosen learning rate"), "is" if at_end == 1 else "are"
    return [
        f"{at_end} of {rates} {are} at an end of the grid: the best may lie beyond it, try another "
        "--learning-rate"
    ]


def selection_table(counts: pd.DataFrame, dataset: str) -> Grid:
    """Counts of selection as a grid."""
    at_end = int(counts.iloc[:, [0, -1]].to_numpy().sum())
    rows = [
        [label, *map(str, row)] for label, row in zip(counts.index, counts.to_numpy(), strict=True)
    ]
    notes = ["cells in which the rate has the least validation NLL; no comparison of test scores"]
    notes += edge_notes(at_end, int(counts.to_numpy().sum()))
    header = ["Loss", *(f"{rate:g}" for rate in counts.columns)]
    title = f"{dataset}: learning rate of least validation NLL"
    return Grid(title, header, rows, set(), notes)
