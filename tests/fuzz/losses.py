"""Every loss: finite logits give no NaN, a proper loss is not negative, slopes are finite."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from tests.fuzz import arrays
from tests.fuzz.arrays import Batch
from tests.test_accuracy import LOSSES

inputs = arrays.logits

OWN = {name for name in LOSSES if "user" in name or "separable" in name}
# without closed forms: exact up to the rounding of their terms
REPEATED = {"focal 0.5", "poly1 −1", "tsallis 0.25", "tsallis 3", "hyperbolic, sharp", "user Σp²"}
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
    cases = {name: case(K) for name, case in LOSSES.items() if name not in REPEATED}

    def every(logits, labels, targets):
        certain = jax.nn.one_hot(labels, K, dtype=logits.dtype)
        hard = {name: case.loss(logits, labels) for name, case in cases.items()}
        soft = {name: case.loss(logits, targets) for name, case in cases.items() if case.soft}
        same = {name: case.loss(logits, certain) for name, case in cases.items() if case.soft}
        slopes = {
            name: jax.grad(lambda z, loss=case.loss: jnp.sum(loss(z, labels)))(logits)
            for name, case in cases.items()
        }
        return hard, soft, same, slopes

    return jax.jit(every)
