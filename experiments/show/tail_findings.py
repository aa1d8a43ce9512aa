"""What the long tail shows, in words: every number is computed from records."""

import numpy as np
import pandas as pd

from experiments.show.figures.studies import TAIL, class_recalls
from experiments.show.records import Results
from experiments.show.words import REFERENCE, candidates, join, means, select, span
from pgeom.losses.catalogue import PRIOR


def long_tail(results: Results) -> str | None:
    """Losses that know the prior against those that do not."""
    frame = results.early_stopping
    recall, nll = means(frame, "balanced_accuracy"), means(frame, "nll")
    prior = [one for one in results.legend.values() if one.family == PRIOR]
    plain = [one for one in results.legend.values() if one.name == REFERENCE or one.studied]
    if not prior or not plain:
        return None
    uniform = np.log(len(results.tail_counts))
    return (
        f"On the 30:1 long tail {_names(prior)} reach a balanced accuracy of "
        f"{span(select(recall, prior))}, {_names(plain)} {span(select(recall, plain))}, with an "
        f"NLL of {span(select(nll, plain))} (a uniform forecast has {uniform:.3f})."
    )


def near_chance(results: Results) -> str:
    """How many losses are hardly better than chance."""
    recall, chance = (
        means(results.early_stopping, "balanced_accuracy"),
        1 / len(results.tail_counts),
    )
    near = recall[recall < 2 * chance]
    best = str(recall.idxmax())
    return (
        f"{len(near)} of {len(recall)} losses stay below twice chance ({chance:.2f}); the best is "
        f"{results.legend[best].label} with {recall[best]:.3f}."
    )


def kept_epochs(results: Results) -> str:
    """When the validation NLL is best, with early stopping."""
    kept = means(results.early_stopping, "best_epoch")
    early = kept[kept < 5]
    return (
        f"Stopped early, {len(early)} of {len(kept)} losses keep a checkpoint of the first four "
        f"epochs on average; the others keep epoch {span(kept.drop(early.index), '.0f')}."
        if 0 < len(early) < len(kept)
        else f"Stopped early, the losses keep epoch {span(kept, '.0f')} on average."
    )


def stopping(results: Results) -> str | None:
    """What early stopping does, and that best checkpoints may be the same model twice."""
    stopped, free = results.longtail.values()
    before, after = (means(one, "balanced_accuracy") for one in (stopped, free))
    if REFERENCE not in before:
        return None
    gap = after[REFERENCE] - before[REFERENCE]
    effect = "is an effect of early stopping" if gap > 0.1 else "does not depend on early stopping"
    kept = means(stopped, "best_epoch")
    text = (
        f"Cross-entropy's result {effect}: stopped early, it keeps epoch {kept[REFERENCE]:.1f} on "
        f"average and scores {before[REFERENCE]:.3f}; trained to the end, its best checkpoint "
        f"scores {after[REFERENCE]:.3f}. {_same_model(results, stopped, free)}"
    )
    shown = candidates(results, after.index)
    if shown and "last_balanced_accuracy" in free:
        last = means(free, "last_balanced_accuracy")
        text += (
            f" In the last epoch {_names(shown)} score {span(select(last, shown))}, cross-entropy "
            f"{last[REFERENCE]:.3f}."
        )
    return text


def _same_model(results: Results, stopped: pd.DataFrame, free: pd.DataFrame) -> str:
    """In how many runs both ways keep the same epoch, and so the same model."""
    shown = candidates(results, stopped["loss"]) or [results.legend[REFERENCE]]
    names = [one.name for one in shown]
    epochs = [
        frame[frame["loss"].isin(names)].set_index(["loss", "seed"])["best_epoch"].sort_index()
        for frame in (stopped, free)
    ]
    same = int((epochs[0] == epochs[1]).sum())
    return (
        f"Either way the checkpoint of least validation NLL is kept: {_names(shown)} show the same "
        f"model twice in {same} of {len(epochs[0])} runs."
    )


def rare_classes(results: Results) -> str | None:
    """The accuracy in the rarest classes."""
    recalls = class_recalls(results.tail)
    classes = [name for name in recalls if name not in ("loss", "seed")][-TAIL:]
    tail = recalls[classes].mean(axis=1).groupby(recalls["loss"]).mean()
    best, counts = str(tail.idxmax()), results.tail_counts[-TAIL:]
    none = int((tail < 0.01).sum())
    return (
        f"In the three rarest classes, of {counts[0]} to {counts[-1]} training examples, "
        f"{results.legend[best].label} recognises most ({tail[best]:.2f}); {none} of {len(tail)} "
        f"losses recognise less than one in a hundred."
    )


def _names(entries) -> str:
    return join([entry.label for entry in entries])
