"""A user's function: called and traced, or refused in one line.

JAX clamps or drops an index beyond the end of an array without a word; here it is an error.

>>> import jax, jax.numpy as jnp
>>> out_of_range(jax.make_jaxpr(lambda p: p[0] + p[2])(jnp.ones(2)))
'p[2], but p has 2 entries'
"""

import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jaxtyping import Array

from pgeom.types import Generator

# what JAX, NumPy and Python say where a traced value is taken for a number
TRACED = re.compile("Tracer|traced array|must be concrete|Only integer scalar arrays")
LARGEST = 1000  # integers of an index that are followed


def scalar_function(F: Generator) -> Generator:
    """F, made to raise unless it returns a real scalar, which is cast to the dtype of p."""

    def checked(p):
        value, argument = call(F, p), f"p[{p.shape[-1]}]" if p.shape else "a number"
        kind = getattr(value, "dtype", np.dtype(object))
        if not (isinstance(value, float) or jnp.issubdtype(kind, jnp.floating)):
            got = getattr(value, "dtype", type(value).__name__)
            raise TypeError(f"F must return a real scalar for {argument}, got {got}")
        if shape := jnp.shape(value):
            raise ValueError(f"F must return a scalar for {argument}, got shape {shape}")
        return jnp.asarray(value, p.dtype)

    return checked


def call(function: Callable, *arguments: Array, name: str = "F") -> Any:
    """`function(*arguments)`, or one line if it takes what is traced for a number.

    Args:
      function: a function of the user's.
      arguments: what it is called with.
      name: what the error calls it.
    """
    try:
        return function(*arguments)
    except (TypeError, AttributeError, IndexError) as error:
        if not TRACED.search(str(error)):
            raise
        raise TypeError(
            f"{name} must be made of jax.numpy operations: use jax.numpy in place of NumPy, math "
            f"and float(), and jnp.where in place of `if`{_locate(error)}"
        ) from None


def _locate(error: Exception) -> str:
    """The last line before that of a library, if there is one."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    own = [frame for frame in frames if "site-packages" not in frame.filename]
    return f" (line {own[-1].lineno} of {Path(own[-1].filename).name})" if own else ""


def trace(F: Generator, p: Array | jax.ShapeDtypeStruct) -> core.ClosedJaxpr:
    """The closed jaxpr of F at p `[K]`, whose known indices are within range."""
    program = jax.make_jaxpr(scalar_function(F))(p)
    if (wrong := out_of_range(program)) is not None:
        raise ValueError(f"F reads {wrong}")
    return program


def closure_converted(F: Generator, p: Array) -> tuple[Callable, list]:
    """`pure(p, *parameters)` and the traced values that F closes over.

    custom_jvp needs everything that may be differentiated or mapped as an argument, and
    `jax.closure_convert` would leave out integers and booleans.
    """
    program = trace(F, p)
    traced = [i for i, x in enumerate(program.consts) if isinstance(x, jax.core.Tracer)]
    # without the tracers, which would leak: rules of derivatives outlive the trace
    known = [None if i in traced else value for i, value in enumerate(program.consts)]
    jaxpr, parameters = program.jaxpr, [program.consts[i] for i in traced]

    def pure(x, *parameters):
        values = list(known)
        for i, value in zip(traced, parameters, strict=True):
            values[i] = value
        return core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, values))(x)[0]

    return pure, parameters


class _OutOfRange(Exception):
    """An index beyond the end, in words."""


def out_of_range(program: core.ClosedJaxpr) -> str | None:
    """The first index of a closed jaxpr that is known and out of range, in words, or None.

    It is known if it is made of constants, outside of loops and branches. The words are about p if
    that is the only argument of the program.
    """
    count = len(program.jaxpr.invars)
    try:
        _follow(program, ["p"] if count == 1 else [None] * count)
    except _OutOfRange as error:
        return str(error)
    return None


def _follow(program, inputs: list) -> list:
    """What is known of the outputs of a program: integers, or that one is p."""
    jaxpr = getattr(program, "jaxpr", program)
    constants = map(_integers, getattr(program, "consts", ()))
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *inputs], strict=True))

    def value(atom):
        return _integers(atom.val) if isinstance(atom, core.Literal) else known[atom]

    for eqn in jaxpr.eqns:
        results = _results(eqn, [value(atom) for atom in eqn.invars])
        known |= zip(eqn.outvars, results or [None] * len(eqn.outvars), strict=True)
    return [value(atom) for atom in jaxpr.outvars]


def _integers(value):
    """A constant of integers or truth values, which may become an index."""
    if isinstance(value, jax.core.Tracer):  # that F closes over
        return None
    return None if jnp.issubdtype(jnp.result_type(value), jnp.inexact) else np.asarray(value)


def _results(eqn, values: list) -> list | None:
    """What is known of the results of an operation, whose indices are within range."""
    primitive, params, sizes = eqn.primitive, eqn.params, [v.aval.size for v in eqn.outvars]
    inner = params.get("jaxpr", params.get("call_jaxpr"))  # of jit, custom_jvp and others
    if inner is not None:
        same = len(getattr(inner, "jaxpr", inner).invars) == len(values)
        return _follow(inner, values) if same and primitive.name != "scan" else None
    if primitive.name == "dynamic_slice":
        _check_indices(eqn, values[0], range(len(values) - 1), values[1:])
    # a number that F chose stands for the entries beyond the end
    if primitive.name == "gather" and np.isnan(np.array(params["fill_value"], float)):
        _check_indices(eqn, values[0], params["dimension_numbers"].start_index_map, values[1:])
    if not 0 < sum(sizes) <= LARGEST or not all(isinstance(x, np.ndarray) for x in values):
        return None
    try:
        with jax.ensure_compile_time_eval():
            results = primitive.bind(*map(jnp.asarray, values), **params)
    except Exception:  # not every operation has a value by itself, as in a program for devices
        return None
    return [_integers(x) for x in (results if primitive.multiple_results else [results])]


def _check_indices(eqn, operand, axes, indices: list) -> None:
    """Raise where known indices of the entries that are read are beyond the end."""
    if any(index is None for index in indices):
        return
    places = np.concatenate([*map(np.atleast_1d, indices)], -1).reshape(-1, len(axes))
    for axis, column in zip(axes, places.T, strict=True):
        size, width = eqn.invars[0].aval.shape[axis], eqn.params["slice_sizes"][axis]
        wrong = column[(column < 0) | (column > size - width)]
        if len(wrong):
            place = wrong[0] - size if wrong[0] < 0 else wrong[0] + width - 1
            if isinstance(operand, str):
                raise _OutOfRange(f"p[{place}], but p has {size} entries")
            raise _OutOfRange(f"entry {place} of an array that has {size} entries")
