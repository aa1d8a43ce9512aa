"""Every table and figure of the paper, question by question: `python -m experiments.report`.

What is missing is trained, and all is read from records. The page begins with a chart of every loss
in every situation and the decision table; published values stand beside measured ones. The
constants that the paper leaves open were fitted to those: that they agree is no evidence.
"""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from experiments import (
    ablation,
    known_truth,
    links,
    longtail,
    lr_sensitivity,
    noise,
    robustness,
    runtime,
)
from experiments.engine.command import Command
from experiments.engine.options import DEFAULTS, Common, Options, make_study
from experiments.engine.study import Study
from experiments.shell import command_line
from experiments.shell.errors import UsageError
from experiments.shell.names import choose_all
from pgeom.data.regimes import Regime
from pgeom.losses.catalogue import GENERAL, LOSSES, SYNONYMS
from pgeom.messages import count
from pgeom.training.settings import PROTOCOL

CLASSES, SIZES = 5, (250, 1000, 4000)  # of mixtures with a known posterior


def main(
    losses: tuple[str, ...] = (),
    out: Path = Path("results/report"),
    theory: bool = True,
    common: Common = DEFAULTS,
) -> None:
    """Reproduce the empirical section and set it beside what was published.

    Records are kept in the folders of the experiments, beside --out; what is there is not trained
    again.

    Args:
        losses: Names such as ce or ldam; all seventeen by default.
        out: The folder for index.html, and for what --formats asks for.
        theory: Whether to draw the theory figures too, by `python -m proofs_numeric`.
        common: Options of every command.
    """
    given = command_line.as_typed()
    losses = choose_all("loss", losses, LOSSES, SYNONYMS)
    if not set(losses) & set(GENERAL):
        raise UsageError(f"--losses must have one of {', '.join(GENERAL)}")
    # here and not above: a mistake in the command line should not wait for it
    from experiments.show.theory import proving

    command = Command(common, out)
    studies = make_studies(common, losses)
    theory = theory and command.is_primary
    with proving(out) if theory else nullcontext() as process:
        command.train_in(studies.folders(out.parent))
        if process is not None:
            process.wait()
        command.finish(lambda: show(read(studies, out, theory), command, given))


class Studies(NamedTuple):
    """The studies of the report; each has the folder of its experiment for its records."""

    noise: dict[str, Study]  # by dataset
    longtail: tuple[Study, Study]  # with and without early stopping
    robustness: Study
    ablation: list[Study]
    rates: tuple[Study, ...]
    runtime: Study
    known_truth: dict[int, Study]  # by the number of examples
    links: list[Study]  # which the report reads, and does not train

    def folders(self, parent: Path) -> dict[Path, list[Study]]:
        """What is trained in each folder; the noise study has the protocol's learning rate."""
        protocol = self.noise["digits"].training
        names = {
            "noise": self.noise.values(),
            "longtail": self.longtail,
            "robustness": [self.robustness],
            "ablation": self.ablation,
            "lr_sensitivity": [one for one in self.rates if one.training != protocol],
            "runtime": [self.runtime],
            "known_truth": self.known_truth.values(),
        }
        return {parent / name: [*studies] for name, studies in names.items()}


def make_studies(options: Options, losses: tuple[str, ...]) -> Studies:
    """The studies of every experiment, restricted to some losses."""
    general = tuple(loss for loss in losses if loss in GENERAL)
    noisy = {x: make_study("noise", options, x, losses=general) for x in noise.PAPER_DATASETS}
    plain, fixed = replace(options, generators=(), own_losses=()), known_truth.DEFAULTS
    # the settings of `experiments.known_truth`, with the report's seeds and epochs
    kept = {name: getattr(fixed, name) for name in ("batch_size", "learning_rate", "model")}
    epochs = options.epochs or PROTOCOL.epochs
    exact = replace(options, epochs=epochs, stop_on=fixed.stop_on, link="softmax", **kept)
    return Studies(
        noise=noisy,
        longtail=longtail.make_studies(options, losses),
        robustness=robustness.make_probed(options, general),
        ablation=ablation.make_studies(plain),
        rates=lr_sensitivity.vary_rate(noisy["digits"]),
        runtime=runtime.make_timed(options, general),
        known_truth=known_truth.make_studies(exact, CLASSES, SIZES, losses=general),
        links=links.make_studies(replace(plain, link="softmax")),
    )


