"""Every trial is a call in a process of its own, one after another.

`python -m benchmarks.processes benchmarks.waiting.measure_steps '[]'` prints, as JSON, what that
function returns. Trials share the compiled programs of the processes before them, in a folder that
is empty at first.
"""

import importlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple


class Processes(NamedTuple):
    """Where trials run: the folder of their compiled programs."""

    folder: Path

    def call(self, function: str, *arguments, **options) -> Any:
        """What a function returns in a new process, given its dotted name."""
        given = json.dumps([arguments, options])
        return json.loads(self.run("benchmarks.processes", function, given)[0].splitlines()[-1])

    def run(self, *words, cache: str = "trials") -> tuple[str, float]:
        """What `python -m words` prints, and the seconds it takes."""
        print(*words, file=sys.stderr)
        caches = {
            "XDG_CACHE_HOME": str(self.folder / cache),
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / cache / "jax"),
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / cache / "inductor"),
        }
        command, begun = [sys.executable, "-m", *map(str, words)], time.perf_counter()
        done = subprocess.run(command, env=os.environ | caches, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode(), time.perf_counter() - begun


def peak_bytes() -> int:
    """How much memory this process has had at most.

    On Linux `getrusage` would not do: it counts what the parent had when it started this process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    return resident_bytes(resource.RUSAGE_SELF)


def resident_bytes(whose: int) -> int:
    """What `getrusage` says of this process or of its children, which macOS counts in bytes."""
    return resource.getrusage(whose).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    module, _, function = sys.argv[1].rpartition(".")
    arguments, options = json.loads(sys.argv[2])
    print(json.dumps(getattr(importlib.import_module(module), function)(*arguments, **options)))
