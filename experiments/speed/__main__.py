"""pgeom against other ways to do its jobs: `python -m experiments.speed`."""

import importlib.util
import json as json_format
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from experiments.shell import command_line
from experiments.shell.errors import UsageError, refusals
from experiments.shell.files import require_writable, write_text
from experiments.shell.names import choose_all
from pgeom.training.settings import Training

NEEDS_TORCH = ("throughput", "end-to-end", "images")
OTHERS = ("growth", "estimator", "scale", "kernels", "first")
NAMES = (*NEEDS_TORCH, *OTHERS)


def main(
    parts: tuple[str, ...] = (),
    seeds: int = 10,
    epochs: int = Training.epochs,
    check_seeds: int = 50,
    resume: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    page: Path | None = None,
    out: Path = Path("results/speed"),
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> int:
    """Time pgeom and its peers side by side, on this machine, which should be quiet.

    All parts take some 25 minutes on two cores.

    Args:
        parts: Of throughput, end-to-end, images, growth, estimator, scale, kernels and first; all
            if none are given.
        seeds: How many; half and five times as many are used too.
        epochs: How many each run is trained.
        check_seeds: How many seeds of the paper's cells are trained to check what scale predicts
            for a thousand.
        resume: Keep the parts that are in --out from a run with the same options.
        page: Where to write everything as a page of Markdown, with its figure beside it.
        out: The folder for the tables, the figure and speed.json.
        json: Print the measurements as JSON, and nothing else, on stdout.
    """
    given = command_line.as_typed()
    parts = choose_all("part", parts, NAMES)
    for name, value in (("seeds", seeds), ("epochs", epochs), ("check-seeds", check_seeds)):
        if value < 1:
            raise UsageError(f"--{name} must be at least 1, got {value}")
    require_writable(out, option="--out")
    if page is not None:
        require_writable(page.parent, option="--page")
    _require_peers(parts)
    from experiments.engine import devices  # here and not above: it imports JAX

    devices.prepare_devices(None)
    console = command_line.make_console(stderr=json)
    sizes = (seeds, epochs, check_seeds)
    measured = _measure(parts, sizes, out / "parts", resume, console)
    agreed = _report(measured, out, page, console, given)
    if json:
        print(json_format.dumps(measured, indent=2), file=command_line.results())
    if not agreed:
        print("the contenders' test NLLs do not agree: they do not do one job", file=sys.stderr)
    return 0 if agreed else 1


def _require_peers(parts: tuple[str, ...]) -> None:
    """Refuse parts that cannot be measured here: without PyTorch, or without the images."""
    if set(parts) & set(NEEDS_TORCH) and importlib.util.find_spec("torch") is None:
        raise UsageError(
            f"{', '.join(NEEDS_TORCH[:-1])} and {NEEDS_TORCH[-1]} need PyTorch: pip install -e "
            f"'.[bench]', or ask for --parts {' '.join(OTHERS)}"
        )
    if "images" in parts:
        from pgeom.data.images import find_fashion

        with refusals("--parts images: "):
            find_fashion()


def _measure(
    parts: tuple[str, ...], sizes: tuple[int, int, int], kept: Path, resume: bool, console: Console
) -> dict[str, list[dict]]:
    """The rows of each part, which are written as soon as they are complete."""
    from experiments.speed.parts import PARTS
    from experiments.speed.workshop import Sizes, Workshop

    measured: dict[str, list[dict]] = {}
    with tempfile.TemporaryDirectory() as folder, console.status("") as status:
        workshop = Workshop(Path(folder), status.update)
        for name in parts:
            path, options = kept / f"{name}.json", Sizes(*sizes)._asdict()
            found = json_format.loads(path.read_text()) if resume and path.is_file() else {}
            if found.get("options") == options:
                measured[name] = found["rows"]
                continue
            measured[name] = list(PARTS[name].measure(workshop, Sizes(*sizes)))
            finished = {"options": options, "rows": measured[name]}
            write_text(path, json_format.dumps(finished) + "\n")
    return measured


def _report(
    measured: dict[str, list[dict]], out: Path, page: Path | None, console: Console, given: str
) -> bool:
    """Write the tables and the figure and print the former; whether the contenders agree."""
    import pandas as pd

    from experiments.show.tables import OnTerminal, to_markdown
    from experiments.speed.growth import growth
    from experiments.speed.parts import PARTS
    from experiments.speed.speed_page import write_page

    frames = {name: pd.DataFrame(rows) for name, rows in measured.items()}
    grids = {name: PARTS[name].grid(frame) for name, frame in frames.items()}
    written = [
        write_text(out / "speed.md", "\n".join(map(to_markdown, grids.values()))),
        write_text(out / "speed.json", json_format.dumps(measured, indent=2) + "\n"),
    ]
    drawn = growth(frames["growth"], out / "growth") if "growth" in frames else []
    if page is not None:
        figure = next((path for path in drawn if path.suffix == ".png"), None)
        written.append(write_page(page, grids, figure, given))
    for grid in grids.values():
        console.print(OnTerminal(grid))
    console.print(f"written: {', '.join(map(str, [*written, *drawn]))}", soft_wrap=True)
    return all(PARTS[name].agree(frame) for name, frame in frames.items())


if __name__ == "__main__":
    command_line.run(
        main,
        "experiments.speed",
        example="--parts growth kernels",
        on_interrupt="interrupted: finished parts are kept, rerun with --resume",
    )
