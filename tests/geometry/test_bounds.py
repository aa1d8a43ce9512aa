"""Bounds: never crossed, attained where the theory says so, and the sharper one below."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.diagnosis import bounds, curvature
from pgeom.generators import as_pytree, hyperbolic, quadratic


def every_pair(F, K):
    """The score of every vertex against every label, `[K, K]`."""
    p, labels = jnp.repeat(jnp.eye(K), K, axis=0), jnp.tile(jnp.arange(K), K)
    return np.asarray(jax.jit(pgeom.bregman_score(F))(p, labels)).reshape(K, K)


def steepest(F, K, temperature, points):
    """The largest logit gradient over `points` and labels."""
    loss = pgeom.on_logits(pgeom.bregman_score(F), temperature=temperature)
    over = jax.jit(jax.vmap(jax.vmap(jax.grad(loss), (None, 0)), (0, None)))
    gradients = over(temperature * jnp.log(jnp.asarray(points, jnp.float32)), jnp.arange(K))
    return float(np.max(np.linalg.norm(gradients, axis=-1)))


def test_the_quadratic_range_is_the_worst_pair_of_vertices():
    root = np.random.default_rng(2).normal(size=(5, 5))
    F = quadratic((np.eye(5) + root @ root.T).astype(np.float32))
    actual = bounds.loss_range(F, 5)
    np.testing.assert_allclose(actual.sharp, np.max(every_pair(F, 5)), rtol=1e-5)
    np.testing.assert_allclose(actual.paper, curvature.envelope(F, 5).M)
    assert actual.sharp < actual.paper and actual.how == "exact"


def test_the_papers_range_is_attained_by_a_top_eigenvector_between_two_vertices():
    d = np.array([1.0, -1.0, 0.0])
    F = quadratic(np.eye(3) + 0.7 * np.outer(d, d))
    actual = bounds.loss_range(F, 3)
    np.testing.assert_allclose(actual.sharp, actual.paper, rtol=1e-6)
    np.testing.assert_allclose(np.max(every_pair(F, 3)), actual.paper, rtol=1e-6)


def test_the_hyperbolic_range(hyperbolic_case):
    F = hyperbolic_case.make()
    actual = bounds.loss_range(F, 4)
    assert np.max(every_pair(F, 4)) <= actual.sharp * (1 + 1e-6) <= actual.paper * (1 + 1e-6)
    # wide ridges are parabolas: on K = 2 with w along e_1 − e_2 the paper's M is attained
    w = np.array([[1.0, -1.0]]) / np.sqrt(2)
    wide = hyperbolic(lam=0.5, a=0.8, rho=1e3, w=w, b=0.0, scale=1.5)
    actual = bounds.loss_range(wide, 2)
    np.testing.assert_allclose(actual.paper, 1.5 * (0.5 + 0.8), rtol=1e-6)
    np.testing.assert_allclose(actual.sharp, actual.paper, rtol=1e-5)
    np.testing.assert_allclose(np.max(every_pair(wide, 2)), actual.paper, rtol=1e-5)
    # a single ridge: the bound is its worst pair of vertices
    ridge = hyperbolic(lam=0.5, a=0.8, rho=0.3, w=w, b=0.2, scale=1.5)
    np.testing.assert_allclose(
        bounds.loss_range(ridge, 2).sharp, np.max(every_pair(ridge, 2)), rtol=1e-5
    )


def off_vertex():
    """A sharp ridge whose loss is largest inside a face, and the largest of it at many points."""
    F = hyperbolic(
        lam=0.0010676549635252042,
        a=np.array([0.31845323, 0.73799637, 0.3939093]),
        rho=np.array([0.69359086, 0.03566439, 0.05079797]),
        w=np.array(
            [
                [-0.32077569, -0.53254316, -0.78326288],
                [0.87247708, -0.45643424, 0.17450369],
                [-0.83728459, -0.44432106, 0.31864291],
            ]
        ),
        b=np.array([0.16869431, 0.10368032, -0.35156302]),
    )
    t = np.linspace(0, 1, 201)
    faces = [np.insert(np.stack([t, 1 - t], axis=1), y, 0.0, axis=1) for y in range(3)]
    score = jax.jit(pgeom.bregman_score(F))
    largest = max(
        float(np.max(score(jnp.asarray(face, jnp.float32), jnp.full(201, y))))
        for y, face in enumerate(faces)
    )
    return F, largest


def test_the_range_holds_off_the_vertices():
    F, largest = off_vertex()
    assert largest > 1.05 * np.max(every_pair(F, 3))
    assert largest <= bounds.loss_range(F, 3).sharp * (1 + 1e-6)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_the_logit_gradient_bound_is_attained(temperature):
    """K = 2, A = I, p_y = 1/3: ratio one to the sharp bound, 16/27 to the paper's."""
    F = quadratic(jnp.eye(2))
    actual = bounds.logit_gradient(F, 2, temperature=temperature)
    np.testing.assert_allclose(actual.paper, 1 / (np.sqrt(2) * temperature), rtol=1e-6)
    np.testing.assert_allclose(actual.sharp, 8 * np.sqrt(2) / 27 / temperature, rtol=1e-6)
    observed = steepest(F, 2, temperature, np.array([[1 / 3, 2 / 3]]))
    np.testing.assert_allclose(observed, actual.sharp, rtol=1e-5)
    np.testing.assert_allclose(actual.sharp / actual.paper, 16 / 27, rtol=1e-6)


