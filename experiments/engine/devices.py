"""The set-up of JAX for a command: its devices, its compilation cache, its processes."""

import os
import platform
import sys
from pathlib import Path

import jax

from pgeom.frontend.errors import UsageError

SHUTDOWN_SECONDS = 24 * 3600  # the other processes wait for the primary one, which writes


def prepare_devices(devices: int | None) -> int:
    """Set up JAX for training on so many devices, by default all there are.

    On a CPU every core becomes a device, each running single-threaded: members in parallel beat
    threads inside a small matrix product.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pgeom"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if devices is not None and devices < 1:
        raise UsageError(f"--devices must be at least 1, got {devices}")
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    jax.config.update("jax_num_cpu_devices", cores)
    available = jax.device_count()
    if devices is not None and devices > available:
        raise UsageError(f"--devices must be at most {available}, all there are, got {devices}")
    return devices or available


def describe_device(count: int) -> dict[str, str | int]:
    """What computes now: with another device, or another number of them, the last bits may differ.

    Args:
      count: how many devices are used.
    """
    kind = jax.local_devices()[0].device_kind
    return {"kind": kind, "machine": platform.machine(), "count": count}


def join_processes(devices: int | None) -> None:
    """Become one of the processes that a launcher started, as JAX finds them."""
    if devices is not None:
        raise UsageError("--distributed trains on all devices of all processes: give no --devices")
    try:
        jax.distributed.initialize(shutdown_timeout_seconds=SHUTDOWN_SECONDS)
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"--distributed needs a launcher that JAX knows, such as srun: {reason}"
        ) from None
    # the library under JAX greets its peers on stdout, which is for tables and JSON alone
    terminal = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = os.fdopen(terminal, "w")
