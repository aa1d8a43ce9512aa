"""Functions that are named now and imported when they are called.

A command line is parsed, and a wrong word in it refused, without JAX, whose import takes a second.
So whatever a word may name is a value whose functions are deferred:

>>> maths = Deferred("math")
>>> maths.sqrt(4.0)
2.0
"""

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any


class Deferred:
    """The functions of a module, which is imported when the first of them is called.

    Args:
      module: its full name.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(_call, self._module, name)  # which other processes can be sent


def _call(module: str, name: str, /, *arguments: Any, **options: Any) -> Any:
    return getattr(import_module(module), name)(*arguments, **options)


def lazy_names(package: str, source: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` (PEP 562) of a package whose names are those of a module.

    The module is imported when the first of its names is used.

    Args:
      package: its full name.
      source: the full name of the module, whose `__all__` is the package's.
    """

    def find(name: str) -> Any:
        if find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(source), name)
        setattr(sys.modules[package], name, value)  # the next time it is found at once
        return value

    return find, lambda: [*import_module(source).__all__]
