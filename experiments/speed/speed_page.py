"""The page of the speed study: what is measured, on what machine, and the tables."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from experiments.engine.store import versions
from experiments.shell.files import write_text
from experiments.show.tables import Grid, to_markdown
from experiments.speed.this_machine import describe_machine

FIGURE = "growth.png"
SECTIONS = {  # what stands before the table of a part
    "throughput": """\
The digits job, all thirteen losses: pgeom against PyTorch as fast as it gets, run by run and as
stacks of matrices, and against JAX with one program per loss. Only training is timed.""",
    "end-to-end": "What a user waits for, from the command to the figures.",
    "growth": f"How the cost of a run changes with the size of the job.\n\n![growth]({FIGURE})",
    "images": """\
`pgeom.models.cnn.CNN` with cross-entropy. The trainer multiplies patches by a matrix; the same
trainer with `flax.linen.Conv`, and PyTorch with the convolutions of oneDNN, stand beside it.""",
    "estimator": """\
`pgeom.sklearn.ProperLossClassifier` against `sklearn.neural_network.MLPClassifier`. A first fit of
pgeom compiles a program, which every later fit on data of one shape uses.""",
    "scale": """\
The paper's eleven cells with a thousand seeds, from parts that are measured: compiling, a group of
members, the host's work for each, and the host loop. `experiments/speed/scale_model.py` has the
formula.""",
    "kernels": "A score alone, beside optax's cross-entropy.",
    "first": "Help and refusals import neither JAX nor scikit-learn.",
}


def write_page(page: Path, grids: Mapping[str, Grid], figure: Path | None, command: str) -> Path:
    """Write the page, with the figure beside it.

    Args:
      page: its path.
      grids: the tables by part.
      figure: of growth, if that was measured.
      command: that made the page.
    """
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    parts = [
        "# Speed",
        f"Made by `{command}` on {describe_machine()}, with {known}. Virtual cores vary by some "
        "10% from lap to lap. Ratios are taken within a lap, medians are given with the range, and "
        "every contender does the same job: the test NLLs say so.",
    ]
    for name, grid in grids.items():
        heading, _, table = to_markdown(grid).partition("\n")
        parts += [heading, SECTIONS[name], table.strip()]
    if figure is not None:
        page.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(figure, page.with_name(FIGURE))
    return write_text(page, "\n\n".join(parts) + "\n")
