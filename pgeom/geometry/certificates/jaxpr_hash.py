"""What a jaxpr computes, as a hash and compared: operations, shapes and every constant.

Names of variables and of functions, the rules of differentiation, and conversions between real
numbers or between integers are not part of it.

>>> import jax, jax.numpy as jnp
>>> one, two = (jax.make_jaxpr(lambda p: c * jnp.sum(p))(jnp.ones(3)) for c in (1.0, 2.0))
>>> jaxpr_hash(one) == jaxpr_hash(two)
False
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

ROUNDED = 1e-6  # how far a constant may be from itself in float32, relative to it


def jaxpr_hash(jaxpr: Any) -> str:
    """The SHA-256 of a closed jaxpr, in hexadecimal."""
    digest = hashlib.sha256()
    for row in _rows(jaxpr.jaxpr, jaxpr.consts):
        for x in row:
            text = f"{x.dtype}{x.shape}{x.tobytes()}" if isinstance(x, np.ndarray) else repr(x)
            digest.update(f"{text};".encode())
    return digest.hexdigest()


def same_but_for_precision(double: Any, single: Any) -> bool:
    """Whether a closed jaxpr of float64 numbers is that of float32 numbers but for rounding.

    Conversions between real numbers and between integers are not compared.
    """
    rows, others = (list(_rows(one.jaxpr, one.consts)) for one in (double, single))
    return len(rows) == len(others) and all(map(_alike, rows, others))


def _rows(jaxpr: Any, consts: Any) -> Iterator[tuple[Any, ...]]:
    """The operations in order, each with its arguments, by number or by value, and parameters."""
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_constant, consts), strict=True))
    known |= {var: i for i, var in enumerate(jaxpr.invars)}
    count = len(jaxpr.invars)

    def value(atom: Any) -> Any:
        return _constant(atom.val) if isinstance(atom, core.Literal) else known[atom]

    for eqn in jaxpr.eqns:
        args = [value(atom) for atom in eqn.invars]
        if eqn.primitive.name == "convert_element_type" and _kind(eqn.invars) == _kind(eqn.outvars):
            known[eqn.outvars[0]] = args[0]
            continue
        for var in eqn.outvars:
            known[var] = count = count + 1
        yield eqn.primitive.name, *args, *(var.aval.shape for var in eqn.outvars)
        for key in sorted(eqn.params):
            yield from _parameter_rows(key, eqn.params[key])
    yield tuple(map(value, jaxpr.outvars))


def _constant(value: Any) -> np.ndarray | str:
    """A constant as an array of NumPy, or as text if it is none, as the key of random numbers."""
    is_key = jnp.issubdtype(jnp.result_type(value), jax.dtypes.prng_key)
    return str(value) if is_key else np.asarray(value)


def _kind(atoms: Any) -> str:
    """Whether the first of them is real, an integer or a truth value."""
    return np.dtype(atoms[0].aval.dtype).kind


def _parameter_rows(key: str, value: Any) -> Iterator[tuple[Any, ...]]:
    inner = getattr(value, "jaxpr", value)
    if hasattr(inner, "eqns"):
        yield from _rows(inner, getattr(value, "consts", []))
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _parameter_rows(key, one)
    elif isinstance(value, (int, float, str, type(None))) and key != "name":
        yield key, value


def _alike(row: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(row) == len(other) and all(map(_equal, row, other))


def _equal(x: Any, y: Any) -> bool:
    if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
        return type(x) is type(y) and x == y
    if x.dtype.kind != "f" or x.shape != y.shape:
        return np.array_equal(x, y)
    with np.errstate(over="ignore"):
        rounded = x.astype(y.dtype)
    finite_alike = np.array_equal(np.isfinite(x), np.isfinite(y))
    return finite_alike and np.allclose(rounded, y, rtol=ROUNDED, atol=0, equal_nan=True)
