"""A process that ends soon after the one that started it, even where that one was killed.

    python -m pgeom.frontend.attached 1234 proofs_numeric --only margin

runs `proofs_numeric --only margin` for as long as process 1234, its parent, lives.
"""

import os
import runpy
import signal
import sys
import threading
import time

SECONDS = 0.5  # between two looks


def end_with(parent: int) -> None:
    """End this process when its parent is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS)
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """The module whose name and arguments follow the number of the parent."""
    parent, module, *arguments = sys.argv[1:]
    end_with(int(parent))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
