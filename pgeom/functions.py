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
INDEXED = ("gather", "dynamic_slice", "dynamic_update_slice")  # and scatter, of several names
LONGEST = 1000  # integers of an index, and steps of a loop, that are followed


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


class _Argument:
    """Stands for p itself among the values that are followed."""


def out_of_range(program: core.ClosedJaxpr) -> str | None:
    """The first index of a closed jaxpr that is known and out of range, in words, or None.

    The words are about p if that is its only argument.
    """
    count = len(program.jaxpr.invars)
    try:
        _follow(program, [_Argument] if count == 1 else [None] * count)
    except _OutOfRange as error:
        return str(error)
    return None


def _follow(program, inputs: list) -> list:
    """The outputs of a program: integers where they are known, and None."""
    jaxpr = program.jaxpr
    known = dict(zip(jaxpr.constvars, map(_integers, program.consts), strict=True))
    known |= zip(jaxpr.invars, inputs, strict=True)

    def value(atom):
        return _integers(atom.val) if isinstance(atom, core.Literal) else known[atom]

    for eqn in jaxpr.eqns:
        values = [value(atom) for atom in eqn.invars]
        _check_indices(eqn, values)
        results = _results(eqn, values) or [None] * len(eqn.outvars)
        known |= zip(eqn.outvars, results, strict=True)
    return [value(atom) for atom in jaxpr.outvars]


def _integers(value):
    """A constant of integers or truth values, which may become an index."""
    if isinstance(value, jax.core.Tracer):  # that F closes over
        return None
    return np.asarray(value) if _is_whole(jnp.result_type(value)) else None


def _is_whole(dtype):
    return jnp.issubdtype(dtype, jnp.integer) or jnp.issubdtype(dtype, jnp.bool_)


def _results(eqn, values: list) -> list | None:
    """The results of an operation: of the integers among its inputs, where they decide."""
    params, name = eqn.params, eqn.primitive.name
    if name == "scan":
        return _scan(params, values)
    if name == "cond":
        # an index counts in every branch that may be taken
        which, branches = values[0], params["branches"]
        taken = branches if which is None else branches[: which + 1][-1:]
        results = [_follow(branch, values[1:]) for branch in taken]
        return None if which is None else results[0]
    inner = params.get("jaxpr", params.get("call_jaxpr"))  # of jit, and of custom_jvp and others
    if inner is not None:
        program = core.ClosedJaxpr(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()))
        same = len(program.jaxpr.invars) == len(values)
        return _follow(program, values) if same else None
    few = all(_is_whole(v.aval.dtype) and v.aval.size <= LONGEST for v in eqn.outvars)
    if not (few and all(isinstance(x, np.ndarray) for x in values)):
        return None
    try:
        with jax.ensure_compile_time_eval():
            results = eqn.primitive.bind(*map(jnp.asarray, values), **params)
    except Exception:  # not every operation has a value by itself, as in a program for devices
        return None
    return [np.asarray(x) for x in (results if eqn.primitive.multiple_results else [results])]


def _scan(params, values: list) -> list | None:
    """The carry after a loop whose steps are followed one by one, as of `fori_loop`."""
    body, constants, length = params["jaxpr"], params["num_consts"], params["length"]
    first, count = constants + params["num_carry"], len(body.jaxpr.outvars)
    if length > LONGEST:
        return None
    for t in sorted(range(length), reverse=params["reverse"]):
        rows = [np.asarray(x[t]) if isinstance(x, np.ndarray) else None for x in values[first:]]
        carry = _follow(body, [*values[:first], *rows])[: params["num_carry"]]
        values = [*values[:constants], *carry, *values[first:]]
    return [*values[constants:first], *[None] * (count - params["num_carry"])]


def _check_indices(eqn, values: list) -> None:
    """Raise where known indices of an operation are beyond the end of what it reads or writes."""
    name, params = eqn.primitive.name, eqn.params
    if name not in INDEXED and not name.startswith("scatter"):
        return
    shape, sizes = eqn.invars[0].aval.shape, params.get("slice_sizes")
    places, axes = values[1:], range(len(shape))
    if name == "gather":
        axes = params["dimension_numbers"].start_index_map
        fill = params["fill_value"]
        if fill is not None and not np.isnan(
            fill
        ):  # F chose what stands for entries beyond the end
            return
    elif name == "dynamic_update_slice":
        places, sizes = values[2:], eqn.invars[1].aval.shape
    elif name != "dynamic_slice":
        places, axes = values[1:2], params["dimension_numbers"].scatter_dims_to_operand_dims
        sizes = [1] * len(shape)
    if any(place is None for place in places):
        return
    columns = np.concatenate([*map(np.atleast_1d, places)], -1).reshape(-1, len(axes)).T
    for axis, column in zip(axes, columns, strict=True):
        size = shape[axis]
        wrong = column[(column < 0) | (column > size - sizes[axis])]
        if len(wrong):
            place = int(wrong[0])
            place = place - size if place < 0 else place + sizes[axis] - 1
            if values[0] is _Argument:
                raise _OutOfRange(f"p[{place}], but p has {size} entries")
            raise _OutOfRange(f"entry {place} of an array that has {size} entries")
