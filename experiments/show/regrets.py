"""Regret where the posterior is known: D_F(η, p̂) of every loss by every score, and its tables.

The regret of a forecast p̂ at a posterior η is R(η, p̂) − R(η, η) = D_F(η, p̂), exactly: nothing is
estimated but the mean over test examples. Of a study with label noise there are two posteriors, of
the clean labels and of the labels as observed, η through the noise channel.
"""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float

from experiments.engine.results import read_frame, read_logits
from experiments.engine.study import Study
from experiments.show.tables import Grid, means_grid
from pgeom import generators
from pgeom.data import splits
from pgeom.data.regimes import Regime, transition
from pgeom.losses.structured import hpg_generator
from pgeom.messages import count
from pgeom.scores import bregman_divergence
from pgeom.types import Generator

CLEAN, OBSERVED = "clean", "observed"  # the labels whose posterior a forecast is compared with
RAW, SCALED = "raw", "scaled"
CASE = ["regime", "posterior", "forecast"]
KEYS = ["size", "regime", "loss", "label", "proper", "seed"]
SCORES: dict[str, Callable[[int], Generator]] = {  # by which forecasts are judged, of K classes
    "log": lambda K: generators.shannon,
    "Brier": lambda K: generators.squared_norm,
    "spherical": lambda K: generators.spherical,
    "Tsallis 1.5": lambda K: generators.tsallis(1.5),
    "HPG": hpg_generator,
}


class Forecasts(NamedTuple):
    """Of one regime: forecasts on the test examples of S seeds, and the true probabilities."""

    raw: dict[str, Float[np.ndarray, "S n K"]]
    scaled: dict[str, Float[np.ndarray, "S n K"]]
    posterior: Float[np.ndarray, "S n K"]
    observed: Float[np.ndarray, "S n K"]


def read_forecasts(study: Study, regime: Regime, folder: Path) -> Forecasts:
    """The forecasts of every loss in one regime, as they are and at the recorded temperatures."""
    frame, test = read_frame(study, folder), read_logits(study, regime, folder)
    frame = frame[frame["regime"].astype(str) == str(regime)]
    dataset = study.dataset
    if dataset.posterior is None:
        raise ValueError(f"the posterior of {dataset.name!r} is not known")
    rows = [splits.split_rows(dataset, seed)[2] for seed in study.seeds]
    posterior = dataset.posterior[np.stack(rows)]
    logits = {name: z.astype(np.float64) for name, z in test.logits.items()}
    temperatures = frame.pivot(index="seed", columns="loss", values="temperature")
    units = {
        name: temperatures.loc[list(study.seeds), name].to_numpy(float)[:, None, None]
        for name in logits
    }
    return Forecasts(
        {name: _softmax(z) for name, z in logits.items()},
        {name: _softmax(z / units[name]) for name, z in logits.items()},
        posterior,
        posterior @ transition(regime, dataset.num_classes, dataset.noise_map),
    )


def measure_regrets(studies: dict[int, Study], folder: Path) -> pd.DataFrame:
    """One row per run, posterior and recalibration: regret by every score, and the distance.

    Args:
      studies: by the number of examples.
      folder: of their records.

    Returns:
      `size, regime, loss, label, proper, seed, posterior, forecast, distance` and a column per
      score: means over the test examples, `distance` that of ‖p̂ − η‖.
    """
    rows = []
    for size, study in studies.items():
        K = study.dataset.num_classes
        by_score = {name: jax.jit(bregman_divergence(make(K))) for name, make in SCORES.items()}
        losses = {loss.name: loss for loss in study.losses}
        for regime in study.regimes:
            forecasts = read_forecasts(study, regime, folder)
            for place in _places(forecasts):
                name, kind, target, p, truth = place
                values = {"distance": np.linalg.norm(p - truth, axis=-1).mean(axis=1)}
                with jax.enable_x64(True):  # a forecast may be certain to within 1e-30
                    for score, divergence in by_score.items():
                        values[score] = np.asarray(divergence(truth, p)).mean(axis=1)
                shared = (size, str(regime), name, losses[name].label, losses[name].proper)
                for k, seed in enumerate(study.seeds):
                    one = {field: array[k] for field, array in values.items()}
                    keys = dict(zip(KEYS, (*shared, seed), strict=True))
                    rows.append({**keys, "posterior": target, "forecast": kind, **one})
    return pd.DataFrame(rows)


def _places(forecasts: Forecasts) -> Iterator[tuple]:
    """Every (loss, forecast, posterior), with its arrays; no noise has one posterior."""
    truths = {CLEAN: forecasts.posterior}
    if not np.array_equal(forecasts.observed, forecasts.posterior):
        truths[OBSERVED] = forecasts.observed
    kinds = {RAW: forecasts.raw, SCALED: forecasts.scaled}
    for name, kind, target in product(forecasts.raw, kinds, truths):
        yield name, kind, target, kinds[kind][name], truths[target]


def _softmax(logits: Float[np.ndarray, "S n K"]) -> Float[np.ndarray, "S n K"]:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


FORECASTS = {RAW: "as trained", SCALED: "at the temperature of validation"}


def summarise_regrets(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, one row per size, regime, loss, posterior and forecast."""
    keys = ["size", "regime", "loss", "label", "proper", "posterior", "forecast"]
    return (
        frame.groupby(keys, sort=False).mean(numeric_only=True).drop(columns="seed").reset_index()
    )


def grids(frame: pd.DataFrame) -> list[Grid]:
    """The matrix of losses × scores of the largest sample, and the log regret of every size."""
    largest = frame[frame["size"] == frame["size"].max()]
    made = []
    for (regime, posterior, forecast), part in largest.groupby(CASE, sort=False):
        title = f"regret to the posterior of {posterior} labels, {regime}, {FORECASTS[forecast]}"
        columns = {name: part[name] for name in SCORES} | {"‖p − η‖": part["distance"]}
        made.append(_grid(title, part, columns))
    for regime, part in frame.groupby("regime", sort=False):
        chosen = part[(part["posterior"] == CLEAN) & (part["forecast"] == RAW)]
        by_size = {f"{size} examples": one["log"] for size, one in chosen.groupby("size")}
        made.append(_grid(f"log regret by the number of examples, {regime}", chosen, by_size))
    return made


def _grid(title: str, frame: pd.DataFrame, columns: dict[str, pd.Series]) -> Grid:
    """Mean ± sample sd over seeds, losses down, with four decimals: good regrets are below .001."""
    labels, names = {x: x for x in dict.fromkeys(frame["label"])}, {x: x for x in columns}
    parts = {
        name: dict(list(values.groupby(frame["label"].loc[values.index])))
        for name, values in columns.items()
    }
    notes = [f"mean ± sample sd over {count(frame['seed'].nunique(), 'seed')}"]
    values = lambda label, name: parts[name][label]  # noqa: E731
    return means_grid(title, labels, names, values, notes=notes, lower=True, digits=4)
