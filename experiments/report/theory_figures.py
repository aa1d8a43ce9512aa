"""The theory figures, drawn by `python -m proofs_numeric.proof_figures` in a process of its own.

It needs float64 from the start, which training must not have. It runs while the experiments are
trained, and not at all where its figures are there already.
"""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from experiments.report.paper_figures import Figure
from pgeom.frontend import processes

CAPTIONS = {
    "hpg-curvature": "Sampled Hessian eigenvalues of HPG between the analytical bounds.",
    "apms-displacement": "How far the APMS target is from the truth, and the bounds of theorem 1.",
    "supp-theory-binary": "Two classes: loss, gradient, and the contamination bound.",
    "supp-theory-spectrum-regret": "Spectrum of CAPM's matrix on digits; HPG's regret ratio.",
}
COMMAND = "python -m proofs_numeric.proof_figures results/report"


class Drawing(NamedTuple):
    """A process that draws into a folder, or None where all is there."""

    process: subprocess.Popen | None
    folder: Path

    def finish(self) -> dict[str, Figure]:
        """Wait for the process; the figures that are there then."""
        if self.process is not None:
            self.process.wait()
        pictures = {label: self.folder / f"{label}.png" for label in CAPTIONS}
        return {
            label: Figure([picture], CAPTIONS[label], COMMAND)
            for label, picture in pictures.items()
            if picture.exists()
        }


@contextmanager
def drawing(out: Path) -> Generator[Drawing, None, None]:
    """Draw what is missing, in the background; whatever happens, no process is left behind."""
    files = (out / f"{label}{suffix}" for label in CAPTIONS for suffix in (".png", ".pdf"))
    if all(file.exists() for file in files):
        yield Drawing(None, out)
        return
    command = [sys.executable, "-m", "proofs_numeric.proof_figures", str(out)]
    with processes.background(command) as process:
        yield Drawing(process, out)
