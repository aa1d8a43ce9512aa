"""Tables and findings of regrets: which loss recovers probabilities, and how far the others are."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from experiments.engine.study import Study
from experiments.tables.grid import Grid
from experiments.tables.regrets import CLEAN, OBSERVED, RAW, SCALED, SCORES
from pgeom.diagnosis.bounds import hessian_lipschitz
from pgeom.diagnosis.curvature import envelope
from pgeom.losses.catalogue import LOSSES
from pgeom.losses.structured import hpg_generator
from pgeom.messages import count
from pgeom.paper.displacement import Penalty, displacement_bounds, minimise, safe_step

POINTS = 32  # posteriors at which the displacement is predicted
FORECASTS = {RAW: "as trained", SCALED: "at the temperature of validation"}


class Displacement(NamedTuple):
    """The mean of ‖p* − η‖ for APMS with β held at `beta0`, and the mean of its bound."""

    beta0: float
    predicted: float
    bound: float


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
    for (regime, posterior), part in largest.groupby(["regime", "posterior"], sort=False):
        for forecast, words in FORECASTS.items():
            title = f"regret to the posterior of {posterior} labels, {regime}, {words}"
            chosen = part[part["forecast"] == forecast]
            made.append(_grid(title, chosen, {name: chosen[name] for name in SCORES}))
    for regime, part in frame.groupby("regime", sort=False):
        chosen = part[(part["posterior"] == CLEAN) & (part["forecast"] == RAW)]
        by_size = {f"{size} examples": one["log"] for size, one in chosen.groupby("size")}
        made.append(_grid(f"log regret by the number of examples, {regime}", chosen, by_size))
    return made


def state_identity(grid: Grid, gap: float) -> Grid:
    """The grid with a note of how closely the identity of regret holds."""
    note = f"R(η, p) − R(η, η) = D_F(η, p) at every example to {gap:.1g}"
    return grid._replace(footnotes=[*grid.footnotes, note])


def _grid(title: str, frame: pd.DataFrame, columns: dict[str, pd.Series]) -> Grid:
    """Mean ± sample sd over seeds, losses down, the best of each column marked."""
    labels = list(dict.fromkeys(frame["label"]))
    rows, best = [[label] for label in labels], set()
    for place, values in enumerate(columns.values(), start=1):
        groups = values.groupby(frame["label"].loc[values.index])
        means, deviations = groups.mean(), groups.std()
        for row, label in enumerate(labels):
            rows[row].append(_cell(means[label], deviations[label]))
            if means[label] == means.min():
                best.add((row, place))
    notes = [f"mean ± sample sd over {count(frame['seed'].nunique(), 'seed')}"]
    return Grid(title, ["Loss", *columns], rows, best, notes)


def _cell(mean: float, sd: float) -> str:
    """Four decimals, because a good loss has a regret below .001; no sd of a single run."""
    return f"{mean:.4f}" if np.isnan(sd) else f"{mean:.4f} ± {sd:.4f}"


def displacements(frame: pd.DataFrame, theory: Displacement) -> Grid:
    """‖p̂ − η‖ on clean labels in the largest sample, and what theory predicts for APMS."""
    chosen = frame[(frame["size"] == frame["size"].max()) & (frame["regime"] == CLEAN)]
    chosen = chosen[chosen["forecast"] == RAW]
    if chosen.empty:
        chosen = frame[(frame["posterior"] == CLEAN) & (frame["forecast"] == RAW)]
    grid = _grid("distance from the posterior", chosen, {"mean ‖p − η‖": chosen["distance"]})
    note = (
        f"theory: with β held at {theory.beta0:g}, the risk of APMS is least at a mean distance of "
        f"{theory.predicted:.3f} from η, at most {theory.bound:.3f} by the cone bound; with β "
        "faded, at η itself"
    )
    return grid._replace(footnotes=[*grid.footnotes, note])


def predict_displacement(study: Study) -> Displacement:
    """What theory says of some posteriors of a study's dataset."""
    assert study.dataset.posterior is not None
    K, beta = study.dataset.num_classes, LOSSES["apms"].constants["beta0"]
    F, penalty = hpg_generator(K), Penalty(tau=0.1, kappa=0.2, nu=0.1)
    with jax.enable_x64(True):
        curvature, lipschitz = envelope(F, K), float(hessian_lipschitz(F, K).sharp)
        step = safe_step(curvature, lipschitz, penalty, beta=beta)
        eta = jnp.asarray(study.dataset.posterior[:POINTS])

        def one(eta):
            starts = jnp.concatenate([eta[None], jnp.full((1, K), 1 / K), jnp.eye(K)])
            least = minimise(F, eta, penalty, beta=beta, step=step, starts=starts)
            bounds = displacement_bounds(curvature, lipschitz, eta, penalty, beta=beta)
            return jnp.linalg.norm(least.point - eta), bounds.cone

        distance, bound = map(np.asarray, jax.jit(jax.vmap(one))(eta))
    return Displacement(beta, float(distance.mean()), float(bound.mean()))