def test_the_logit_gradient_bound_is_never_crossed(hyperbolic_case, points):
    crowded = np.random.default_rng(0).dirichlet(np.full(4, 0.3), size=300)
    everywhere = np.concatenate([points, 0.999 * crowded + 0.00025])
    for F in (hyperbolic_case.make(), quadratic(jnp.eye(4) * 2)):
        actual = bounds.logit_gradient(F, 4, temperature=0.5)
        assert steepest(F, 4, 0.5, everywhere) <= actual.sharp * (1 + 1e-4)
        assert actual.sharp < actual.paper


def test_the_hessian_lipschitz_bound_is_attained_by_one_centred_ridge(x64):
    """At tanh v = 1/√3 the slope of the Hessian along w is the bound, whatever s, a and ρ."""
    w = np.array([[1.0, -1.0]]) / np.sqrt(2)
    F = hyperbolic(lam=0.5, a=0.8, rho=0.3, w=w, b=0.0, scale=1.5)
    actual = bounds.hessian_lipschitz(F, 2)
    expected = 1.5 * 0.8 / 0.3 * 4 / (3 * np.sqrt(3))
    np.testing.assert_allclose([actual.paper, actual.sharp], expected, rtol=1e-12)
    x = np.arctanh(1 / np.sqrt(3)) * 0.3 / np.sqrt(2)
    p = jnp.array([0.5 + x, 0.5 - x])
    slope = jax.jit(lambda p, d: jax.jvp(jax.hessian(F), (p,), (d,))[1])(p, jnp.asarray(w[0]))
    np.testing.assert_allclose(np.linalg.norm(slope, 2), expected, rtol=1e-10)


def test_the_hessian_lipschitz_bounds_hold_in_order(hyperbolic_case, hyperbolic_parameters, points):
    actual = bounds.hessian_lipschitz(hyperbolic_case.make(), 4)
    given = hyperbolic_parameters
    norms = np.linalg.norm(given["w"], axis=1)
    peak = 4 / (3 * np.sqrt(3))
    expected = given["scale"] * np.sum(peak * given["a"] / given["rho"] * norms**3)
    np.testing.assert_allclose(actual.paper, expected, rtol=1e-6)
    assert actual.sharp <= actual.paper
    centred = np.eye(4) - 1 / 4
    for p, q in zip(points, np.roll(points, 1, axis=0), strict=True):
        difference = hyperbolic_case.hessian(p) - hyperbolic_case.hessian(q)
        distance = np.linalg.norm(p - q)
        assert np.linalg.norm(difference, 2) <= actual.paper * distance * (1 + 1e-6)
        tangent = centred @ difference @ centred
        assert np.linalg.norm(tangent, 2) <= actual.sharp * distance * (1 + 1e-6)


def test_a_ridge_that_never_turns_has_a_smaller_lipschitz_bound():
    w = np.array([[1.0, -1.0]]) / np.sqrt(2)
    actual = bounds.hessian_lipschitz(hyperbolic(lam=1.0, a=1.0, rho=1.0, w=w, b=3.0), 2)
    v = 1 / np.sqrt(2) - 3.0
    np.testing.assert_allclose(actual.sharp, abs(2 * np.tanh(v)) / np.cosh(v) ** 2, rtol=1e-5)


