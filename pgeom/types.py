"""The types that every package agrees on.

A *generator* is a convex function on the simplex, a *score* compares a point of the simplex with a
label, and a *loss* does the same from logits:

>>> import jax.numpy as jnp
>>> def cubic(p): return jnp.sum(p**3)    # a Generator: p[K] -> scalar
>>> isinstance(cubic, Generator)
True

Shapes are those of jaxtyping. What a user passes in is annotated without a dtype, because a wrong
one is refused with a message that says what is expected.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Integer, Shaped

Number: TypeAlias = int | float | np.number
"""A number that is known while tracing."""

Vectors: TypeAlias = Shaped[ArrayLike, "*batch K"]
"""Probabilities or logits with the class axis last, as JAX or NumPy arrays."""

Numbers: TypeAlias = ArrayLike | Sequence[Any]
"""Anything that NumPy makes an array of numbers."""

AnyArray: TypeAlias = Array | np.ndarray
"""An array of JAX, or one of NumPy that JAX will take."""

Scalar: TypeAlias = Float[Array, ""]
"""A number of JAX."""

Row: TypeAlias = Float[Array, " K"]
"""One number per class: logits, a point of the simplex, or a displacement."""

Rows: TypeAlias = Float[Array, "n K"]
"""A batch of rows."""

Values: TypeAlias = Float[Array, "*batch"]
"""One number per example."""

Entries: TypeAlias = Float[Array, "*shape"]
"""Numbers of any shape, of which a function takes one by one."""

Point: TypeAlias = Float[AnyArray, " K"]
"""A point of the simplex."""

Labels: TypeAlias = Numbers
"""Integer labels `[...]`, or soft targets `[..., K]` where they are accepted."""

Label: TypeAlias = Integer[ArrayLike, ""]
"""The label of one example."""


@runtime_checkable
class Generator(Protocol):
    """`F(p[K]) -> scalar`, convex on the simplex."""

    def __call__(self, p: Row, /) -> Scalar: ...


Forecast: TypeAlias = Callable[[Float[Array, "*batch K"]], Float[Array, "*batch K"]]
"""`forecast(logits[..., K]) -> p[..., K]`."""


@runtime_checkable
class Score(Protocol):
    """`score(p[..., K], labels) -> [...]`, one value per example.

    Labels are integers `[...]`, or soft targets `[..., K]` if the score accepts them.
    """

    def __call__(self, p: Vectors, labels: Labels, /) -> Values: ...


@runtime_checkable
class Loss(Protocol):
    """`loss(logits[..., K], labels) -> [...]`, one value per example; labels as for a score."""

    def __call__(self, logits: Vectors, labels: Labels, /) -> Values: ...


class ClassStats(NamedTuple):
    """Statistics of the training partition that a loss may depend on.

    Attributes:
      counts: the number of training examples with each observed label.
      centroids: the mean standardised input for each observed label.
    """

    counts: Float[AnyArray, " K"]
    centroids: Float[AnyArray, "K d"]
