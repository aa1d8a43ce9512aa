"""Options for XLA, where the version that is installed has them.

>>> known({"xla_of_no_version": True})
{}
"""

from collections.abc import Callable
from functools import cache, wraps

import jax

# Sums over a few classes are several times as fast in XLA's own loops as in the library that it
# hands them to on a CPU, and the matrix products of a small network are no slower. Sums over
# thousands of classes may be slower.
OWN_LOOPS = {"xla_cpu_experimental_ynn_fusion_type": ""}
# For programs that run once: what XLA saves there is less than the time it takes to save it.
# One thread each: eigenvalue calls in a loop that share a pool of two have been seen to wait for
# each other for ever.
QUICK = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_backend_optimization_level": 0,
    "xla_cpu_multi_thread_eigen": False,
}


def known(options: dict) -> dict:
    """Those of the options that this version of XLA has."""
    return {name: value for name, value in options.items() if _is_known(name, value)}


def quick_jit(function: Callable, **options) -> Callable:
    """`jax.jit(function, **options)` for a program that runs once, compiled with `QUICK`."""
    compiled = cache(lambda: jax.jit(function, compiler_options=known(QUICK), **options))
    return wraps(function)(lambda *args, **kwargs: compiled()(*args, **kwargs))


@cache
def _is_known(name: str, value) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
