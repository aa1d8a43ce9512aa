"""Calibration before and after temperature scaling: `python -m experiments.calibration`."""

from pathlib import Path

from experiments import cli
from experiments.cells import Cell
from experiments.protocol import chosen
from experiments.records import Store
from pgeom.losses import catalogue

METRICS = {
    "nll": "Raw NLL ↓",
    "calibrated_nll": "Cal. NLL ↓",
    "ece": "Raw ECE ↓",
    "calibrated_ece": "Cal. ECE ↓",
}


def main(
    losses: tuple[str, ...] = (),
    out: Path = Path("results/calibration"),
    common: cli.Common = cli.DEFAULTS,
) -> None:
    """Fit a temperature on the validation logits of clean digits, and score the test logits.

    Args:
        losses: Names such as ce or hpg; all thirteen if none are given.
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    losses = chosen("loss", losses, tuple(catalogue.GENERAL))
    command = cli.begin(common, out)
    cells = [Cell("digits", "clean", seed) for seed in command.seeds]
    store, spent = command.train(out, cells, losses)
    asked = len(cells) * len(losses)
    cli.finish(command, spent, asked, out, lambda: report(store, cells, losses, command))


def grid_of(frame):
    """NLL and ECE before and after, and a note where a temperature is no minimum."""
    from experiments import tables

    grid = tables.performance(frame, "digits, clean: temperature scaling", "clean", METRICS)
    bounds = frame[frame["temperature_at_bound"]]
    grid.footnotes.extend(
        f"{run.loss}, seed {run.seed}: the best temperature is a bound, {run.temperature:.3g}"
        for run in bounds.itertuples()
    )
    return grid


def report(store: Store, cells, losses, command: cli.Command) -> list[Path]:
    """Print the table and write it and the figure, all from records."""
    from experiments import figures, tables

    frame = tables.select(store.runs(), cells, losses)
    grid = grid_of(frame)
    page = store.folder / "tables-calibration.md"
    summary = tables.summary(frame, tuple(METRICS))
    tables.publish([grid], summary, page, command.console, command.json)
    return [page, *figures.calibration(frame, store.folder / "calibration")]


if __name__ == "__main__":
    cli.start(main, "experiments.calibration")