def test_quadratics_have_a_constant_hessian_and_others_no_known_bound():
    assert bounds.hessian_lipschitz(quadratic(jnp.eye(3)), 3)[:2] == (0.0, 0.0)
    with pytest.raises(TypeError, match="F must be a quadratic or hyperbolic generator"):
        bounds.hessian_lipschitz(pgeom.generators.spherical, 3)


def penalised(p):
    return jnp.sum(p**2) + (1 - 1 / p.size) * jnp.max(p)


def logsumexp_range(K):
    """Of logsumexp(5p): F(e_y) − F(p) + ⟨∇F(p), p⟩ at the p = (t, (1 − t)/(K − 2), …, 0)."""
    t = np.linspace(1 / (K - 1), 1, 100_001)
    a, b = np.exp(5 * t), np.exp(5 * (1 - t) / max(K - 2, 1))
    total = a + (K - 2) * b + 1
    slope = 5 * (t * a + (1 - t) * b) / total
    return np.max(np.log(np.exp(5) + K - 1) - np.log(total) + slope - 5 / total)


# by class count, the largest loss by hand: at another vertex, but for logsumexp
LARGEST = {
    "Σp^1.5": (lambda p: jnp.sum(p**1.5), lambda K: 1.5),
    "Σ√p³": (lambda p: jnp.sum(jnp.sqrt(p) ** 3), lambda K: 1.5),
    "Σp³": (lambda p: jnp.sum(p**3), lambda K: 3.0),
    "Σp^1.1": (lambda p: jnp.sum(p**1.1), lambda K: 1.1),
    "logsumexp(5p)": (lambda p: jax.nn.logsumexp(5 * p), logsumexp_range),
    "norm": (lambda p: jnp.linalg.norm(p), lambda K: 1.0),
    "spherical": (pgeom.generators.spherical, lambda K: 1.0),
    "maximum": (jnp.max, lambda K: 1.0),
    "penalised": (penalised, lambda K: 3 - 1 / K),
    "one class": (lambda p: 3 * p[0] ** 2 + 0.1 * jnp.sum(p**2), lambda K: 3.2),
    "tsallis": (pgeom.generators.tsallis(1.2), lambda K: 6.0),
    "clipped": (lambda p: p @ jnp.log(jnp.maximum(p, 1e-12)), lambda K: 12 * np.log(10) + 1),
    "entropy": (lambda p: jnp.sum(jax.scipy.special.xlogy(p, p)), lambda K: np.inf),
    "entropy, NaN at 0": (lambda p: jnp.sum(p * jnp.log(p)), lambda K: np.inf),
    "root": (lambda p: -jnp.sum(jnp.sqrt(p)), lambda K: np.inf),
    "Rényi": (lambda p: -2 * jnp.log(jnp.sum(jnp.sqrt(p))), lambda K: np.inf),
    "mix": (lambda p: p @ p + jnp.sum(jax.scipy.special.xlogy(p, p)), lambda K: np.inf),
}


@pytest.mark.parametrize("K", [3, 10])
@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_loss_of_any_function_is_found(name, K):
    F, expected = LARGEST[name]
    with jax.enable_x64(True):
        largest = bounds._largest_loss(as_pytree(F), K)
    np.testing.assert_allclose(largest, expected(K), rtol=1e-6)


def test_what_was_found_is_named_as_what_it_is():
    cubic, root, power = (LARGEST[name][0] for name in ("Σp³", "root", "Σp^1.5"))
    actual = bounds.loss_range(cubic, 3)
    assert actual.how == "searched"
    np.testing.assert_allclose(actual[:2], [6.0, 3.0], rtol=1e-3)
    said = {F: str(pgeom.diagnose(F, 3)) for F in (cubic, root, power)}
    assert "largest loss            3 (searched); by the paper's bound 6" in said[cubic]
    assert "largest loss            inf (searched); by the paper's bound inf" in said[root]
    assert "largest loss            1.5 (searched); by the paper's bound inf" in said[power]


def test_a_range_inside_a_face_is_found():
    """The function of `test_the_range_holds_off_the_vertices`, as one that nothing is known of."""
    given, largest = off_vertex()
    with jax.enable_x64(True):
        found = bounds._largest_loss(as_pytree(lambda p: given(p)), 3)
    assert largest * (1 - 1e-5) <= found <= largest * (1 + 1e-3)
