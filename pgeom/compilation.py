"""XLA compiler options, each used only where the installed version supports it.

>>> supported({"xla_of_no_version": True})
{}
"""

from collections.abc import Callable, Mapping
from functools import cache, wraps

import jax

# The devices of a CPU share their threads. With XLA's usual order, independent operations of one
# device go to the threads, and the caches, of another: on two devices a step of a convolutional
# network has been seen to take half as long again as in the order that saves memory. For the same
# reason no loop is cut into parts for several threads; besides, XLA copies a part of a
# concatenation element by element: the gradients of a convolutional network were gathered thirty
# times as slowly.
ONE_THREAD = {
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
    "xla_disable_hlo_passes": "cpu-parallel-task-assigner",
}
# On a CPU, XLA hands matrix products and sums to a library. For sums over a few classes that is
# several times slower than XLA's own loops; over thousands of classes it may win. Products of
# narrow matrices over many examples, such as the gradients of a convolution, are a quarter faster
# with it, as long as nothing else is fused into them.
CPU_OPTIONS = {
    "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
    **ONE_THREAD,
}
# For programs that run once: optimising them takes longer than it saves. On one thread each: a
# batch of eigenvalue problems waits for threads to share it with, and two such batches that begin
# at once on the two threads of a small machine wait for ever, as has been seen of Lanczos
# iterations for a hundred classes. Code that is not optimised at all would save another third of
# the time, but may compute the arguments of a maximum twice, with other last digits, and its
# derivative is then infinite: seen of every version of JAX that was tried, from 0.8 to 0.12.
QUICK_OPTIONS = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_backend_optimization_level": 1,
    "xla_cpu_multi_thread_eigen": False,
    **ONE_THREAD,
}

Option = str | int | float | bool


def supported(options: Mapping[str, Option]) -> dict[str, Option]:
    """The subset of the options that this version of XLA supports."""
    return {name: value for name, value in options.items() if _is_supported(name, value)}


def quick_jit(function: Callable, **options) -> Callable:
    """`jax.jit(function, **options)` for a program that runs once: see `QUICK_OPTIONS`."""
    # deferred to the first call, because testing for support compiles a program
    jitted = cache(lambda: jax.jit(function, compiler_options=supported(QUICK_OPTIONS), **options))
    return wraps(function)(lambda *args, **kwargs: jitted()(*args, **kwargs))


@cache
def _is_supported(name: str, value: Option) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