def read(studies: Studies, out: Path, theory: bool):
    """All that the page shows, from records."""
    import numpy as np
    import pandas as pd

    from experiments.engine.cells import prepare
    from experiments.engine.results import read_logits
    from experiments.show import regrets
    from experiments.show.figures.panels import legend
    from experiments.show.items import NOISIEST
    from experiments.show.records import Gatherer, Results, weigh
    from experiments.show.summary import count_selected
    from experiments.show.theory import CHECKED, picture, read_proofs

    folder, gatherer = out.parent, Gatherer()
    places = {id(x): path for path, those in studies.folders(folder).items() for x in those}
    frame = lambda study: gatherer.frame(study, places.get(id(study), folder / "noise"))  # noqa: E731
    noisy = {name: frame(study) for name, study in studies.noise.items()}
    tail, mixture = studies.longtail[0], studies.known_truth[max(SIZES)]
    tails = {study.name: frame(study) for study in studies.longtail}
    ablated = ablation.read_places(studies.ablation, folder / "ablation")
    probed = frame(studies.robustness)
    runs = [one.astype({"regime": str, "loss": str}) for one in (*noisy.values(), tails[tail.name])]
    labels = prepare(tail, tail.cells[0]).noise.labels
    proofs = read_proofs(out) if theory else None
    drawn = {label: picture(label, out) for label in CHECKED} if theory else {}
    return Results(
        noise=noisy,
        longtail=tails,
        robustness=probed,
        ablation=ablated,
        families=ablation.families(),
        rate_counts=count_selected({x.training.learning_rate: frame(x) for x in studies.rates}),
        runtime=frame(studies.runtime),
        regrets=regrets.measure_regrets(studies.known_truth, folder / "known_truth"),
        regret_legend=legend(mixture.losses),
        noisiest=read_logits(studies.noise["digits"], Regime.parse(NOISIEST), folder / "noise"),
        tail=read_logits(tail, tail.regimes[0], folder / "longtail"),
        tail_counts=np.bincount(labels, minlength=tail.dataset.num_classes).tolist(),
        legend=legend(tail.losses),
        evidence=weigh(pd.concat(runs), None, {"ablation": ablated, "robustness": probed}),
        links=read_if_complete(studies.links, folder / "links", gatherer),
        proofs=proofs,
        pictures={label: path for label, path in drawn.items() if path.exists()},
    )


def read_if_complete(studies: list[Study], folder: Path, gatherer):
    """The runs of the study of links, or None unless its own command has trained them all."""
    from experiments.engine.identity import identify
    from experiments.show.links import read_links

    recorded = gatherer.store(folder).records
    runs = (key for study in studies for cell in study.cells for key in identify(study).runs(cell))
    return read_links(studies, folder) if recorded and all(x in recorded for x in runs) else None


def show(results, command: Command, given: str) -> list[Path]:
    """Write the page, all from records, and print the decisions and what the numbers support."""
    from experiments.show import items, published
    from experiments.show.decisions import decision_grid
    from experiments.show.page import Page, finish, make_sections
    from experiments.show.theory import CHECKED, finding

    evidence, runs, proofs = results.evidence, results.runs, results.proofs
    cells = runs.groupby(["dataset", "regime"]).ngroups
    findings = {f"fig:{label}": finding(label, proofs) for label in CHECKED} if proofs else {}
    page = Page(
        "Which loss should you train with?",
        f"{len(results.legend)} losses for classification in {cells} cells of small datasets, with "
        f"{count(evidence.seeds, 'matched seed')} each: a reproduction of a paper on structured "
        f"proper losses. {command.took}.",
        items.statements(evidence),
        make_sections("report", items.of_results(results), command, findings),
        items.facts(runs, given, command.took),
        items.rules(evidence),
        items.bibtex(runs),
    )
    compared = published.compare(published.load_published(), runs)
    return finish(page, decision_grid(evidence.decisions), compared, command)


if __name__ == "__main__":
    command_line.run(main, "experiments.report", example="--seeds 10")
