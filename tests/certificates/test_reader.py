"""The expression that a jaxpr is read as is the same function, at random points in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.certificates.arithmetics import values
from pgeom.certificates.reader import read
from tests.certificates import functions
from tests.certificates.functions import CONVEX, OTHERS

pytestmark = pytest.mark.usefixtures("unchecked_module")

K = 4
MORE = {
    "tanh": lambda p: jnp.sum(jnp.tanh(3 * p - 1)),
    "guards": lambda p: jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1.0)), 0.0)),
    "indices": lambda p: p[0] * p[jnp.array([2, 1])][0] + jnp.cumsum(p)[2] ** 2 - p[::-1][0],
    "shapes": lambda p: jnp.sum(jnp.outer(p, p) * jnp.eye(4)) + jnp.trace(jnp.diag(p)),
    "clip": lambda p: jnp.sum(jnp.clip(p, 0.1, 0.6) ** 2 + jnp.minimum(p, 0.3)),
    "replaced": lambda p: jnp.sum(
        jax.lax.dynamic_update_slice(p, p[:2] ** 2, (1,)) * jnp.pad(p[2:], 1) ** 2
    ),
    "sums of nothing": lambda p: jnp.sum(p**2) + jnp.sum(p[4:, None] * p[None]) + jnp.sum(p[4:]),
    "softmax": lambda p: p @ jax.nn.softmax(2 * p) + jnp.log1p(p[0]) + jnp.expm1(p[1]),
    "reshaped": lambda p: (
        jax.lax.reshape(jnp.outer(p, p**2), (16,), dimensions=(1, 0)) @ jnp.arange(16.0)
    ),
}
ALL = MORE | {name: functions.make(name, K) for name in [*CONVEX, *OTHERS][::2]}


@pytest.mark.parametrize("name", ALL)
def test_an_expression_has_the_values_of_its_function(name):
    points = np.random.default_rng(0).dirichlet(np.ones(K), 40)
    with jax.enable_x64(True):
        expected = jax.vmap(ALL[name])(jnp.asarray(points))
    root = read(ALL[name], K).root
    np.testing.assert_allclose(values(root, points), expected, rtol=1e-9, atol=1e-12)
