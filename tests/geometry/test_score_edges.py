"""Scores where they are easily wrong: kinks, infinite vertices, near η, what F closes over."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

import pgeom

G = pgeom.generators
SATURATED = jnp.array([30.0, 0.0, -30.0])
LOGITS, LABELS = jnp.array([[0.3, -1.0, 0.8], [1.0, 2.0, 0.5]]), jnp.array([0, 2])


def loss(F):
    return pgeom.on_logits(pgeom.bregman_score(F))


def cubic(p):
    return jnp.sum(p**3)


def entropy(p):
    return jnp.sum(p * jnp.log(p))


def barrier(p):
    return -jnp.sum(jnp.log(p))


def kinked(p):
    return jnp.sum(p**2) + jax.nn.relu(p[0] - 0.9)


def test_a_kink_is_seen_along_the_whole_path():
    """The jump at p₀ = .9, where the slope of F jumps, is the loss's own; it has no other."""
    score = jax.jit(pgeom.bregman_score(kinked))
    np.testing.assert_allclose(score(jnp.array([0.8, 0.2]), 0), 0.18, rtol=1e-6)
    d = np.delete(np.linspace(0.001, 0.5, 500), 99)  # without .1, the kink
    p = jnp.asarray(np.stack([1 - d, d], axis=1), jnp.float32)
    values = score(p, np.zeros(len(d), int))
    np.testing.assert_allclose(values, 2 * d**2 + np.where(d > 0.1, 0.1, 0.0), atol=2e-6)
    slopes = jax.jit(jax.vmap(jax.grad(score), (0, None)))(p, 0)  # H(p)(p − e_y), a.e.
    np.testing.assert_allclose(slopes, np.stack([-2 * d, 2 * d], axis=1), atol=1e-6)


def test_divergences_of_entropy_where_probabilities_are_tiny():
    def value(z):
        eta = jnp.array([0.5, 0.5, 0.0])
        return pgeom.bregman_divergence(G.shannon)(eta, jax.nn.softmax(z))

    actual, slope = jax.jit(jax.value_and_grad(value))(jnp.array([0.0, -60.0, 3.0]))
    np.testing.assert_allclose(actual, np.log(0.5) + 30 + np.log(1 + np.exp(3)), rtol=1e-6)
    np.testing.assert_allclose(slope, [-0.45257413, -0.5, 0.95257413], rtol=1e-5)


ENTROPIES = {"double": (2 * G.shannon, 2), "user": (entropy, 1), "tsallis": (G.tsallis(1.0), 1)}


@pytest.mark.parametrize("name", ENTROPIES)
def test_every_form_of_entropy_at_saturated_logits(name):
    F, factor = ENTROPIES[name]
    value, slope = jax.jit(jax.value_and_grad(loss(F)))(SATURATED, 2)
    np.testing.assert_allclose(value, factor * 60, rtol=1e-6)
    p = np.exp(-30.0)
    np.testing.assert_allclose(slope, factor * np.array([1.0, p, -1.0]), rtol=1e-5)


def test_a_generator_infinite_at_the_vertices():
    """Its score is infinite, for labels and for expectations; its slopes are not."""
    p, q = jnp.array([0.6, 0.2, 0.2]), jnp.array([0.5, 0.3, 0.2])
    gradient = jax.jit(jax.value_and_grad(pgeom.bregman_score(barrier)))
    for target in (0, q):
        end = np.eye(3)[0] if target is not q else q
        value, slope = gradient(p, target)
        assert value == np.inf
        np.testing.assert_allclose(slope, (p - end) / p**2, rtol=1e-5)  # H = diag(1/p²)
    value, slope = jax.jit(jax.value_and_grad(loss(barrier)))(LOGITS[0], 0)
    assert value == np.inf and np.all(np.isfinite(slope))
    expected = np.sum(q / p - np.log(q / p) - 1)
    actual = jax.jit(pgeom.bregman_divergence(barrier))(q, p)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("F", [cubic, G.shannon], ids=["cubic", "shannon"])
