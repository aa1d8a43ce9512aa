"""Where commands keep compiled programs. Importing this changes nothing."""

import os
from pathlib import Path

import jax


def use_cache(min_seconds: float) -> None:
    """Keep programs that took so long to compile for later calls, if there is a place for them.

    That is the cache folder of the user, as the XDG specification has it.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pgeom"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if os.access(folder, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", min_seconds)
