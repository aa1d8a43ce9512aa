"""The canonical link against softmax, loss by loss, on matched seeds.

A sparse link may give a label the probability zero, and its NLL is then infinite. Both links are
therefore also compared by the NLL of a hedged forecast, p̃ = (v p + u)/(v + 1) with u uniform and v
the number of validation examples: what a forecaster could issue who adds one example of a uniform
label to those by which it was checked.

>>> float(hedged_nll(np.array([[[0.0, -np.inf]]]), np.array([[1]]), 1)[0])  # log 4
1.3863
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from experiments.engine.linked import LINKED
from experiments.engine.results import read_frame, read_logits
from experiments.engine.study import Study
from experiments.show.contrasts import SIGNS, interval
from experiments.show.metrics import METRICS, Metric, Samples, headline
from experiments.show.tables import Grid
from pgeom.data.splits import split_rows
from pgeom.evaluation.significance import compare

HEDGED = Metric("hedged_nll", "Hedged NLL ↓", False, METRICS["nll"].margin)


def compared_metrics(runs: pd.DataFrame) -> tuple[Metric, ...]:
    """What the two links are compared by."""
    return headline(runs), METRICS["brier"], METRICS["ece"], HEDGED


def hedged_nll(
    logits: Float[np.ndarray, "S n K"], labels: Int[np.ndarray, "S n"], v: int
) -> Float[np.ndarray, " S"]:
    """The mean of −log((v p_y + 1/K)/(v + 1)), where p is the softmax of the logits."""
    z = logits.astype(float) - logits.max(axis=-1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)
    own = np.take_along_axis(p, labels[..., None], axis=-1)[..., 0]
    return -np.log((v * own + 1 / p.shape[-1]) / (v + 1)).mean(axis=-1)


def read_links(studies: Sequence[Study], folder: Path) -> pd.DataFrame:
    """The runs of the studies, with their hedged NLL."""
    frames = []
    for study in studies:
        frame = read_frame(study, folder).astype({"regime": str, "loss": str})
        v = len(split_rows(study.dataset, study.seeds[0])[1])
        for regime in study.regimes:
            test = read_logits(study, regime, folder)
            for name, logits in test.logits.items():
                place = (frame["regime"] == str(regime)) & (frame["loss"] == name)
                values = dict(zip(study.seeds, hedged_nll(logits, test.labels, v), strict=True))
                frame.loc[place, HEDGED.name] = frame.loc[place, "seed"].map(values)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def compare_links(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per place, loss and metric: canonical less softmax, as `paired.compare` judges it.

    Holm's correction is over the losses of a place and metric.
    """
    samples, rows = Samples(runs), []
    zeros = runs.groupby(["dataset", "regime", "loss"])["zero_rate"].mean()
    for place in samples.places:
        linked = [name for name in samples.losses(place) if name.endswith(LINKED)]
        for metric in compared_metrics(runs):
            values = samples.compared(place, linked, metric.name)
            plain = samples.compared(place, [x.removesuffix(LINKED) for x in linked], metric.name)
            result = compare(
                values, plain, margin=metric.margin, higher_is_better=metric.higher_is_better
            )
            columns = {
                **place._asdict(),
                "loss": [name.removesuffix(LINKED) for name in linked],
                "label": [samples.labels[name.removesuffix(LINKED)] for name in linked],
                "metric": metric.name,
                "seeds": values.shape[1],
                "softmax": plain.mean(axis=1, dtype=float),
                "canonical": values.mean(axis=1, dtype=float),
                "zero_rate": [zeros[(*place, name)] for name in linked],
            }
            rows.append(pd.DataFrame({**columns, **result._asdict()}))
    return pd.concat(rows, ignore_index=True)


def links_table(effects: pd.DataFrame) -> Grid:
    """Losses in places down, metrics across: differences, intervals and verdicts."""
    keys, rows = ["dataset", "regime", "label"], []
    known = METRICS | {HEDGED.name: HEDGED}
    metrics = [known[name] for name in effects["metric"].unique()]
    for (dataset, regime, label), part in effects.groupby(keys, sort=False):
        cells = {row["metric"]: _text(row) for row in part.to_dict("records")}
        zero = f"{part['zero_rate'].iloc[0]:.3f}"
        rows.append([f"{dataset}, {regime}", label, *(cells[m.name] for m in metrics), zero])
    header = ["Cell", "Loss", *(metric.label for metric in metrics), "p_y = 0"]
    note = (
        f"canonical less softmax, mean paired difference [95% BCa interval] over "
        f"{effects['seeds'].max()} seeds; + better, − worse (interval and Holm-corrected Wilcoxon "
        "test agree), = equivalent (TOST, 5%), ? undetermined; p_y = 0: the share of test labels "
        "with probability zero under the canonical link, each of which makes the NLL infinite"
    )
    return Grid("canonical link against softmax", header, rows, set(), [note])


def summarise_links(effects: pd.DataFrame) -> str:
    """How many comparisons went which way, in one sentence."""
    counts = effects["verdict"].value_counts()
    words = ", ".join(f"{counts.get(verdict, 0)} {verdict}" for verdict in SIGNS)
    return (
        f"The canonical link against softmax, {len(effects)} comparisons over "
        f"{effects['seeds'].max()} seeds: {words}."
    )


def _text(row: dict) -> str:
    if np.isnan(row["difference"]):
        return "diverged"
    return f"{row['difference']:+.3f} {interval(row['low'], row['high'])} {SIGNS[row['verdict']]}"
