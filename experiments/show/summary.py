"""Tables of one study: means over seeds, learning rates, ways to stop, and notes about the runs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.show.metrics import METRICS, compared, headline
from experiments.show.tables import Grid, means_grid
from pgeom.losses.spec import LossSpec
from pgeom.messages import count


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
    groups = frame.groupby(list(by), observed=True)
    columns = {
        "label": groups["label"].first(),
        "seeds": groups.size(),
        "diverged": groups["diverged_epoch"].agg(lambda e: (e > 0).sum()),
    }
    for metric in scores(frame) if metrics is None else metrics:
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
    runs, notes = dict(list(frame.groupby("loss", observed=True))), run_notes(frame)
    labels = {loss: part["label"].iloc[0] for loss, part in runs.items()}
    seeds = count(max(map(len, runs.values())), "seed")
    notes = [f"mean ± sample sd over {seeds}; best of each column marked", *notes]
    return means_grid(title, labels, metrics, lambda x, name: runs[x][name], notes=notes)


def crossed(frame: pd.DataFrame, variants: Sequence[LossSpec], title: str, metric: str) -> Grid:
    """Mean ± sample sd of one metric, variants down, places across, the best of each marked."""
    rows = {variant.name: variant.label for variant in variants}
    frame = frame[frame["loss"].isin(rows)]
    groups = frame.groupby(["loss", "place"])[metric]
    seeds = count(frame["seed"].nunique(), "seed")
    notes = [f"{METRICS[metric].words}, mean ± sample sd over {seeds}; descriptive"]
    return means_grid(
        title,
        rows,
        {place: place for place in dict.fromkeys(frame["place"])},
        lambda loss, place: groups.get_group((loss, place)),
        notes=notes + run_notes(frame),
        lower=not METRICS[metric].higher_is_better,
        corner="Variant",
    )


def run_notes(frame: pd.DataFrame) -> list[str]:
    """What a reader must know of runs: which diverged or have not converged, several versions."""
    diverged = [
        f"{run.label}, seed {run.seed}: validation NLL not finite from epoch "
        f"{run.diverged_epoch}; scored at its best epoch before, {run.best_epoch}"
        for run in frame[frame["diverged_epoch"] > 0].itertuples()
    ]
    return diverged + convergence_notes(frame) + version_notes(frame)


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


def bound_notes(frame: pd.DataFrame) -> list[str]:
    """A note for each run whose best temperature is no minimum."""
    at_bound = frame[frame["temperature_at_bound"]]
    return [
        f"{run.label}, seed {run.seed}: the best temperature is a bound, {run.temperature:.3g}"
        for run in at_bound.itertuples()
    ]


class Way(NamedTuple):
    """A way to stop: its runs, and the fields of their headline metric, NLL and epoch."""

    frame: pd.DataFrame
    field: str
    nll: str = "nll"
    epoch: str = "best_epoch"


def ways_to_stop(frames: Mapping[str, pd.DataFrame]) -> dict[str, Way]:
    """What figures and tables of the long tail compare, by name.

    Whether training stops early or not, the checkpoint of least validation NLL is kept; of the runs
    that were trained to the end the last epoch is shown, too, where it was recorded.

    Args:
      frames: the runs with early stopping, and those without.
    """
    stopped, free = frames.values()
    metric = headline(stopped).name
    ways = {
        "stopped early, best checkpoint": Way(stopped, metric),
        "trained to the end, best checkpoint": Way(free, metric),
    }
    if f"last_{metric}" in free:
        last = Way(free, f"last_{metric}", "last_nll", "stopped_epoch")
        ways["trained to the end, last epoch"] = last
    return ways


def stopping_grids(frames: Mapping[str, pd.DataFrame]) -> list[Grid]:
    """For each way of stopping the headline metric, NLL, and the epoch that is shown."""
    grids = []
    for name, (frame, field, nll, epoch) in ways_to_stop(frames).items():
        runs = dict(list(frame.groupby("loss", observed=True)))
        labels = {loss: part["label"].iloc[0] for loss, part in runs.items()}
        columns = {field: headline(frame).label, nll: "NLL ↓", epoch: "Epoch"}
        notes = [f"mean ± sample sd over {count(max(map(len, runs.values())), 'seed')}"]
        values = lambda loss, column, runs=runs: runs[loss][column]  # noqa: E731
        grid = means_grid(name, labels, columns, values, notes=[*notes, *run_notes(frame)])
        grids.append(grid._replace(best={place for place in grid.best if place[1] < len(columns)}))
    return grids


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


def selection_grid(counts: pd.DataFrame, dataset: str) -> Grid:
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
