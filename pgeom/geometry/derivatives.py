"""What derivative rules written by hand share.

A rule made with `defjvp(..., symbolic_zeros=True)` is told which of its inputs do not move, and
does no work for those.

>>> import jax
>>> @jax.custom_jvp
... def product(x, y): return x * y
>>> def product_jvp(primals, tangents):
...     (x, y), (x_dot, y_dot) = primals, tangents
...     out = product(x, y)
...     return out, sum_of_slopes(out, (x_dot, lambda dot: y * dot), (y_dot, lambda dot: x * dot))
>>> _ = product.defjvp(product_jvp, symbolic_zeros=True)
>>> float(jax.grad(product)(2.0, 3.0))
3.0
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero


def sum_of_slopes(out: jax.Array, *terms: tuple[object, Callable]) -> jax.Array:
    """Σ rule(tangent) over the pairs `(tangent, rule)` whose tangent is not known to be zero.

    Args:
      out: the output of the function, for its shape and dtype.
      terms: a tangent, or a list of them for a rule that takes the list; in a list, those known
        to be zero arrive as None.

    Returns:
      The tangent of `out`.
    """
    total = jnp.zeros_like(out)
    for tangent, rule in terms:
        if isinstance(tangent, (list, tuple)):
            moving = [None if isinstance(t, SymbolicZero) else t for t in tangent]
            total = total + rule(moving) if any(t is not None for t in moving) else total
        elif not isinstance(tangent, SymbolicZero):
            total = total + rule(tangent)
    return total


def pushforward(function: Callable, primals: list, tangents: list) -> jax.Array:
    """The tangent of `function(*primals)`, where a tangent of None is zero and costs nothing."""
    moving = [i for i, tangent in enumerate(tangents) if tangent is not None]

    def restricted(*moved):
        arguments = list(primals)
        for i, value in zip(moving, moved, strict=True):
            arguments[i] = value
        return function(*arguments)

    live = [primals[i] for i in moving], [tangents[i] for i in moving]
    return jax.jvp(restricted, *live)[1]
