"""What calibration, perturbations, ablations and the rest show, computed from records."""

import math

import numpy as np
import pandas as pd

from experiments import ablation
from experiments.engine import measures
from experiments.show import paper_tables, published
from experiments.show.figures.studies import (
    ATTACKS,
    PROTOCOL,
    hardware,
    paired_gains,
    protocol_variants,
    recorded_families,
    scientific,
)
from experiments.show.records import NOISIEST, Results
from experiments.show.summary import CALIBRATION_ERRORS, convergence_notes, edge_notes
from experiments.show.words import REFERENCE, join, labels, means, span
from pgeom.data import sources
from pgeom.messages import count

QUIET = 0.05  # the sd of a pixel in [0, 1] below which it hardly varies


def agreement(results: Results) -> str | None:
    """How many published cells are met, and how many could be."""
    counted = published.count_cells(paper_tables.compared(results))
    total = counted[counted["table"] == "all"].iloc[0]
    if not total["cells"]:
        return None
    text = (
        f"Of the {total['cells']} published cells that were run, our mean lies within one sd of "
        f"theirs in {total['within_one']} and within two in {total['within_two']}; "
        f"{published.yardstick(total['cells'], results.seeds)}. "
        f"{published.FITTED[0].upper()}{published.FITTED[1:]}."
    )
    if total["with_z"]:
        text += (
            f" The published five-seed mean is a plausible draw from our protocol (|z| ≤ 2) in "
            f"{total['plausible']} of {total['with_z']} cells."
        )
    return text


def farthest(results: Results) -> str | None:
    """The cells that are farthest from what was published."""
    cells = paper_tables.compared(results)
    far = cells.loc[cells["difference"].abs().nlargest(3).index].to_dict("records")
    texts = [
        f"{labels(results, [row['loss']])} {row['metric'].replace('_', ' ')} on {row['dataset']} "
        f"{row['regime']} ({row['difference']:+.1f} sd)"
        for row in far
    ]
    return f"Farthest from what was published: {join(texts)}." if texts else None


def significance(results: Results) -> str | None:
    """How many comparisons with CE survive the correction, and how many could have."""
    grids = paper_tables.paired_tests(results)
    if not grids:
        return None
    adjusted = [k for k, name in enumerate(grids[0].header) if name == "Holm"]
    values = [float(row[k]) for row in grids[0].rows for k in adjusted if row[k] != "–"]
    small = sum(value < 0.05 for value in values)
    fewest = min(frame["loss"].nunique() for frame in results.noise.values()) - 1
    floor = min(1.0, fewest * 2 / 2**results.seeds)
    text = (
        f"Of {len(values)} paired comparisons with cross-entropy {small} have a Holm-corrected p "
        f"below .05; with {count(results.seeds, 'seed')} and {count(fewest, 'comparison')} in a "
        f"cell it cannot be below {floor:.3g}"
    )
    return text + (", so all of this is descriptive." if floor > 0.05 else ".")


def temperature(results: Results) -> str:
    """What temperature scaling does to clean digits."""
    frame = results.clean
    lower = {
        name: int((means(frame, f"calibrated_{name}") < means(frame, name)).sum())
        for name in ("nll", "ece")
    }
    after = means(frame, "calibrated_nll")
    return (
        f"A temperature fitted on validation logits lowers the mean test NLL of {lower['nll']} of "
        f"{len(after)} losses on clean digits and the mean ECE of {lower['ece']}; afterwards the "
        f"losses' NLLs are {span(after)}. It cannot change a predicted label."
    )


def calibration_errors(results: Results) -> str:
    """Which loss each measure prefers under the noise."""
    digits = results.noise["digits"]
    frame = digits[digits["regime"] == NOISIEST]
    best = [
        f"{means(frame, field, 'label').idxmin()} by {name[:-2]}"
        for field, name in CALIBRATION_ERRORS.items()
    ]
    return f"On digits, {NOISIEST}, the least miscalibrated is {join(best)}."


def gradients(results: Results) -> str:
    """Which models are locally most sensitive."""
    norms = means(results.robustness, "input_gradient_norm")
    least, most = str(norms.idxmin()), str(norms.idxmax())
    lower = int((means(results.clean, "calibrated_ece") < means(results.clean, "ece")).sum())
    return (
        f"One temperature lowers the mean ECE of {lower} losses. Input gradients are smallest for "
        f"{labels(results, [least])} ({norms[least]:.1f}), largest for {labels(results, [most])} "
        f"({norms[most]:.1f}): a matter of confidence as much as of robustness."
    )


def corruption(results: Results) -> str:
    """How far accuracy falls, and that near-constant pixels are amplified."""
    clean, noisy = (means(results.robustness, name) for name in ("accuracy", "gaussian_0.2"))
    deviation = sources.load(str(results.robustness["dataset"].iloc[0])).features.std(axis=0)
    varying = deviation[deviation > 0]  # a constant pixel is left as it is
    quiet = varying < QUIET
    share = np.sum(varying[quiet] ** -2.0) / np.sum(varying**-2.0)
    return (
        f"Gaussian noise of .2 takes clean models from {span(clean)} to {span(noisy)}. Inputs are "
        f"standardised, so noise on pixels that hardly vary is amplified: {quiet.sum()} of "
        f"{len(deviation)} have an sd below {QUIET:g} and carry {share:.1%} of its squared norm."
    )


