"""A loss of a user's own as a value: a generator F(p), or a loss(logits, labels).

Both are tried before anything is trained, and refused with a reason in one line.

>>> import jax.numpy as jnp
>>> def cubic(p): return jnp.sum(p**3)
>>> spec = make_loss(cubic, K=3)
>>> spec.label, spec.family, dict(spec.constants)
('cubic', 'Own', {'mean_curvature': 2.0})
"""

import inspect
import math
from collections.abc import Callable, Hashable
from functools import cache, partial
from inspect import Parameter

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.diagnosis import explain_convexity
from pgeom.diagnosis.curvature import measure_curvature
from pgeom.diagnosis.search import IMMUTABLE, Findings, find
from pgeom.functions import call, out_of_range, scalar_function, trace
from pgeom.generators import rescale
from pgeom.losses.catalogue import LOSSES, MEAN_CURVATURE, SYNONYMS
from pgeom.losses.spec import LossSpec, from_logits
from pgeom.messages import describe_error, known_name
from pgeom.types import ClassStats, Generator, Loss

LossLike = str | LossSpec | Generator | Loss
"""A name of the catalogue, a value of it, `F(p)`, or `loss(logits, labels)`."""

FAMILY = "Own"

_made: dict[Hashable, LossSpec] = {}  # because equal losses share compiled programs


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
    content = _content(given)
    if content is None:
        return _try(given, K, match)
    key = content, K, match
    if key not in _made:
        _made[key] = _try(given, K, match)
    return _made[key]


def _content(function):
    """What a function shares with its deep copies, such as scikit-learn's `clone` makes.

    None for an object that may change.
    """
    if isinstance(function, partial):
        function = jax.tree_util.Partial(function.func, *function.args, **function.keywords)
    leaves, structure = jax.tree.flatten(function)
    if any(callable(x) and not isinstance(x, IMMUTABLE) for x in leaves):
        return None
    return structure, *(id(x) if callable(x) else np.asarray(x).tobytes() for x in leaves)


def _try(given, K, match):
    """A function as a loss, or a ValueError."""
    name = getattr(given, "__name__", type(given).__name__)
    arguments = _count_arguments(given)
    if arguments == 1:
        require_convex(given, K, name)
        if match:
            matching_factor(given, K, name)
        return generator_loss(given, name, mean_curvature=MEAN_CURVATURE if match else None)
    if arguments == 2:
        require_loss(given, K, name)
        return plain_loss(given, name)
    raise ValueError(
        "loss must be a name, a generator F(p), a loss(logits, labels) or "
        f"a LossSpec, got {given!r}"
    )


