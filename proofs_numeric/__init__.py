"""Numerical diagnostics of every claim of the paper: `python -m proofs_numeric`."""

import sys

from pgeom import extras

if sys.argv[:1] == ["-m"]:  # so Python has it while it looks for the module of `python -m`
    # the checker needs neither JAX nor what the commands need
    if "proofs_numeric.checker" in sys.orig_argv:
        extras.exit_without("python -m proofs_numeric.checker", "certify")
    else:
        import experiments  # noqa: F401 - whose commands are ended alike
