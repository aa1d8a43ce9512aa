"""The peak memory of this process, for measurements that import nothing else."""

import resource
import sys
from pathlib import Path

STATUS, PEAK = Path("/proc/self/status"), "VmHWM:"


def peak_bytes() -> int:
    """How much memory this process has had at most.

    On Linux `getrusage` would not do: it counts what the parent had when it started this process.
    """
    if STATUS.exists():
        lines = STATUS.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(PEAK))
    return resident_bytes(resource.RUSAGE_SELF)


def resident_bytes(user: int) -> int:
    """What `getrusage` says of this process or of its children, which macOS counts in bytes."""
    return resource.getrusage(user).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
