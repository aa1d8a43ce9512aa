"""The long tail by way of stopping, as a table: the published one shows the early stop."""

import pandas as pd

from experiments import longtail
from experiments.show.records import Results
from experiments.show.summary import convergence_notes, version_notes
from experiments.show.tables import Grid, mean_sd


def early_stopping(results: Results) -> list[Grid]:
    """By way of stopping: balanced accuracy, NLL, and the epoch that is shown."""
    ways = longtail.ways_to_stop(results.longtail)
    header = ["Loss"]
    for name in ways:
        header += [f"{name[0].upper()}{name[1:]}: bal. acc. ↑", "NLL ↓", "Epoch"]
    rows = [
        [results.legend[loss].label, *_stopped(ways.values(), loss)]
        for loss in results.early_stopping["loss"].cat.categories
    ]
    runs = pd.concat(list(results.longtail.values()))
    notes = [
        "mean ± sample sd over seeds; stopped early or not, the best checkpoint is that of least "
        "validation NLL, and only the epochs differ among which it is chosen",
        *convergence_notes(runs),
        *version_notes(runs),
    ]
    return [Grid("the long tail by way of stopping", header, rows, set(), notes)]


def _stopped(ways, loss: str) -> list[str]:
    texts = []
    for frame, field in ways:
        runs, last = frame[frame["loss"] == loss], field.startswith("last_")
        for metric in (field, f"{'last_' * last}nll"):
            values = runs[metric].astype(float)
            texts.append(mean_sd(values.mean(skipna=False), values.std(ddof=1)))
        texts.append(f"{runs['stopped_epoch' if last else 'best_epoch'].mean():.1f}")
    return texts
