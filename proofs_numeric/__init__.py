"""Numerical diagnostics of every claim of the paper: `python -m proofs_numeric`."""

import sys

from pgeom import extras
from pgeom.frontend import interrupts

if sys.argv[:1] == ["-m"]:  # so Python has it while it looks for the module of `python -m`
    interrupts.watch()
    # the checker needs neither JAX nor what the commands need
    if "proofs_numeric.checker" in sys.orig_argv:
        extras.exit_without("python -m proofs_numeric.checker", "certify")
    else:
        extras.exit_without("python -m proofs_numeric", "experiments")
