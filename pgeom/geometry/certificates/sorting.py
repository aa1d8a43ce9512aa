"""Sorted numbers as differences of maxima: `jnp.sort` and `jax.lax.top_k`."""

from itertools import combinations

import numpy as np

from pgeom.geometry.certificates.expression import Node
from pgeom.geometry.certificates.primitives import Arithmetic
from pgeom.geometry.certificates.selects import Unreadable

MOST = 11  # numbers that are sorted: the sets of them are written out


def ascending(do, args, params, aval):
    """In ascending order along one axis; of several arrays at once it is not read."""
    if len(args) != 1:
        raise NotImplementedError
    rows = np.moveaxis(args[0], params["dimension"], -1)
    out = np.empty(rows.shape, dtype=object)
    for index in np.ndindex(*rows.shape[:-1]):
        out[index] = _descending(do, list(rows[index]))[::-1]
    return np.moveaxis(out, -1, params["dimension"])


def largest(do, args, params, aval):
    rows, k = args[0], params["k"]
    if rows.ndim != 1:
        raise NotImplementedError
    values = np.array(_descending(do, list(rows))[:k], dtype=object)
    places = np.full(k, Unreadable("the indices of `top_k`"), dtype=object)
    return [values, places]


def _descending(do: Arithmetic, elements: list) -> list:
    """The k-th largest is the sum of the k largest less that of the k − 1 largest.

    The sum of the k largest is the maximum over all sets of k elements.
    """
    n, g = len(elements), do.g
    if n > MOST or not all(isinstance(x, Node) for x in elements):
        raise NotImplementedError
    sums = [g.const(0)]
    for k in range(1, n + 1):
        sets = dict.fromkeys(g.add(*chosen) for chosen in combinations(elements, k))
        kept = sorted(sets, key=lambda x: x.index)
        sums.append(kept[0] if len(kept) == 1 else g.node("max", kept))
    return [g.sub(sums[k], sums[k - 1]) for k in range(1, n + 1)]
