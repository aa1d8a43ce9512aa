"""A hash of what a jaxpr computes: operations, shapes, types and every constant.

Names of variables and of functions, and the rules of differentiation, are not part of it.

>>> import jax, jax.numpy as jnp
>>> one, two = (jax.make_jaxpr(lambda p: c * jnp.sum(p))(jnp.ones(3)) for c in (1.0, 2.0))
>>> jaxpr_hash(one) == jaxpr_hash(two)
False
"""

import hashlib
from typing import Any

import numpy as np
from jax.extend import core

PLAIN = (int, float, str, tuple, list, type(None), np.dtype)


def jaxpr_hash(jaxpr: Any) -> str:
    """The SHA-256 of a closed jaxpr, in hexadecimal."""
    digest = hashlib.sha256()
    _add(digest, jaxpr.jaxpr, jaxpr.consts)
    return digest.hexdigest()


def _add(digest: Any, jaxpr: Any, consts: Any) -> None:
    numbers: dict[Any, int] = {}

    def name(atom: Any) -> str:
        if isinstance(atom, core.Literal):
            return f"{atom.aval} {_number(atom.val)}"
        return f"#{numbers.setdefault(atom, len(numbers))}:{atom.aval}"

    for const in consts:
        digest.update(_number(const).encode())
    for eqn in jaxpr.eqns:
        parts = [eqn.primitive.name, *map(name, eqn.invars), "->", *map(name, eqn.outvars)]
        digest.update(" ".join(parts).encode())
        for key in sorted(eqn.params):
            _add_parameter(digest, key, eqn.params[key])
    digest.update(" ".join(map(name, jaxpr.outvars)).encode())


def _add_parameter(digest: Any, key: str, value: Any) -> None:
    inner = getattr(value, "jaxpr", value)
    if hasattr(inner, "eqns"):
        digest.update(key.encode())
        _add(digest, inner, getattr(value, "consts", []))
    elif isinstance(value, PLAIN) and key != "name" and " at 0x" not in str(value):
        digest.update(f"{key}={value}".encode())


def _number(value: Any) -> str:
    array = np.asarray(value)
    return f"{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}"