def _count_arguments(function):
    """How many arguments must be given by position, or None if it is no function of that kind."""
    if not callable(function):
        return None
    parameters = inspect.signature(function).parameters.values()
    named = (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    return sum(one.kind not in named and one.default is Parameter.empty for one in parameters)


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
    factor = cache(partial(matching_factor, F, name=name))  # of K and the target

    def matched(stats: ClassStats, *, mean_curvature: float | None) -> Generator:
        if mean_curvature is None:
            return F
        return rescale(F, factor(stats.counts.shape[0], target=mean_curvature))

    constants = {"mean_curvature": mean_curvature}
    known = {"studied": True, "proper": True}
    return LossSpec(name, name, FAMILY, constants=constants, generator=matched, **known)


def plain_loss(loss: Loss, name: str) -> LossSpec:
    """`loss(logits, labels)` as a loss of a study."""
    return LossSpec(name, name, FAMILY, from_logits(loss), studied=True)


def matching_factor(
    F: Generator, K: int, name: str = "F", *, target: float = MEAN_CURVATURE
) -> float:
    """What F is multiplied by for its `matching_curvature` to be `target`.

    Of its mean over the simplex an estimate would do for smooth generators only: that of −Σ√p or
    of a Rényi entropy is infinite.
    """
    curvature = measure_curvature(F, K)
    if not 0 < curvature < math.inf:
        raise ValueError(
            f"{name} must have a positive, finite curvature at uniform probabilities to be matched "
            f"with the other losses, got {curvature:g} (K={K}); match=False leaves it as it is"
        )
    return target / curvature


def require_generator(F: Callable, K: int, name: str) -> None:
    """Refuse a function that JAX cannot trace as a scalar of one `p[K]`, twice differentiable."""

    try:
        # float64 where it is enabled
        for precision in {jnp.dtype(jnp.float32), jnp.result_type(float)}:
            trace(F, jax.ShapeDtypeStruct((K,), precision))
            hessians = jax.vmap(jax.hessian(scalar_function(F)))
            jax.eval_shape(hessians, jax.ShapeDtypeStruct((2, K), precision))
    except (Exception, SystemExit) as error:  # whatever a user's function may raise
        raise ValueError(
            f"{name} raised {describe_error(error)} (K={K}); it must be a function of one p[{K}] "
            "that JAX can differentiate twice"
        ) from error


def require_convex(F: Generator, K: int, name: str) -> Findings:
    """Whether F is convex on K classes, or a ValueError with the pair that refutes it.

    Everything else about F can wait until it is asked for, by `diagnose` or `proofs_numeric`.
    """
    require_generator(F, K, name)
    try:
        findings = find(F, K, thorough=False)
    except ValueError as error:  # F is one function in float32 and another in float64
        raise ValueError(f"{name}: {error}") from error
    if not findings.finite_at_vertices:
        raise ValueError(
            f"{name} must be finite at the vertices of the simplex (K={K}); write 0·log 0 as "
            "jax.scipy.special.xlogy(p, p)"
        )
    if findings.convex is False:
        raise ValueError(f"{name}: {explain_convexity(findings)}")
    return findings


def require_loss(loss: Callable, K: int, name: str) -> None:
    """Refuse what is no loss of logits `[n, K]` and labels `[n]`, or has no slope to train by.

    It must fall as labels become likely, be finite on logits within ±3, and so must its gradient.
    """
    n = K + 1
    labels = jnp.arange(n) % K
    spread = jnp.linspace(-3.0, 3.0, n * K).reshape(n, K)
    # multiples of e_y less its mean, with which the label's probability is some .95 for any K: a
    # truncated loss may be flat where it is less than a half
    likely = (3.0 + math.log(K)) * (jax.nn.one_hot(labels, K) * K - 1) / (K - 1)

    def total(logits, labels):
        values = jnp.asarray(call(loss, logits, labels, name="it"))
        return jnp.sum(values), values

    try:
        program = jax.make_jaxpr(total)(spread, labels)
        slope = jax.grad(total, has_aux=True)
        tried = [slope(logits, labels) for logits in (spread, -likely, likely)]
    except (Exception, SystemExit) as error:  # whatever a user's function may raise
        raise ValueError(f"{name} raised {describe_error(error)} on logits[{n}, {K}]") from error
    slopes, (values, low, high) = zip(*tried, strict=True)
    if (wrong := out_of_range(program)) is not None:
        raise ValueError(f"{name} reads {wrong}, on logits[{n}, {K}]")
    if values.shape != (n,) or not jnp.issubdtype(values.dtype, jnp.floating):
        raise ValueError(
            f"{name} must return one number per example, shape [{n}], got {values.dtype} of "
            f"shape {list(values.shape)}"
        )
    if not (jnp.all(jnp.isfinite(values)) and jnp.all(jnp.isfinite(slopes[0]))):
        raise ValueError(f"{name} must be finite with a finite gradient on logits within ±3")
    change, rounding = high - low, 1e-5 * (abs(low) + abs(high))
    # label by label, because on average the others may hide one whose sign is wrong
    k = int(jnp.argmax(change - rounding))
    if change[k] > rounding[k]:
        raise ValueError(
            f"{name} grows as the label's probability grows: for label {labels[k]}, from "
            f"{low[k]:.3g} to {high[k]:.3g}; its sign may be wrong"
        )
    if jnp.all(abs(change) <= rounding):
        raise ValueError(f"{name} is the same whether the label's probability is high or low")
    if not any(map(jnp.any, slopes)):
        raise ValueError(
            f"{name} has a gradient of zero wherever it was tried: nothing to train by"
        )
