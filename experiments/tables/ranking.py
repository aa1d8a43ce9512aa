"""Mean ranks of the losses over places, one table per metric."""

from typing import NamedTuple

import numpy as np

from experiments.tables.grid import Grid
from experiments.tables.margins import Metric
from experiments.tables.samples import Samples
from pgeom.evaluation.significance import Ranking, rank

LEFT_OUT = "long-tail"  # where early stopping leaves all but a few losses near chance


class RankedLosses(NamedTuple):
    """The mean ranks of some losses in one metric."""

    metric: Metric
    labels: list[str]
    ranking: Ranking


def rank_losses(samples: Samples) -> list[RankedLosses]:
    """The losses ranked by their means in every place but the long tail, metric by metric.

    Only losses that were run in all of these places are ranked; of fewer than three losses or two
    places there are no ranks.
    """
    places = [place for place in samples.places if place.kind != LEFT_OUT]
    losses = [loss for loss in samples.labels if all(loss in samples.losses(p) for p in places)]
    if len(places) < 2 or len(losses) < 3:
        return []
    ranked = []
    for metric in samples.metrics:
        values = [samples.compared(place, losses, metric.name) for place in places]
        means = [one.mean(axis=1, dtype=float) for one in values]
        if np.isfinite(means).all():
            ranking = rank(np.stack(means), higher_is_better=metric.higher_is_better)
            ranked.append(RankedLosses(metric, [samples.labels[x] for x in losses], ranking))
    return ranked


def ranks_table(ranked: list[RankedLosses]) -> Grid | None:
    """Mean ranks: losses down, metrics across, the best of each marked."""
    if not ranked:
        return None
    ranks = np.array([one.ranking.mean_ranks for one in ranked]).T
    rows = [
        [label, *(f"{value:.1f}" for value in values)]
        for label, values in zip(ranked[0].labels, ranks, strict=True)
    ]
    best = {(row, column + 1) for row, column in np.argwhere(np.isclose(ranks, ranks.min(axis=0)))}
    first = ranked[0].ranking
    tests = ", ".join(f"{one.metric.label[:-2]} p = {one.ranking.p_value:.1g}" for one in ranked)
    notes = [
        f"1 is best; over {first.cells} places, without the long tail; two losses differ where "
        f"their mean ranks are more than {first.critical_difference:.1f} apart (Nemenyi, 5%)",
        f"Friedman's test: {tests}; places of one dataset share its examples, so that these are "
        "descriptive",
    ]
    header = ["Loss", *(one.metric.label[:-2] for one in ranked)]
    return Grid("mean ranks", header, rows, best, notes)
