"""The machine that is measured: its processor, its cores, and the widest vectors they have."""

from pathlib import Path

from experiments.engine.devices import processor_name
from experiments.shell.processes import available_cores

FLAGS = ("flags", "Features")  # what the list is called on x86 and on ARM
VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "asimd": "NEON"}  # the widest first


def describe_machine() -> str:
    """Such as "2 cores of AMD EPYC with AVX2"."""
    return f"{available_cores()} cores of {processor_name()} with {instruction_set(_flags())}"


def instruction_set(flags: set[str]) -> str:
    """The widest vector instructions among the flags of a processor.

    >>> instruction_set({"fma", "avx", "avx2"})
    'AVX2'
    """
    known = (name for flag, name in VECTORS.items() if flag in flags)
    return next(known, "no vector instructions that are known here")


def _flags() -> set[str]:
    """What Linux says that the processor can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError):
        return set()
    named = (line.partition(":") for line in lines)
    return {word for name, _, words in named if name.strip() in FLAGS for word in words.split()}
