"""Extras: what a part of the project needs besides the library.

>>> missing("the guide's example", "experiments")  # everything is installed
''
"""

import sys
from importlib.util import find_spec

EXTRAS = {  # of pyproject.toml: the modules that its packages bring
    "certify": ("flint",),
    "experiments": (
        "flax",
        "jinja2",
        "matplotlib",
        "optax",
        "pandas",
        "rich",
        "scipy",
        "sklearn",
        "tyro",
    ),
}


def missing(what: str, extra: str) -> str:
    """What to install, in one line; empty where nothing is missing.

    Args:
      what: the part of the project that needs the packages.
      extra: their name in pyproject.toml.
    """
    modules = [name for name in EXTRAS[extra] if find_spec(name) is None]
    if not modules:
        return ""
    return f"{what} needs {', '.join(modules)}: pip install 'pgeom[{extra}]'"


def exit_without(what: str, extra: str) -> None:
    """End a command in one line and with exit code 2 where packages are missing."""
    if message := missing(what, extra):
        print(message, file=sys.stderr)
        raise SystemExit(2)
