"""What every command shares: the set-up that only an entry point may do, and its errors."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import tyro
from rich.console import Console

from experiments.protocol import UsageError


def start(main: Callable, name: str) -> None:
    """Run a typed `main` as the command line `python -m name`.

    A `UsageError` is one line on stderr and exit code 2; an interruption says what was kept.
    """
    try:
        tyro.cli(main, prog=f"python -m {name}")
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted: finished cells are kept, the same command goes on", file=sys.stderr)
        sys.exit(130)


def prepare_devices(devices: int | None) -> int:
    """Set up JAX for training on so many devices, by default all there are.

    On a CPU every core becomes a device, each running single-threaded: members in parallel beat
    threads inside a small matrix product.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pgeom"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if devices is not None and devices < 1:
        raise UsageError(f"--devices must be at least 1, got {devices}")
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    jax.config.update("jax_num_cpu_devices", cores)
    there = jax.device_count()
    if devices is not None and devices > there:
        raise UsageError(f"--devices must be at most {there}, as many as there are, got {devices}")
    return devices or there


def at_least_one(name: str, value: int) -> int:
    """`value`, or a UsageError that names the option."""
    if value < 1:
        raise UsageError(f"--{name} must be at least 1, got {value}")
    return value


def console(json: bool) -> Console:
    """Where to talk: stdout, or stderr where stdout is for JSON."""
    return Console(stderr=json)
