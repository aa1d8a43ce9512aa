"""The theory figures, drawn by `python -m proofs_numeric.proof_figures` in a process of its own.

It needs float64 from the start, which training must not have. It runs while the experiments are
trained, and not at all where its figures are there already.
"""

import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from experiments.report.paper_figures import Figure

CAPTIONS = {
    "hpg-curvature": "Sampled Hessian eigenvalues of HPG between the analytical bounds.",
    "apms-displacement": "How far the APMS target is from the truth, and the bounds of theorem 1.",
    "supp-theory-binary": "Two classes: loss, gradient, and the contamination bound.",
    "supp-theory-spectrum-regret": "Spectrum of CAPM's matrix on digits; HPG's regret ratio.",
}
COMMAND = "python -m proofs_numeric.proof_figures results/report"


class Drawing(NamedTuple):
    """A process that draws, or None where all is there, and where it draws to."""

    process: subprocess.Popen | None
    folder: Path


@contextmanager
def drawing(out: Path):
    """Draw what is missing, in the background; whatever happens, no process is left behind."""
    if all((out / f"{label}.png").exists() for label in CAPTIONS):
        yield Drawing(None, out)
        return
    with tempfile.TemporaryDirectory(prefix="theory-") as folder:
        command = [sys.executable, "-m", "proofs_numeric.proof_figures", folder]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, **silent)
        try:
            yield Drawing(process, Path(folder))
        finally:
            process.terminate()
            process.wait()


def finish(drawing: Drawing, out: Path) -> dict[str, Figure]:
    """Wait for the drawing, and take its files over."""
    if drawing.process is not None:
        drawing.process.wait()
        take(drawing.folder, out)
    found = {label: out / f"{label}.png" for label in CAPTIONS}
    return {
        label: Figure([picture], CAPTIONS[label], COMMAND)
        for label, picture in found.items()
        if picture.exists()
    }


def take(folder: Path, out: Path) -> None:
    """Move the drawn files, which have the labels of the paper, beside the other figures."""
    out.mkdir(parents=True, exist_ok=True)
    for label in CAPTIONS:
        for drawn in folder.glob(f"{label}.*"):
            shutil.move(drawn, out / drawn.name)
