"""Which loss, by how much, how sure: `python -m experiments.answer`.

The paper's cells and losses over a hundred seeds, or data of your own: every loss is compared with
cross-entropy and with the Brier score, the geometry-free control of CAPM, HPG and APMS. The option
`--controls` asks whether what is found belongs to the losses or to the protocol, and checks the
claims about ablations and perturbations too.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import tyro

from experiments import ablation, robustness
from experiments.engine.command import Command
from experiments.engine.controls import CONTROLS, Control
from experiments.engine.options import DEFAULTS, Common, Options, make_study
from experiments.engine.study import Study
from experiments.longtail import DATASET, REGIME
from experiments.noise import PAPER_DATASETS
from experiments.shell import command_line
from experiments.shell.errors import UsageError
from experiments.shell.names import choose_all
from pgeom.data.regimes import KINDS
from pgeom.losses.catalogue import GENERAL, LOSSES, SYNONYMS
from pgeom.messages import count

REFERENCE = "ce"
HUNDRED_SEEDS = replace(DEFAULTS, seeds=("100",))
CONTROL_FOLDER = "controls"


class Plan(NamedTuple):
    """The studies of the answer.

    Attributes:
      protocol: the paper's, one per dataset.
      controls: by the name of the control.
      others: those of the ablations and perturbations, by name.
    """

    protocol: list[Study]
    controls: dict[str, list[Study]]
    others: dict[str, list[Study]]

    def folders(self, out: Path) -> dict[Path, list[Study]]:
        """Every study once, by the folder of its records."""
        folders: dict[Path, dict[tuple[str, ...], Study]] = {out: {}}
        for studies in (self.protocol, *self.controls.values(), *self.others.values()):
            for study in studies:
                names = (study.name, study.dataset.name, *map(str, study.regimes))
                names += tuple(loss.name for loss in study.losses)
                folders.setdefault(self.folder(study, out), {})[names] = study
        return {folder: [*studies.values()] for folder, studies in folders.items()}

    def folder(self, study: Study, out: Path) -> Path:
        """The folder of a study: that of the protocol if it is part of it, or the controls'."""
        first = self.protocol[0]
        same = study.training == first.training and study.measure is None
        same = same and study.noisy_validation == first.noisy_validation
        return out if same else out / CONTROL_FOLDER


