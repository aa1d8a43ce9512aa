"""Runs with planted differences between losses, as `read_frames` would give them."""

import numpy as np
import pandas as pd

from experiments.show.contrasts import EVERYWHERE, TAIL
from experiments.show.metrics import Place
from pgeom.losses.catalogue import GENERAL, LOSSES

LEVELS = {
    "accuracy": 0.9,
    "balanced_accuracy": 0.9,
    "nll": 0.4,
    "calibrated_nll": 0.35,
    "plain_calibrated_nll": 0.35,
    "brier": 0.2,
    "ece": 0.05,
    "calibrated_ece": 0.03,
    "plain_calibrated_ece": 0.03,
}
NOISE = 0.002  # sd of a loss about the others on one seed


def planted_runs(
    shifts: dict | None = None,
    *,
    losses: tuple[str, ...] | None = None,
    places: tuple[Place, ...] = EVERYWHERE,
    seeds: int = 30,
    noise: float = NOISE,
    levels: dict = LEVELS,
) -> pd.DataFrame:
    """Every metric at its level, with a deviation per seed that all losses share.

    Args:
      shifts: added to a metric, by (place, loss, metric); None for the place is everywhere.
      losses: names of the catalogue; those that the paper has in the place if not given.
      places: to run.
      seeds: how many.
      noise: sd of each loss about the shared deviation.
      levels: of the metrics.
    """
    rng, rows = np.random.default_rng(0), []
    for place in places:
        shared = rng.normal(0, 0.01, seeds)
        for loss in losses or (LOSSES if place == TAIL else GENERAL):
            spec = LOSSES.get(loss)
            values = {name: x + shared + rng.normal(0, noise, seeds) for name, x in levels.items()}
            for (where, who, metric), shift in (shifts or {}).items():
                if where in (None, place) and who == loss:
                    values[metric] = values[metric] + shift
            label = spec.label if spec else loss
            about = {**place._asdict(), "loss": loss, "label": label, "seed": range(seeds)}
            epochs = {"best_epoch": 5, "stopped_epoch": 13, "diverged_epoch": 0}
            rows.append(pd.DataFrame({**about, **values, **epochs}))
    return pd.concat(rows, ignore_index=True)
