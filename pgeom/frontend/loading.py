"""Load a function of the user's by the name given on a command line.

>>> load("math:sqrt", option="--generator")(4.0)
2.0
"""

import contextlib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from types import ModuleType
from typing import Any

from pgeom.frontend.errors import UsageError
from pgeom.frontend.names import nearest

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
    if re.search("[,;]", name) or (re.search("[,;]", spec) and not Path(source).is_file()):
        first, _, _ = spec.partition(":")
        words = re.split(r"[\s,;]+", spec)
        each = " ".join(word if ":" in word else f"{first}:{word}" for word in words if word)
        raise UsageError(f"{option}: must be {FORMS}, got {spec!r}; separate by spaces: {each}")
    if not (source and name):
        raise UsageError(f"{option}: must be {FORMS}, got {spec!r}")
    module = _module(source, option)
    if not hasattr(module, name):
        known = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        near = nearest(name, known)
        hint = f"; did you mean {near!r}?" if near is not None else ""
        raise UsageError(f"{option}: {source!r} has no {name!r}{hint}")
    function = getattr(module, name)
    if not callable(function):
        raise UsageError(f"{option}: {spec} must be a {what}, got {type(function).__name__}")
    return function


def one_line(error: BaseException) -> str:
    """The type of an error and the line of its message that says most."""
    try:
        lines = str(error).strip().splitlines() or [""]
    except Exception:  # an error that cannot even say what it is
        lines = [""]
    # a callback's error reaches us with the traceback as its message, which ends with the error
    line = lines[-1] if "Traceback" in lines[0] else lines[0]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def _module(source: str, option: str) -> ModuleType:
    """The module named `source`, or the file at that path, imported."""
    is_path = source.endswith(".py") or "/" in source or os.sep in source
    path = Path(source).absolute()
    if is_path and path.suffix != ".py":
        raise UsageError(f"{option}: must be {FORMS}, got the path {source!r}")
    if is_path and not path.is_file():
        raise UsageError(f"{option}: there is no file {source!r}")
    try:
        with _importable(path.parent if is_path else Path.cwd()), _undisturbed():
            return _execute(path) if is_path else _imported(source)
    except SystemExit as stop:
        raise UsageError(f"{option}: cannot import {source!r}: it calls sys.exit") from stop
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a module may raise while it is imported
        raise UsageError(f"{option}: cannot import {source!r}: {one_line(error)}") from error


def _imported(source: str) -> ModuleType:
    """The module, or what a package offers under such a name, as pgeom does its generators."""
    try:
        return importlib.import_module(source)
    except ModuleNotFoundError:
        package, _, name = source.rpartition(".")
        offered = getattr(sys.modules.get(package), name, None)
        if not isinstance(offered, ModuleType):
            raise
        return offered


def _execute(path: Path) -> ModuleType:
    """The file as a module, under a name that cannot hide a module of the same name."""
    name = "loaded_" + re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # a path that ends with .py has both
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look it up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextlib.contextmanager
def _importable(folder: Path) -> Generator[None, None, None]:
    """Make modules of the folder importable, only as long as needed: they might hide others."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the user's code may have removed it
            sys.path.remove(str(folder))


@contextlib.contextmanager
def _undisturbed() -> Generator[None, None, None]:
    """Undo what a module changes for the whole process: its folder, and the settings of JAX.

    Options such as `--out` are relative to that folder, and precision is the command's to choose.
    """
    folder, config = Path.cwd(), getattr(sys.modules.get("jax"), "config", None)
    settings = {} if config is None else dict(config.values)
    try:
        yield
    finally:
        os.chdir(folder)
        for name, value in settings.items():
            if config is not None and config.values[name] != value:
                config.update(name, value)
