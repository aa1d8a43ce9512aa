"""What the experiments with label noise show, in words: every number is computed from records."""

import numpy as np
import pandas as pd

from experiments.show.figures.comparisons import balanced, rank_losses
from experiments.show.figures.noise import probabilities
from experiments.show.records import NOISIEST, Results
from experiments.show.words import (
    REFERENCE,
    candidates,
    join,
    labels,
    means,
    select,
    signed,
    span,
)
from pgeom.data.regimes import Regime
from pgeom.losses.catalogue import GENERAL

CELL = ["dataset", "regime", "loss"]
METRICS = {"accuracy": ("accuracy", 1), "nll": ("NLL", -1), "ece": ("ECE", -1)}  # sign of a gain


def against_reference(results: Results) -> str | None:
    """The candidates against CE over the cells with and without label noise."""
    cells = means(balanced(results.runs), "accuracy", by=CELL).unstack()
    shown = candidates(results, cells)
    if REFERENCE not in cells or not shown:
        return None
    gains = cells[[one.name for one in shown]].sub(cells[REFERENCE], axis=0)
    dataset, regime = gains.index[int(gains.max(axis=1).argmax())]
    better = int((gains > 0).sum().sum())
    return (
        f"Over {len(gains)} cells without the long tail, the mean accuracy of "
        f"{join([one.label for one in shown])} differs from cross-entropy's by "
        f"{signed(gains.to_numpy())}; it is higher in {better} of {gains.size} comparisons, most "
        f"on {dataset}, {regime}."
    )


def winners(results: Results) -> str | None:
    """Which loss has the lowest NLL in each cell with label noise, and where its accuracy fails."""
    runs = results.runs[results.runs["loss"].isin(GENERAL)]
    nll, accuracy = (means(runs, name, by=CELL).unstack() for name in ("nll", "accuracy"))
    noisy = [cell for cell in nll.index if Regime.parse(cell[1]).noise_rate > 0]
    if REFERENCE not in nll or len(nll.columns) < 2 or not noisy:
        return None
    lowest = nll.loc[noisy].idxmin(axis=1)
    counts = lowest.value_counts()
    parts = [
        f"{labels(results, [str(name)])} in {count} ({_where(lowest, str(name))})"
        for name, count in counts.items()
    ]
    gains = accuracy.sub(accuracy[REFERENCE], axis=0)[list(counts.index)]
    text = f"Of {len(noisy)} cells with label noise, the lowest mean NLL is that of {join(parts)}."
    if not (gains.min() < 0).all():
        return text  # one of them never falls behind
    worst = str(gains.min().idxmin())
    dataset, regime = gains.index[int(gains[worst].argmin())]
    return (
        f"{text} In mean accuracy each of these falls behind cross-entropy somewhere, the furthest "
        f"by {-gains.min().min():.3f} ({labels(results, [worst])} on {dataset}, {regime})."
    )


def _where(lowest: pd.Series, name: str) -> str:
    return join([f"{dataset} {regime}" for dataset, regime in lowest.index[lowest == name]])


def symmetric_noise(results: Results) -> str | None:
    """How much accuracy each family loses on digits."""
    frame = results.noise["digits"]
    by = means(frame, "accuracy", by=["loss", "regime"]).unstack()
    if "clean" not in by or NOISIEST not in by:
        return None
    drop = by["clean"] - by[NOISIEST]
    least, most = str(drop.idxmin()), str(drop.idxmax())
    text = (
        f"On digits, 40% symmetric noise costs {span(drop)} of accuracy: least "
        f"{labels(results, [least])}, most {labels(results, [most])}"
    )
    if REFERENCE in drop:
        text += f", cross-entropy {drop[REFERENCE]:.3f}"
    return f"{text}."


def noisiest_table(results: Results) -> str | None:
    """Who is ahead under 40% symmetric noise on digits, and where the candidates are."""
    frame = results.noise["digits"]
    frame = frame[frame["regime"] == NOISIEST]
    nll, accuracy = means(frame, "nll"), means(frame, "accuracy")
    if REFERENCE not in nll or len(nll) < 2:
        return None
    ahead, first = int((nll < nll[REFERENCE]).sum()), str(nll.idxmin())
    text = (
        f"On digits with 40% symmetric noise {ahead} of {len(nll) - 1} losses have a lower test "
        f"NLL than cross-entropy ({nll[REFERENCE]:.3f}); the lowest is "
        f"{labels(results, [first])}'s, {nll[first]:.3f}, with an accuracy of "
        f"{accuracy[first]:.3f} against {accuracy[REFERENCE]:.3f}."
    )
    shown = candidates(results, nll.index)
    if shown:
        places = select(nll.rank(), shown).astype(int)
        text += f" The candidates are at places {span(places, 'd')} of {len(nll)} by NLL."
    return text