def test_regret_next_to_the_truth(F):
    """Equal to D_F(η, p) in float32, where a difference of two risks has no digits left."""
    steps = np.array([1e-2, 1e-3, 1e-4]).repeat(8)[:, None]
    draws = np.random.default_rng(4)
    directions = draws.normal(size=(24, 3))
    directions -= directions.mean(axis=1, keepdims=True)
    eta = draws.dirichlet(np.full(3, 5.0), size=24).astype(np.float32)
    p = (eta + steps * directions).astype(np.float32)
    regret = jax.jit(pgeom.regret(pgeom.bregman_score(F)))
    actual = np.asarray(regret(eta, p), np.float64)
    q, p = eta.astype(np.float64), p.astype(np.float64)
    if F is cubic:
        expected = np.sum((q - p) ** 2 * (q + 2 * p), axis=1)
    else:
        x = (p - q) / q
        expected = np.sum(q * (x - np.log1p(x)), axis=1)
    assert np.all(actual >= 0)
    np.testing.assert_allclose(actual, expected, rtol=1e-4)


def powers(weight, order, cubed):
    """A loss whose generator closes over a float, an integer and a boolean."""

    def F(p):
        return weight * jnp.sum(jnp.where(cubed, p**3, p**2)) + jnp.sum(jnp.power(p, order))

    return loss(F)


def test_generators_may_close_over_traced_integers_and_booleans():
    def value(weight, order, cubed, z):
        return jnp.sum(powers(weight, order.astype(z.dtype), cubed)(z, LABELS))

    def by_hand(weight, order, cubed, z):
        """Without tracing what is closed over."""
        orders = np.float32(order), np.float32(3 if cubed else 2)
        first, second = (loss(lambda p, n=n: jnp.sum(p**n)) for n in orders)
        return jnp.sum(weight * second(z, LABELS) + first(z, LABELS))

    arguments = jnp.float32(1.5), jnp.int32(4), jnp.bool_(True)
    known = (1.5, 4, True)
    expected, slopes = jax.value_and_grad(lambda w, z: by_hand(w, *known[1:], z), (0, 1))(
        arguments[0], LOGITS
    )
    actual, actual_slopes = jax.jit(jax.value_and_grad(value, (0, 3)))(*arguments, LOGITS)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    chex.assert_trees_all_close(actual_slopes, slopes, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(value)(*arguments, LOGITS), expected, rtol=1e-6)
    np.testing.assert_allclose(
        jax.jit(jax.grad(value, 3))(*arguments, LOGITS), slopes[1], rtol=1e-5, atol=1e-6
    )
    orders, cubes = jnp.array([4, 2]), jnp.array([True, False])
    mapped = jax.jit(jax.vmap(value, (None, 0, 0, None)))(arguments[0], orders, cubes, LOGITS)
    np.testing.assert_allclose(mapped, [expected, by_hand(1.5, 2, False, LOGITS)], rtol=1e-6)


SHARDED = {
    "closure": lambda w: lambda p: jnp.sum(w * p**3),
    "tsallis": lambda w: G.tsallis(w[0]),
    "combination": lambda w: G.combine((w[0], G.shannon), (w[1], cubic)),
}


@pytest.mark.parametrize("name", SHARDED)
def test_sharded_examples(name):
    """The values and the slopes, in parameters and logits, are those of one device."""
    mesh, across = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,)), PartitionSpec("d")
    targets = jax.nn.softmax(LOGITS[::-1])

    def values(w, z, labels, targets):
        logit_loss = loss(SHARDED[name](w))
        return logit_loss(z, labels) + logit_loss(z, targets)

    specs = PartitionSpec(), across, across, across
    sharded = jax.shard_map(values, mesh=mesh, in_specs=specs, out_specs=across)

    def program(values):
        total = jax.value_and_grad(lambda *arguments: jnp.sum(values(*arguments)), (0, 1))
        return jax.jit(total)(jnp.array([1.3, 2.0, 0.5]), LOGITS, LABELS, targets)

    actual, expected = program(sharded), program(values)
    chex.assert_trees_all_close(actual, expected, rtol=1e-5, atol=1e-6)


