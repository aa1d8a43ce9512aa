"""Records of all losses, made up: figures are about how they are drawn, not about what they say."""

import numpy as np
import pandas as pd
import pytest

from experiments import ablation
from experiments.engine import measures
from experiments.engine.results import TestLogits
from experiments.show.figures.panels import legend
from experiments.show.items import of_results
from experiments.show.records import Results, weigh
from experiments.show.regrets import CLEAN, RAW, SCALED, SCORES
from pgeom.losses.catalogue import GENERAL, LOSSES

SEEDS = 3
UNIT = ("accuracy", "balanced_accuracy", "brier", "ece", "calibrated_ece", *measures.NATURAL)
NLLS = ("nll", "calibrated_nll", "plain_calibrated_nll", "plain_calibrated_ece")
ERRORS = ("debiased_ece", "smooth_ece", "classwise_ece", "last_nll", "last_balanced_accuracy")
DEVICE = {"device": {"kind": "cpu", "machine": "x86_64", "count": 1}, "versions": {"pgeom": "1"}}


def make_runs(dataset, regimes, losses, rng):
    """One row per run, with every field that a figure may ask for."""
    rows = []
    for regime in regimes:
        for loss in losses:
            for seed in range(SEEDS):
                unit = {name: rng.uniform(0.05, 1) for name in (*UNIT, *measures.ATTACKS, *ERRORS)}
                rows.append(
                    {
                        **{"dataset": dataset, "regime": regime, "seed": seed, **DEVICE},
                        **{"loss": loss.name, "label": loss.label, **unit},
                        **{name: rng.uniform(0.1, 1) for name in NLLS},
                        **{"input_gradient_norm": rng.uniform(5, 9), "seconds": rng.uniform(1, 2)},
                        **{"best_epoch": 3, "stopped_epoch": 4, "diverged_epoch": 0},
                        "validation_nll": list(rng.uniform(0.5, 1, 4)),
                    }
                )
    frame = pd.DataFrame(rows)
    for column, order in (("regime", regimes), ("loss", [loss.name for loss in losses])):
        frame[column] = pd.Categorical(frame[column], list(order), ordered=True)
    return frame


def plain(frames):
    return pd.concat([frame.astype({"regime": str, "loss": str}) for frame in frames])


def make_regrets(losses, rng):
    """One row per run, posterior and forecast, with the regret by every score."""
    rows = [
        {
            **{"size": size, "regime": "clean", "loss": loss.name, "label": loss.label},
            **{"seed": seed, "posterior": CLEAN, "forecast": forecast, "distance": 0.1},
            **{score: rng.uniform(0.001, 1) for score in SCORES},
        }
        for size in (100, 200)
        for loss in losses
        for seed in range(SEEDS)
        for forecast in (RAW, SCALED)
    ]
    return pd.DataFrame(rows)


def make_logits(dataset, regime, losses, rng, K=10, n=60):
    labels = np.tile(np.arange(n) % K, (SEEDS, 1))
    logits = {loss.name: 3 * rng.normal(size=(SEEDS, n, K)) for loss in losses}
    return TestLogits(dataset, regime, labels, logits)


@pytest.fixture(scope="package")
def every_loss():
    """The results of a report on all seventeen losses."""
    rng, general, losses = np.random.default_rng(0), [*GENERAL.values()], [*LOSSES.values()]
    digits = make_runs("digits", ("clean", "symmetric-20", "symmetric-40"), general, rng)
    tail = make_runs("long-tail", ("long-tail-30",), losses, rng)
    clean = digits[digits["regime"] == "clean"]
    variants = [one for family in ablation.families().values() for one in family]
    ablated = plain([make_runs(name, x, variants, rng) for name, x in ablation.CELLS.items()])
    counts = pd.DataFrame(
        {rate: range(1, len(general) + 1) for rate in (3e-4, 1e-3, 3e-3)},
        index=[one.label for one in general],
    )
    return Results(
        noise={"digits": digits},
        longtail={"early stopping": tail, "trained to the end": tail},
        robustness=clean,
        ablation=ablated.assign(place=ablated["dataset"] + ", " + ablated["regime"]),
        families=ablation.families(),
        rate_counts=counts,
        runtime=clean,
        regrets=make_regrets(general, rng),
        regret_legend=legend(general),
        noisiest=make_logits("digits", "symmetric-40", general, rng),
        tail=make_logits("long-tail", "long-tail-30", losses, rng),
        tail_counts=[*range(100, 0, -10)],
        legend=legend(losses),
        evidence=weigh(plain([digits, tail])),
    )


@pytest.fixture
def drawn(every_loss):
    """`drawn(label)`: a figure of the report."""
    return lambda label: of_results(every_loss)[f"fig:{label}"]()
