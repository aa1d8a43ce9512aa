"""Load a function of the user's by the name given on a command line.

>>> load("math:sqrt", option="--generator")(4.0)
2.0
"""

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments.shell.errors import UsageError
from pgeom.messages import describe_error, nearest

FORMS = "module:function or path/to/file.py:function"


def load(spec: str, *, option: str, what: str = "function") -> Callable[..., Any]:
    """The function, or other callable, that `spec` names.

    Args:
      spec: `module:function`, modules of the working folder included, or
        `path/to/file.py:function`, where the file may import its neighbours.
      option: the option that takes it, to begin messages with.
      what: it must be, for messages.

    Raises:
      UsageError: if there is no such module, file or function, or importing it fails.
    """
    source, _, name = spec.rpartition(":")
    if not (source and name.isidentifier()) or ("," in source and not Path(source).is_file()):
        raise UsageError(f"{option}: must be {FORMS}, got {spec!r}")
    module = _load_module(source, option)
    if not hasattr(module, name):
        known = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        near = nearest(name, known)
        hint = f"; did you mean {near!r}?" if near is not None else ""
        raise UsageError(f"{option}: {source!r} has no {name!r}{hint}")
    function = getattr(module, name)
    if not callable(function):
        raise UsageError(f"{option}: {spec} must be a {what}, got {type(function).__name__}")
    return function


def _load_module(source: str, option: str) -> ModuleType:
    """The module named `source`, or the file at that path, imported."""
    path, is_path = Path(source).absolute(), source.endswith(".py") or os.sep in source
    if is_path and path.suffix != ".py":
        raise UsageError(f"{option}: must be {FORMS}, got the path {source!r}")
    if is_path and not path.is_file():
        raise UsageError(f"{option}: there is no file {source!r}")
    # importable only as long as needed: its neighbours might hide other modules
    folder = str(path.parent if is_path else Path.cwd())
    sys.path.insert(0, folder)
    try:
        if not is_path:
            return importlib.import_module(source)
        # under a name that cannot hide a module of the same name
        spec = importlib.util.spec_from_file_location(
            "loaded_" + re.sub(r"\W", "_", path.stem), path
        )
        assert spec is not None and spec.loader is not None  # a path that ends with .py has both
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # where dataclasses look it up
        spec.loader.exec_module(module)
        return module
    except (Exception, SystemExit) as error:  # whatever a module may raise while it is imported
        reason = describe_error(error)
        raise UsageError(f"{option}: cannot import {source!r}: {reason}") from error
    finally:
        sys.path.remove(folder)
