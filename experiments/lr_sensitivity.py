"""Which learning rate validation NLL would choose: `python -m experiments.lr_sensitivity`."""

from dataclasses import replace
from pathlib import Path

from experiments import cli
from experiments.cells import Cell
from experiments.jobs import Spent
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
    stores, spent = train_missing(out, cells, losses, command)
    asked = len(RATES) * len(cells) * len(losses)
    cli.finish(command, spent, asked, out, lambda: report(stores, cells, losses, out, command))


def train_missing(
    out: Path, cells, losses, command: cli.Command, primary: Path | None = None
) -> tuple[dict[float, Store], Spent]:
    """Train what has no record yet; return the store of each learning rate, and what it took.

    Records of the protocol's own rate may be found in `primary`.
    """
    spent, stores = Spent(), {}
    for rate in RATES:
        training = replace(command.training, learning_rate=rate)
        folder = primary if primary and training == command.training else out
        stores[rate], more = command.train(folder, cells, losses, training)
        spent += more
    return stores, spent


def frame_of(stores: dict[float, Store], cells, losses):
    """All runs, with their learning rate."""
    from experiments import tables

    runs = [{**run, "learning_rate": rate} for rate in stores for run in stores[rate].runs()]
    return tables.select(runs, cells, losses)


def report(stores, cells, losses, out: Path, command: cli.Command) -> list[Path]:
    """Print the table and write it and the figure, all from records."""
    from experiments import figures, tables

    frame = frame_of(stores, cells, losses)
    counts = tables.selected_rates(frame)
    grid = tables.rate_counts(
        counts, f"{frame['dataset'][0]}: learning rate of least validation NLL"
    )
    page = out / "tables-lr-sensitivity.md"
    tables.publish([grid], counts.reset_index(), page, command.console, command.json)
    return [page, *figures.lr_sensitivity(counts, out / "lr-sensitivity")]


if __name__ == "__main__":
    cli.start(main, "experiments.lr_sensitivity")
