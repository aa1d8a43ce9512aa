"""What an entry point makes of its environment: JAX's settings, its cache, its devices.

Importing this changes nothing; a command calls it before the first computation.
"""

import os
import tempfile
from pathlib import Path

import jax

from pgeom.frontend.errors import UsageError

# the settings that change numbers or stop a computation, which the environment may have changed
SETTINGS = {
    "jax_default_matmul_precision": None,
    "jax_default_prng_impl": "threefry2x32",
    "jax_threefry_partitionable": True,
    "jax_random_seed_offset": 0,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_debug_nans": False,
    "jax_debug_infs": False,
    "jax_disable_jit": False,
    "jax_no_execution": False,
    "jax_no_tracing": False,
    "jax_transfer_guard": None,  # and with it those of each direction
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
}


def fix_numbers(*, x64: bool) -> None:
    """Compute the same numbers whatever the environment says, in float32 or in float64."""
    for name, value in {**SETTINGS, "jax_enable_x64": x64}.items():
        jax.config.update(name, value)


def use_cache(min_seconds: float) -> None:
    """Keep programs that took so long to compile for later calls, if there is a place for them."""
    folder = cache_folder()
    if folder is not None:
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", min_seconds)


def cache_folder() -> Path | None:
    """The cache folder of the project as the XDG specification has it, if it can be written to."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        folder = (given if given.is_absolute() else Path.home() / ".cache") / "pgeom"
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, RuntimeError):  # the latter where there is no home
        return None
    return folder


def read_xla_flags() -> list[str]:
    """The words of `XLA_FLAGS`, or of the file that it names.

    Raises:
      UsageError: if the file cannot be read, or begins with something else.
    """
    given = os.environ.get("XLA_FLAGS", "")
    if not given.strip() or given.lstrip().startswith("-"):
        return given.split()
    try:
        flags = Path(given).read_text("utf-8").split()
    except (OSError, UnicodeError) as error:
        raise UsageError(f"XLA_FLAGS: cannot read flags from the file {given!r}") from error
    if flags and not flags[0].startswith("-"):
        raise UsageError(f"XLA_FLAGS: the file {given!r} must have flags, got {flags[0]!r}")
    return flags


def count_devices() -> int:
    """How many devices JAX has.

    Raises:
      UsageError: if it has none of the kind that it is told to use, or no flags where it is told
        to read them.
    """
    read_xla_flags()  # XLA would end the process
    try:
        return jax.device_count()
    except (AssertionError, RuntimeError) as error:
        wanted = jax.config.values["jax_platforms"]
        raise UsageError(f"JAX_PLATFORMS: there is no device for {wanted!r} here") from error