def test_parameters_of_an_entropy_differentiate_where_a_probability_underflows():
    """∂/∂w of Σ w p log p: the score of each class's own term, finite at exact zeros."""
    logits, labels = jnp.array([[2.0, 0.0, 1.0], [200.0, 0.0, -200.0]]), jnp.array([0, 1])

    def total(w):
        score = pgeom.bregman_score(lambda p: jnp.sum(w * p * jnp.log(p)))
        return pgeom.on_logits(score)(logits, labels).sum()

    slope = jax.jit(jax.grad(total))(jnp.ones(3))
    assert np.all(np.isfinite(slope))
    p = np.asarray(jax.nn.softmax(logits[0]), np.float64)
    np.testing.assert_allclose(slope[2], p[2], rtol=1e-5)  # D of x log x from p to 0 is p


def test_the_slope_in_the_weight_of_a_kink_is_seen_where_the_weight_is_zero():
    """D is linear in the weight, so that a unit that starts at zero can move."""

    def score(weight):
        F = lambda p: jnp.sum(p**2) + weight * jnp.maximum(p[0] - 0.5, 0.0)  # noqa: E731
        return pgeom.bregman_score(F)(jnp.array([0.2, 0.5, 0.3]), 0)

    slope = jax.jit(jax.vmap(jax.grad(score)))(jnp.array([0.0, 0.1]))
    np.testing.assert_allclose(slope, [0.5, 0.5], rtol=1e-6)


@pytest.mark.parametrize(
    "F",
    [
        lambda p: jnp.sum(p * jnp.log(p) + (1 - p) * jnp.log(1 - p)),
        lambda p: -jnp.sum(jnp.sqrt(p * (1 - p))),
        lambda p: -jnp.sqrt(1 - jnp.sum(p**2)),
    ],
    ids=["binary entropies", "circles", "ball"],
)
def test_a_slope_that_diverges_at_one_is_no_nan(F):
    loss = jax.jit(jax.vmap(jax.value_and_grad(pgeom.on_logits(pgeom.bregman_score(F)))))
    logits = jnp.array([[0.3, -1.0, 2.0], [20.0, 0.0, 0.0], [200.0, 0.0, 0.0], [1e4, -1e4, 0.0]])
    for label in range(3):
        values, slopes = loss(logits, jnp.full(4, label))
        chex.assert_tree_all_finite((values, slopes))
    value, _ = loss(logits[:1], jnp.array([0]))
    with jax.enable_x64(True):
        p = jax.nn.softmax(logits[0].astype(float))
        q = jnp.array([1 - 2e-12, 1e-12, 1e-12])
        exact = F(q) - F(p) - jnp.dot(jax.grad(F)(p), q - p)
        np.testing.assert_allclose(np.asarray(value[0]), float(exact), rtol=1e-5)


def test_a_vertex_of_no_weight_may_be_infinite():
    score = pgeom.bregman_score(lambda p: -jnp.log(p[0] + p[1]))
    actual = score(jnp.array([0.3, 0.3, 0.4]), jnp.array([0.5, 0.5, 0.0]))
    np.testing.assert_allclose(actual, np.log(0.6) + 0.4 / 0.6, rtol=1e-5)


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_a_class_without_mass_costs_a_singular_generator_no_digits(delta):
    """Where p_2 is 0 the Hessian of p log p or −√p is infinite, and has no part in the score."""
    delta = float(np.float32(delta))
    p = jnp.array([[1 - delta, delta, 0.0]], jnp.float32)
    root = np.sqrt(1 - delta)
    # by their definitions, −log p_y, and √p_y + √p_1/2 + (1/√p_y)·δ/2 − 1, without cancellation
    expected = {
        "entropy": -np.log1p(-delta),
        "root": np.sqrt(delta) / 2 + np.expm1(np.log1p(-delta) / 2) + delta / (2 * root),
    }
    generators = {
        "entropy": lambda p: jnp.sum(p * jnp.log(p)),
        "root": lambda p: -jnp.sum(jnp.sqrt(p)),
    }
    for name, F in generators.items():
        actual = jax.jit(pgeom.bregman_score(F))(p, jnp.array([0]))
        np.testing.assert_allclose(actual, [expected[name]], rtol=1e-6, err_msg=name)


