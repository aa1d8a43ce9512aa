"""pgeom beside other ways to do its jobs: `python -m benchmarks`, in a checkout.

The machine should be quiet; all parts take some 25 minutes on two cores. What is measured of a part
is written to `--out` at once, and the page is made of all parts that are there: to measure one of
them again, name it.
"""

import argparse
import importlib.util
import json
import platform
import shlex
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from benchmarks import estimator, kernels, page, training, waiting
from benchmarks.processes import Processes
from experiments.engine.devices import processor_name
from experiments.shell.processes import available_cores
from pgeom.training.settings import Training

PARTS = {
    "throughput": training.THROUGHPUT,
    "commands": training.COMMANDS,
    "images": training.CNN,
    "growth": training.GROWTH,
    "estimator": estimator.PART,
    "kernels": kernels.PART,
    "waiting": waiting.PART,
}
LIBRARIES = ("pgeom", "jax", "jaxlib", "flax", "optax", "numpy", "scikit-learn")
NEED_TORCH = ("throughput", "commands", "images")


def main() -> None:
    """Measure parts, and write the page."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS], metavar="PART")
    parser.add_argument("--seeds", type=int, default=10, help="and half and five times as many")
    parser.add_argument("--epochs", type=int, default=Training.epochs, help="per run")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--page", type=Path, help="by default speed.md in --out")
    given = parser.parse_args()
    if min(given.seeds, given.epochs) < 1:
        parser.error("--seeds and --epochs must be at least 1")
    if {*given.parts} & {*NEED_TORCH} and importlib.util.find_spec("torch") is None:
        parser.error(f"{', '.join(NEED_TORCH)} need PyTorch: pip install -e '.[bench]'")
    given.out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    with tempfile.TemporaryDirectory() as folder:
        for name in given.parts:
            rows = [*PARTS[name].measure(Processes(Path(folder)), given.seeds, given.epochs)]
            measured = {"made": _describe_origin(command), "rows": rows}
            (given.out / f"{name}.json").write_text(json.dumps(measured, indent=1) + "\n")
    files = {name: given.out / f"{name}.json" for name in PARTS}
    measured = {name: json.loads(f.read_text()) for name, f in files.items() if f.is_file()}
    path = given.page or given.out / "speed.md"
    page.write_page(path, PARTS, measured)
    print(path.read_text())


def _describe_origin(command: str) -> str:
    """The command, the machine and the libraries with which something was measured."""
    machine = f"{available_cores()} cores of {processor_name()}"
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"Made by `{command}` on {machine}, Python {platform.python_version()}, {libraries}"


if __name__ == "__main__":
    main()
