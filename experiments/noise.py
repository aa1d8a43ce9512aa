"""Every loss under label noise: `python -m experiments.noise --dataset digits`."""

import json as json_format
import time
from pathlib import Path
from typing import Annotated

import tyro

from experiments import cli, jobs
from experiments.cells import Cell
from experiments.protocol import (
    NOISE_DATASETS,
    REGIMES,
    SEEDS,
    Training,
    chosen,
    one_of,
    parse_seeds,
)
from experiments.records import Store
from pgeom.losses import catalogue


def main(
    dataset: str = "digits",
    regimes: tuple[str, ...] = (),
    losses: tuple[str, ...] = (),
    seeds: tuple[str, ...] = (str(len(SEEDS)),),
    epochs: int = Training.epochs,
    out: Path = Path("results/noise"),
    devices: int | None = None,
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Train all losses of a dataset under label noise, and compare them with cross-entropy.

    Finished cells are kept in --out and skipped by the next call.

    Args:
        dataset: digits, breast-cancer or confusion.
        regimes: Names such as clean or symmetric-40; all of the dataset's if none are given.
        losses: Names such as ce or hpg; all thirteen if none are given.
        seeds: How many, as in 5 for the seeds 0 to 4, or a list, as in 0 3 7.
        epochs: The most epochs that a run is trained.
        out: The folder for records, tables and figures.
        devices: How many devices to train on; all there are if not given.
        json: Print the aggregated table as JSON, and nothing else, on stdout.
    """
    begun = time.perf_counter()
    dataset = one_of("dataset", dataset, NOISE_DATASETS)
    regimes = chosen("regime", regimes, REGIMES[dataset])
    losses = chosen("loss", losses, tuple(catalogue.GENERAL))
    numbers = parse_seeds(seeds)
    training = Training(epochs=cli.at_least_one("epochs", epochs))
    store = Store(out, training.configuration())
    count = cli.prepare_devices(devices)
    console = cli.console(json)

    cells = [Cell(dataset, regime, seed) for regime in regimes for seed in numbers]
    spent = jobs.run(store, cells, losses, training, count, console)
    written = _report(store, cells, losses, console, json)
    console.print(
        f"{spent.runs} runs trained, {len(cells) * len(losses) - spent.runs} found; compile "
        f"{spent.compiling:.1f} s, training {spent.training:.1f} s, all in all "
        f"{time.perf_counter() - begun:.1f} s; written to {out}: records.jsonl, manifest.json, "
        f"logits, {', '.join(path.name for path in written)}",
        soft_wrap=True,
        highlight=False,
    )


def _report(store: Store, cells, losses, console, json: bool) -> list[Path]:
    """Print the tables and write them and the figures, all from records."""
    # here and not above: a mistake in the command line should not wait for them
    from experiments import figures, tables

    frame = tables.select(store.runs(), cells, losses)
    dataset, regimes = cells[0].dataset, list(dict.fromkeys(cell.regime for cell in cells))
    grids = [tables.performance(frame, dataset, regime) for regime in regimes]
    grids += [tables.significance(frame, dataset, regime) for regime in regimes]
    grids = [grid for grid in grids if grid is not None]
    page = store.folder / f"tables-{dataset}.md"
    page.write_text("\n".join(tables.to_markdown(grid) for grid in grids))
    if json:
        rows = tables.summary(frame).astype(object)
        rows = rows.where(rows.notna(), None).to_dict("records")
        print(json_format.dumps([{"dataset": dataset, **row} for row in rows], indent=2))
    else:
        for grid in grids:
            console.print(tables.to_rich(grid))
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
