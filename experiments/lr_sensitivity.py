"""Which learning rate validation NLL would choose: `python -m experiments.lr_sensitivity`."""

from dataclasses import replace
from pathlib import Path

from experiments import cli, jobs
from experiments.cells import Cell
from experiments.protocol import NOISE_DATASETS, REGIMES, chosen, one_of
from experiments.records import Store
from pgeom.losses import catalogue

RATES = (3e-4, 1e-3, 3e-3)


def main(
    dataset: str = "digits",
    regimes: tuple[str, ...] = (),
    losses: tuple[str, ...] = (),
    out: Path = Path("results/lr_sensitivity"),
    common: cli.Common = cli.DEFAULTS,
) -> None:
    """Train with three learning rates, and count which has the lowest validation NLL.

    Args:
        dataset: digits, breast-cancer or confusion.
        regimes: Names such as clean or symmetric-40; all of the dataset's if none are given.
        losses: Names such as ce or hpg; all thirteen if none are given.
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    dataset = one_of("dataset", dataset, NOISE_DATASETS)
    regimes = chosen("regime", regimes, REGIMES[dataset])
    losses = chosen("loss", losses, tuple(catalogue.GENERAL))
    command = cli.begin(common, out)
    cells = [Cell(dataset, regime, seed) for regime in regimes for seed in command.seeds]
    builders = {loss: catalogue.GENERAL[loss] for loss in losses}
    spent = jobs.Spent()
    for rate in RATES:
        training = replace(command.training, learning_rate=rate)
        store = Store(out, training.configuration())
        spent += jobs.run(store, cells, builders, training, command.devices, command.console)
    written = report(out, cells, losses, command)
    cli.close(command, spent, len(RATES) * len(cells) * len(losses), out, written)


def runs_of(out: Path, training) -> list[dict]:
    """All runs, with their learning rate."""
    return [
        {**run, "learning_rate": rate}
        for rate in RATES
        for run in Store(out, replace(training, learning_rate=rate).configuration()).runs()
    ]


def report(out: Path, cells, losses, command: cli.Command) -> list[Path]:
    """Print the table and write it and the figure, all from records."""
    from experiments import figures, tables

    frame = tables.select(runs_of(out, command.training), cells, losses)
    counts = tables.selected_rates(frame)
    grid = tables.rate_counts(counts, f"{cells[0].dataset}: learning rate of least validation NLL")
    page = out / "tables-lr-sensitivity.md"
    tables.publish([grid], counts.reset_index(), page, command.console, command.json)
    return [page, *figures.lr_sensitivity(counts, out / "lr-sensitivity")]


if __name__ == "__main__":
    cli.start(main, "experiments.lr_sensitivity")
