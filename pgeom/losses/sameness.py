"""Whether two functions are one, so that they share what was compiled for it.

A deep copy, such as scikit-learn's `clone` makes of every parameter, is another object that
computes the same.

>>> import copy
>>> from pgeom.geometry.generators import tsallis
>>> F = tsallis(1.5)
>>> find_content(F) == find_content(copy.deepcopy(F)) != find_content(tsallis(1.25))
True
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial

import jax
import numpy as np

from pgeom.geometry.closed_forms import ClosedGenerator
from pgeom.geometry.findings import IMMUTABLE


@dataclass(frozen=True)
class Same:
    """A function that equals all others with its content."""

    content: Hashable
    function: Callable = field(compare=False)


def find_content(function: Callable) -> Hashable | None:
    """What two functions have in common that are one; None for one that may change."""
    if isinstance(function, partial):
        inner = find_content(function.func)
        given = function.args, tuple(function.keywords.items())
        content = None if inner is None else (inner, given)
    elif isinstance(function, ClosedGenerator):
        leaves, structure = jax.tree.flatten(function)
        content = structure, tuple(map(_leaf_content, leaves))
    else:
        content = function if isinstance(function, IMMUTABLE) else None
    try:
        hash(content)
    except TypeError:  # an array among the arguments
        return None
    return content


def _leaf_content(leaf) -> Hashable:
    """A parameter by its value, and a function by itself."""
    if callable(leaf):
        return leaf
    array = np.asarray(leaf)
    return array.dtype.str, array.shape, array.tobytes()
