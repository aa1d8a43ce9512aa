"""Derivatives written by hand: one linear rule per argument, skipped where its tangent is zero.

Of one argument, `jax.custom_jvp.defjvps` defines them as well.

>>> import jax
>>> @jax.custom_jvp
... def product(x, y): return x * y
>>> @derivative_of(product)
... def product_rules(out, x, y): return lambda dot: y * dot, lambda dot: x * dot
>>> float(jax.grad(product)(2.0, 3.0))
3.0
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from pgeom.types import Entries

Tangent: TypeAlias = Any
"""An array, or what JAX passes for a tangent that is zero or that belongs to an integer."""


def derivative_of(function: jax.custom_jvp) -> Callable[[Callable], Callable]:
    """A decorator of `rules(out, *arguments)`, which returns one rule per argument of `function`.

    A rule takes the tangent of its argument to what that adds to the tangent of the output; None
    stands for the rule of an argument without a derivative.
    """

    def define(rules):
        def jvp(arguments, tangents):
            out = function(*arguments)
            terms = zip(tangents, rules(out, *arguments), strict=True)
            return out, sum_of_slopes(out, *terms)

        function.defjvp(jvp, symbolic_zeros=True)
        return rules

    return define


def sum_of_slopes(
    out: Float[ArrayLike, "*shape"], *terms: tuple[Tangent | Sequence[Tangent], Callable | None]
) -> Entries:
    """Σ rule(tangent) over the pairs `(tangent, rule)` whose tangent is not known to be zero.

    Args:
      out: the output of the function, for its shape and dtype.
      terms: pairs of a tangent and a rule that is linear in it. A tangent may be a list; its rule
        then takes the list, with None for those known to be zero.

    Returns:
      The tangent of `out`.
    """
    moving = [(_nonzero(tangent), rule) for tangent, rule in terms if rule is not None]
    slopes = [rule(tangent) for tangent, rule in moving if tangent is not None]
    return sum(slopes[1:], slopes[0]) if slopes else jnp.zeros_like(out)


def pushforward(
    function: Callable, primals: Sequence[Any], tangents: Sequence[Tangent]
) -> Float[Array, "..."]:
    """The tangent of `function(*primals)`, where a tangent of None is zero and costs nothing."""
    moving = [i for i, tangent in enumerate(tangents) if tangent is not None]

    def restricted(*moved):
        arguments = list(primals)
        for i, value in zip(moving, moved, strict=True):
            arguments[i] = value
        return function(*arguments)

    return jax.jvp(restricted, [primals[i] for i in moving], [tangents[i] for i in moving])[1]


def _nonzero(tangent: Tangent | Sequence[Tangent]) -> Tangent | list[Tangent] | None:
    """The tangent, or None if it, or every one in the list, is known to be zero."""
    if not isinstance(tangent, (list, tuple)):
        return None if isinstance(tangent, SymbolicZero) else tangent
    moving = [_nonzero(one) for one in tangent]
    return moving if any(one is not None for one in moving) else None
