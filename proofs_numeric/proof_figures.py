"""Draw the paper's theory figures: `python -m proofs_numeric.proof_figures DIR`."""

from pathlib import Path
from typing import Annotated

import tyro

from experiments.shell import command_line
from experiments.shell.files import require_writable
from proofs_numeric import runner


def main(folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]) -> None:
    """Draw the paper's theory figures, without checking any claim.

    Args:
      folder: Where to draw them, as PNG, PDF and SVG; made if it is missing.
    """
    require_writable(folder, option="DIR")
    runner.configure()
    # here and not above: --help should not wait for them
    from proofs_numeric import theory_figures

    with command_line.make_console(stderr=True).status("figures"):
        paths = theory_figures.draw(folder)
    for path in paths:
        print(f"wrote {path}", file=command_line.results())


if __name__ == "__main__":
    command_line.run(
        main, "proofs_numeric.proof_figures", example="figures", on_interrupt="interrupted"
    )
