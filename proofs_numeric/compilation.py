"""`jit` for programs that run once: most of their time is compilation, so that is made quick.

>>> import jax.numpy as jnp
>>> float(quick_jit(lambda x, *, n: jnp.sum(x) ** n, static_argnames="n")(jnp.ones(3), n=2))
9.0
"""

from collections.abc import Callable
from functools import cache, wraps

import jax

from pgeom.compilation import known

# the emitters take three quarters of XLA's time, and nothing here runs long enough to repay it
QUICK = {"xla_cpu_use_fusion_emitters": False}


def quick_jit(function: Callable, **options) -> Callable:
    """`jax.jit(function, **options)`, compiled with the options of `QUICK`."""
    compiled = cache(lambda: jax.jit(function, compiler_options=known(QUICK), **options))
    return wraps(function)(lambda *args, **kwargs: compiled()(*args, **kwargs))
