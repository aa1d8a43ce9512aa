"""Links and Fenchel–Young losses under the transformations of JAX, and in their parameters."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import pgeom

G = pgeom.generators
Z = np.array([[1.0, 0.0, -4.0], [0.3, 0.1, 0.2]])
LABELS = np.array([1, 0])
STEP = 1e-5  # of differences
CORNER = np.array([0.5, 0.5, 0.0])


def quartic(a):
    return G.separable(lambda x: a * x**2 + x**4)


FAMILIES = {
    "tsallis": G.tsallis,
    "separable": quartic,
    "sum": lambda a: 0.5 * G.shannon + quartic(a),
    "user": lambda a: lambda p: jnp.sum(a * p**2 + p**4),
    "mixed": lambda a: quartic(a) + (lambda p: a * p[0] ** 2),
}


@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.9, 1.0, 1.001, 1.5, 2.0, 3.0])
def test_the_order_of_a_tsallis_entropy_is_differentiated_at_the_boundary(alpha, x64):
    """A class of probability zero contributes nothing: (Σp^α − 1)/(α − 1) over the others."""

    def over_support(a):
        x = (1 - a) * np.log(2)  # Σp^α = 2^(1−α)
        return -np.log(2) * np.expm1(x) / x if x else -np.log(2)

    def F(a):
        return G.tsallis(a)(jnp.asarray(CORNER))

    slope = (over_support(alpha + STEP) - over_support(alpha - STEP)) / (2 * STEP)
    forward, reverse = jax.jit(lambda a: (jax.jacfwd(F)(a), jax.grad(F)(a)))(alpha)
    np.testing.assert_allclose([forward, reverse], slope, rtol=1e-7)


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_are_differentiated_wherever_f_closes_over_them(name, x64):
    """Of loss and link, forwards and backwards, under jit and vmap, against differences."""
    make, a = FAMILIES[name], 1.5

    def loss(a):
        return jnp.sum(pgeom.fenchel_young(make(a))(jnp.asarray(Z), LABELS))

    def link(a):
        return jnp.sum(pgeom.canonical_link(make(a))(jnp.asarray(Z))[:, 0] ** 2)

    def values_and_slopes(a):
        both = jax.value_and_grad(loss)(a), jax.value_and_grad(link)(a)
        return (*both, (loss(a), jax.jacfwd(loss)(a)))

    behind, here, ahead = [a - STEP, a, a + STEP]
    program = jax.jit(jax.vmap(values_and_slopes))
    for values, slopes in program(jnp.array([behind, here, ahead])):
        difference = (values[2] - values[0]) / (ahead - behind)
        np.testing.assert_allclose(slopes[1], difference, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["separable", "tsallis"])
def test_parameters_are_differentiated_eagerly(name):
    make = FAMILIES[name]

    def loss(a):
        return jnp.sum(pgeom.fenchel_young(make(a))(jnp.asarray(Z, jnp.float32), LABELS))

    np.testing.assert_allclose(jax.grad(loss)(1.5), jax.jit(jax.grad(loss))(1.5), rtol=1e-5)


A = np.diag([1.0, 2.0, 3.0])
RIDGES = {"lam": 0.5, "a": [0.3], "rho": 0.2, "w": np.array([[0.6, -0.6, 0.0]]), "b": 0.1}
GENERATORS = {
    "shannon": lambda: G.shannon,
    "tsallis": lambda: G.tsallis(1.5),
    "steep": lambda: G.tsallis(3.0),
    "spherical": lambda: G.spherical,
    "separable": lambda: quartic(1.0),
    "sum": lambda: 0.5 * G.shannon + G.squared_norm,
    "quadratic": lambda: G.quadratic(jnp.asarray(A, jnp.float32)),
    "hyperbolic": lambda: G.hyperbolic(**RIDGES),
    "user": lambda: lambda p: jnp.sum(p**3),
    "mixed": lambda: G.shannon + G.quadratic(jnp.asarray(A, jnp.float32)),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_examples_on_several_devices_are_those_on_one(name):
    """Under `shard_map` with its check of what varies: value, gradient, HVP and link."""
    F = GENERATORS[name]()
    loss, link = pgeom.fenchel_young(F), pgeom.canonical_link(F)

    def every(z, labels):
        def total(z):
            return jnp.sum(loss(z, labels))

        gradient, product = jax.jvp(jax.grad(total), (z,), (jnp.ones_like(z).at[:, 0].set(2.0),))
        return loss(z, labels), gradient, product, link(z)

    z, labels = jnp.asarray(np.tile(Z, (2, 1)), jnp.float32), jnp.asarray(np.tile(LABELS, 2))
    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = PartitionSpec("d")
    split = jax.shard_map(every, mesh=mesh, in_specs=(rows, rows), out_specs=rows)
    for actual, expected in zip(jax.jit(split)(z, labels), jax.jit(every)(z, labels), strict=True):
        np.testing.assert_allclose(actual, expected, atol=2e-6)


@pytest.mark.parametrize("name", ["tsallis", "separable", "user"])
def test_devices_may_share_logits_and_differ_in_a_parameter(name):
    make, z = FAMILIES[name], jnp.asarray(Z, jnp.float32)

    def slopes(a, z):
        return jax.grad(lambda a: jnp.sum(pgeom.fenchel_young(make(a[0]))(z, LABELS)))(a)

    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    rows, a = PartitionSpec("d"), jnp.array([1.5, 2.0])
    split = jax.shard_map(slopes, mesh=mesh, in_specs=(rows, PartitionSpec()), out_specs=rows)
    expected = jnp.concatenate([slopes(a[i : i + 1], z) for i in (0, 1)])
    np.testing.assert_allclose(jax.jit(split)(a, z), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["user", "tsallis"])
def test_a_batch_of_no_size_is_exported(name, unchecked_annotations):
    F = GENERATORS[name]()
    z, labels = jnp.asarray(Z, jnp.float32), jnp.asarray(LABELS)
    (n,) = jax.export.symbolic_shape("n")
    shapes = jax.ShapeDtypeStruct((n, 3), z.dtype), jax.ShapeDtypeStruct((n,), labels.dtype)
    loss = jax.jit(jax.value_and_grad(lambda z, labels: jnp.sum(pgeom.fenchel_young(F)(z, labels))))
    exported = jax.export.export(loss)(*shapes)
    for actual, expected in zip(exported.call(z, labels), loss(z, labels), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_orders_on_both_sides_of_two_may_be_mapped_over():
    logits, orders = jnp.array([[1.0, 0.0, -4.0], [0.3, 0.1, 0.2]]), jnp.array([0.5, 1.5, 3.0])

    def link(alpha):
        return pgeom.canonical_link(pgeom.generators.tsallis(alpha))(logits)

    expected = jnp.stack([link(float(alpha)) for alpha in orders])
    assert jnp.max(jnp.abs(jax.vmap(link)(orders) - expected)) < 1e-6
