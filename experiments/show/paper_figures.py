"""The figures of the report by their labels in the paper, drawn from records."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from experiments import ablation, longtail
from experiments.engine import measures
from experiments.shell.files import write_text
from experiments.shell.processes import worker_pool
from experiments.show import figures
from experiments.show.figures.legend import Legend
from experiments.show.item_files import Findings
from experiments.show.paper_tables import compared
from experiments.show.records import Results
from experiments.show.tables import to_latex_figure


class Figure(NamedTuple):
    """One label of the report: what it is and shows, its files, and the command that makes it.

    Attributes:
      heading: in words.
      finding: what it shows.
      picture: as SVG; PNG and PDF lie beside it.
      command: that makes it.
      data: the name of the files with its numbers, without suffix; empty where there are none.
      in_paper: whether the paper has it, under this label.
    """

    heading: str
    finding: str
    picture: Path
    command: str
    data: str = ""
    in_paper: bool = True


class Recipe(NamedTuple):
    """How to draw a figure to a path without suffix."""

    heading: str
    draw: Callable[[Results, Path], list[Path]]
    command: str
    data: str = "runs"
    in_paper: bool = True


def write(results: Results, findings: Findings, out: Path) -> dict[str, Figure]:
    """Draw every figure as PDF, PNG and SVG; those without a run to show are left out.

    A second process draws half of them: matplotlib has the report wait longest.
    """
    labels = list(FIGURES)
    with worker_pool(1) as other:
        theirs = other.submit(_draw, labels[::2], results, out)
        drawn = {*_draw(labels[1::2], results, out), *theirs.result()}
    made = {}
    for label in labels:
        if label in drawn:
            recipe, finding = FIGURES[label], findings[f"fig:{label}"](results) or ""
            command = f"python -m experiments.{recipe.command}"
            last = (command, recipe.data, recipe.in_paper)
            made[label] = Figure(recipe.heading, finding, out / f"{label}.svg", *last)
            write_text(out / f"fig-{label}.tex", to_latex_figure(label, finding or recipe.heading))
    return made


def _draw(labels: list[str], results: Results, out: Path) -> list[str]:
    """The labels of which there was something to draw."""
    return [label for label in labels if FIGURES[label].draw(results, out / label)]


def _longtail(results: Results, path: Path, studies: int) -> list[Path]:
    """Of the first so many ways to stop."""
    ways = dict(list(longtail.ways_to_stop(results.longtail).items())[:studies])
    return figures.longtail(ways, results.legend, 1 / len(results.tail_counts), path)


def _shown(results: Results) -> Legend:
    """The losses of the noise experiment."""
    return {name: results.legend[name] for name in results.noisiest.logits}


def _forest(results: Results, path: Path, metric: str) -> list[Path]:
    """Against cross-entropy, where it was run."""
    evidence = results.evidence
    if evidence is None or evidence.effects.empty:
        return []
    return figures.forest(evidence.samples, evidence.effects, path, reference="ce", metric=metric)


def _ranks(results: Results, path: Path) -> list[Path]:
    evidence = results.evidence
    return (
        figures.critical_difference(evidence.ranked, path) if evidence and evidence.ranked else []
    )


FIGURES = {
    "forest-accuracy": Recipe(
        "Accuracy against cross-entropy, cell by cell",
        lambda results, path: _forest(results, path, "accuracy"),
        "answer",
        in_paper=False,
    ),
    "forest-nll": Recipe(
        "NLL against cross-entropy, cell by cell",
        lambda results, path: _forest(results, path, "nll"),
        "answer",
        in_paper=False,
    ),
    "critical-difference": Recipe(
        "Which losses can be told apart by rank", _ranks, "answer", in_paper=False
    ),
    "supp-metric-heatmaps": Recipe(
        "Every loss in every cell, as differences from cross-entropy",
        lambda results, path: figures.metric_heatmaps(results.runs, results.legend, path),
        "report",
    ),
    "supp-clean-ranks": Recipe(
        "Accuracy against NLL on clean digits, and mean ranks",
        lambda results, path: figures.clean_ranks(results.runs, results.legend, path),
        "report",
    ),
    "published": Recipe(
        "Published against ours, all cells",
        lambda results, path: figures.dumbbells(compared(results), path),
        "comparison",
        data="comparison-2",
        in_paper=False,
    ),
    "noise-accuracy": Recipe(
        "Accuracy under label noise",
        lambda results, path: figures.noise_accuracy(results.noise["digits"], results.legend, path),
        "noise --dataset digits",
    ),
    "reliability": Recipe(
        "Is confidence right under label noise?",
        lambda results, path: figures.reliability(results.noisiest, _shown(results), path),
        "noise --dataset digits",
    ),
    "supp-noise-nll-confidence": Recipe(
        "NLL and confidence under label noise",
        lambda results, path: figures.noise_nll_confidence(
            results.noise["digits"], results.noisiest, _shown(results), path
        ),
        "report",
    ),
    "supp-noise-confusions": Recipe(
        "Which classes are confused under label noise",
        lambda results, path: figures.noise_confusions(results.noisiest, _shown(results), path),
        "report",
    ),
    "longtail": Recipe(
        "Balanced accuracy on the long tail",
        lambda results, path: _longtail(results, path, studies=1),
        "longtail",
    ),
    "early-stopping": Recipe(
        "What early stopping does to the long tail",
        lambda results, path: _longtail(results, path, studies=3),
        "longtail",
        data="longtail-runs",
        in_paper=False,
    ),
    "supp-longtail-details": Recipe(
        "Accuracy in each class of the long tail",
        lambda results, path: figures.longtail_details(
            results.tail, results.tail_counts, results.legend, path
        ),
        "report",
    ),
    "supp-calibration-gradients": Recipe(
        "Calibration error and input gradients",
        lambda results, path: figures.calibration_gradients(
            results.clean, results.robustness, results.legend, path
        ),
        "report",
        data="robustness-runs",
    ),
    "regret-sizes": Recipe(
        "Regret against the number of examples",
        lambda results, path: figures.regret_curves(results.regrets, results.regret_legend, path),
        "known_truth",
        data="regrets-runs",
        in_paper=False,
    ),
    "regret-heatmaps": Recipe(
        "Regret of every loss by every score",
        lambda results, path: figures.regret_heatmaps(results.regrets, results.regret_legend, path),
        "known_truth",
        data="regrets-runs",
        in_paper=False,
    ),
    "natural-corruption": Recipe(
        "Accuracy under corrupted inputs",
        lambda results, path: figures.natural_corruption(
            results.robustness, results.legend, measures.NATURAL, path
        ),
        "robustness",
        data="robustness-runs",
    ),
    "attacks": Recipe(
        "Accuracy under attack",
        lambda results, path: figures.attacks(
            results.robustness, results.legend, measures.RADII, path
        ),
        "robustness",
        data="robustness-runs",
    ),
    "ablations": Recipe(
        "What each part of the candidates does",
        lambda results, path: figures.ablations(results.ablation, ablation.families(), path),
        "ablation",
        data="ablation-runs",
    ),
    "lr-sensitivity": Recipe(
        "Which learning rate would be chosen",
        lambda results, path: figures.lr_sensitivity(results.rate_counts, path),
        "lr_sensitivity",
        data="lr-sensitivity",
    ),
    "supp-optimization": Recipe(
        "Training curves and running time",
        lambda results, path: figures.optimization(
            results.clean, results.runtime, results.legend, path
        ),
        "report",
        data="runtime-runs",
    ),
}
