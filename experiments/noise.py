"""Every loss under label noise: `python -m experiments.noise --dataset digits`."""

from pathlib import Path

from experiments import cli
from experiments.cells import Cell
from experiments.protocol import NOISE_DATASETS, REGIMES, chosen, one_of
from experiments.records import Store
from pgeom.losses import catalogue


def main(
    dataset: str = "digits",
    regimes: tuple[str, ...] = (),
    losses: tuple[str, ...] = (),
    out: Path = Path("results/noise"),
    common: cli.Common = cli.DEFAULTS,
) -> None:
    """Train all losses of a dataset under label noise, and compare them with cross-entropy.

    Finished cells are kept in --out and skipped by the next call.

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
    store, spent = command.train(out, cells, losses)
    asked = len(cells) * len(losses)
    cli.finish(command, spent, asked, out, lambda: report(store, cells, losses, command))


def report(store: Store, cells: list[Cell], losses, command: cli.Command) -> list[Path]:
    """Print the tables and write them and the figures, all from records."""
    # here and not above: a mistake in the command line should not wait for them
    from experiments import figures, tables

    frame = tables.select(store.runs(), cells, losses)
    dataset, regimes = cells[0].dataset, list(dict.fromkeys(cell.regime for cell in cells))
    grids = [tables.performance(frame, f"{dataset}, {regime}", regime) for regime in regimes]
    grids += [tables.significance(frame, f"{dataset}, {regime}", regime) for regime in regimes]
    page = store.folder / f"tables-{dataset}.md"
    summary = tables.summary(frame).assign(dataset=dataset)
    tables.publish(grids, summary, page, command.console, command.json)
    noisiest = [cell for cell in cells if cell.regime == _noisiest(regimes)]
    written = figures.noise_accuracy(frame, dataset, store.folder / f"noise-accuracy-{dataset}")
    written += figures.reliability(
        store, noisiest, losses, store.folder / f"reliability-{dataset}-{noisiest[0].regime}"
    )
    return [page, *written]


def _noisiest(regimes: list[str]) -> str:
    """The last symmetric regime, or else the last there is."""
    symmetric = [regime for regime in regimes if regime.startswith("symmetric")]
    return (symmetric or regimes)[-1]


if __name__ == "__main__":
    cli.start(main, "experiments.noise")
