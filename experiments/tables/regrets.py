"""Regret where the posterior is known: D_F(η, p̂) of every loss by every score, from records.

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
from pgeom import generators
from pgeom.data import splits
from pgeom.data.regimes import Regime, transition
from pgeom.losses.structured import hpg_generator
from pgeom.scores import bregman_divergence, bregman_score, conditional_risk
from pgeom.types import Generator

CLEAN, OBSERVED = "clean", "observed"  # the labels whose posterior a forecast is compared with
RAW, SCALED = "raw", "scaled"
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


def regrets(studies: dict[int, Study], folder: Path) -> pd.DataFrame:
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


def identity_gap(study: Study, folder: Path) -> float:
    """The largest |R(η, p̂) − R(η, η) − D_F(η, p̂)| at a test example of the first seed.

    The risks are sums over the labels, Σ_y η_y ℓ(p, y); the divergence is computed by itself.
    """
    largest = 0.0
    forecasts = read_forecasts(study, study.regimes[0], folder)
    with jax.enable_x64(True):
        for make in SCORES.values():
            F = make(study.dataset.num_classes)
            score, divergence = bregman_score(F), bregman_divergence(F)
            risk = conditional_risk(lambda p, y, score=score: score(p, y))
            for p in forecasts.raw.values():
                eta = forecasts.posterior[0]
                gap = risk(eta, p[0]) - risk(eta, eta) - divergence(eta, p[0])
                largest = max(largest, float(np.max(np.abs(gap))))
    return largest


def _softmax(logits: Float[np.ndarray, "S n K"]) -> Float[np.ndarray, "S n K"]:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)
