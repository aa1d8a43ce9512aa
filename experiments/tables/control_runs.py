"""Which runs, and which of their numbers, a control compares."""

from collections.abc import Mapping

import pandas as pd

from experiments.tables.learning_rates import select_runs
from experiments.tables.margins import METRICS


def take_last_epoch(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with the metrics of their last epoch in place of those of the kept one."""
    last = {metric: runs[f"last_{metric}"] for metric in METRICS}
    return runs.assign(**last, best_epoch=runs["stopped_epoch"], stop_on="none")


def take_chosen_rate(frames: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """Of each loss and seed the run at the rate of least validation NLL.

    `at_end` says where that is the smallest or the largest rate.
    """
    selected = select_runs(frames)
    ends = (min(frames), max(frames))
    return selected.assign(at_end=selected["learning_rate"].isin(ends))