def main(
    dataset: str | None = None,
    regimes: tuple[str, ...] = (),
    losses: tuple[str, ...] = (),
    controls: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    control_seeds: int = 20,
    page: Path | None = None,
    out: Path = Path("results/answer"),
    common: Common = HUNDRED_SEEDS,
) -> None:
    """Compare every loss with cross-entropy and Brier over many seeds, and say what to choose.

    Args:
        dataset: A name such as digits or wine, or the path of your own data; by default the
            paper's four datasets.
        regimes: Of --dataset, such as clean or symmetric-40; its own by default.
        losses: Names such as ce or ldam, ce among them; by default all seventeen, of which the four
            that know the class counts are only for rare classes.
        controls: Whether to train the controls, too.
        control_seeds: How many of the seeds the controls have.
        page: Where to write the answer as a page of Markdown, with its figures beside it.
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    given = command_line.as_typed()
    if regimes and dataset is None:
        raise UsageError("--regimes needs --dataset here")
    common.check_words(dataset, regimes=regimes, losses=losses, known=LOSSES)
    if REFERENCE not in choose_all("loss", losses, LOSSES, SYNONYMS):
        raise UsageError(f"--losses must have {REFERENCE}, with which the others are compared")
    if control_seeds < 1:
        raise UsageError(f"--control-seeds must be at least 1, got {control_seeds}")
    command = Command(common, out)
    plan = make_plan(common, losses, control_seeds if controls else 0, dataset, regimes)
    folders = plan.folders(out)
    protocol = sum(study.runs for study in plan.protocol)
    total = sum(study.runs for studies in folders.values() for study in studies)
    command.console.print(
        f"{protocol:,} runs of the protocol, at most {total - protocol:,} more for controls; "
        "what is recorded is reused",
        soft_wrap=True,
    )
    command.train_in(folders)
    command.finish(lambda: show(plan, page, command, given))


def make_plan(
    options: Options,
    losses: tuple[str, ...],
    control_seeds: int,
    dataset: str | None = None,
    regimes: tuple[str, ...] = (),
) -> Plan:
    """The studies of the paper's cells or of a dataset and, if these have seeds, of the controls.

    The ablations and perturbations are about the paper's claims, and so about its cells alone.
    """
    chosen = choose_all("loss", losses, LOSSES, SYNONYMS)
    general = tuple(loss for loss in chosen if loss in GENERAL)
    if dataset is None:
        names = PAPER_DATASETS
        protocol = [make_study("protocol", options, name, losses=general) for name in names]
        tail = {"regimes": (REGIME,), "losses": chosen, "known": LOSSES}
        protocol.append(make_study("protocol", options, DATASET, **tail))
    else:
        asked = {"regimes": regimes, "losses": chosen, "known": LOSSES}
        protocol = _separate(make_study("protocol", options, dataset, **asked), named=bool(losses))
    if not control_seeds:
        return Plan(protocol, {}, {})
    seeds = protocol[0].seeds[:control_seeds]
    fewer = [replace(study, seeds=seeds) for study in protocol]
    controls = {
        control.name: [varied for study in fewer for varied in control.vary(study)]
        for control in CONTROLS
    }
    if dataset is not None:
        return Plan(protocol, controls, {})
    given = replace(options, generators=(), own_losses=(), seeds=tuple(f"{s}," for s in seeds))
    probed = robustness.make_probed(given, general)
    others = {"ablation": ablation.make_studies(given), "robustness": [probed]}
    return Plan(protocol, controls, others)


def _separate(study: Study, *, named: bool) -> list[Study]:
    """A study of all losses without those that know the class counts where these are even.

    Args:
      study: of one dataset.
      named: whether the user named the losses, who will have meant it.
    """
    if named or study.dataset.is_uneven:
        return [study]
    plain = tuple(x for x in study.losses if x.name in GENERAL or x.name not in LOSSES)
    thinned = tuple(one for one in study.regimes if KINDS[one.kind].thin is not None)
    even = tuple(one for one in study.regimes if one not in thinned)
    parts = [replace(study, regimes=even, losses=plain), replace(study, regimes=thinned)]
    return [part for part in parts if part.regimes]


def read(plan: Plan, out: Path):
    """What the runs of the protocol, of every control and of the other studies say."""
    from experiments.show.records import Gatherer, weigh

    gatherer = Gatherer()

    def gather(studies: list[Study]):
        return gatherer.frames((study, plan.folder(study, out)) for study in studies)

    controls = {
        control.name: _keep(control, plan.controls[control.name], gather)
        for control in CONTROLS
        if plan.controls.get(control.name)
    }
    others = {name: gather(studies) for name, studies in plan.others.items()}
    return weigh(gather(plan.protocol), controls, others)


def _keep(control: Control, studies: list[Study], gather):
    """The runs of a control, with the numbers that it compares."""
    from experiments.show.controls import take_chosen_rate, take_last_epoch

    if control.keep == "chosen rate":
        rates: dict[float, list[Study]] = {}
        for study in studies:
            rates.setdefault(study.training.learning_rate, []).append(study)
        return take_chosen_rate({rate: gather(those) for rate, those in rates.items()})
    runs = gather(studies)
    return take_last_epoch(runs) if control.keep == "last epoch" else runs


def show(plan: Plan, page: Path | None, command: Command, given: str) -> list[Path]:
    """Write the page and print what the numbers support, all from records."""
    # here and not above: a mistake in the command line should not wait for them
    from experiments.show import items
    from experiments.show.decisions import decision_grid
    from experiments.show.page import Page, finish, make_sections, write_markdown

    evidence = read(plan, command.out)
    controlled = [runs["seed"].nunique() for runs in evidence.control_runs.values()]
    controls = f" (controls: {max(controlled)})" if controlled else ""
    answer = Page(
        "Which loss, by how much, how sure",
        f"Made by `{given}`, over {count(evidence.seeds, 'seed')}{controls}. Every number and "
        "every sentence below is computed from the records.",
        items.statements(evidence),
        make_sections("answer", items.of_evidence(evidence), command),
        items.facts(evidence.samples.runs, given, command.took),
        items.rules(evidence),
        items.bibtex(evidence.samples.runs),
    )
    written = finish(answer, decision_grid(evidence.decisions), evidence.effects, command)
    return written if page is None else [*written, write_markdown(answer, page)]


if __name__ == "__main__":
    command_line.run(main, "experiments.answer", example="--seeds 100 --controls")
