"""What was found, in plain words: every number and every comparison is computed from records."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from experiments import ablation, robustness
from experiments.figures.legend import Entry
from experiments.report import paper_tables
from experiments.report.gather import NOISIEST, Results
from experiments.tables import published
from pgeom.losses.catalogue import PRIOR


def sentences(results: Results) -> list[str]:
    """The findings for which there are runs."""
    return [text for finding in FINDINGS if (text := finding(results))]


def agreement(results: Results) -> str | None:
    counted = published.count_cells(paper_tables.compared(results))
    total = counted[counted["table"] == "all"].iloc[0]
    if not total["cells"]:
        return None
    text = (
        f"Of the {total['cells']} published table cells that were run, our mean lies within one "
        f"published standard deviation in {total['within_one']} and within two in "
        f"{total['within_two']} ({results.seeds} seeds; the calibration table publishes no "
        f"deviation, so ours is used there). {published.FITTED[0].upper()}{published.FITTED[1:]}."
    )
    if total["with_z"]:
        text += (
            f" The published five-seed mean is a plausible draw from our protocol (|z| ≤ 2) in "
            f"{total['plausible']} of {total['with_z']} cells."
        )
    return text


def candidates(results: Results) -> str | None:
    """The candidates against CE over the cells of the noise experiment."""
    runs = pd.concat([one.astype({"regime": str}) for one in results.noise.values()])
    cells = _means(runs, "accuracy", by=["dataset", "regime", "loss"]).unstack()
    shown = _candidates(results, cells)
    if "ce" not in cells or not shown:
        return None
    gains = cells[[one.name for one in shown]].sub(cells["ce"], axis=0)
    low, high = gains.min().min(), gains.max().max()
    dataset, regime = gains.index[int(gains.max(axis=1).argmax())]
    better = int((gains > 0).sum().sum())
    return (
        f"Over {len(gains)} cells with and without label noise, the mean accuracy of "
        f"{_names(shown)} differs from cross-entropy's by {low:+.3f} to {high:+.3f}; it is higher "
        f"in {better} of {gains.size} comparisons, most on {dataset}, {regime}."
    )


def noise(results: Results) -> str | None:
    """Who is ahead under 40% symmetric noise on digits."""
    frame = results.noise["digits"]
    frame = frame[frame["regime"] == NOISIEST]
    nll, accuracy = _means(frame, "nll"), _means(frame, "accuracy")
    if "ce" not in nll or len(nll) < 2:
        return None
    ahead = list(nll[nll < nll["ce"]].sort_values().index)
    first = str(nll.idxmin())
    text = (
        f"With 40% symmetric label noise on digits, {len(ahead)} of {len(nll) - 1} other losses "
        f"have a lower test NLL than cross-entropy ({nll['ce']:.3f}); the lowest is "
        f"{results.legend[first].label} with {nll[first]:.3f} (accuracy {accuracy[first]:.3f} "
        f"against {accuracy['ce']:.3f})."
    )
    shown = _candidates(results, nll)
    if shown:
        places = nll.rank()[[one.name for one in shown]].astype(int)
        text += f" The candidates are at places {_range(places, 'd')} of {len(nll)}."
    return text


def long_tail(results: Results) -> str | None:
    """Losses that know the prior against those that do not."""
    frame = results.early_stopping
    recall, nll = _means(frame, "balanced_accuracy"), _means(frame, "nll")
    prior = [one for one in results.legend.values() if one.family == PRIOR]
    plain = [one for one in results.legend.values() if one.name == "ce" or one.candidate]
    if not prior or not plain:
        return None
    uniform = np.log(next(iter(results.tail.logits.values())).shape[-1])
    return (
        f"On the 30:1 long tail {_names(prior)} reach a balanced accuracy of "
        f"{_range(_of(recall, prior))}, {_names(plain)} {_range(_of(recall, plain))}, with an NLL "
        f"of {_range(_of(nll, plain))} (a uniform forecast has {uniform:.3f})."
    )


def early_stopping(results: Results) -> str | None:
    """What early stopping does to the long tail."""
    stopped, free = (_means(one, "balanced_accuracy") for one in results.longtail.values())
    if "ce" not in stopped:
        return None
    kept = _means(results.early_stopping, "best_epoch")
    gap = free["ce"] - stopped["ce"]
    effect = "is an effect of early stopping" if gap > 0.1 else "does not depend on early stopping"
    text = (
        f"Cross-entropy's result there {effect}: it keeps epoch {kept['ce']:.1f} on average and "
        f"scores {stopped['ce']:.3f}, and {free['ce']:.3f} when it may train to the end"
    )
    shown = _candidates(results, free)
    if shown:
        text += f"; {_names(shown)} score {_range(_of(stopped, shown))} with it and "
        text += f"{_range(_of(free, shown))} without"
    return text + "."


def calibration(results: Results) -> str | None:
    """What temperature scaling does to clean digits."""
    frame = results.clean
    lower = {
        name: int((_means(frame, f"calibrated_{name}") < _means(frame, name)).sum())
        for name in ("nll", "ece")
    }
    losses = frame["loss"].nunique()
    return (
        f"A temperature fitted on validation logits lowers the mean test NLL of {lower['nll']} of "
        f"{losses} losses on clean digits, and the mean ECE of {lower['ece']}; a division by a "
        f"positive number, it cannot change a predicted label."
    )


def attacks(results: Results) -> str | None:
    """How far the losses are apart under attack, and whether PGD is the stronger one."""
    names = ("accuracy", "fgsm_0.1", "pgd_0.1")
    clean, fgsm, pgd = (_means(results.robustness, name) for name in names)
    wide, highest = pgd.max() - pgd.min(), str(pgd.idxmax())
    return (
        f"At radius 0.1 clean-trained digits models fall from an accuracy of {_range(clean)} to "
        f"{_range(fgsm)} under FGSM and {_range(pgd)} under projected gradients, where the losses "
        f"are {wide:.3f} apart ({results.legend[highest].label} highest). "
        f"{_stronger(results.robustness)}"
    )


def _stronger(runs: pd.DataFrame) -> str:
    """Projected gradients against FGSM at equal radius, in means and run by run."""
    pairs = [(name, f"fgsm_{name[4:]}") for name in robustness.PGD]
    worst = max((_means(runs, pgd) - _means(runs, fgsm)).max() for pgd, fgsm in pairs)
    weaker = sum(int((runs[pgd] - runs[fgsm] > 0.01).sum()) for pgd, fgsm in pairs)
    change = f"at least {-worst:.3f} less" if worst <= 0 else f"up to {worst:.3f} more"
    return (
        f"At equal radius projected gradients leave a loss {change} mean accuracy than FGSM, and "
        f"over .01 more in {weaker} of {len(pairs) * len(runs)} single attacks."
    )


def ablations(results: Results) -> str | None:
    """How much the variants of a candidate differ, at most."""
    means = _means(results.ablation, "accuracy", by=["place", "loss"]).unstack()
    spreads = []
    for family, variants in ablation.families().items():
        members = means[[variant.name for variant in variants]]
        spread = members.max(axis=1) - members.min(axis=1)
        spreads.append(f"{_range(spread)} ({family})")
    capm = means[[variant.name for variant in ablation.CAPM]]
    full_best = int((capm["capm"] >= capm.max(axis=1)).sum())
    return (
        f"In the ablations the best and the worst variant of a cell differ in mean accuracy by "
        f"{'; '.join(spreads)}. Full CAPM is the best of its variants in {full_best} of "
        f"{len(means)} cells."
    )


def significance(results: Results) -> str | None:
    """How many comparisons with CE survive, and how many could have."""
    grids = paper_tables.paired_tests(results)
    if not grids:
        return None
    adjusted = [k for k, name in enumerate(grids[0].header) if name == "Holm"]
    values = [float(row[k]) for row in grids[0].rows for k in adjusted if row[k] != "–"]
    small = sum(value < 0.05 for value in values)
    least = 2 / 2**results.seeds
    text = (
        f"Of {len(values)} paired comparisons with cross-entropy {small} have a Holm-corrected p "
    )
    text += f"below .05; with {results.seeds} seeds the least attainable p is {least:.4g}"
    return text + (", so all of this is descriptive." if least > 0.05 else ".")


def _means(frame: pd.DataFrame, metric: str, by="loss") -> pd.Series:
    names = [by] if isinstance(by, str) else by
    keys = [frame[name].astype(str) for name in names]
    return frame[metric].astype(float).groupby(keys).mean()


def _candidates(results: Results, values) -> list[Entry]:
    """The candidates of which there are values."""
    return [one for one in results.legend.values() if one.candidate and one.name in values]


def _of(values: pd.Series, entries: list[Entry]) -> pd.Series:
    return values[[entry.name for entry in entries]]


def _names(entries: list[Entry]) -> str:
    names = [entry.label for entry in entries]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _range(values: pd.Series, form: str = ".3f") -> str:
    low, high = format(values.min(), form), format(values.max(), form)
    return low if low == high else f"{low}–{high}"


FINDINGS: tuple[Callable[[Results], str | None], ...] = (
    agreement,
    candidates,
    noise,
    long_tail,
    early_stopping,
    calibration,
    attacks,
    ablations,
    significance,
)
