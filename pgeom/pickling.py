"""Functions that factories return, such as losses, made to pickle and to copy.

>>> import pickle
>>> from pgeom.generators import squared_norm
>>> from pgeom.scores import bregman_divergence
>>> again = pickle.loads(pickle.dumps(bregman_divergence(squared_norm)))
>>> float(again([1.0, 0.0], [0.5, 0.5]))
0.5
"""

from collections.abc import Callable
from functools import partial, update_wrapper, wraps
from typing import Any


class Made:
    """A function that a factory returned, pickled as that factory and what it was given."""

    def __init__(self, function: Callable, factory: Callable, arguments: tuple, keywords: dict):
        update_wrapper(self, function)
        self.function, self.recipe = function, (partial(factory, **keywords), arguments)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.function(*arguments, **keywords)

    def __reduce__(self) -> tuple[Callable, tuple]:
        return self.recipe


def picklable(factory: Callable) -> Callable:
    """A factory of functions, made to return such as can be pickled if its arguments can."""

    @wraps(factory)
    def make(*arguments, **keywords):
        return Made(factory(*arguments, **keywords), make, arguments, keywords)

    return make
