"""Losses of a user: when two are one, and how one becomes a value of a study.

Whether two functions are one, so that they share what was compiled for it.

A deep copy, such as scikit-learn's `clone` makes of every parameter, is another object that
computes the same.

>>> import copy
>>> from pgeom.generators import tsallis
>>> F = tsallis(1.5)
>>> find_content(F) == find_content(copy.deepcopy(F)) != find_content(tsallis(1.25))
True

Losses of a user's own as values of a study: a generator F(p), or a loss(logits, labels).

>>> import jax.numpy as jnp
>>> def cubic(p): return jnp.sum(p**3)
>>> spec = generator_loss(cubic, "cubic")
>>> spec.label, spec.family, dict(spec.constants)
('cubic', 'Own', {'mean_curvature': 2.0})
"""

import inspect
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cache, partial
from inspect import Parameter
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.diagnosis.curvature import matching_curvature
from pgeom.diagnosis.search import IMMUTABLE, Verdict, glance_at_convexity
from pgeom.diagnosis.table import explain_convexity
from pgeom.functions import call, out_of_range
from pgeom.generators import ClosedGenerator, rescale
from pgeom.losses.catalogue import LOSSES, MEAN_CURVATURE, SYNONYMS
from pgeom.losses.spec import LossSpec, from_generator, from_logits
from pgeom.messages import describe_error, known_name
from pgeom.types import ClassStats, Generator, Loss


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


LossLike = str | LossSpec | Generator | Loss
"""A name of the catalogue, a value of it, `F(p)`, or `loss(logits, labels)`."""

FAMILY = "Own"
EXAMPLES = 4  # on which a loss is tried before it is trained


def generator_loss(
    F: Generator, name: str, *, mean_curvature: float | None = MEAN_CURVATURE
) -> LossSpec:
    """The score of F as a loss of a study.

    Args:
      F: a convex function `F(p[K]) -> scalar`.
      name: what to call it everywhere.
      mean_curvature: over directions, to which F is rescaled, as `matching_curvature` measures it;
        by default that of Brier, so that learning rates compare. None leaves F as it is.
    """

    def matched(stats: ClassStats, **constants: float | None) -> Generator:
        target = constants["mean_curvature"]
        if target is None:
            return F
        return rescale(F, matching_factor(F, stats.counts.shape[0], target=target))

    constants = {"mean_curvature": mean_curvature}
    make = from_generator(matched)
    return LossSpec(
        name, name, FAMILY, make, constants, candidate=True, proper=True, generator=matched
    )


def plain_loss(loss: Loss, name: str) -> LossSpec:
    """`loss(logits, labels)` as a loss of a study."""
    return LossSpec(name, name, FAMILY, from_logits(loss), candidate=True)


def make_loss(given: LossLike, K: int, *, match: bool = True) -> LossSpec:
    """What a user calls a loss, as one of a study with K classes.

    Args:
      given: a name of the catalogue, a generator `F(p)`, a `loss(logits, labels)`, or a `LossSpec`.
      K: the number of classes.
      match: whether to rescale a generator, as `generator_loss` does.

    Raises:
      ValueError: for an unknown name, or a function that cannot be trained with.
    """
    if isinstance(given, LossSpec):
        return given
    if isinstance(given, str):
        return LOSSES[known_name("loss", given, LOSSES, SYNONYMS)]
    content = find_content(given)
    if content is None:
        return _checked(given, K, match)
    return _remembered(Same(content, given), K, match)


@cache  # because equal losses share compiled programs
def _remembered(same: Same, K: int, match: bool) -> LossSpec:
    return _checked(same.function, K, match)