def attacks(results: Results) -> str:
    """How many images are left under attack, and whether that tells losses apart."""
    runs, images = results.robustness, len(results.noisiest.labels.ravel())
    left = {name: means(runs, f"{name}_0.1") * images for name in ("fgsm", "pgd", "apgd")}
    counts = {name: values.round().astype(int) for name, values in left.items()}
    parts = [
        f"{name.upper()} leaves {span(values, 'd')} of {images:,} images"
        for name, values in counts.items()
    ]
    strongest = counts["apgd"]
    low, high = int(strongest.min()), int(strongest.max())
    apart = high - low > 2 * math.sqrt(max(high + low, 1))  # two Poisson deviations
    verdict = (
        f"{labels(results, strongest.index[strongest == high])} keeps most"
        if apart
        else "the losses are indistinguishable"
    )
    return (
        f"At radius 0.1 {join(parts)}: under the strongest attack {verdict}. Local sensitivity, no "
        f"certificate."
    )


def ablations(results: Results) -> str:
    """How far the variants are from the protocol's, at most, and how seeds differ."""
    families, parts = recorded_families(results.ablation, ablation.families()), []
    protocol = protocol_variants(families)
    for family, variants in families.items():
        gains = [
            paired_gains(runs, variants, protocol[family], "accuracy")
            for _, runs in results.ablation.groupby("place", sort=False)
        ]
        changes = pd.concat([one.mean() for one in gains])
        spread = (
            float(np.mean([one.std(ddof=1).mean() for one in gains])) if results.seeds > 1 else 0
        )
        parts.append(f"{family} {changes.min():+.3f} to {changes.max():+.3f} (sd {spread:.3f})")
    return (
        f"Taking a part away or adding to it changes mean accuracy by little against the spread of "
        f"the paired differences over seeds: {'; '.join(parts)}."
    )


def rates(results: Results) -> str:
    """How many selections are at an end of the grid."""
    counts = results.rate_counts
    total = int(counts.to_numpy().sum())
    smallest, largest = (scientific(float(rate)) for rate in counts.columns[[0, -1]])
    low, high = (int(counts.iloc[:, place].sum()) for place in (0, -1))
    said = [f"{note}." for note in edge_notes(low + high, total)]
    text = (
        f"Validation NLL selects {largest}, the largest rate, in {high} of {total} cells and "
        f"{smallest}, the smallest, in {low}."
    )
    return " ".join([text, *said])


def inner_rates(results: Results) -> str:
    """The losses for which another than the largest rate is ever selected."""
    counts = results.rate_counts
    inner = counts.drop(columns=counts.columns[-1]).sum(axis=1)
    chosen = [str(label) for label in inner.index[inner > 0]]
    largest = scientific(float(counts.columns[-1]))
    if not chosen:
        return f"Every loss selects {largest} in every cell."
    most = f"in at most {inner.max()} cells"
    return f"A smaller rate than {largest} is selected for {join(chosen)}, {most}."


def optimisation(results: Results) -> str:
    """How many runs would have gone on, and what a loss costs."""
    frame, seconds = results.clean, means(results.runtime, "seconds")
    said = [f"On clean digits {note}. " for note in convergence_notes(frame)]
    text = "".join([*said, f"A run takes {span(seconds, '.2f')} s ({hardware(results.runtime)})"])
    if REFERENCE in seconds and len(seconds) > 1:
        slowest = str(seconds.idxmax())
        ratio = seconds[slowest] / seconds[REFERENCE]
        text += f"; {labels(results, [slowest])} takes {ratio:.2f} times as long as cross-entropy"
    return f"{text}."


def best_variants(results: Results) -> str:
    """In how many places the protocol's variant is the best of its family."""
    table = means(results.ablation, "accuracy", by=["place", "loss"]).unstack()
    families, best = recorded_families(results.ablation, ablation.families()), 0
    for variants in families.values():
        members = table[[one.name for one in variants]]
        own = next((name for name in members if name in PROTOCOL), members.columns[0])
        best += int((members[own] >= members.max(axis=1)).sum())
    return (
        f"The protocol's variant has the highest mean accuracy in {best} of "
        f"{len(families) * len(table)} cases."
    )


def robustness_table(results: Results) -> str:
    """Which attack is the strongest at equal radius."""
    runs, parts = results.robustness, []
    for radius in measures.RADII:
        left = {name: means(runs, f"{name.lower()}_{radius}").mean() for name in ATTACKS}
        strongest = min(left, key=lambda name: left[name])
        parts.append(f"{strongest} at {radius} ({left[strongest]:.3f})")
    return f"Averaged over losses, the attack that leaves least accuracy is {join(parts)}."
