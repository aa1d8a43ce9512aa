"""The figures of the report by their labels in the paper, drawn from records."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from experiments import ablation, figures, robustness
from experiments.figures.legend import Legend
from experiments.report.gather import Results
from pgeom.frontend.processes import worker_pool


class Figure(NamedTuple):
    """One label of the report: its pictures, what it shows, and the command that makes it."""

    pictures: list[Path]
    caption: str
    command: str
    in_paper: bool = True


class Recipe(NamedTuple):
    """How to draw a figure to a path without suffix."""

    draw: Callable[[Results, Path], list[Path]]
    caption: str
    command: str
    in_paper: bool = True


def write(results: Results, out: Path) -> dict[str, Figure]:
    """Draw every figure as PDF and PNG; those without a run to show are left out.

    A second process draws half of them: matplotlib has the report wait longest.
    """
    labels = list(FIGURES)
    with worker_pool(1) as other:
        theirs = other.submit(_draw, labels[::2], results, out)
        made = {**_draw(labels[1::2], results, out), **theirs.result()}
    return {label: made[label] for label in labels if label in made}


def _draw(labels: list[str], results: Results, out: Path) -> dict[str, Figure]:
    made = {}
    for label in labels:
        recipe = FIGURES[label]
        written = recipe.draw(results, out / label)
        pictures = [path for path in written if path.suffix == ".png"]
        if pictures:
            command = f"python -m experiments.{recipe.command}"
            made[label] = Figure(pictures, recipe.caption, command, recipe.in_paper)
    return made


def _longtail(results: Results, path: Path, studies: int) -> list[Path]:
    """Of the first so many ways to stop."""
    frames = dict(list(results.longtail.items())[:studies])
    K = next(iter(results.tail.logits.values())).shape[-1]
    return figures.longtail(frames, results.legend, 1 / K, path)


def _shown(results: Results) -> Legend:
    """The losses of the noise experiment."""
    return {name: results.legend[name] for name in results.noisiest.logits}


FIGURES = {
    "noise-accuracy": Recipe(
        lambda results, path: figures.noise_accuracy(results.noise["digits"], results.legend, path),
        "Digits: test accuracy against the rate of symmetric label noise.",
        "noise --dataset digits",
    ),
    "reliability": Recipe(
        lambda results, path: figures.reliability(results.noisiest, _shown(results), path),
        "Digits, 40% symmetric noise: accuracy against confidence; the diagonal is calibrated.",
        "noise --dataset digits",
    ),
    "longtail": Recipe(
        lambda results, path: _longtail(results, path, studies=1),
        "Balanced accuracy after training on a 30:1 long tail.",
        "longtail",
    ),
    "early-stopping": Recipe(
        lambda results, path: _longtail(results, path, studies=2),
        "The same with and without early stopping.",
        "longtail",
        in_paper=False,
    ),
    "natural-corruption": Recipe(
        lambda results, path: figures.natural_corruption(
            results.robustness, results.legend, robustness.NATURAL, path
        ),
        "Clean-trained digits models under random corruption of their inputs.",
        "robustness",
    ),
    "attacks": Recipe(
        lambda results, path: figures.attacks(results.robustness, results.legend, path),
        "The same under FGSM and projected-gradient attacks: local sensitivity, no certificate.",
        "robustness",
    ),
    "ablations": Recipe(
        lambda results, path: figures.ablations(results.ablation, ablation.families(), path),
        "Accuracy of the variants of CAPM, HPG and APMS.",
        "ablation",
    ),
    "lr-sensitivity": Recipe(
        lambda results, path: figures.lr_sensitivity(results.rate_counts, path),
        "How often validation NLL selects each learning rate.",
        "lr_sensitivity",
    ),
    "supp-metric-heatmaps": Recipe(
        lambda results, path: figures.metric_heatmaps(results.runs, results.legend, path),
        "Means of accuracy, NLL and ECE of every loss in every cell.",
        "report",
    ),
    "supp-clean-ranks": Recipe(
        lambda results, path: figures.clean_ranks(results.runs, results.legend, path),
        "Clean digits: accuracy against NLL; mean ranks over cells and metrics.",
        "report",
    ),
    "supp-noise-nll-confidence": Recipe(
        lambda results, path: figures.noise_nll_confidence(
            results.noise["digits"], results.noisiest, _shown(results), path
        ),
        "Digits: NLL against the rate of symmetric noise; densities of confidence at 40%.",
        "report",
    ),
    "supp-noise-confusions": Recipe(
        lambda results, path: figures.noise_confusions(results.noisiest, _shown(results), path),
        "Digits, 40% symmetric noise: confusion matrices.",
        "report",
    ),
    "supp-longtail-details": Recipe(
        lambda results, path: figures.longtail_details(results.tail, results.legend, path),
        "Long tail: accuracy in each class, and in the three rarest.",
        "report",
    ),
    "supp-calibration-gradients": Recipe(
        lambda results, path: figures.calibration_gradients(
            results.clean, results.robustness, results.legend, path
        ),
        "ECE before and after temperature scaling; norms of input gradients.",
        "report",
    ),
    "supp-optimization": Recipe(
        lambda results, path: figures.optimization(
            results.clean, results.runtime, results.legend, path
        ),
        "Clean digits: validation NLL over epochs; seconds to train a run with each loss alone.",
        "report",
    ),
}
