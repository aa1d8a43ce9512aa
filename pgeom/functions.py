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

from pgeom.compilation import quick_jit
from pgeom.types import Generator

# what JAX, NumPy and Python say where a traced value is taken for a number
TRACED = re.compile("Tracer|traced array|must be concrete|Only integer scalar arrays")
# how a program is printed that has indices, and one in which F chose what stands for entries beyond
# the end
INDEXED = re.compile("gather|dynamic_|scatter")
CHOSEN = re.compile("fill_value=(?!None|nan)")
OUTSIDE = re.compile(r"shape \((.*)\): index (-?\d+) is out of bounds for axis \d+ with size (\d+)")


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


_messages: dict[tuple, str | None] = {}  # of programs that were checked, which are traced again


def out_of_range(program: core.ClosedJaxpr) -> str | None:
    """The first index of a program that is out of range, in words, or None.

    The program is run, with JAX's own check of indices, on arguments whose entries are equal. An
    array as long as a single argument is called p.
    """
    text, variables = str(program.jaxpr), program.jaxpr.invars
    if not INDEXED.search(text) or CHOSEN.search(text):
        return None
    with jax.core.eval_context():
        known = [_stand_in(x) for x in program.consts]
    key = (text, *(x.tobytes() for x in known if isinstance(x, np.ndarray)))
    if key not in _messages:
        _messages[key] = _run_checked(core.ClosedJaxpr(program.jaxpr, known))
    if (found := OUTSIDE.search(_messages[key] or "")) is None:
        return None
    shape, place, size = found[1], int(found[2]), int(found[3])
    if 0 <= place < size:
        return f"beyond the end of an array of {size} entries, from entry {place} on"
    entry = place - size if place < 0 else place
    if len(variables) == 1 and shape == f"{size},":
        return f"p[{entry}], but p has {size} entries"
    return f"entry {entry} of an array that has {size} entries"


def _stand_in(x):
    """A constant of a program; zeros for one that is traced, and one key for every random key."""
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        return jnp.broadcast_to(jax.random.key(0, impl=jax.random.key_impl(x)), x.shape)
    return np.zeros(x.shape, x.dtype) if isinstance(x, jax.core.Tracer) else np.asarray(x)


def _checkable(jaxpr):
    """A jaxpr without the checkpoints and the axes of devices at which JAX 0.10's check fails."""

    def convert(value):
        if isinstance(value, core.ClosedJaxpr):
            return core.ClosedJaxpr(_checkable(value.jaxpr), value.consts)
        return _checkable(value) if isinstance(value, core.Jaxpr) else value

    def equation(eqn):
        params = jax.tree.map(convert, eqn.params)
        if eqn.primitive.name == "pvary":
            return eqn.replace(primitive=core.primitives.copy_p, params={})
        if eqn.primitive is not core.primitives.remat_p:
            return eqn.replace(params=params)
        function = jax.jit(core.jaxpr_as_fun(core.ClosedJaxpr(params["jaxpr"], ())))
        (call,) = jax.make_jaxpr(function)(*(variable.aval for variable in eqn.invars)).eqns
        return eqn.replace(primitive=call.primitive, params=call.params)

    return jaxpr.replace(eqns=[equation(eqn) for eqn in jaxpr.eqns])


def _run_checked(program):
    """What JAX says of indices that are out of range when a program is run, or None."""
    from jax.experimental import checkify  # whose import takes longer than that of the library

    shapes = [v.aval for v in program.jaxpr.invars]
    try:
        values = [np.full(x.shape, 1 / max(1, x.size), x.dtype) for x in shapes]
        # no constant is folded, or what reads beyond its end is no longer seen
        with jax.core.eval_context(), jax.numpy_rank_promotion("allow"):  # as JAX's check
            plain = core.ClosedJaxpr(_checkable(program.jaxpr), program.consts)
            checked = checkify.checkify(core.jaxpr_as_fun(plain), errors=checkify.index_checks)
            return quick_jit(lambda *values: checked(*values)[0])(*values).get()
    except Exception:  # not every program can be run by itself, such as one for several devices
        return None
