"""Numerical diagnostics of every claim of the paper: `python -m proofs_numeric`."""

import atexit
import os
import signal
import sys

from pgeom import extras


def _quit(number, frame):
    """End at once and in one line: while modules are imported, there is nothing to clean up."""
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


if sys.argv[:1] == ["-m"]:  # so Python has it while it looks for the module of `python -m`
    for _number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(_number, _quit)
        # the last thing at exit, when Python gives up its handlers and the exit code is decided
        atexit.register(signal.signal, _number, signal.SIG_IGN)
    # the checker needs neither JAX nor what the commands need
    if "proofs_numeric.checker" in sys.orig_argv:
        extras.exit_without("python -m proofs_numeric.checker", "certify")
    else:
        extras.exit_without("python -m proofs_numeric", "experiments")
