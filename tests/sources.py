"""Where the sources of the project are, and what they say."""

from importlib.util import find_spec
from pathlib import Path

ROOT = Path(str(find_spec("pgeom").origin)).parents[1]  # also where a wheel is installed
TOPS = ("pgeom", "experiments", "proofs_numeric", "benchmarks")


def sources():
    """Every Python file of the project by its path."""
    files = (file for top in TOPS for file in ROOT.glob(f"{top}/**/*.py"))
    return {file.relative_to(ROOT).as_posix(): file.read_text() for file in sorted(files)}
