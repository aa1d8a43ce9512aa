"""The boundary between a user's arrays and the mathematics of one example.

The library is written for one vector of `K` classes. This module lifts it to any leading
dimensions, computes 16-bit input in 32 bits, and rejects bad arguments with a message of the form
"X must be …, got …".

>>> import jax.numpy as jnp
>>> spread = lift_examples(lambda z, label: jnp.max(z) - z[label])
>>> spread(jnp.array([[1.0, 3.0], [2.0, 0.0]]), jnp.array([0, 0]))
Array([2., 0.], dtype=float32)
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

from pgeom.types import AnyArray, Labels, Numbers

SUM_TOLERANCE = 2e-3  # probabilities may have been rounded to three digits


def require(
    condition: bool | np.bool | np.ndarray | Array, name: str, must: str, value: Numbers
) -> None:
    """Raise a ValueError about the argument `name` unless `condition` holds everywhere.

    A traced condition cannot be inspected, and passes.
    """
    if not isinstance(condition, jax.core.Tracer) and not np.all(condition):
        shown = np.array2string(np.asarray(value), threshold=8, separator=", ")
        raise ValueError(f"{name} must be {must}, got {' '.join(shown.split())}")


def concrete(value: Numbers) -> np.ndarray | None:
    """`value` as a float64 NumPy array, or None if it is traced."""
    return None if isinstance(value, jax.core.Tracer) else np.asarray(value, np.float64)


def check(name: str, value: Numbers, must: str, holds: Callable[[np.ndarray], Any]) -> None:
    """Raise unless `holds(value)`, of an array; a traced value cannot be inspected, and passes."""
    if (known := concrete(value)) is not None:
        require(holds(known), name, must, value)


def check_positive(name: str, value: Numbers) -> None:
    """Raise unless the value is finite and > 0."""
    check(name, value, "positive and finite", lambda x: (x > 0) & np.isfinite(x))


def check_nonnegative(name: str, value: Numbers) -> None:
    """Raise unless the value is finite and ≥ 0."""
    check(name, value, "nonnegative and finite", lambda x: (x >= 0) & np.isfinite(x))


def check_scalar(name: str, value: Numbers) -> None:
    """Raise unless the value is a single number."""
    if np.shape(value) != ():
        raise ValueError(f"{name} must be a scalar, got shape {np.shape(value)}")


def check_num_classes(K: Any) -> None:
    """Raise unless K is an integer of at least two."""
    if not isinstance(K, (int, np.integer)) or K < 2:
        raise ValueError(f"K, the number of classes, must be an integer of at least 2, got {K!r}")


def check_same_classes(name: str, own: int, K: int) -> None:
    """Raise unless the parameters called `name`, made for `own` classes, are used with as many."""
    if own != K:
        raise ValueError(f"{name} must be of K = {K} classes, got K = {own}")


def class_counts(counts: Numbers, name: str = "class_counts") -> Num[Array, " K"]:
    """Class counts as an array `[K]` of positive numbers."""
    array = jnp.asarray(counts)
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape [K], got {array.shape}")
    check_positive(name, array)
    return array


def real(value: Numbers) -> Float[Array, "..."]:
    """`value` as a floating-point array: in its own dtype, or the default one for integers."""
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def vectors(name: str, value: Numbers) -> Float[Array, "*batch K"]:
    """`value` as a floating-point array `[..., K]` with K ≥ 2."""
    array = jnp.asarray(value)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(f"{name} must be floating-point, got dtype {array.dtype}")
    if array.ndim == 0 or array.shape[-1] < 2:
        raise ValueError(f"{name} must have shape [..., K] with K >= 2, got {array.shape}")
    return array


def probabilities(name: str, value: Numbers) -> Float[Array, "*batch K"]:
    """`value` as a floating-point array `[..., K]` of rows that are nonnegative and sum to one.

    Rounding errors pass, and so does a row with a NaN, which a diverged run may produce and which
    stays NaN. Traced values cannot be inspected, and pass.
    """
    array = vectors(name, value)
    if isinstance(array, jax.core.Tracer):
        return array
    known, rounding = np.asarray(array), float(jnp.finfo(array.dtype).eps)
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        lowest, total = np.min(known, axis=-1), np.sum(known, axis=-1, dtype=np.float64)
    close = np.abs(total - 1) <= max(SUM_TOLERANCE, 8 * rounding)
    wrong = ~(np.isnan(lowest) | ((lowest >= -rounding) & close))
    if np.any(wrong):
        require(False, name, "nonnegative and sum to one over the last axis", known[wrong][0])
    return array


def integers(value: Labels) -> AnyArray:
    """`value` as an array of integers: of JAX where it is traced."""
    # by NumPy, because JAX would wrap a 64-bit label before its range can be checked
    labels = value if isinstance(value, jax.core.Tracer) else np.asarray(value)
    if not jnp.issubdtype(labels.dtype, jnp.integer):
        raise TypeError(f"labels must be integers, got dtype {labels.dtype}")
    return labels


def integer_labels(value: Labels, shape: tuple[Any, ...], name: str) -> Int[Array, "..."]:
    """Integer labels in 0 … K−1, one for each vector of an array of the given shape `[..., K]`.

    Args:
      value: the labels.
      shape: the shape of the vectors that they belong to.
      name: what to call the vectors in an error message.
    """
    labels = integers(value)
    if labels.shape != shape[:-1]:
        raise ValueError(
            f"labels must have shape {shape[:-1]} to go with {name} of shape {shape}, "
            f"got {labels.shape}"
        )
    if isinstance(labels, np.ndarray):
        inside = (labels >= 0) & (labels < shape[-1])
        require(inside, "labels", f"in 0 … {shape[-1] - 1}", labels)
    return jnp.asarray(labels, int)  # an 8-bit label could not be compared with every class


def working_dtype(*arrays: Array) -> np.dtype:
    """The dtype to compute in: that of the arrays, but at least 32 bits."""
    dtype = jnp.result_type(*arrays)
    return dtype if jnp.finfo(dtype).bits >= 32 else jnp.dtype(jnp.float32)


def lift_examples(example: Callable, name: str = "logits") -> Callable:
    """Lift `example(vector[K], label) -> scalar` to any leading dimensions.

    Args:
      example: a function of one example.
      name: what to call the vectors in an error message.

    Returns:
      `lifted(vectors[..., K], labels[...]) -> [...]`, in the dtype of the vectors. A label out of
      range raises an error if it is concrete, and gives NaN if it is traced.
    """
    return _lift_labels(jax.vmap(example), name)


def lift_targets(
    label_values: Callable, target_values: Callable, name: str = "logits"
) -> Callable[..., Float[Array, "..."]]:
    """Lift two forms of a loss, for labels and for soft targets, to any leading dimensions.

    Each is jitted: outside of `jit` its operations would be compiled one by one.

    Args:
      label_values: `(vectors[n, K], labels[n]) -> [n]`.
      target_values: `(vectors[n, K], targets[n, K]) -> [n]`.
      name: what to call the vectors in an error message.

    Returns:
      `lifted(vectors[..., K], labels) -> [...]`, where labels are integers `[...]` or
      probabilities `[..., K]`.
    """
    with_labels = _lift_labels(jax.jit(label_values, inline=True), name)
    with_targets = lift_pairs(jax.jit(target_values, inline=True), (name, "soft targets"))

    def lifted(values, labels):
        values = vectors(name, values)
        labels = labels if isinstance(labels, jax.Array) else np.asarray(labels)
        soft = jnp.issubdtype(labels.dtype, jnp.floating)
        if not soft or labels.shape == values.shape[:-1]:
            return with_labels(values, labels)
        if labels.shape != values.shape:
            raise ValueError(
                f"soft targets must have shape {values.shape} to go with {name}, got {labels.shape}"
            )
        return with_targets(values, probabilities("soft targets", labels).astype(values.dtype))

    return lifted


def lift_pairs(pairs: Callable, names: tuple[str, str] = ("q", "p")) -> Callable:
    """Lift `pairs(q[n, K], p[n, K]) -> [n]` to any leading dimensions."""

    def lifted(left, right):
        left, right = vectors(names[0], left), vectors(names[1], right)
        if left.shape != right.shape:
            raise ValueError(
                f"{names[0]} and {names[1]} must have one shape, got {left.shape} and {right.shape}"
            )
        dtype, work = jnp.result_type(left, right), working_dtype(left, right)
        values = pairs(*(x.astype(work).reshape(-1, x.shape[-1]) for x in (left, right)))
        return values.reshape(left.shape[:-1]).astype(dtype)

    return lifted


def _lift_labels(examples: Callable, name: str) -> Callable:
    """Lift `examples(vectors[n, K], labels[n]) -> [n]` to any leading dimensions."""

    def lifted(values, labels):
        values = vectors(name, values)
        labels = integer_labels(labels, values.shape, name).reshape(-1)
        work = values.astype(working_dtype(values)).reshape(-1, values.shape[-1])
        inside = (labels >= 0) & (labels < values.shape[-1])
        results = jnp.where(inside, examples(work, labels), jnp.nan)
        return results.reshape(values.shape[:-1]).astype(values.dtype)

    return lifted
