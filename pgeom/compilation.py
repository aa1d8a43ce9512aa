"""Options for XLA, where the version that is installed has them.

>>> known({"xla_of_no_version": True})
{}
"""

from functools import cache

import jax

# Sums over a few classes are several times as fast in XLA's own loops as in the library that it
# hands them to on a CPU, and the matrix products of a small network are no slower. Sums over
# thousands of classes may be slower.
OWN_LOOPS = {"xla_cpu_experimental_ynn_fusion_type": ""}


def known(options: dict) -> dict:
    """Those of the options that this version of XLA has."""
    return {name: value for name, value in options.items() if _is_known(name, value)}


@cache
def _is_known(name: str, value) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
