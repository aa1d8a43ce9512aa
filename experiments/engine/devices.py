"""The set-up of JAX for a command: its devices, its compilation cache, its processes."""

import os
import platform
from contextlib import suppress

import jax

from experiments.shell import command_line
from experiments.shell.compilation_cache import use_cache
from experiments.shell.errors import UsageError
from experiments.shell.processes import available_cores

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
SHUTDOWN_SECONDS = 24 * 3600  # the other processes wait for the primary one, which writes


def prepare_devices(devices: int | None) -> int:
    """Set up JAX for training on so many devices, by default all there are.

    On a CPU every core becomes a device, each running single-threaded: cells in parallel beat
    threads inside a small matrix product. Where JAX has its devices already, it keeps them.
    """
    if devices is not None and devices < 1:
        raise UsageError(f"--devices must be at least 1, got {devices}")
    jax.config.update("jax_enable_x64", False)
    use_cache(min_seconds=0.0)
    flags = [*os.environ.get("XLA_FLAGS", "").split(), ONE_THREAD]
    os.environ["XLA_FLAGS"] = " ".join(dict.fromkeys(flags))
    with suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", available_cores())
    available = jax.device_count()
    if devices is not None and devices > available:
        raise UsageError(f"--devices must be at most {available}, all there are, got {devices}")
    return devices or available


def describe_device(count: int) -> dict[str, str | int]:
    """What computes now: with another device, or another number of them, the last bits may differ.

    So they may with another number of cores, among which XLA divides large matrix products.

    Args:
      count: how many devices are used.
    """
    kind = jax.local_devices()[0].device_kind
    machine = {"machine": platform.machine(), "processor": processor_name()}
    return {"kind": kind, **machine, "count": count, "cores": available_cores()}


def processor_name() -> str:
    """The name that the processor gives itself, or else its architecture."""
    with suppress(OSError, UnicodeError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()


def join_processes(devices: int | None) -> None:
    """Become one of the processes that a launcher started, as JAX finds them."""
    if devices is not None:
        raise UsageError("--distributed trains on all devices of all processes: give no --devices")
    if (out := command_line.results()) is not None:
        out.leave_descriptor()  # to Gloo, which prints from C++
    try:
        jax.distributed.initialize(shutdown_timeout_seconds=SHUTDOWN_SECONDS)
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"--distributed needs a launcher that JAX knows, such as srun: {reason}"
        ) from None
