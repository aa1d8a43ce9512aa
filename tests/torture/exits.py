"""Run a command that ends without warning at one of its writes.

    python -m tests.torture.exits 3 experiments.noise --out results/noise

`os._exit` takes the place of the write of that number, counted from zero: no `finally` is run and
no buffer is written, as when the power fails.
"""

import os
import runpy
import sys
from collections.abc import Callable
from itertools import count

CODE = 99  # the exit code
WRITES = ("fsync", "replace", "rename", "unlink")


def exit_at(number: int) -> None:
    """Let the process end where it would make that write."""
    writes = count()

    def watched(write: Callable) -> Callable:
        def attempt(*arguments, **options):
            if next(writes) == number:
                os._exit(CODE)
            return write(*arguments, **options)

        return attempt

    for name in WRITES:
        setattr(os, name, watched(getattr(os, name)))


def main() -> None:
    """The command whose name and arguments follow the number."""
    number, module, *arguments = sys.argv[1:]
    exit_at(int(number))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
