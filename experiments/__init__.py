"""The paper's experiments: one thin module per command."""

import sys

from experiments.shell import processes
from pgeom import extras

if sys.argv[:1] == ["-m"]:  # so Python has it while it looks for the module of `python -m`
    processes.end_at_ctrl_c()
    extras.exit_without("this command", "experiments")
