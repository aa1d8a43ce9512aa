"""What each part of the candidates does: `python -m experiments.ablation`."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from experiments import cli, jobs
from experiments.cells import Cell
from experiments.records import Store
from pgeom.losses import catalogue

CELLS = (("digits", "symmetric-40"), ("confusion", "clean"), ("confusion", "pair-flip-40"))
CAPM = {
    "capm": catalogue.capm,
    "capm-no-graph": partial(catalogue.capm, gamma=0.0),
    "capm-no-tail": partial(catalogue.capm, delta=0.0),
    "capm-no-low-rank": partial(catalogue.capm, low_rank=False),
    "capm-identity": partial(catalogue.capm, gamma=0.0, delta=0.0, low_rank=False),
}
HPG = {f"hpg-{ridges}": partial(catalogue.hpg, ridges=ridges) for ridges in (0, 2, 4, 8, 16)}
APMS = {"apms": catalogue.apms}
BETA0 = (0.0, 0.05, 0.1, 0.2, 0.5)


def main(out: Path = Path("results/ablation"), common: cli.Common = cli.DEFAULTS) -> None:
    """Take the candidates apart: CAPM's terms, HPG's ridges, APMS's initial coefficient.

    Args:
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    command = cli.begin(common, out)
    places = [Cell(*where, seed) for where in CELLS for seed in command.seeds]
    asked = len(places) * (len(CAPM) + len(HPG) + len(BETA0))
    spent = train_missing(out, places, command)
    cli.finish(command, spent, asked, out, lambda: report(out, places, command))


def train_missing(out: Path, places: list[Cell], command: cli.Command) -> jobs.Spent:
    """Train what has no record yet."""
    spent = jobs.Spent()
    for dataset in dict.fromkeys(name for name, _ in CELLS):
        cells = [cell for cell in places if cell.dataset == dataset]
        # the coefficient is data of a member: one small program serves all but the protocol's
        builders = {**CAPM, **HPG, **APMS}
        for beta0 in BETA0:
            training = replace(command.training, beta0=beta0)
            used = builders if beta0 == catalogue.BETA0 else APMS
            store = Store(out, training.configuration())
            run = (store, cells, used, training, command.machine)
            spent += jobs.run(*run)
    return spent


def runs_of(out: Path, training) -> list[dict]:
    """All runs, with the coefficient in the name of an APMS one."""
    runs = []
    for beta0 in BETA0:
        store = Store(out, replace(training, beta0=beta0).configuration())
        for run in store.runs():
            name = f"apms-{beta0:g}" if run["loss"] == "apms" else run["loss"]
            runs.append({**run, "loss": name})
    return runs


def families() -> dict[str, tuple[str, ...]]:
    """The variants of each candidate."""
    return {
        "CAPM terms": tuple(CAPM),
        "HPG ridges": tuple(HPG),
        "APMS β₀": tuple(f"apms-{beta0:g}" for beta0 in BETA0),
    }


def frame_of(out: Path, cells, training):
    """The records of every variant, with the place of each: its dataset and regime."""
    from experiments import tables

    names = [name for family in families().values() for name in family]
    frame = tables.select(runs_of(out, training), cells, names)
    frame["place"] = frame["dataset"] + ", " + frame["regime"].astype(str)
    return frame


def grids_of(frame) -> list:
    """A table a candidate."""
    from experiments import tables

    return [
        tables.crossed(frame[frame["loss"].isin(members)], f"ablation of {family}", "accuracy")
        for family, members in families().items()
    ]


def report(out: Path, cells, command: cli.Command) -> list[Path]:
    """Print the table and write it and the figure, all from records."""
    from experiments import figures, tables

    frame = frame_of(out, cells, command.training)
    grids = grids_of(frame)
    page = out / "tables-ablation.md"
    summary = tables.summary(frame, ("accuracy", "nll"), by=["place", "loss"])
    tables.publish(grids, summary, page, command.console, command.json)
    return [page, *figures.ablations(frame, families(), out / "ablations")]


if __name__ == "__main__":
    cli.start(main, "experiments.ablation")
