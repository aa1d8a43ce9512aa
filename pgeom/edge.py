"""The edge between a user's arrays and the mathematics of one example.

Everything inside the library is written for one vector of `K` classes. Here it is lifted to any
leading dimensions, 16-bit input is computed in 32 bits, and bad arguments are refused with a
line that says what the argument was and what it must be.

>>> import jax.numpy as jnp
>>> spread = lift_examples(lambda z, label: jnp.max(z) - z[label])
>>> spread(jnp.array([[1.0, 3.0], [2.0, 0.0]]), jnp.array([0, 0]))
Array([2., 0.], dtype=float32)
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

SUM_TOLERANCE = 2e-3  # probabilities may have been rounded to three digits


def require(condition, name: str, must: str, value) -> None:
    """Raise a ValueError about the argument `name` unless `condition` holds everywhere.

    Traced values cannot be looked at and pass.
    """
    if not isinstance(condition, jax.core.Tracer) and not np.all(condition):
        shown = np.array2string(np.asarray(value), threshold=8, separator=", ")
        raise ValueError(f"{name} must be {must}, got {' '.join(shown.split())}")


def concrete(value) -> np.ndarray | None:
    """`value` as a NumPy float64 array, or None where it is traced."""
    return None if isinstance(value, jax.core.Tracer) else np.asarray(value, np.float64)


def check_positive(name: str, value) -> None:
    """Refuse a value that is not finite and > 0."""
    if (known := concrete(value)) is not None:
        require((known > 0) & np.isfinite(known), name, "positive and finite", value)


def check_nonnegative(name: str, value) -> None:
    """Refuse a value that is not finite and ≥ 0."""
    if (known := concrete(value)) is not None:
        require((known >= 0) & np.isfinite(known), name, "nonnegative and finite", value)


def class_counts(counts, name: str = "class_counts") -> jax.Array:
    """Counts as an array `[K]`, each refused unless positive."""
    counts = jnp.asarray(counts)
    if counts.ndim != 1:
        raise ValueError(f"{name} must have shape [K], got {counts.shape}")
    check_positive(name, counts)
    return counts


def real(value) -> jax.Array:
    """`value` as a floating-point array: of its own dtype, or of the default one for integers."""
    value = jnp.asarray(value)
    return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)


def check_scalar(name: str, value) -> None:
    """Refuse anything but a single number."""
    if np.shape(value) != ():
        raise ValueError(f"{name} must be a scalar, got shape {np.shape(value)}")


def check_num_classes(K) -> None:
    """Refuse fewer than two classes."""
    if not isinstance(K, (int, np.integer)) or K < 2:
        raise ValueError(f"K, the number of classes, must be an integer of at least 2, got {K!r}")


def check_same_classes(name: str, own: int, K: int) -> None:
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


def probabilities(name: str, value) -> jax.Array:
    """A floating-point array `[..., K]` whose rows are distributions: nonnegative, of sum one.

    Rounding passes, and so does a row with a NaN, which a diverged run may have and which stays
    NaN. Traced values cannot be looked at and pass.
    """
    value = vectors(name, value)
    if isinstance(value, jax.core.Tracer):
        return value
    known, rounding = np.asarray(value), float(jnp.finfo(value.dtype).eps)
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        lowest, total = np.min(known, axis=-1), np.sum(known, axis=-1, dtype=np.float64)
    close = np.abs(total - 1) <= max(SUM_TOLERANCE, 8 * rounding)
    wrong = ~(np.isnan(lowest) | ((lowest >= -rounding) & close))
    if np.any(wrong):
        require(False, name, "nonnegative and sum to one over the last axis", known[wrong][0])
    return value


def integer_labels(value, of: jax.Array, name: str) -> jax.Array:
    """Integer labels in 0 … K−1, one for each vector in `of`."""
    if not isinstance(value, jax.core.Tracer):
        value = np.asarray(value)  # before JAX wraps a label of 64 bits
    if not jnp.issubdtype(value.dtype, jnp.integer):
        raise TypeError(f"labels must be integers, got dtype {value.dtype}")
    if value.shape != of.shape[:-1]:
        raise ValueError(
            f"labels must have shape {of.shape[:-1]} to go with {name} of shape {of.shape}, "
            f"got {value.shape}"
        )
    if not isinstance(value, jax.core.Tracer):
        inside = (value >= 0) & (value < of.shape[-1])
        require(inside, "labels", f"in 0 … {of.shape[-1] - 1}", value)
    return jnp.asarray(value, int)  # a label of 8 bits could not be compared with every class


def working_dtype(*arrays: jax.Array) -> np.dtype:
    """The dtype to compute in: that of the arrays, but never fewer than 32 bits."""
    dtype = jnp.result_type(*arrays)
    return dtype if jnp.finfo(dtype).bits >= 32 else jnp.dtype(jnp.float32)


def lift_examples(example: Callable, name: str = "logits") -> Callable:
    """Lift `example(vector[K], label) -> scalar` to any leading dimensions.

    Args:
      example: the mathematics of one example.
      name: what to call the vectors in an error.

    Returns:
      `lifted(vectors[..., K], labels[...]) -> [...]`, of the dtype of the vectors. A label out
      of range is an error where it can be seen, and gives NaN where it is traced.
    """
    return _over_labels(jax.vmap(example), name)


def lift_targets(at_labels: Callable, at_targets: Callable, name: str = "logits") -> Callable:
    """Lift two forms of one loss, for labels and for soft targets, to any leading dimensions.

    Each is compiled as a whole: outside of `jit` its operations would be compiled one by one.

    Args:
      at_labels: `(vectors[n, K], labels[n]) -> [n]`.
      at_targets: `(vectors[n, K], targets[n, K]) -> [n]`.
      name: what to call the vectors in an error.

    Returns:
      `lifted(vectors[..., K], labels) -> [...]`, where labels are integers `[...]` or
      probabilities `[..., K]`.
    """
    of_labels = _over_labels(jax.jit(at_labels, inline=True), name)
    of_targets = lift_pairs(jax.jit(at_targets, inline=True), (name, "soft targets"))

    def lifted(values, labels):
        values = vectors(name, values)
        labels = labels if hasattr(labels, "dtype") else np.asarray(labels)  # lists, too
        soft = jnp.issubdtype(labels.dtype, jnp.floating)
        if not soft or labels.shape == values.shape[:-1]:
            return of_labels(values, labels)
        if labels.shape != values.shape:
            raise ValueError(
                f"soft targets must have shape {values.shape} to go with {name}, got {labels.shape}"
            )
        return of_targets(values, probabilities("soft targets", labels).astype(values.dtype))

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


def _over_labels(examples: Callable, name: str) -> Callable:
    """Lift `examples(vectors[n, K], labels[n]) -> [n]` to any leading dimensions."""

    def lifted(values, labels):
        values = vectors(name, values)
        labels = integer_labels(labels, values, name).reshape(-1)
        work = values.astype(working_dtype(values)).reshape(-1, values.shape[-1])
        inside = (labels >= 0) & (labels < values.shape[-1])
        found = jnp.where(inside, examples(work, labels), jnp.nan)
        return found.reshape(values.shape[:-1]).astype(values.dtype)

    return lifted
