"""Closed forms that a generator may have, and sums of generators that keep them.

Divergences and scores are linear in the generator, so a sum with nonnegative coefficients keeps
every closed form of its parts:

>>> import jax.numpy as jnp
>>> square = generator(lambda p: jnp.sum(p**2), divergence=lambda q, p, d: jnp.sum(d**2))
>>> mixture = 0.5 * square + (lambda p: jnp.sum(p**3))
>>> mixture(jnp.array([0.5, 0.5]))
Array(0.5, dtype=float32)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float

from pgeom import edge
from pgeom.types import Generator, Numbers, Point

Parameter: TypeAlias = Any
"""A number or an array; as a leaf of a pytree also a tracer, a shape or whatever JAX puts there."""


class ClosedForms(NamedTuple):
    """Formulas that need no autodiff and do not cancel; None where there is none.

    Each takes one example and is differentiated as written. d = q − p is passed along with q and p
    because it is known more accurately than their difference.

    Attributes:
      divergence: `(q[K], p[K], d[K]) -> D_F(q, p)`.
      vertex_divergence: `(label, p[K], d[K]) -> D_F(e_y, p)`.
      score_on_logits: `(logits[K], label) -> D_F(e_y, softmax(logits))`.
      divergence_on_logits: `(q[K], logits[K]) -> D_F(q, softmax(logits))`.
      vertex_values: `(K, dtype) -> F(e_1), …, F(e_K)`, `[K]`.
    """

    divergence: Callable | None = None
    vertex_divergence: Callable | None = None
    score_on_logits: Callable | None = None
    divergence_on_logits: Callable | None = None
    vertex_values: Callable | None = None


class ClosedGenerator(ABC):
    """A generator with closed forms, which composes: `F + G`, `c * F`."""

    @abstractmethod
    def __call__(self, p: Point) -> Float[Array, ""]:
        """F(p)."""

    @property
    def closed_forms(self) -> ClosedForms:
        return ClosedForms()

    def rescaled(self, factor: ArrayLike) -> "ClosedGenerator":
        """c·F."""
        return combine((factor, self))

    def __add__(self, other: Any) -> "ClosedGenerator":
        return combine((1.0, self), (1.0, other)) if callable(other) else NotImplemented

    def __radd__(self, other: Any) -> "ClosedGenerator":
        return combine((1.0, other), (1.0, self)) if callable(other) else NotImplemented

    def __mul__(self, factor: Any) -> "ClosedGenerator":
        return NotImplemented if callable(factor) else rescale(self, factor)

    __rmul__ = __mul__
    __array_ufunc__ = None  # so that NumPy leaves its number times a generator to the generator
    __jax_array__ = None


class SeparableGenerator(ClosedGenerator):
    """A generator Σ_k f(p_k)."""

    @abstractmethod
    def terms(self, p: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """f(p_k), entry by entry."""

    def __call__(self, p: Point) -> Float[Array, ""]:
        return jnp.sum(self.terms(jnp.asarray(p)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Combination(ClosedGenerator):
    """Σ_i c_i F_i."""

    coefficients: tuple[Parameter, ...]
    generators: tuple[Any, ...]

    def __call__(self, p: Point) -> Float[Array, ""]:
        point = jnp.asarray(p)
        return sum_over_parts(lambda F: F(point), self, point.dtype)

    def rescaled(self, factor: ArrayLike) -> "Combination":
        return Combination(tuple(c * factor for c in self.coefficients), self.generators)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Annotated(ClosedGenerator):
    """A function with the closed forms that its author supplied."""

    function: Any
    forms: Any

    def __call__(self, p: Point) -> Any:  # `scalar_function` checks what it returns
        return self.function(p)

    @property
    def closed_forms(self) -> ClosedForms:
        return self.forms


def generator(F: Generator, **closed_forms: Callable) -> Annotated:
    """F with closed forms supplied by its author, used in place of autodiff and quadrature.

    Args:
      F: `F(p[K]) -> scalar`, convex.
      closed_forms: any of the attributes of `ClosedForms`, by name.
    """
    for name, form in closed_forms.items():
        if name not in ClosedForms._fields:
            known = ", ".join(ClosedForms._fields)
            raise TypeError(f"a closed form must be one of {known}, got {name!r}")
        if not callable(form):
            raise TypeError(f"{name} must be a function, got {type(form).__name__}")
    forms = {name: as_pytree(form) for name, form in closed_forms.items()}
    return Annotated(as_pytree(_checked(F)), ClosedForms(**forms))


def combine(*terms: tuple[Numbers, Generator]) -> Combination:
    """Σ_i c_i F_i, with every closed form of its parts.

    Args:
      terms: pairs (c_i ≥ 0, F_i).
    """
    if not terms:
        raise ValueError("combine must be given at least one pair (coefficient, generator)")
    flat = []
    for factor, F in terms:
        edge.check_scalar("a coefficient", factor)
        edge.check_nonnegative("a coefficient", factor)
        factor = _number(factor)
        flat += [(factor * c, part) for c, part in parts(_checked(F))]
    return Combination(tuple(c for c, _ in flat), tuple(as_pytree(F) for _, F in flat))


def rescale(F: Generator, factor: Numbers) -> ClosedGenerator:
    """c·F for c > 0; of the same class as F if F is one of the library's."""
    edge.check_scalar("factor", factor)
    edge.check_positive("factor", factor)
    factor = _number(factor)
    return F.rescaled(factor) if isinstance(F, ClosedGenerator) else combine((factor, F))


def parts(F: Generator) -> list[tuple[Parameter, Generator]]:
    """The pairs (c_i, F_i) that F is the sum of: only (1, F) unless F is a `Combination`."""
    if isinstance(F, Combination):
        return list(zip(F.coefficients, F.generators, strict=True))
    return [(1.0, F)]


def closed_forms(F: Generator) -> ClosedForms:
    """The closed forms of F; none for a plain function, whatever its attributes are called."""
    return F.closed_forms if isinstance(F, ClosedGenerator) else ClosedForms()


def sum_over_parts(
    function: Callable[[Generator], Array], F: Generator, dtype: DTypeLike
) -> Float[Array, "..."]:
    """Σ_i c_i function(F_i): divergences and scores are linear in the generator."""
    first, *others = [jnp.asarray(c, dtype) * function(part) for c, part in parts(F)]
    return sum(others, first)


def _number(factor: Numbers) -> int | float | Array:
    """A floating-point factor: strict promotion would not multiply by an integer array."""
    return factor if isinstance(factor, (int, float)) else edge.real(factor)


def as_pytree(F: Callable) -> Callable:
    """F itself if it is a pytree with parameters, else F as a pytree without any."""
    return jax.tree_util.Partial(F) if jax.tree_util.all_leaves([F]) else F


def _checked(F: Generator) -> Generator:
    if not callable(F):
        raise TypeError(f"a generator must be a function F(p[K]), got {type(F).__name__}")
    return F
