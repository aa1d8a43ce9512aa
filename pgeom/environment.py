"""What an entry point makes of its environment: JAX's cache and its devices.

Importing this changes nothing; a command calls it before the first computation.
"""

import os
import tempfile
from pathlib import Path

import jax

from pgeom.frontend.errors import UsageError


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


def count_devices() -> int:
    """How many devices JAX has.

    Raises:
      UsageError: if it has none of the kind that it is told to use.
    """
    try:
        return jax.device_count()
    except (AssertionError, RuntimeError) as error:
        wanted = jax.config.values["jax_platforms"]
        raise UsageError(f"JAX_PLATFORMS: there is no device for {wanted!r} here") from error
