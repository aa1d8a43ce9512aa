"""The edge between a user's arrays and the mathematics of one example.

Everything inside the library is written for one vector of `K` classes. Here it is lifted to any
leading dimensions, 16-bit input is computed in 32 bits, and bad arguments are refused with a
line that says what the argument was and what it must be.

>>> import jax.numpy as jnp
>>> spread = over_examples(lambda z, label: jnp.max(z) - z[label])
>>> spread(jnp.array([[1.0, 3.0], [2.0, 0.0]]), jnp.array([0, 0]))
Array([2., 0.], dtype=float32)
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


def refuse_unless(condition, name: str, must: str, value) -> None:
    """Raise a ValueError about the argument `name` unless `condition` holds everywhere.

    Traced values cannot be looked at and pass.
    """
    if not isinstance(condition, jax.core.Tracer) and not np.all(condition):
        shown = np.array2string(np.asarray(value), threshold=8, separator=", ")
        raise ValueError(f"{name} must be {must}, got {' '.join(shown.split())}")


def concrete(value) -> np.ndarray | None:
    """`value` as a NumPy float64 array, or None where it is traced."""
    return None if isinstance(value, jax.core.Tracer) else np.asarray(value, np.float64)


def positive(name: str, value) -> None:
    """Refuse a value that is not finite and > 0."""
    if (known := concrete(value)) is not None:
        refuse_unless((known > 0) & np.isfinite(known), name, "positive and finite", value)


def nonnegative(name: str, value) -> None:
    """Refuse a value that is not finite and ≥ 0."""
    if (known := concrete(value)) is not None:
        refuse_unless((known >= 0) & np.isfinite(known), name, "nonnegative and finite", value)


def class_counts(counts, name: str = "class_counts") -> jax.Array:
    """Counts as an array `[K]`, each refused unless positive."""
    counts = jnp.asarray(counts)
    if counts.ndim != 1:
        raise ValueError(f"{name} must have shape [K], got {counts.shape}")
    positive(name, counts)
    return counts


def real(value) -> jax.Array:
    """`value` as a floating-point array: of its own dtype, or of the default one for integers."""
    value = jnp.asarray(value)
    return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)


def scalar(name: str, value) -> None:
    """Refuse anything but a single number."""
    if jnp.shape(value) != ():
        raise ValueError(f"{name} must be a scalar, got shape {jnp.shape(value)}")


def number_of_classes(K) -> None:
    """Refuse fewer than two classes."""
    if not isinstance(K, (int, np.integer)) or K < 2:
        raise ValueError(f"K, the number of classes, must be an integer of at least 2, got {K!r}")


def same_classes(name: str, own: int, K: int) -> None:
    """Refuse parameters made for another number of classes than K."""
    if own != K:
        raise ValueError(f"{name} must be of K = {K} classes, got K = {own}")


def vectors(name: str, value) -> jax.Array:
    """A floating-point array `[..., K]` with K ≥ 2."""
    value = jnp.asarray(value)
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise TypeError(f"{name} must be floating-point, got dtype {value.dtype}")
    if value.ndim == 0 or value.shape[-1] < 2:
        raise ValueError(f"{name} must have shape [..., K] with K >= 2, got {value.shape}")
    return value


def labels_of(value, of: jax.Array, name: str) -> jax.Array:
    """Integer labels in 0 … K−1, one for each vector in `of`."""
    value = jnp.asarray(value)
    if not jnp.issubdtype(value.dtype, jnp.integer):
        raise TypeError(f"labels must be integers, got dtype {value.dtype}")
    if value.shape != of.shape[:-1]:
        raise ValueError(
            f"labels must have shape {of.shape[:-1]} to go with {name} of shape {of.shape}, "
            f"got {value.shape}"
        )
    if not isinstance(value, jax.core.Tracer):
        inside = (np.asarray(value) >= 0) & (np.asarray(value) < of.shape[-1])
        refuse_unless(inside, "labels", f"in 0 … {of.shape[-1] - 1}", value)
    return value.astype(int)  # a label of 8 bits could not be compared with every class


def working_dtype(*arrays: jax.Array) -> np.dtype:
    """The dtype to compute in: that of the arrays, but never fewer than 32 bits."""
    dtype = jnp.result_type(*arrays)
    return dtype if jnp.finfo(dtype).bits >= 32 else jnp.dtype(jnp.float32)


def over_examples(example: Callable, name: str = "logits") -> Callable:
    """Lift `example(vector[K], label) -> scalar` to any leading dimensions.

    Args:
      example: the mathematics of one example.
      name: what to call the vectors in an error.

    Returns:
      `lifted(vectors[..., K], labels[...]) -> [...]`, of the dtype of the vectors. A label out
      of range is an error where it can be seen, and gives NaN where it is traced.
    """

    def guarded(vector, label):
        inside = (label >= 0) & (label < vector.shape[-1])
        return jnp.where(inside, example(vector, label), jnp.nan)

    def lifted(values, labels):
        values = vectors(name, values)
        labels = labels_of(labels, values, name)
        work = values.astype(working_dtype(values))
        return jnp.vectorize(guarded, signature="(k),()->()")(work, labels).astype(values.dtype)

    return lifted


def over_pairs(pair: Callable, names: tuple[str, str] = ("q", "p")) -> Callable:
    """Lift `pair(q[K], p[K]) -> scalar` to any leading dimensions."""

    def lifted(left, right):
        left, right = vectors(names[0], left), vectors(names[1], right)
        if left.shape != right.shape:
            raise ValueError(
                f"{names[0]} and {names[1]} must have one shape, got {left.shape} and {right.shape}"
            )
        dtype, work = jnp.result_type(left, right), working_dtype(left, right)
        values = jnp.vectorize(pair, signature="(k),(k)->()")(left.astype(work), right.astype(work))
        return values.astype(dtype)

    return lifted
