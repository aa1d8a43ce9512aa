"""Soft targets give the expected score, for every Bregman score and the losses made of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom import scores

G = pgeom.generators
A = np.array([[2.0, 0.5, 0.3], [0.5, 1.5, 0.2], [0.3, 0.2, 1.0]])
RIDGES = {"lam": 0.7, "a": 0.4, "rho": 0.3, "w": np.array([[0.6, -0.8, 0.0]]), "b": 0.1}


def cubic(p):
    return jnp.sum(p**3)


def entropy(p):
    return jnp.sum(p * jnp.log(p))


def loss(F):
    return pgeom.on_logits(pgeom.bregman_score(F))


def annealed():
    penalised = pgeom.apms(G.shannon, tau=0.2, kappa=0.3, nu=0.1, beta0=0.5, horizon=100.0)
    return lambda logits, labels: penalised(logits, labels, 20)


LOSSES = {  # made where they are used, in the precision of the test
    "shannon": lambda: loss(G.shannon),
    "tsallis-half": lambda: loss(G.tsallis(0.5)),
    "spherical": lambda: loss(G.spherical),
    "combination": lambda: loss(0.5 * G.shannon + G.spherical),
    "cross-entropy": lambda: pgeom.losses.cross_entropy,
    "brier": lambda: pgeom.losses.brier,  # of the squared norm
    "capm": lambda: pgeom.capm(jnp.asarray(A)),  # of a quadratic
    "hpg": lambda: pgeom.hpg(**RIDGES),  # of a hyperbolic generator
    "apms": annealed,
    "user-cubic": lambda: pgeom.on_logits(pgeom.bregman_score(cubic), temperature=2.0),
    "user-entropy": lambda: loss(entropy),
}


@pytest.fixture(params=LOSSES)
def made(request):
    return LOSSES[request.param]


def expected_loss(loss, z, eta):
    """Σ_y η_y loss(z, y)."""
    return jnp.sum(eta * loss(jnp.broadcast_to(z, (len(z), len(z))), jnp.arange(len(z))))


AHEAD = np.log(1e7 * (1 + np.exp(-1)))  # 1 − p_y = 1e-7
NEAR = np.array([[30.0, 0, -30]] * 3 + [[AHEAD, 0, -1], [-1, AHEAD, 0]] + [[0.3, -0.2, 0.9]] * 3)
NEAR_LABELS = np.array([0, 1, 2, 0, 1, 0, 1, 2])


def test_one_hot_targets_are_labels(made):
    """To rounding of each value and gradient, however small those are."""
    program = jax.jit(jax.vmap(jax.value_and_grad(made())))
    logits = jnp.asarray(NEAR, jnp.float32)
    values, slopes = program(logits, NEAR_LABELS)
    soft_values, soft_slopes = program(logits, jnp.eye(3)[NEAR_LABELS])
    np.testing.assert_allclose(soft_values, values, rtol=1e-6)
    for soft, hard in zip(soft_slopes, slopes, strict=True):
        np.testing.assert_allclose(soft, hard, rtol=1e-5, atol=1e-6 * np.max(np.abs(hard)))
    assert np.all(np.isfinite(slopes)) and np.all(np.any(np.asarray(slopes) != 0, axis=1))


def test_the_expectation_and_its_derivatives(made, x64):
    draws = np.random.default_rng(2)
    z, eta = 2 * draws.normal(size=(6, 3)), draws.dirichlet(np.ones(3), size=6)
    eta[0] = [0.5, 0.5, 0.0]
    loss = made()

    def derivatives(of):
        """The value, the gradient and the Hessian of a function of logits."""

        def slope_and_value(z):
            value, slope = jax.value_and_grad(of)(z)
            return slope, (value, slope)

        def at(z):
            hessian, (value, slope) = jax.jacfwd(slope_and_value, has_aux=True)(z)
            return value, slope, hessian

        return at

    @jax.jit
    @jax.vmap
    def both(z, eta):
        expectation = derivatives(lambda z: expected_loss(loss, z, eta))(z)
        return derivatives(lambda z: loss(z, eta))(z), expectation

    for actual, expected in zip(*both(z, eta), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["tsallis-half", "cross-entropy", "apms", "user-cubic"])
def test_leading_dimensions_maps_and_precisions(name):
    loss, shape = LOSSES[name](), (2, 3, 3)
    draws = np.random.default_rng(6)
    z = jnp.asarray(draws.normal(size=shape), jnp.float32)
    eta = jnp.asarray(draws.dirichlet(np.ones(3), size=shape[:2]), jnp.float32)
    batched, mapped = jax.jit(lambda z, eta: (loss(z, eta), jax.vmap(jax.vmap(loss))(z, eta)))(
        z, eta
    )
    assert batched.shape == shape[:2] and batched.dtype == jnp.float32
    np.testing.assert_allclose(mapped, batched, rtol=1e-5)
    for dtype in (jnp.bfloat16, jnp.float16):
        low = jax.jit(loss)(z.astype(dtype), eta)
        assert low.shape == shape[:2] and low.dtype == dtype
        np.testing.assert_allclose(low.astype(jnp.float32), batched, rtol=0.05, atol=0.05)


def equations(loss, K):
    """How many there are in the gradient for K classes, in programs inside of it too."""
    gradient = jax.make_jaxpr(jax.grad(loss))(jnp.zeros(K), jnp.full(K, 1 / K))
    return str(gradient).count(" = ")


@pytest.mark.parametrize("F", [cubic, entropy])
def test_the_gradient_is_one_hessian_vector_product(F):
    """Its program does not grow with the number of classes."""
    assert equations(loss(F), 4) == equations(loss(F), 40) > 10

    def label_by_label(z, eta):
        return sum(eta[y] * loss(F)(z, y) for y in range(len(z)))

    assert equations(label_by_label, 4) > 1.5 * equations(label_by_label, 2)


def test_memory_is_linear_in_the_classes():
    gradient = jax.jit(jax.grad(lambda z, eta: jnp.sum(loss(cubic)(z, eta))))
    shapes = [jax.ShapeDtypeStruct((8, K), jnp.float32) for K in (50, 500)]
    small, large = (gradient.lower(s, s).compile().memory_analysis() for s in shapes)
    assert large.temp_size_in_bytes <= 12 * small.temp_size_in_bytes


def test_risks_and_regrets_of_a_score():
    """R(η, p) is the expected score, and R(η, p) − R(η, η) is D_F(η, p)."""
    score = pgeom.bregman_score(cubic)
    eta, p = np.random.default_rng(9).dirichlet(np.ones(3), size=(2, 5)).astype(np.float32)
    np.testing.assert_array_equal(pgeom.conditional_risk(score)(eta, p), score(p, eta))
    difference = score(p, eta) - score(eta, eta)
    np.testing.assert_allclose(pgeom.regret(score)(eta, p), difference, rtol=1e-3, atol=1e-6)
    np.testing.assert_array_equal(
        pgeom.regret(score)(eta, p), pgeom.bregman_divergence(cubic)(eta, p)
    )


@pytest.mark.parametrize("small", [5e-39, 1e-45, 0.0])
def test_a_target_below_the_smallest_normal_number_counts_as_zero(small):
    """Its logarithm is −∞ where the processor rounds it to zero, which no convex F is."""
    eta = jnp.array([0.5, 0.5, small], jnp.float32)
    for p in ([1.0, 0.0, 0.0], [0.2, 0.3, 0.5]):
        point = jnp.array(p, jnp.float32)
        actual = pgeom.bregman_score(entropy)(point, eta)
        np.testing.assert_allclose(actual, pgeom.bregman_score(G.shannon)(point, eta), rtol=1e-6)

    def count_nonzero(p):  # by their bits, whatever the processor makes of them
        return jnp.sum(jax.lax.bitcast_convert_type(p, jnp.int32) != 0).astype(p.dtype)

    assert scores.values_at(count_nonzero, eta[None]) == 2


def test_rounding_next_to_a_vertex_makes_no_score_negative(x64):
    """The score of η itself is the mean of F at the vertices less F(η), which cancel."""
    w = np.array([[0.5, -0.5], [-0.5, 0.5]])
    ridges = G.hyperbolic(lam=0.5, a=0.8, rho=0.1, w=w, b=0.2, scale=1.3)
    beside = np.geomspace(1e-17, 1e-6, 2000)[:, None]
    others = np.random.default_rng(0).dirichlet(np.ones(2), size=2000)
    eta = (1 - beside) * np.array([1.0, 0.0]) + beside * others
    for F in (ridges, ridges + 0.5 * G.squared_norm):
        assert np.all(pgeom.bregman_score(F)(eta, eta) >= 0)


def test_a_gap_that_is_truly_negative_is_told(x64):
    """Of a function that is not convex the expected score may be negative, and says so."""
    eta = np.array([0.5, 0.25, 0.25])
    actual = pgeom.bregman_score(lambda p: -jnp.sum(p**2))(eta, eta)
    np.testing.assert_allclose(actual, np.sum(eta**2) - 1)


NEXT_TO_A_VERTEX = {  # generators, and the relative error that is allowed in float32
    "squared-norm": (lambda: G.squared_norm, 1e-6),
    "spherical": (lambda: G.spherical, 1e-6),
    "tsallis-2.5": (lambda: G.tsallis(2.5), 1e-6),
    "tsallis-half": (lambda: G.tsallis(0.5), 1e-6),
    "shannon": (lambda: G.shannon, 1e-6),
    "quadratic": (lambda: G.quadratic(A), 1e-6),
    "hyperbolic": (lambda: G.hyperbolic(**RIDGES), 1e-6),
    "combination": (lambda: 0.5 * G.shannon + G.squared_norm, 1e-6),
    "user-cubic": (lambda: cubic, 1e-6),
    "user-entropy": (lambda: entropy, 1e-5),
    "user-p^1.5": (lambda: lambda p: jnp.sum(p**1.5), 3e-3),
    "user-roots": (lambda: lambda p: -jnp.sum(jnp.sqrt(p)), 3e-3),
    "separable": (lambda: G.separable(lambda x: x**4), 1e-6),
}


@pytest.mark.parametrize("name", NEXT_TO_A_VERTEX)
def test_the_expected_score_of_the_truth_next_to_a_vertex(name):
    """Σ_y η_y ℓ(p, y) at p = η, which a difference of values of F rounds to nothing."""
    make, tolerance = NEXT_TO_A_VERTEX[name]
    rest = np.array([1e-2, 1e-3, 1e-4, 1e-6, 1e-9])[:, None] * np.array([[0.75, 0.25]])
    eta = np.insert(rest, 1, 1 - np.sum(rest, axis=1), axis=1)
    logits = np.log(eta).astype(np.float32)
    actual = np.asarray(jax.jit(loss(make()))(logits, jnp.asarray(eta, jnp.float32)))
    at_eta = jax.jit(pgeom.bregman_score(make()))(*[jnp.asarray(eta, jnp.float32)] * 2)
    with jax.enable_x64(True):
        labelled = jax.vmap(jax.vmap(loss(make()), (None, 0)), (0, None))
        values = jax.jit(labelled)(jnp.asarray(logits, float), jnp.arange(3))
        expected = np.sum(eta * np.asarray(values), axis=1)
    np.testing.assert_allclose(actual, expected, rtol=tolerance)
    np.testing.assert_allclose(at_eta, expected, rtol=tolerance)
