"""Reads the jaxpr of F as an expression: the real function that F denotes.

Literals and constants are the floats that they are, arithmetic is that of the real numbers, and
nested calls (`jit`, `custom_jvp`, `custom_vjp`, `checkpoint`), loops of known length and branches
that known numbers choose are read through. What is made of integers and truth values alone is
computed by JAX in their own types. An operation without a translation is named by `Unsupported`.

>>> import jax.numpy as jnp
>>> read(lambda p: jnp.sum(p**2), 3).root.op
'lin'
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from pgeom.certificates.algebra import Graph
from pgeom.certificates.certificate import same_but_for_precision
from pgeom.certificates.expression import Node
from pgeom.certificates.operations import (
    RULES,
    TRUTH,
    Arithmetic,
    Split,
    Unreadable,
    elementwise,
    is_concrete,
    number,
)
from pgeom.certificates.rewriting import rewrite
from pgeom.certificates.rules import Ranges, Rules
from pgeom.functions import trace

CALLS = {"pjit", "jit", "closed_call", "core_call", "checkpoint", "remat", "remat2"}
CALLS |= {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}
BODIES = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # the parameter of a call that is run
IDENTITIES = {"stop_gradient", "copy", "copy_p", "optimization_barrier"}
# what moves elements, by known indices: how many of the arguments are moved, of several all
MOVED = dict.fromkeys(("concatenate", "stack"), -1)
MOVED |= dict.fromkeys(("dynamic_update_slice", "pad"), 2)
MOVED |= dict.fromkeys(("broadcast_in_dim", "dynamic_slice", "expand_dims", "gather", "reshape"), 1)
MOVED |= dict.fromkeys(("rev", "slice", "split", "squeeze", "transpose"), 1)
# what may give integers or truth values that are not known: nothing that computes with them
DISCRETE = {*MOVED, *TRUTH, "is_finite", "top_k", "and", "or", "not", "select_n"}
# of known integers, besides what has a rule
COMPUTED = {*RULES, *MOVED, *TRUTH, "abs", "add", "argmax", "argmin", "clz", "cummax", "cummin"}
COMPUTED |= {"cumprod", "div", "iota", "max", "min", "mul", "neg", "population_count", "pow"}
COMPUTED |= {"reduce_and", "reduce_or", "reduce_xor", "rem", "shift_left", "shift_right_arithmetic"}
COMPUTED |= {"shift_right_logical", "sign", "square", "sub", "xor"}
WHOLE = (jnp.integer, jnp.bool_)
LONGEST = 1000  # steps of a loop
INSTEAD = "write F without it, or let pgeom.diagnose search"
NO_RULE = (AttributeError, LookupError, NotImplementedError, TypeError, ValueError)


class Unsupported(ValueError):
    """F has no translation, and why."""


class Reading(NamedTuple):
    """An expression for F, the rules that know its signs, and the jaxpr that it was read from."""

    root: Node
    rules: Rules
    jaxpr: Any


def read(F, K) -> Reading:
    """The expression of F on K classes, traced in float64.

    Raises:
      Unsupported: if F uses an operation that cannot be read, or is another function in float32.
    """
    with jax.enable_x64(True):
        jaxpr = trace(F, jnp.full(K, 1 / K, jnp.float64))
    ranges = Ranges(K)
    graph = Graph(K, ranges.sign)
    reader = Reader(graph, ranges)
    point = np.array([graph.p(k) for k in range(K)], dtype=object)
    (result,) = reader.run(jaxpr.jaxpr, jaxpr.consts, [point])
    root = result.reshape(-1)[0]
    if isinstance(root, Split):
        raise Unsupported("F on the boundary of the simplex is not the limit from inside")
    if isinstance(root, Unreadable):
        raise Unsupported(f"F uses {root.reason}; {INSTEAD}")
    if not isinstance(root, Node):
        raise Unsupported("F is not a finite real number")
    if _differs_in_float32(F, K, jaxpr):
        raise Unsupported("F depends on the dtype of p: its program in float32 is another one")
    return Reading(rewrite(graph, root), ranges.rules, jaxpr)


def _differs_in_float32(F, K, double):
    try:
        single = trace(F, jnp.full(K, 1 / K, jnp.float32))
    except (TypeError, ValueError):  # in float32 F is no function at all
        return False
    return not same_but_for_precision(double, single)


class Reader:
    """Runs a jaxpr on arrays of expressions."""

    def __init__(self, graph, ranges: Ranges):
        self.g, self.arithmetic = graph, Arithmetic(graph, ranges)

    def run(self, jaxpr, consts, args) -> list:
        known = {}

        def value(atom):
            if isinstance(atom, core.Literal):
                return self._constant(atom.val)
            return known[atom]

        known |= {var: self._constant(c) for var, c in zip(jaxpr.constvars, consts, strict=True)}
        known |= dict(zip(jaxpr.invars, args, strict=True))
        for eqn in jaxpr.eqns:
            results = self._equation(eqn, [value(atom) for atom in eqn.invars])
            known |= dict(zip(eqn.outvars, results, strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def _constant(self, value):
        if not any(jnp.issubdtype(jnp.result_type(value), kind) for kind in (*WHOLE, jnp.floating)):
            return _filled(jnp.shape(value), Unreadable("constants that are not real numbers"))
        return elementwise(lambda x: number(x, self.g), np.asarray(value).astype(object))

    def _equation(self, eqn, args):
        name, params = eqn.primitive.name, eqn.params
        if name in CALLS:
            inner = next(params[key] for key in BODIES if key in params)
            consts = getattr(inner, "consts", [])
            return self.run(getattr(inner, "jaxpr", inner), consts, args)
        try:
            control = {"scan": self._scan, "while": self._while, "cond": self._cond}.get(name)
            result = control(eqn, args) if control else self._results(eqn, args)
        except NO_RULE:
            broken = Unreadable(f"`{name}`, which has no rule")
            return [_filled(var.aval.shape, broken) for var in eqn.outvars]
        return result if isinstance(result, list) else [result]

    def _scan(self, eqn, args):
        """A loop of known length, step by step.

        What has one more axis outside the body than inside it is read or written step by step; the
        other results are carried, and the other arguments are constants, followed by the carry.
        """
        params = eqn.params
        body, length = params["jaxpr"], params["length"]
        if not 0 < length <= LONGEST:
            raise NotImplementedError
        last = _count_alike(eqn.invars, body.jaxpr.invars)
        first = last - _count_alike(eqn.outvars, body.jaxpr.outvars)
        carry, rows = args[first:last], {}
        for t in reversed(range(length)) if params["reverse"] else range(length):
            slices = [x[t : t + 1].reshape(x.shape[1:]) for x in args[last:]]
            results = self.run(body.jaxpr, body.consts, [*args[:first], *carry, *slices])
            carry, rows[t] = results[: last - first], results[last - first :]
        columns = zip(*(rows[t] for t in range(length)), strict=True)
        return [*carry, *(np.stack(column) for column in columns)]

    def _while(self, eqn, args):
        """A loop whose condition is known at every step, such as a count."""
        params = eqn.params
        test, body = params["cond_jaxpr"], params["body_jaxpr"]
        first, last = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        carry = args[last:]
        for _ in range(LONGEST):
            (goes_on,) = self.run(test.jaxpr, test.consts, [*args[:first], *carry])
            if not is_concrete(goes_on):
                raise NotImplementedError
            if not goes_on.item():
                return carry
            carry = self.run(body.jaxpr, body.consts, [*args[first:last], *carry])
        raise NotImplementedError

    def _cond(self, eqn, args):
        """The branch that a known number chooses."""
        if not is_concrete(args[0]):
            raise NotImplementedError
        branches = eqn.params["branches"]
        last = len(branches) - 1
        branch = branches[min(max(int(args[0].item()), 0), last)]
        return self.run(branch.jaxpr, branch.consts, args[1:])

    def _results(self, eqn, args):
        name, aval = eqn.primitive.name, eqn.outvars[0].aval
        if name in IDENTITIES:
            return args
        if _is_whole(eqn.outvars):
            if name in COMPUTED and _is_whole(eqn.invars) and all(map(is_concrete, args)):
                return _computed(eqn, args)
            if name not in DISCRETE:
                raise NotImplementedError
        if name in MOVED:
            return _moved(eqn, args)
        if name == "iota":
            return list(map(self._constant, _bind(eqn, [])))
        if name in self.arithmetic.operations:
            return elementwise(partial(self.arithmetic.apply, name), *args)
        return RULES[name](self.arithmetic, args, eqn.params, aval)


def _count_alike(outside, inside):
    """How many variables of a loop have the same shape outside and inside its body."""
    pairs = zip(outside, inside, strict=True)
    return sum(one.aval.shape == other.aval.shape for one, other in pairs)


def _is_whole(variables):
    """Whether all of them are integers or truth values."""
    types = [variable.aval.dtype for variable in variables]
    return all(any(jnp.issubdtype(dtype, kind) for kind in WHOLE) for dtype in types)


def _computed(eqn, args):
    """The results of an operation on known integers and truth values, which wrap as they do."""
    dtypes = [atom.aval.dtype for atom in eqn.invars]
    typed = [x.astype(dtype) for x, dtype in zip(args, dtypes, strict=True)]
    return [result.astype(object) for result in _bind(eqn, typed)]


def _moved(eqn, args):
    """The result of an operation that moves elements: JAX moves their numbers."""
    count = MOVED[eqn.primitive.name] % (len(args) + 1)
    elements = np.concatenate([x.reshape(-1) for x in args[:count]])
    if not all(map(is_concrete, args[count:])):
        raise NotImplementedError
    ends = np.cumsum([x.size for x in args[:count]])
    numbers = np.split(np.arange(len(elements)), ends[:-1])
    moved = [n.reshape(x.shape) for n, x in zip(numbers, args, strict=False)]
    results = _bind(eqn, [*moved, *(x.astype(np.int64) for x in args[count:])])
    if any((places < 0).any() or (places >= len(elements)).any() for places in results):
        raise NotImplementedError  # beyond an end
    return [elements[places.reshape(-1)].reshape(places.shape) for places in results]


def _bind(eqn, args):
    with jax.enable_x64(True):
        found = eqn.primitive.bind(*map(jnp.asarray, args), **eqn.params)
    return [np.asarray(x) for x in (found if eqn.primitive.multiple_results else [found])]


def _filled(shape, element):
    return np.full(shape, element, dtype=object)
