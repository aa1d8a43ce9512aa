"""A user's function: called and traced, or refused in one line.

Indices beyond the end of an array, which JAX clamps or drops without a word.

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

# what JAX raises where a traced value is taken for a number
UNTRACEABLE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


# what Python says of it, as where it is formatted, hashed, or the end of a range
TRACED = re.compile("Tracer|Only integer scalar arrays")


def scalar_function(F: Generator) -> Generator:
    """F, made to raise unless it returns a real scalar, which is cast to the dtype of p."""

    def checked(p):
        value, argument = call(F, p), f"p[{p.shape[-1]}]" if p.shape else "a number"
        kind = (
            jnp.result_type(value)
            if isinstance(value, (float, np.generic, np.ndarray, jax.Array))
            else None
        )
        if kind is None or not jnp.issubdtype(kind, jnp.floating):
            got = kind or type(value).__name__
            raise TypeError(f"F must return a real scalar for {argument}, got {got}")
        if jnp.shape(value) != ():
            shape = jnp.shape(value)
            raise ValueError(f"F must return a scalar for {argument}, got shape {shape}")
        return jnp.asarray(value, p.dtype)

    return checked


def call(function: Callable, *arguments: Array, name: str = "F") -> Any:
    """`function(*arguments)`, or one line if it takes what is traced for a number.

    Args:
      function: a function of the user's.
      arguments: that it is called with.
      name: what the error calls it.
    """
    try:
        return function(*arguments)
    except (*UNTRACEABLE, TypeError, AttributeError) as error:
        if not (isinstance(error, UNTRACEABLE) or TRACED.search(str(error))):
            raise
        raise TypeError(
            f"{name} must be made of jax.numpy operations: use jax.numpy in place of NumPy, math "
            f"and float(), and jnp.where in place of `if`{_locate(error)}"
        ) from None


def trace(F: Generator, p: Array | jax.ShapeDtypeStruct) -> Any:
    """The closed jaxpr of F at p `[K]`, whose known indices are within range."""
    program = jax.make_jaxpr(scalar_function(F))(p)
    if (wrong := out_of_range(program)) is not None:
        raise ValueError(f"F reads {wrong}")
    return program


def _locate(error: Exception) -> str:
    """The last line before that of a library, if there is one."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    own = [frame for frame in frames if "site-packages" not in frame.filename]
    return f" (line {own[-1].lineno} of {Path(own[-1].filename).name})" if own else ""


CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # the parameters of a call that hold what it runs
LONGEST = 1000  # steps of a loop that are followed


def out_of_range(program: Any) -> str | None:
    """The first index of a closed jaxpr that is known and out of range, in words, or None.

    The words are about p if that is its only argument.
    """
    inputs = program.jaxpr.invars
    finder = _Finder()
    finder.run(program.jaxpr, program.consts, inputs if len(inputs) == 1 else [None] * len(inputs))
    return finder.found


class _P:
    """Stands for p itself among the values that are followed."""


