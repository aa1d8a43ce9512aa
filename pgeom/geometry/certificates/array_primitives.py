"""JAX's primitives that move, combine or compare the elements of arrays of expressions."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from pgeom.geometry.certificates.expression import Node, is_rational
from pgeom.geometry.certificates.primitives import (
    Arithmetic,
    conjunction,
    disjunction,
    is_concrete,
    negation,
    real,
)
from pgeom.geometry.certificates.selects import TRUTH, Unreadable, lift
from pgeom.geometry.certificates.sorting import ascending, largest

Rule = Callable[[Arithmetic, list[np.ndarray], dict[str, Any], Any], Any]


def elementwise(f: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """f on every element, with broadcasting."""
    wide = np.broadcast_arrays(*arrays)
    out = np.empty(wide[0].shape, dtype=object)
    for index in np.ndindex(*out.shape):
        out[index] = f(*(array[index] for array in wide))
    return out


def _broadcast(do, args, params, aval):
    shape = [1] * len(aval.shape)
    for axis, size in zip(params["broadcast_dimensions"], args[0].shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(args[0].reshape(shape), aval.shape)


def _reshape(do, args, params, aval):
    order = params["dimensions"] or range(args[0].ndim)
    return np.transpose(args[0], order).reshape(aval.shape)


def _slice(do, args, params, aval):
    strides = params["strides"] or (1,) * args[0].ndim
    ranges = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return args[0][tuple(slice(*one) for one in ranges)]


def _dynamic_slice(do, args, params, aval):
    array, *starts = args
    if not all(map(is_concrete, starts)):
        raise NotImplementedError
    sizes = zip(starts, params["slice_sizes"], array.shape, strict=True)
    clamped = [(max(0, min(int(s[()]), n - size)), size) for s, size, n in sizes]
    return array[tuple(slice(start, start + size) for start, size in clamped)]


def _gather(do, args, params, aval):
    """Of whole rows along one axis, with known indices: x[i] and x[[i, j]]."""
    array, indices = args
    how = params["dimension_numbers"]
    axes = how.start_index_map
    if not is_concrete(indices) or len(axes) != 1 or how.operand_batching_dims:
        raise NotImplementedError
    (axis,) = axes
    rest = tuple(n for i, n in enumerate(array.shape) if i != axis)
    sizes = tuple(n for i, n in enumerate(params["slice_sizes"]) if i != axis)
    if how.collapsed_slice_dims != (axis,) or rest != sizes or params["slice_sizes"][axis] != 1:
        raise NotImplementedError
    places = np.asarray(indices[..., 0], dtype=np.int64)
    if rest or (places.size and (places.min() < 0 or places.max() >= array.shape[axis])):
        raise NotImplementedError
    return np.take(array, places, axis=axis).reshape(aval.shape)


def _pad(do, args, params, aval):
    array, filling = args
    if any(low < 0 or high < 0 or inner for low, high, inner in params["padding_config"]):
        raise NotImplementedError
    out = np.full(aval.shape, filling[()], dtype=object)
    config = zip(params["padding_config"], array.shape, strict=True)
    out[tuple(slice(low, low + n) for (low, _, _), n in config)] = array
    return out


def _iota(do, args, params, aval):
    shape = [1] * len(aval.shape)
    shape[params["dimension"]] = -1
    counts = np.arange(aval.shape[params["dimension"]]).reshape(shape)
    return _as_floats(do, elementwise(int, np.broadcast_to(counts, aval.shape)))


def _convert(do, args, params, aval):
    if aval.dtype not in (np.float32, np.float64):
        raise NotImplementedError
    return _as_floats(do, args[0])


def _as_floats(do, array):
    return elementwise(lambda x: lift(lambda y: real(y, do.g), x), array)


def _reduce(name: str) -> Rule:
    """Σ, Π, max or min over axes."""

    def rule(do, args, params, aval):
        axes = params["axes"]
        kept = [axis for axis in range(args[0].ndim) if axis not in axes]
        rows = np.transpose(args[0], (*kept, *axes)).reshape((*aval.shape, -1))
        out = np.empty(aval.shape, dtype=object)
        for index in np.ndindex(*aval.shape):
            out[index] = fold(do, name, list(rows[index]))
        return out

    return rule


def fold(do: Arithmetic, name: str, elements: list) -> Any:
    """A binary operation over a list; sums and maxima of nodes at once."""
    at_once = {"add": do.g.add, "max": do.g.maximum}
    if name in at_once and elements and all(isinstance(x, Node) for x in elements):
        return at_once[name](*elements)
    if not elements:
        of_none = {"add": do.g.const(0), "mul": do.g.const(1), "max": -math.inf, "min": math.inf}
        return of_none[name]
    result = elements[0]
    for x in elements[1:]:
        result = do.combine(name, result, x)
    return result


def _cumulative_sum(do, args, params, aval):
    array = np.flip(args[0], params["axis"]) if params["reverse"] else args[0]
    array = np.moveaxis(array, params["axis"], -1)
    out = np.empty(array.shape, dtype=object)
    for index in np.ndindex(*array.shape):
        out[index] = fold(do, "add", list(array[index[:-1]][: index[-1] + 1]))
    out = np.moveaxis(out, -1, params["axis"])
    return np.flip(out, params["axis"]) if params["reverse"] else out


def _dot(do, args, params, aval):
    """Contracted as Σ over the last axis of one and the last of the other."""
    (left, right), (first, second) = params["dimension_numbers"]
    x, x_free = _last(args[0], first, left)
    y, y_free = _last(args[1], second, right)
    out = np.empty(aval.shape, dtype=object)
    batches = [args[0].shape[axis] for axis in first]
    for b in product(*map(range, batches)):
        for i, j in product(np.ndindex(*x_free), np.ndindex(*y_free)):
            out[(*b, *i, *j)] = _inner(do, x[(*b, *i)], y[(*b, *j)])
    return out


def _last(array: np.ndarray, batch, contracted) -> tuple[np.ndarray, tuple[int, ...]]:
    free = [a for a in range(array.ndim) if a not in batch and a not in contracted]
    moved = np.transpose(array, (*batch, *free, *contracted))
    sizes = tuple(array.shape[a] for a in free)
    return moved.reshape((*(array.shape[a] for a in batch), *sizes, -1)), sizes


def _inner(do: Arithmetic, x: np.ndarray, y: np.ndarray) -> Any:
    for a, b in ((x, y), (y, x)):
        constant = all(isinstance(z, Node) and is_rational(z) for z in a)
        if constant and all(isinstance(z, Node) for z in b):
            pairs = zip(a, b, strict=True)
            return do.g.lin(Fraction(0), [(c.data[0], z) for c, z in pairs])
    products = [do.combine("mul", a, b) for a, b in zip(x, y, strict=True)]
    return fold(do, "add", products)


def _compare(name: str) -> Rule:
    def rule(do, args, params, aval):
        def one(x, y):
            return lift(lambda a, b: do.choices.compare(name, a, b), real(x, do.g), real(y, do.g))

        return elementwise(one, *args)

    return rule


def _select(do, args, params, aval):
    if len(args) != 3:
        raise NotImplementedError
    return elementwise(do.choices.choose, *args)


def _integer_power(do, args, params, aval):
    exponent = Fraction(params["y"])

    def one(x):
        if isinstance(x, float):
            return Unreadable("`integer_pow` of an infinite constant")
        return do.power(x, exponent, "integer_pow")

    return elementwise(lambda x: lift(one, x), args[0])


def _logical(f: Callable[..., Any]) -> Rule:
    """Of truth values; of integers, `and`, `or` and `not` act on their bits."""

    def rule(do, args, params, aval):
        if aval.dtype != np.bool_:
            raise NotImplementedError
        return elementwise(lambda *xs: lift(f, *xs), *args)

    return rule


RULES: dict[str, Rule] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": lambda do, args, params, aval: args[0].reshape(aval.shape),
    "expand_dims": lambda do, args, params, aval: args[0].reshape(aval.shape),
    "transpose": lambda do, args, params, aval: np.transpose(args[0], params["permutation"]),
    "rev": lambda do, args, params, aval: np.flip(args[0], params["dimensions"]),
    "concatenate": lambda do, args, params, aval: np.concatenate(args, params["dimension"]),
    "stack": lambda do, args, params, aval: np.stack(args, params["axis"]),
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
    "pad": _pad,
    "iota": _iota,
    "convert_element_type": _convert,
    "reduce_sum": _reduce("add"),
    "reduce_prod": _reduce("mul"),
    "reduce_max": _reduce("max"),
    "reduce_min": _reduce("min"),
    "cumsum": _cumulative_sum,
    "dot_general": _dot,
    "select_n": _select,
    "clamp": lambda do, args, params, aval: elementwise(do.clamp, *args),
    "integer_pow": _integer_power,
    "polynomial": lambda do, args, params, aval: elementwise(do.polynomial, *args),
    "is_finite": lambda do, args, params, aval: elementwise(
        lambda x: lift(do.is_finite, real(x, do.g)), args[0]
    ),
    "sort": ascending,
    "top_k": largest,
    "and": _logical(conjunction),
    "or": _logical(disjunction),
    "not": _logical(negation),
    **{name: _compare(name) for name in TRUTH},
}
