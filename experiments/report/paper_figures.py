"""The figures of the report by their labels in the paper, drawn from records."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from experiments import ablation, figures, longtail, robustness, tables
from experiments.report.gather import Results, Study

NOISIEST = "symmetric-40"


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
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
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


def _digits(results: Results) -> Study:
    return results.noise["digits"]


def _clean(results: Results):
    frame = _digits(results).frame
    return frame[frame["regime"] == "clean"]


def _losses(study: Study) -> list[str]:
    return list(study.frame["loss"].cat.categories)


def _reliability(results: Results, path: Path) -> list[Path]:
    study = _digits(results)
    return figures.reliability(study.store, study.of(NOISIEST), _losses(study), path)


def _nll_confidence(results: Results, path: Path) -> list[Path]:
    study = _digits(results)
    return figures.noise_nll_confidence(study.frame, study.store, study.of(NOISIEST), path)


def _confusions(results: Results, path: Path) -> list[Path]:
    study = _digits(results)
    return figures.noise_confusions(study.store, study.of(NOISIEST), _losses(study), path)


def _longtail(results: Results, path: Path) -> list[Path]:
    return figures.longtail({longtail.EARLY: results.longtail[longtail.EARLY].frame}, path)


def _early_stopping(results: Results, path: Path) -> list[Path]:
    return figures.longtail({name: one.frame for name, one in results.longtail.items()}, path)


def _tail_classes(results: Results, path: Path) -> list[Path]:
    study = results.longtail[longtail.EARLY]
    return figures.longtail_details(study.store, study.cells, _losses(study), path)


FIGURES = {
    "noise-accuracy": Recipe(
        lambda results, path: figures.noise_accuracy(_digits(results).frame, "digits", path),
        "Digits: test accuracy against the rate of symmetric label noise.",
        "noise --dataset digits",
    ),
    "reliability": Recipe(
        _reliability,
        "Digits, 40% symmetric noise: accuracy against confidence; the diagonal is calibrated.",
        "noise --dataset digits",
    ),
    "longtail": Recipe(
        _longtail, "Balanced accuracy after training on a 30:1 long tail.", "longtail"
    ),
    "early-stopping": Recipe(
        _early_stopping,
        "The same with and without early stopping.",
        "longtail",
        in_paper=False,
    ),
    "natural-corruption": Recipe(
        lambda results, path: figures.natural_corruption(
            results.robustness, robustness.NATURAL, path
        ),
        "Clean-trained digits models under random corruption of their inputs.",
        "robustness",
    ),
    "attacks": Recipe(
        lambda results, path: figures.attacks(results.robustness, path),
        "The same under FGSM and projected-gradient attacks: local sensitivity, no certificate.",
        "robustness",
    ),
    "ablations": Recipe(
        lambda results, path: figures.ablations(results.ablation, ablation.families(), path),
        "Accuracy of the variants of CAPM, HPG and APMS.",
        "ablation",
    ),
    "lr-sensitivity": Recipe(
        lambda results, path: figures.lr_sensitivity(tables.selected_rates(results.rates), path),
        "How often validation NLL selects each learning rate.",
        "lr_sensitivity",
    ),
    "supp-metric-heatmaps": Recipe(
        lambda results, path: figures.metric_heatmaps(results.runs, path),
        "Means of accuracy, NLL and ECE of every loss in every cell.",
        "report",
    ),
    "supp-clean-ranks": Recipe(
        lambda results, path: figures.clean_ranks(results.runs, path),
        "Clean digits: accuracy against NLL; mean ranks over cells and metrics.",
        "report",
    ),
    "supp-noise-nll-confidence": Recipe(
        _nll_confidence,
        "Digits: NLL against the rate of symmetric noise; densities of confidence at 40%.",
        "report",
    ),
    "supp-noise-confusions": Recipe(
        _confusions, "Digits, 40% symmetric noise: confusion matrices.", "report"
    ),
    "supp-longtail-details": Recipe(
        _tail_classes, "Long tail: accuracy in each class, and in the three rarest.", "report"
    ),
    "supp-calibration-gradients": Recipe(
        lambda results, path: figures.calibration_gradients(
            _clean(results), results.robustness, path
        ),
        "ECE before and after temperature scaling; norms of input gradients.",
        "report",
    ),
    "supp-optimization": Recipe(
        lambda results, path: figures.optimization(_clean(results), results.runtime, path),
        "Clean digits: validation NLL over epochs; seconds to train a run with each loss alone.",
        "report",
    ),
}