SECOND = {  # generators, and the largest gap at which 1/p³ and the like are far out of range
    "entropy": (entropy, 1e4),
    "xlogy": (lambda p: jnp.sum(jax.scipy.special.xlogy(p, p)), 1e4),
    "ten entropies": (lambda p: 10 * jnp.sum(p * jnp.log(p)), 1e4),
    "entropy and squares": (lambda p: jnp.sum(p * jnp.log(p) + p**2), 1e4),
    "roots": (lambda p: -jnp.sum(jnp.sqrt(p)), 45.0),
    "cubes": (cubic, 1e4),
}


@pytest.mark.parametrize("name", SECOND)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_second_derivatives_are_finite_where_those_of_a_generator_overflow(name, dtype):
    """Forward and in reverse over the gradient, to the rounding of the gradient's terms."""
    F, furthest = SECOND[name]
    with jax.enable_x64(dtype == jnp.float64):
        gaps = [gap for gap in (16.0, 28.0, 30.0, 45.0, 60.0, 100.0, 1e4) if gap <= furthest]
        z = jnp.asarray([[gap, 0.0, 0.25] for gap in gaps], dtype)
        v = jnp.asarray([2.0, -1.0, 0.5], dtype)

        def both(z):
            slope = jax.grad(lambda z: loss(F)(z, 1))
            in_reverse = jax.grad(lambda z: jnp.vdot(slope(z), v))
            return slope(z), jax.jvp(slope, (z,), (v,))[1], in_reverse(z)

        slopes, forward, reverse = jax.jit(jax.vmap(both))(z)
    chex.assert_tree_all_finite((slopes, forward, reverse))
    with jax.enable_x64(True):  # p log p has p − e_y and J in closed form
        wide = np.asarray(z, np.float64)
        p = np.asarray(jax.nn.softmax(wide))
        if name in ("entropy", "xlogy"):
            expected = p * (np.asarray(v) - p @ np.asarray(v, np.float64)[:, None])
        elif name == "roots":  # ∂ℓ/∂z_k of Σ_j √p_j/2 − 1 + 1/(2√p_y), twice
            exact = lambda z: _root_score(jax.nn.softmax(z))  # noqa: E731
            step = lambda z: jax.jvp(jax.grad(exact), (z,), (jnp.asarray(v, float),))[1]  # noqa: E731
            expected = np.asarray(jax.vmap(step)(jnp.asarray(wide)))
        else:
            return
    size = 1 + np.linalg.norm(np.asarray(slopes, np.float64), axis=1, keepdims=True)
    allowed = 64 * float(jnp.finfo(dtype).eps) * size
    for actual in (forward, reverse):
        assert np.all(np.abs(np.asarray(actual, np.float64) - expected) <= allowed)


def _root_score(p):
    """D(e_1, p) of −Σ√p."""
    return jnp.sum(jnp.sqrt(p)) / 2 - 1 + 1 / (2 * jnp.sqrt(p[1]))


@pytest.mark.parametrize("gap", [56.0, 58.0, 60.0, 61.0, 62.0, 90.0])
@pytest.mark.parametrize("power", [0.25, 0.5])
def test_derivatives_are_finite_where_the_curvature_reaches_the_largest_float(gap, power):
    """1/p^{2−a} is finite up to there, but what multiplies it overflows."""
    F, z, v = lambda p: -jnp.sum(p**power), jnp.array([gap, 0.0, 0.25]), jnp.array([2.0, -1.0, 0.5])
    slope = jax.jit(jax.grad(lambda z: loss(F)(z, 1)))
    chex.assert_tree_all_finite((slope(z), jax.jvp(slope, (z,), (v,))[1]))
