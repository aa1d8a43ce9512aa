"""pgeom against other ways to do the digits job: `python -m experiments.speed`."""

import importlib.util
import json as json_format
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from pgeom.frontend import command_line, output
from pgeom.frontend.errors import UsageError
from pgeom.frontend.folders import require_writable
from pgeom.frontend.names import choose_all
from pgeom.frontend.writing import write_text
from pgeom.training.settings import Training

NEEDS_TORCH = ("throughput", "end-to-end")
NAMES = ("throughput", "end-to-end", "growth", "kernels", "first")


def main(
    parts: tuple[str, ...] = (),
    seeds: int = 20,
    epochs: int = Training.epochs,
    out: Path = Path("results/speed"),
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> int:
    """Time the digits job side by side, on this machine, in one run; it should be quiet.

    Args:
        parts: Of throughput, end-to-end, growth, kernels and first; all if none are given.
        seeds: How many; a quarter and five times as many are used too.
        epochs: How many each run is trained.
        out: The folder for the tables, the figure and speed.json.
        json: Print the measurements as JSON, and nothing else, on stdout.
    """
    parts = choose_all("part", parts, NAMES)
    for name, value in (("seeds", seeds), ("epochs", epochs)):
        if value < 1:
            raise UsageError(f"--{name} must be at least 1, got {value}")
    require_writable(out, option="--out")
    if set(parts) & set(NEEDS_TORCH) and importlib.util.find_spec("torch") is None:
        raise UsageError(
            f"{' and '.join(NEEDS_TORCH)} need PyTorch: pip install -e '.[bench]', or ask for "
            "--parts growth kernels first"
        )
    from experiments.engine import devices  # here and not above: it imports JAX

    devices.prepare_devices(None)
    console = command_line.make_console(stderr=json)
    measured = _measure(parts, seeds, epochs, console)
    agreed = _report(measured, out, console)
    if json:
        print(json_format.dumps(measured, indent=2), file=output.results())
    if not agreed:
        print("the contenders' test NLLs do not agree: they do not do one job", file=sys.stderr)
    return 0 if agreed else 1


def _measure(parts, seeds: int, epochs: int, console: Console) -> dict[str, list[dict]]:
    """The rows of each part."""
    from experiments.speed.laps import PARTS, Workshop

    with tempfile.TemporaryDirectory() as folder, console.status("") as status:
        workshop = Workshop(Path(folder), status.update)
        return {name: list(PARTS[name](workshop, seeds, epochs)) for name in parts}


def _report(measured: dict[str, list[dict]], out: Path, console: Console) -> bool:
    """Write the tables and the figure and print the former; whether the contenders agree."""
    import pandas as pd

    from experiments.figures.speed import growth
    from experiments.speed.grids import GRIDS, agree
    from experiments.tables.grid import OnTerminal, to_markdown

    frames = {name: pd.DataFrame(rows) for name, rows in measured.items()}
    grids = [GRIDS[name](frame) for name, frame in frames.items()]
    written = [
        write_text(out / "speed.md", "\n".join(map(to_markdown, grids))),
        write_text(out / "speed.json", json_format.dumps(measured, indent=2) + "\n"),
    ]
    if "growth" in frames:
        written += growth(frames["growth"], out / "growth")
    for grid in grids:
        console.print(OnTerminal(grid))
    console.print(f"written: {', '.join(map(str, written))}", soft_wrap=True)
    return "throughput" not in frames or agree(frames["throughput"])


if __name__ == "__main__":
    command_line.run(main, "experiments.speed", example="--parts growth kernels")
