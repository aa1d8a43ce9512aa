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
from experiments.show.contrasts import compare_with, effect_text, rule_note
from experiments.show.metrics import METRICS, Metric, Samples, headline
from experiments.show.tables import Grid
from pgeom.data.splits import split_rows


def compared_metrics(runs: pd.DataFrame) -> tuple[Metric, ...]:
    """What the two links are compared by."""
    return headline(runs), METRICS["brier"], METRICS["ece"], METRICS["hedged_nll"]


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
                frame.loc[place, "hedged_nll"] = frame.loc[place, "seed"].map(values)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def compare_links(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per place, loss and metric: canonical less softmax, as `compare_with` judges it.

    Holm's correction is over the losses of a place and metric.
    """
    samples, parts = Samples(runs), []
    for place in samples.places:
        linked = [name for name in samples.losses(place) if name.endswith(LINKED)]
        pairs = {name: name.removesuffix(LINKED) for name in linked}
        parts += [compare_with(samples, place, one.name, pairs) for one in compared_metrics(runs)]
    effects = pd.concat(parts, ignore_index=True)
    zeros = runs.groupby(["dataset", "regime", "loss"])["zero_rate"].mean()
    keys = zip(effects["dataset"], effects["regime"], effects["loss"], strict=True)
    return effects.assign(
        zero_rate=[zeros[key] for key in keys],
        loss=effects["reference"],
        label=effects["reference"].map(samples.labels),
    )


def links_grid(effects: pd.DataFrame) -> Grid:
    """Losses in places down, metrics across: differences, intervals and verdicts."""
    rows, metrics = [], list(dict.fromkeys(effects["metric"]))
    for where, part in effects.groupby(["dataset", "regime", "label"], sort=False):
        texts = {row["metric"]: effect_text(row) for row in part.to_dict("records")}
        zero = f"{part['zero_rate'].iloc[0]:.3f}"
        rows.append([", ".join(where[:2]), where[2], *(texts[name] for name in metrics), zero])
    header = ["Cell", "Loss", *(METRICS[name].label for name in metrics), "p_y = 0"]
    notes = [
        f"canonical less softmax: {rule_note(effects)}",
        "p_y = 0: the share of test labels with probability zero under the canonical link, each of "
        "which makes the NLL infinite",
    ]
    return Grid("canonical link against softmax", header, rows, set(), notes)
