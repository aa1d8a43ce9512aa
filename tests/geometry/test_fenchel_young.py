"""Fenchel–Young losses: the definition, the gradient p − η, and the divergence inside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from tests.geometry.test_links import draw_matrix, draw_ridges

G = pgeom.generators
K = 3
STEP = 1e-6  # of differences


def cubic(p):
    return jnp.sum(p**3) + 0.5 * jnp.sum(p**2)


MAKERS = {
    "shannon": lambda: G.shannon,
    "squared-norm": lambda: G.squared_norm,
    "tsallis": lambda: G.tsallis(1.5),
    "quadratic": lambda: G.quadratic(jnp.asarray(draw_matrix(np.random.default_rng(0), K))),
    "hyperbolic": lambda: G.hyperbolic(**draw_ridges(np.random.default_rng(1), K)),
    "any": lambda: cubic,
}
RNG = np.random.default_rng(2)
Z = np.concatenate([0.3 * RNG.normal(size=(6, K)), 5 * RNG.normal(size=(6, K))])
ETA = np.concatenate([RNG.dirichlet(np.ones(K), 9), np.eye(K)])


def evaluate(F):
    """What one program says of a generator: rows of Z with ETA, then with each label."""
    link, loss, score = pgeom.canonical_link(F), pgeom.fenchel_young(F), pgeom.bregman_score(F)
    n, up = len(Z), STEP * np.eye(K)[:1]
    z = jnp.asarray(np.concatenate([Z, Z + up, Z - up, np.repeat(Z, K, axis=0)]))
    eta = jnp.asarray(np.concatenate([ETA, ETA, ETA, np.tile(np.eye(K), (n, 1))]))

    def total(z):
        values = loss(z, eta)
        return jnp.sum(values), values

    @jax.jit
    def program(z, eta):
        p = link(z[:n])
        slopes, values = jax.grad(total, has_aux=True)(z)
        return {
            "p": p,
            "F": jax.vmap(F)(p),
            "F(eta)": jax.vmap(F)(eta[:n]),
            "loss": values[:n],
            "slope": slopes[:n],
            "difference": (values[n : 2 * n] - values[2 * n : 3 * n]) / (2 * STEP),
            "vertices": values[3 * n :].reshape(n, K),
            "score": score(jnp.repeat(p, K, axis=0), jnp.tile(jnp.arange(K), n)).reshape(n, K),
            "hessian": jax.vmap(jax.jacfwd(link))(z[:n]),
            "curvature": jax.vmap(jax.hessian(F))(p),
        }

    return jax.tree.map(np.asarray, program(z, eta))


@pytest.fixture(scope="module", params=MAKERS)
def found(request):
    with jax.enable_x64(True):
        return evaluate(MAKERS[request.param]())


def test_the_loss_is_its_definition(found):
    conjugate = np.sum(Z * found["p"], axis=1) - found["F"]
    expected = conjugate - np.sum(Z * ETA, axis=1) + found["F(eta)"]
    np.testing.assert_allclose(found["loss"], expected, atol=1e-9)
    assert np.all(found["loss"] >= 0)


def test_the_gradient_is_p_minus_eta(found):
    np.testing.assert_allclose(found["slope"], found["p"] - ETA, atol=1e-9)
    np.testing.assert_allclose(found["difference"], (found["p"] - ETA)[:, 0], atol=1e-6)


def test_the_hessian_is_positive_semidefinite(found):
    hessians = found["hessian"]
    np.testing.assert_allclose(hessians, np.swapaxes(hessians, 1, 2), atol=1e-8)
    assert np.linalg.eigvalsh(hessians).min() >= -1e-7
    np.testing.assert_allclose(hessians.sum(axis=1), 0, atol=1e-8)  # p sums to one


def test_it_is_the_divergence_inside_and_larger_on_the_boundary(found):
    inside = np.all(found["p"] > 0, axis=1)
    np.testing.assert_allclose(found["vertices"][inside], found["score"][inside], atol=1e-8)
    excess = (found["vertices"] - found["score"])[~inside]
    assert np.all(excess >= -1e-9)
    if len(excess):
        zero = found["p"][~inside] == 0
        assert np.all(excess[zero] > 1e-6)


def test_the_hessian_is_the_inverse_curvature_inside(found):
    """Of H(p) on the tangent space."""
    T = np.linalg.qr(np.eye(K) - 1 / K)[0][:, :2]
    inside = np.all(found["p"] > 0, axis=1)
    assert np.sum(inside) >= 3
    expected = T @ np.linalg.inv(T.T @ found["curvature"][inside] @ T) @ T.T
    np.testing.assert_allclose(found["hessian"][inside], expected, atol=1e-9)


def test_labels_are_one_hot_targets_and_vmap_is_a_batch():
    z, loss = jnp.asarray(Z, jnp.float32), pgeom.fenchel_young(G.squared_norm)
    labels = jnp.arange(len(Z)) % K
    expected = loss(z, jax.nn.one_hot(labels, K))
    np.testing.assert_allclose(loss(z, labels), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(loss)(z, labels), expected, rtol=1e-6)
    np.testing.assert_allclose(
        loss(z.reshape(3, 4, K), labels.reshape(3, 4)), expected.reshape(3, 4), rtol=1e-6
    )


def test_parameters_are_differentiated_by_the_envelope_theorem(x64):
    """∂L/∂A = ½[(η − u)(η − u)ᵀ − (p − u)(p − u)ᵀ], and ∂p/∂A agrees with differences."""
    A = jnp.asarray(draw_matrix(np.random.default_rng(3), K))
    change = jnp.asarray(np.diag([1.0, 0.0, -0.5]))
    z, eta = jnp.asarray([0.4, -0.3, 0.1]), jnp.asarray([0.2, 0.5, 0.3])

    @jax.jit
    def moving_link(A):
        return jax.jvp(lambda A: pgeom.canonical_link(G.quadratic(A))(z), (A,), (change,))

    slope = jax.jit(jax.grad(lambda A: pgeom.fenchel_young(G.quadratic(A))(z, eta)))(A)
    p, moved = moving_link(A)
    expected = 0.5 * (np.outer(eta - 1 / K, eta - 1 / K) - np.outer(p - 1 / K, p - 1 / K))
    np.testing.assert_allclose((slope + slope.T) / 2, expected, atol=1e-10)
    ahead, behind = (moving_link(A + h * change)[0] for h in (STEP, -STEP))
    np.testing.assert_allclose(moved, (ahead - behind) / (2 * STEP), atol=1e-7)


def test_grad_of_grad_in_single_precision():
    loss = pgeom.fenchel_young(G.tsallis(1.5))

    def steepness(z):
        return jnp.sum(jax.grad(lambda z: loss(z, jnp.array(0)))(z) ** 2)

    slope = jax.jit(jax.grad(steepness))(jnp.array([0.1, 0.4, -0.3]))
    assert np.all(np.isfinite(slope)) and np.any(slope != 0)


def test_tiny_tangents_do_not_underflow():
    """Conjugate gradients square what they are given: 1e-30 is linear in it all the same."""
    F = G.quadratic(jnp.asarray(draw_matrix(np.random.default_rng(0), K), jnp.float32))
    z = jnp.asarray([0.05, -0.1, 0.02])
    _, along = jax.linearize(pgeom.canonical_link(F), z)
    tangent = jnp.array([1.0, 0.5, -0.2])
    np.testing.assert_allclose(1e30 * along(1e-30 * tangent), along(tangent), rtol=1e-5)
    # along 1 nothing moves, and what rounding leaves of it must not be blown up
    common = 1.0 + 1e-7 * jnp.array([0.3, 0.9, 0.1])
    assert np.all(np.abs(along(common)) < 1e-5)


@pytest.mark.parametrize("name", ["shannon", "squared-norm", "any"])
def test_a_loss_too_large_for_its_dtype_is_infinite_and_not_blamed_on_the_generator(name):
    loss = pgeom.fenchel_young(MAKERS[name]())
    z = jnp.asarray([6e4, -6e4, 0.0], jnp.float16)
    half = loss(z, jnp.array(1))
    assert half.dtype == jnp.float16 and np.isposinf(half)
    assert loss(z, jnp.array(0)) == 0
    assert np.isposinf(loss(jnp.asarray([3e38, -3e38, 0.0]), jnp.array(1)))
    far = jnp.asarray([1e30, 0.0, -1.0])
    np.testing.assert_allclose(loss(far, jnp.array(1)), 1e30, rtol=1e-5)


def test_nan_at_a_vertex_is_a_limit_or_refused():
    """0·log 0 is NaN and stands for its limit; NaN all around a vertex stands for nothing."""
    z, label = jnp.array([0.3, 0.1, -0.2]), jnp.array(0)

    def naive_entropy(p):
        return jnp.sum(p * jnp.log(p))

    def undefined_near_vertices(p):
        return jnp.sum(p**2) + jnp.where(jnp.max(p) > 0.999, jnp.nan, 0.0)

    expected = pgeom.fenchel_young(G.shannon)(z, label)
    np.testing.assert_allclose(pgeom.fenchel_young(naive_entropy)(z, label), expected, rtol=1e-5)
    with pytest.raises(ValueError, match=r"finite at the targets, .* got nan"):
        pgeom.fenchel_young(undefined_near_vertices)(z, label)


def test_at_its_own_forecast_the_loss_is_zero_however_steep_the_generator():
    """Multipliers that are all rounding of ∇F and z are none."""

    @jax.jit
    def loss_at_forecast(slope):
        def F(p):
            return jnp.dot(slope, p) + jnp.sum(p**2)

        z = slope + jnp.array([0.1, 0.0, -0.1])
        return pgeom.fenchel_young(F)(z, pgeom.canonical_link(F)(z))

    for slope in [*(10.0 * jnp.eye(3)), *(1e3 * jnp.eye(3))]:
        assert loss_at_forecast(slope) == 0


@pytest.mark.parametrize("name", ["quadratic", "any"])
def test_the_value_beside_a_gradient_has_that_gradient(name, x64):
    """Differentiating a value and a gradient at once meets the loss at a point that is known."""
    loss = pgeom.fenchel_young(MAKERS[name]())
    z, eta = jnp.array([0.3, 0.1, -0.4]), jnp.array([0.2, 0.5, 0.3])

    @jax.jit
    def both(z):
        both = jax.value_and_grad(lambda z: loss(z, eta))
        return both(z), jax.jacfwd(both)(z)

    (_, gradient), (slope, _) = both(z)
    np.testing.assert_allclose(slope, gradient, rtol=1e-9)