def _checked(given: Any, K: int, match: bool) -> LossSpec:
    """A function as a loss, or a ValueError."""
    name = getattr(given, "__name__", type(given).__name__)
    if (count := _count_arguments(given)) == 1:
        F = cast(Generator, given)
        require_convex(F, K, name)
        if not match:
            return generator_loss(F, name, mean_curvature=None)
        require_curvature(F, K, name, option="match=False")
        return generator_loss(F, name)
    if count == 2:
        require_loss(given, K, name)
        return plain_loss(cast(Loss, given), name)
    raise ValueError(
        "loss must be a name, a generator F(p), a loss(logits, labels) or "
        f"a LossSpec, got {given!r}"
    )


def _count_arguments(function: Any) -> int | None:
    """How many arguments must be given by position, or None if it is no function of that kind."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in positional and one.default is Parameter.empty for one in parameters)


def matching_factor(F: Generator, K: int, *, target: float = MEAN_CURVATURE) -> float:
    """What F is multiplied by for its `matching_curvature` to be `target`.

    Of its mean over the simplex an estimate would do for smooth generators only: that of −Σ√p or
    of a Rényi entropy is infinite.
    """
    return target / _curvature(F, K)


def _curvature(F: Generator, K: int) -> float:
    """The curvature of F by which it is matched, computed once if F cannot change."""
    content = find_content(F)
    return _measure(F, K) if content is None else _remembered_curvature(Same(content, F), K)


@cache
def _remembered_curvature(same: Same, K: int) -> float:
    return _measure(cast(Generator, same.function), K)


def _measure(F: Generator, K: int) -> float:
    """The curvature of F by which it is matched, as a constant, also while tracing."""
    with jax.ensure_compile_time_eval(), jax.enable_x64(False):  # the same one in either precision
        return float(jax.jit(lambda: matching_curvature(F, K))())


def require_generator(F: Callable, K: int, name: str) -> None:
    """Refuse a function that JAX cannot trace as a scalar of one `p[K]`, twice differentiable."""

    def derivatives(p):
        return jax.jvp(jax.grad(F), (p,), (p,))

    def value(p):
        result = call(F, p)
        if callable(result):  # F is a class, or makes generators
            raise TypeError(f"F(p) is a {type(result).__name__}, to be called itself")
        return result

    widest = jnp.result_type(float)  # float64 where it is enabled
    try:
        p = jax.ShapeDtypeStruct((K,), widest)
        result = jax.eval_shape(value, p)
        shape, dtype = getattr(result, "shape", None), getattr(result, "dtype", None)
        scalar = shape == () and dtype is not None and jnp.issubdtype(dtype, jnp.floating)
        for precision in (jnp.float32, widest) if scalar else ():
            jax.eval_shape(jax.vmap(derivatives), jax.ShapeDtypeStruct((2, K), precision))
        wrong = out_of_range(jax.make_jaxpr(F)(p)) if scalar else None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a user's function may raise
        raise ValueError(
            f"{name} raised {describe_error(error)} (K={K}); it must be a function of one p[{K}] "
            "that JAX can differentiate twice"
        ) from error
    if not scalar:
        got = type(result).__name__ if shape is None else f"{dtype} of shape {shape}"
        raise ValueError(f"{name} must return a real scalar for p[{K}], got {got}")
    if wrong is not None:
        raise ValueError(f"{name} reads {wrong}")


def require_convex(F: Generator, K: int, name: str) -> Verdict:
    """Whether F is convex on K classes, or a ValueError with the pair that refutes it.

    Everything else about F can wait until it is asked for, by `diagnose` or `proofs_numeric`.
    """
    require_generator(F, K, name)
    try:
        finite_at_vertices, verdict = glance_at_convexity(F, K)
    except ValueError as error:  # F is one function in float32 and another in float64
        raise ValueError(f"{name}: {error}") from error
    if not finite_at_vertices:
        raise ValueError(
            f"{name} must be finite at the vertices of the simplex (K={K}); write 0·log 0 as "
            "jax.scipy.special.xlogy(p, p)"
        )
    if verdict.convex is False:
        raise ValueError(f"{name}: {explain_convexity(verdict)}")
    return verdict


def require_curvature(F: Generator, K: int, name: str, *, option: str = "--no-match") -> None:
    """Refuse a generator without a curvature at uniform probabilities that a factor can match.

    Args:
      F: a generator.
      K: the number of classes.
      name: what the refusal calls F.
      option: what the refusal says to give for F to be taken as it is.
    """
    curvature = _curvature(F, K)
    if not 0 < curvature < math.inf:
        raise ValueError(
            f"{name} must have a positive, finite curvature at uniform probabilities to be matched "
            f"with the other losses, got {curvature:g} (K={K}); give {option} to train it as it is"
        )


def require_loss(loss: Callable, K: int, name: str) -> None:
    """Refuse what is no loss of logits `[n, K]` and labels `[n]`, with finite slopes."""
    logits = jnp.linspace(-3.0, 3.0, EXAMPLES * K).reshape(EXAMPLES, K)
    labels = jnp.arange(EXAMPLES) % K
    traced = partial(call, loss, name="it")
    try:
        program = jax.make_jaxpr(lambda labels, logits: traced(logits, labels))(labels, logits)
        values = jnp.asarray(loss(logits, labels))
        slopes = jax.grad(lambda z: jnp.sum(jnp.asarray(loss(z, labels))))(logits)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a user's function may raise
        raise ValueError(
            f"{name} raised {describe_error(error)} on logits[{EXAMPLES}, {K}]"
        ) from error
    if (wrong := out_of_range(program)) is not None:
        raise ValueError(f"{name} reads {wrong}, on logits[{EXAMPLES}, {K}]")
    if values.shape != (EXAMPLES,) or not jnp.issubdtype(values.dtype, jnp.floating):
        raise ValueError(
            f"{name} must return one number per example, shape [{EXAMPLES}], got {values.dtype} of "
            f"shape {list(values.shape)}"
        )
    if not bool(jnp.all(jnp.isfinite(values)) & jnp.all(jnp.isfinite(slopes))):
        raise ValueError(f"{name} must be finite with a finite gradient on logits within ±3")
    _require_descent(loss, K, name, flat=not bool(jnp.any(slopes)))


def _require_descent(loss: Callable, K: int, name: str, *, flat: bool) -> None:
    """Refuse a loss that does not fall as labels become likely, or has no slope to train by.

    Args:
      loss: of logits and labels.
      K: the number of classes.
      name: what the refusal calls the loss.
      flat: whether its gradient was zero wherever it has been tried before.
    """
    labels = jnp.arange(K)
    # multiples of e_y less its mean, with which the label's probability is some .95 for any K: a
    # truncated loss may be flat where it is less than a half
    likely = (3.0 + math.log(K)) * (jax.nn.one_hot(labels, K) * K - 1) / (K - 1)
    low, high = (jnp.asarray(loss(z, labels)) for z in (-likely, likely))
    least, most = (float(jax.nn.softmax(z)[0, 0]) for z in (-likely, likely))
    change, rounding = high - low, 1e-5 * (abs(low) + abs(high))
    # label by label, because on average the others may hide one whose sign is wrong
    k = int(jnp.argmax(change - rounding))
    if change[k] > rounding[k]:
        raise ValueError(
            f"{name} grows as the label's probability grows: for label {k} it is {low[k]:.3g} at "
            f"{least:.2g} and {high[k]:.3g} at {most:.3g}; its sign may be wrong"
        )
    if jnp.all(abs(change) <= rounding):
        raise ValueError(
            f"{name} is the same whether the label's probability is {least:.2g} or {most:.3g}"
        )
    total = jax.grad(lambda z: jnp.sum(jnp.asarray(loss(z, labels))))
    if flat and not any(bool(jnp.any(total(z))) for z in (-likely, likely)):
        raise ValueError(
            f"{name} has a gradient of zero wherever it was tried: nothing to train by"
        )