def findings(frame: pd.DataFrame) -> list[str]:
    """What the regrets say, in words; every number is computed from them."""
    said = [more_data(frame), *(noisy_labels(frame, regime) for regime in _noisy(frame))]
    return [text for text in said if text]


def more_data(frame: pd.DataFrame) -> str | None:
    """Where more clean data leads to."""
    clean = _means(frame[(frame["regime"] == CLEAN) & (frame["forecast"] == RAW)], "log")
    if clean.empty or len(clean.columns) < 2:
        return None
    first, last = clean.columns[0], clean.columns[-1]
    labels = dict(zip(frame["loss"], frame["label"], strict=True))
    is_proper = dict(zip(frame["loss"], frame["proper"], strict=True))
    proper = [name for name in clean.index if is_proper[name]]
    others = [name for name in clean.index if not is_proper[name]]
    text = f"From {first} to {last} clean examples"
    for names, verb in ((proper, "the strictly proper losses"), (others, "the others")):
        if names:
            part = clean.loc[names]
            text += f", the log regret of {verb} goes from {_range(part[first])} to "
            text += f"{_range(part[last])} ({_names(names, labels)})"
    scaled = _means(frame[(frame["regime"] == CLEAN) & (frame["forecast"] == SCALED)], "log")[last]
    nearer = [name for name in others if scaled[name] < 2 * clean.loc[proper, last].max()]
    if proper and others:
        text += f"; a temperature brings {len(nearer)} of the {len(others)} others within twice "
        text += "the worst of the proper ones"
        text += f" ({_names(nearer, labels)})" if nearer else ""
    return text + "."


def noisy_labels(frame: pd.DataFrame, regime: str) -> str | None:
    """Which posterior is recovered from noisy labels."""
    part = frame[(frame["regime"] == regime) & (frame["forecast"] == RAW)]
    part = part[part["size"] == part["size"].max()]
    labels = dict(zip(frame["loss"], frame["label"], strict=True))
    means = part.groupby(["posterior", "loss"], sort=False)["log"].mean().unstack(0)
    if OBSERVED not in means:
        return None
    nearest = {posterior: str(means[posterior].idxmin()) for posterior in (CLEAN, OBSERVED)}
    toward = [name for name in means.index if means[CLEAN][name] < means[OBSERVED][name]]
    text = (
        f"With {part['size'].max()} examples under {regime} noise, {labels[nearest[OBSERVED]]} is "
        f"nearest to the posterior of the labels as observed (log regret "
        f"{means[OBSERVED].min():.3f}) and {labels[nearest[CLEAN]]} to that of clean labels "
        f"({means[CLEAN].min():.3f})"
    )
    if not toward:
        return f"{text}; no loss is nearer to the clean posterior than to the observed one."
    return (
        f"{text}; nearer to the clean posterior than to the observed one: {_names(toward, labels)}."
    )


def best_by_score(frame: pd.DataFrame) -> str | None:
    """Whether each score prefers the loss that was trained on it, on clean labels."""
    largest = frame[(frame["size"] == frame["size"].max()) & (frame["regime"] == CLEAN)]
    means = largest[largest["forecast"] == RAW].groupby("label", sort=False)[list(SCORES)].mean()
    if means.empty:
        return None
    best = [f"{means[score].idxmin()} by {score} ({means[score].min():.4f})" for score in SCORES]
    return f"The least regret on clean labels has {', '.join(best)}."


def least_distance(frame: pd.DataFrame) -> str | None:
    """Which loss is nearest to the posterior, and which is farthest."""
    largest = frame[(frame["size"] == frame["size"].max()) & (frame["regime"] == CLEAN)]
    means = largest[largest["forecast"] == RAW].groupby("label", sort=False)["distance"].mean()
    if len(means) < 2:
        return None
    return (
        f"{means.idxmin()} is nearest to the posterior of clean labels, at {means.min():.3f}, and "
        f"{means.idxmax()} is farthest, at {means.max():.3f}."
    )


def _noisy(frame: pd.DataFrame) -> list[str]:
    return [name for name in dict.fromkeys(frame["regime"]) if name != CLEAN]


def _means(frame: pd.DataFrame, score: str) -> pd.DataFrame:
    """Means over seeds: losses down, sizes across."""
    return frame.groupby(["loss", "size"], sort=False)[score].mean().unstack().sort_index(axis=1)


def _names(names: Sequence[str], labels: dict[str, str]) -> str:
    shown = [labels[name] for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _range(values: pd.Series) -> str:
    low, high = np.min(values), np.max(values)
    return f"{low:.3f}–{high:.3f}"