def calibration_under_noise(results: Results) -> str:
    """How far confidence is below accuracy under 40% symmetric noise."""
    gaps = {
        name: float(
            np.mean(logits.argmax(-1) == results.noisiest.labels)
            - np.mean(probabilities(logits).max(axis=-1))
        )
        for name, logits in results.noisiest.logits.items()
    }
    under = [name for name, gap in gaps.items() if gap > 0.1]
    sure = [name for name in gaps if name not in under]
    text = "Trained on noisy labels and tested on clean ones, "
    if under:
        text += f"{labels(results, under)} are right more often than they are sure, by "
        text += f"{span(pd.Series([gaps[name] for name in under]))} of confidence"
    if under and sure:
        text += "; "
    if sure:
        text += f"{labels(results, sure)} stay within 0.1 of their accuracy"
    return f"{text}."


def confidence(results: Results) -> str | None:
    """The median confidence of the losses that are shown."""
    medians = pd.Series(
        {
            name: float(np.median(probabilities(logits).max(axis=-1)))
            for name, logits in results.noisiest.logits.items()
        }
    )
    if REFERENCE not in medians:
        return None
    high = str(medians.idxmax())
    return (
        f"At 40% noise the median confidence runs from {medians.min():.2f} "
        f"({labels(results, [str(medians.idxmin())])}) to {medians[high]:.2f} "
        f"({labels(results, [high])}); cross-entropy's is {medians[REFERENCE]:.2f}."
    )


def confusions(results: Results) -> str:
    """The class that is recognised least."""
    test, recalls = results.noisiest, {}
    for name, logits in test.logits.items():
        hits = logits.argmax(-1) == test.labels
        recalls[name] = [
            float(hits[test.labels == label].mean()) for label in np.unique(test.labels)
        ]
    table = np.array(list(recalls.values()))  # losses down, classes across
    hardest = int(table.mean(axis=0).argmin())
    return (
        f"Class {hardest} is recognised least, by "
        f"{span(table[:, hardest], '.2f')} over the losses, the others by "
        f"{span(np.delete(table, hardest, axis=1).mean(axis=0), '.2f')} on average."
    )


def heatmap(results: Results) -> str | None:
    """How often each loss beats CE in a cell."""
    runs = results.runs[results.runs["loss"].isin(GENERAL)]
    parts, everywhere = [], set()
    for metric, (name, sign) in METRICS.items():
        table = means(runs, metric, by=CELL).unstack()
        if REFERENCE not in table or len(table.columns) < 2:
            return None
        gains = sign * table.drop(columns=REFERENCE).sub(table[REFERENCE], axis=0)
        wins = (gains > 0).sum()
        first = labels(results, [str(wins.idxmax())])
        parts.append(f"{first} by {name} ({wins.max()} of {len(table)} cells)")
        everywhere |= set(wins.index[wins == len(table)])
    none = "" if everywhere else "No loss is better than cross-entropy everywhere. "
    return (
        f"{none}Most often better than cross-entropy is {join(parts)}, by the sign of the "
        "difference in means."
    )


def ranks(results: Results) -> str | None:
    """The best mean rank, without the long tail."""
    names = [name for name in results.legend if name in set(results.noise["digits"]["loss"])]
    if len(names) < 2:
        return None
    table = rank_losses(balanced(results.runs), names)
    order = table.mean(axis=1).sort_values()
    first, last = str(order.index[0]), str(order.index[-1])
    over = f"Over {table.shape[1]} cells × metrics without the long tail, "
    if np.isclose(order.iloc[0], order.iloc[-1]):
        return f"{over}all losses have the same mean rank."
    text = (
        f"{over}"
        f"{labels(results, [first])} has the best mean rank ({order.iloc[0]:.1f} of {len(names)}) "
        f"and {labels(results, [last])} the worst ({order.iloc[-1]:.1f})"
    )
    if REFERENCE in order:
        text += f"; cross-entropy has {order[REFERENCE]:.1f}"
    return f"{text}."
