"""The paper's experiments: one thin module per command."""

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
    extras.exit_without("python -m experiments", "experiments")