class _Finder:
    """Follows known integers through a jaxpr; any other value is None."""

    found: str | None = None

    def run(self, jaxpr: Any, consts: list, args: list) -> list:
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_whole, consts), strict=True))
        known |= {v: _P if a is v else a for v, a in zip(jaxpr.invars, args, strict=True)}

        def value(atom: Any) -> Any:
            return _whole(atom.val) if isinstance(atom, core.Literal) else known.get(atom)

        for eqn in jaxpr.eqns:
            values = [value(atom) for atom in eqn.invars]
            self._check(eqn, values)
            if self.found:
                break
            results = self._results(eqn, values)
            known |= dict(zip(eqn.outvars, results, strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def _results(self, eqn: Any, values: list) -> list:
        name, nothing = eqn.primitive.name, [None] * len(eqn.outvars)
        if name == "scan":
            return self._scan(eqn.params, values) or nothing
        if name == "cond":
            return self._cond(eqn.params["branches"], *values) or nothing
        inner = next((eqn.params[key] for key in CALLS if key in eqn.params), None)
        if inner is not None and hasattr(getattr(inner, "jaxpr", inner), "eqns"):
            body = getattr(inner, "jaxpr", inner)
            if len(body.invars) != len(values):
                return nothing
            return self.run(body, getattr(inner, "consts", []), values)
        if all(isinstance(x, np.ndarray) for x in values):
            if name in INTEGERS:
                return [np.asarray(INTEGERS[name](eqn, *values))]
            return _evaluate(eqn, values) or nothing
        return nothing

    def _cond(self, branches: Any, which: Any, *values: Any) -> list | None:
        """The results of the branch that is known to be taken; of any, an index may be wrong."""
        known = isinstance(which, np.ndarray) and which.ndim == 0
        place = min(max(int(which), 0), len(branches) - 1) if known else 0
        taken = branches[place : place + 1] if known else branches
        results = None
        for branch in taken:
            results = self.run(branch.jaxpr, branch.consts, list(values))
            if self.found:
                break
        return results if known else None

    def _scan(self, params: dict, values: list) -> list | None:
        """The carry after a loop whose steps are followed one by one, as of `fori_loop`."""
        body, constants = params["jaxpr"], params["num_consts"]
        last = constants + params["num_carry"]
        if params["length"] > LONGEST:
            return None
        steps = range(params["length"])
        for t in reversed(steps) if params["reverse"] else steps:
            rows = [np.asarray(x[t]) if isinstance(x, np.ndarray) else None for x in values[last:]]
            results = self.run(body.jaxpr, body.consts, [*values[:last], *rows])
            values = [*values[:constants], *results[: params["num_carry"]], *values[last:]]
            if self.found:
                break
        return [*values[constants:last], *[None] * (len(body.jaxpr.outvars) - last + constants)]

    def _check(self, eqn: Any, values: list) -> None:
        name, shape = eqn.primitive.name, getattr(eqn.invars[0].aval, "shape", ()) if values else ()
        if name == "dynamic_slice" and all(isinstance(x, np.ndarray) for x in values[1:]):
            places = np.array([int(x) for x in values[1:]])
            self._compare(values[0], shape, range(len(shape)), places, eqn.params["slice_sizes"])
        elif name == "gather" and isinstance(values[1], np.ndarray) and not _is_filled(eqn.params):
            numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
            self._compare(values[0], shape, numbers.start_index_map, values[1], sizes)
        elif name == "dynamic_update_slice" and all(isinstance(x, np.ndarray) for x in values[2:]):
            places = np.array([int(x) for x in values[2:]])
            sizes = eqn.invars[1].aval.shape
            self._compare(values[0], shape, range(len(shape)), places, sizes)
        elif name.startswith("scatter") and isinstance(values[1], np.ndarray):
            axes = eqn.params["dimension_numbers"].scatter_dims_to_operand_dims
            self._compare(values[0], shape, axes, values[1], [1] * len(shape))

    def _compare(self, operand: Any, shape: Any, axes: Any, places: np.ndarray, sizes: Any) -> None:
        for axis, column in zip(axes, places.reshape(-1, len(axes)).T, strict=True):
            size = shape[axis]
            wrong = column[(column < 0) | (column > size - sizes[axis])]
            if len(wrong):
                place = int(wrong[0])
                place = place - size if place < 0 else max(place, place + sizes[axis] - 1)
                mine = f"p[{place}], but p has", f"entry {place} of an array that has"
                self.found = f"{mine[operand is not _P]} {size} entries"
                return


def _evaluate(eqn: Any, values: list) -> list | None:
    """The results of an operation on known integers, if they are integers too and few."""
    few = all(_is_whole(v.aval.dtype) and v.aval.size <= LONGEST for v in eqn.outvars)
    if not few:
        return None
    try:
        with jax.ensure_compile_time_eval():
            results = eqn.primitive.bind(*map(jnp.asarray, values), **eqn.params)
    except Exception:  # not every operation has a value by itself, as in a program for devices
        return None
    return [np.asarray(x) for x in (results if eqn.primitive.multiple_results else [results])]


def _is_whole(kind: Any) -> bool:
    return any(jnp.issubdtype(kind, one) for one in (jnp.integer, jnp.bool_))


def _whole(value: Any) -> np.ndarray | None:
    """A constant of integers or truth values, which may become an index."""
    if isinstance(value, jax.core.Tracer):  # that F closes over
        return None
    kind = getattr(value, "dtype", None)
    if isinstance(value, jax.core.Tracer):
        return None
    if kind is None:
        return np.asarray(value) if isinstance(value, (bool, int)) else None
    return np.asarray(value) if _is_whole(kind) else None


def _is_filled(params: dict) -> bool:
    """Whether the author of F chose what stands for entries beyond the end."""
    fill = params.get("fill_value")
    return fill is not None and not np.isnan(fill)


def _broadcast(eqn: Any, x: np.ndarray, *_) -> np.ndarray:
    shape, dimensions = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    spread = np.ones(len(shape), int)
    spread[list(dimensions)] = x.shape
    return np.broadcast_to(x.reshape(spread), shape)


# the operations that JAX normalises indices with, and the plainest that users make them by
INTEGERS = {
    "lt": lambda eqn, x, y: x < y,
    "ge": lambda eqn, x, y: x >= y,
    "add": lambda eqn, x, y: x + y,
    "sub": lambda eqn, x, y: x - y,
    "mul": lambda eqn, x, y: x * y,
    "select_n": lambda eqn, which, *cases: np.choose(which, cases),
    "convert_element_type": lambda eqn, x: x.astype(eqn.params["new_dtype"]),
    "broadcast_in_dim": _broadcast,
    "reshape": lambda eqn, x: x.reshape(eqn.params["new_sizes"]),
    "squeeze": lambda eqn, x: np.squeeze(x, tuple(eqn.params["dimensions"])),
    "concatenate": lambda eqn, *xs: np.concatenate(xs, eqn.params["dimension"]),
    "iota": lambda eqn: np.broadcast_to(
        np.arange(eqn.params["shape"][eqn.params["dimension"]]).reshape(
            [-1 if i == eqn.params["dimension"] else 1 for i in range(len(eqn.params["shape"]))]
        ),
        eqn.params["shape"],
    ),
}
