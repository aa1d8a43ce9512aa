"""What a function computes, as a hash: its jaxpr, with every constant, and without any name.

Renaming a variable, a function or adding a comment keeps the fingerprint; another constant,
operation or precision changes it.

>>> import jax.numpy as jnp
>>> x = jax.ShapeDtypeStruct((3,), jnp.float32)
>>> def double(x): return 2.0 * x
>>> def twice(value): return 2.0 * value  # the same
>>> fingerprint(double, x) == fingerprint(twice, x) != fingerprint(lambda x: 2.5 * x, x)
True
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
NAMES = ("name",)  # parameters of an operation that say what it is called, not what it does
HIDDEN = ("pure_callback", "io_callback")  # operations that may compute anything, out of sight


class HiddenError(ValueError):
    """A function calls Python while it runs, where nobody can see what it computes."""


def digest(*parts: object) -> str:
    """A hash of values: numbers, texts, arrays, functions' jaxprs, and collections of them."""
    content = hashlib.sha256()
    for piece in _pieces(parts):
        content.update(f"{len(piece)}:".encode() + piece)
    return content.hexdigest()


def fingerprint(function: Callable, *arguments: Any) -> str:
    """A hash of what `function` computes for arguments of these shapes and dtypes.

    Raises:
      HiddenError: if part of that cannot be seen.
    """
    return digest(jax.make_jaxpr(function)(*arguments))


def _pieces(value: object) -> Iterator[bytes]:
    """The value as bytes, piece by piece, in an order that depends on nothing else."""
    if isinstance(value, ClosedJaxpr):
        yield from _jaxpr_pieces(value.jaxpr)
        yield from _pieces(value.consts)
    elif isinstance(value, Jaxpr):
        yield from _jaxpr_pieces(value)
    elif isinstance(value, (np.ndarray, np.generic, jax.Array)):
        array = np.asarray(value)
        yield f"array {array.dtype} {array.shape}".encode()
        yield np.ascontiguousarray(array).tobytes()
    elif isinstance(value, dict):
        yield b"dict"
        yield from _pieces(sorted(value.items(), key=lambda item: str(item[0])))
    elif isinstance(value, (tuple, list)):
        yield f"sequence {len(value)}".encode()
        for item in value:
            yield from _pieces(item)
    elif callable(value) and not isinstance(value, type):
        yield b"callable"  # a rule for derivatives, which the traced gradient contains already
    else:
        yield ADDRESS.sub("", f"{type(value).__name__} {value!r}").encode()


def _jaxpr_pieces(jaxpr: Jaxpr) -> Iterator[bytes]:
    """Its operations; variables are numbered in the order in which they appear."""
    numbers: dict = {}

    def atom(variable):
        if isinstance(variable, Literal):
            return ("literal", str(variable.aval), variable.val)
        number = numbers.setdefault(variable, len(numbers))
        return (number, str(variable.aval))

    yield from _pieces([atom(variable) for variable in (*jaxpr.constvars, *jaxpr.invars)])
    for equation in jaxpr.eqns:
        if equation.primitive.name in HIDDEN:
            raise HiddenError(equation.primitive.name)
        yield equation.primitive.name.encode()
        yield from _pieces([atom(variable) for variable in equation.invars])
        yield from _pieces({k: v for k, v in equation.params.items() if k not in NAMES})
        yield from _pieces([atom(variable) for variable in equation.outvars])
    yield from _pieces([atom(variable) for variable in jaxpr.outvars])
