"""Every loss: finite logits give no NaN, a proper loss is not negative, slopes are finite."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from tests.fuzz import arrays
from tests.fuzz.arrays import Batch
from tests.losses.conftest import LOSSES, built

inputs = arrays.logits

OWN = (
    "user-cubic",
    "user-entropy",
)  # without closed forms: exact up to the rounding of their terms
SOFT = {"cross_entropy", "brier", "capm", "hpg", "apms", "shannon", "tsallis-half", "spherical"}
SOFT |= set(OWN)
ROUNDING = 64  # units of rounding by which a value of a function without closed forms may be off


def check(batch: Batch) -> None:
    """See the module."""
    with jax.enable_x64(batch.dtype == "float64"):
        hard, soft, certain, slopes = jax.tree.map(
            np.asarray, _program(batch.vectors.shape[-1])(*map(jnp.asarray, batch))
        )
    for name, values in hard.items():
        assert values.shape == batch.labels.shape and values.dtype == batch.vectors.dtype, name
        _check_values(name, values)
        if values.dtype != jnp.float16:  # its largest number is less than some losses
            assert np.all(np.isfinite(values.astype(float))), (name, values)
        assert np.all(np.isfinite(slopes[name].astype(float))) or values.dtype == jnp.float16, name
    for name, values in soft.items():
        _check_values(name, values)
        wide, close = certain[name].astype(float), hard[name].astype(float)
        units = ROUNDING * float(jnp.finfo(values.dtype).eps)
        np.testing.assert_allclose(wide, close, rtol=units, atol=units, err_msg=name)


def _check_values(name: str, values: np.ndarray) -> None:
    wide = values.astype(float)
    assert not np.any(np.isnan(wide)), (name, values)
    lowest = -ROUNDING * float(jnp.finfo(values.dtype).eps) if name in OWN else 0.0
    assert np.all(wide >= lowest), (name, values)


@cache
def _program(K: int):
    """All losses in one program: for labels, soft targets, certain soft targets, and slopes."""
    losses = {name: built(name, K) for name in LOSSES}

    def every(logits, labels, targets):
        certain = jax.nn.one_hot(labels, K, dtype=logits.dtype)
        hard = {name: loss(logits, labels) for name, loss in losses.items()}
        soft = {name: losses[name](logits, targets) for name in SOFT}
        same = {name: losses[name](logits, certain) for name in SOFT}
        slopes = {
            name: jax.grad(lambda z, loss=loss: jnp.sum(loss(z, labels)))(logits)
            for name, loss in losses.items()
        }
        return hard, soft, same, slopes

    return jax.jit(every)
