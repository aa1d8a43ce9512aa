"""The paper's experiments: one thin module per command."""

import sys

from pgeom import extras
from pgeom.frontend import interrupts

if sys.argv[:1] == ["-m"]:  # so Python has it while it looks for the module of `python -m`
    interrupts.watch()
    extras.exit_without("python -m experiments", "experiments")
