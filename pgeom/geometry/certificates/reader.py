"""Reads the jaxpr of F as an expression: the real function that F denotes.

Literals and constants are the floats that they are, arithmetic is that of the real numbers, and
nested calls (`jit`, `custom_jvp`, `custom_vjp`, `checkpoint`) are read through. An operation
without a translation is named by `Unsupported`.

>>> import jax.numpy as jnp
>>> read(lambda p: jnp.sum(p**2), 3).root.op
'lin'
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from pgeom.geometry.any_generator import scalar_function
from pgeom.geometry.certificates.algebra import Graph
from pgeom.geometry.certificates.array_primitives import RULES, elementwise
from pgeom.geometry.certificates.expression import Node
from pgeom.geometry.certificates.primitives import Arithmetic, is_concrete, number, real
from pgeom.geometry.certificates.ranges import Ranges
from pgeom.geometry.certificates.selects import Split, Unreadable, lift
from pgeom.types import Generator

CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
SAME = {"stop_gradient", "copy", "copy_p", "optimization_barrier"}


class Unsupported(ValueError):
    """F has no translation, and why."""


class Reading(NamedTuple):
    """An expression for F, and what it was read from."""

    root: Node
    graph: Graph
    ranges: Ranges
    jaxpr: Any


def read(F: Generator, K: int) -> Reading:
    """The expression of F on K classes, traced in float64.

    Raises:
      Unsupported: if F uses an operation that cannot be read.
    """
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(scalar_function(F))(jnp.full(K, 1 / K, jnp.float64))
    ranges = Ranges(K)
    graph = Graph(K, ranges.sign)
    reader = Reader(graph, ranges)
    point = np.array([graph.p(k) for k in range(K)], dtype=object)
    (result,) = reader.run(jaxpr.jaxpr, jaxpr.consts, [point])
    root = result.reshape(-1)[0]
    if isinstance(root, Split):
        raise Unsupported("F on the boundary of the simplex is not the limit from inside")
    if isinstance(root, Unreadable):
        raise Unsupported(f"F uses {root.reason}")
    if not isinstance(root, Node):
        raise Unsupported("F is not a finite real number")
    return Reading(root, graph, ranges, jaxpr)


class Reader:
    """Runs a jaxpr on arrays of expressions."""

    def __init__(self, graph: Graph, ranges: Ranges):
        self.g, self.arithmetic = graph, Arithmetic(graph, ranges)

    def run(self, jaxpr: Any, consts: list, args: list[np.ndarray]) -> list[np.ndarray]:
        known: dict[Any, np.ndarray] = {}

        def value(atom: Any) -> np.ndarray:
            if isinstance(atom, core.Literal):
                return self._constant(atom.val)
            return known[atom]

        known |= {var: self._constant(c) for var, c in zip(jaxpr.constvars, consts, strict=True)}
        known |= dict(zip(jaxpr.invars, args, strict=True))
        for eqn in jaxpr.eqns:
            results = self._equation(eqn, [value(atom) for atom in eqn.invars])
            known |= dict(zip(eqn.outvars, results, strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def _constant(self, value: Any) -> np.ndarray:
        return elementwise(lambda x: number(x, self.g), np.asarray(value))

    def _equation(self, eqn: Any, args: list[np.ndarray]) -> list[np.ndarray]:
        name, params = eqn.primitive.name, eqn.params
        inner = next((params[key] for key in CALLS if key in params), None)
        if inner is not None and name not in ("scan", "while", "cond", "reduce"):
            consts = getattr(inner, "consts", [])
            return self.run(getattr(inner, "jaxpr", inner), consts, args)
        try:
            result = self._primitive(name, params, args, eqn.outvars[0].aval)
        except (NotImplementedError, IndexError, TypeError):
            result = None
        if result is None:
            broken = Unreadable(f"`{name}`, which has no rule")
            return [_filled(var.aval.shape, broken) for var in eqn.outvars]
        return result if isinstance(result, list) else [result]

    def _primitive(self, name: str, params: dict, args: list, aval: Any) -> Any:
        if name in SAME:
            return args[0]
        if name in self.arithmetic.unary:
            return elementwise(lambda x: self._real(self.arithmetic.apply, name, x), args[0])
        if name in self.arithmetic.binary:
            return self._binary(name, args, aval)
        return RULES[name](self.arithmetic, args, params, aval) if name in RULES else None

    def _real(self, f: Callable, name: str, *args: Any) -> Any:
        """f(name, …) of real elements."""
        return lift(lambda *xs: f(name, *(real(x, self.g) for x in xs)), *args)

    def _binary(self, name: str, args: list, aval: Any) -> np.ndarray:
        if not jnp.issubdtype(aval.dtype, jnp.floating):
            return self._integers(name, args)
        f = self.arithmetic.binary[name]
        return elementwise(lambda x, y: self._real(lambda _, a, b: f(a, b), name, x, y), *args)

    def _integers(self, name: str, args: list) -> np.ndarray:
        if not all(map(is_concrete, args)):
            raise NotImplementedError
        operations = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum}
        operations |= {"min": np.minimum}
        if name not in operations:
            raise NotImplementedError
        x, y = (np.asarray(a, dtype=np.int64) for a in args)
        return elementwise(int, operations[name](x, y))


def _filled(shape: tuple[int, ...], element: Any) -> np.ndarray:
    return np.full(shape, element, dtype=object)
