"""Bounds: never crossed, attained where the theory says so, and the sharper one below."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.diagnosis import bounds, curvature
from pgeom.generators import as_pytree, hyperbolic, quadratic
from tests.diagnosis import ridges

pytestmark = pytest.mark.usefixtures("unchecked_module")


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


def test_the_logit_gradient_bound_is_never_crossed():
    crowded = np.random.default_rng(0).dirichlet(np.full(4, 0.3), size=300)
    everywhere = np.concatenate([ridges.POINTS, 0.999 * crowded + 0.00025])
    for F in (ridges.F, quadratic(jnp.eye(4) * 2)):
        actual = bounds.logit_gradient(F, 4, temperature=0.5)
        assert steepest(F, 4, 0.5, everywhere) <= actual.sharp * (1 + 1e-4)
        assert actual.sharp < actual.paper


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
    "Σp³": (lambda p: jnp.sum(p**3), lambda K: 3.0),
    "logsumexp(5p)": (lambda p: jax.nn.logsumexp(5 * p), logsumexp_range),
    "spherical": (pgeom.generators.spherical, lambda K: 1.0),
    "maximum": (jnp.max, lambda K: 1.0),
    "penalised": (penalised, lambda K: 3 - 1 / K),
    "tsallis": (pgeom.generators.tsallis(1.2), lambda K: 6.0),
    "clipped": (lambda p: p @ jnp.log(jnp.maximum(p, 1e-12)), lambda K: 12 * np.log(10) + 1),
    "entropy, NaN at 0": (lambda p: jnp.sum(p * jnp.log(p)), lambda K: np.inf),
    "root": (lambda p: -jnp.sum(jnp.sqrt(p)), lambda K: np.inf),
    "Rényi": (lambda p: -2 * jnp.log(jnp.sum(jnp.sqrt(p))), lambda K: np.inf),
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


# ridge by ridge, against dense grids in NumPy -----------------------------------------------------

W = np.array([[0.6, -0.5, 0.2], [-0.3, 0.8, 0.1]])
TWO = {"lam": 0.4, "a": np.array([0.7, 1.1]), "rho": np.array([0.25, 0.5]), "scale": 1.5}
# the ridge turns on one side of the range of wᵀp, on the other, on both, on neither
OFFSETS = [np.array(b) for b in ([0.55, 0.75], [-0.4, -0.25], [0.05, 0.2], [2.0, -3.0])]


def ridge_values(b, points):
    """v_r = (w_rᵀp − b_r)/ρ_r at each point, `[points, R]`."""
    return (points @ W.T - b) / TWO["rho"]


@pytest.mark.parametrize("b", OFFSETS, ids=["high", "low", "inside", "away"])
def test_the_tangent_lipschitz_bound_uses_the_peak_that_is_reached(b):
    """Of each ridge, the largest |2 tanh v sech² v| between its lowest and its highest vertex."""
    ends = ridge_values(b, np.eye(3))
    between = np.linspace(ends.min(axis=0), ends.max(axis=0), 20_001)
    tangent = W - W.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(tangent, axis=1)
    weights = (
        TWO["a"]
        / TWO["rho"]
        * np.abs(2 * np.tanh(between) / np.cosh(between) ** 2).max(axis=0)
        * norms
    )
    expected = 1.5 * np.linalg.eigvalsh(tangent.T @ (weights[:, None] * tangent))[-1]
    actual = bounds.hessian_lipschitz(hyperbolic(w=W, b=b, **TWO), 3)
    np.testing.assert_allclose(actual.sharp, expected, rtol=2e-6)
    paper = 4 / (3 * np.sqrt(3)) * TWO["a"] / TWO["rho"] * np.linalg.norm(W, axis=1) ** 3
    np.testing.assert_allclose(actual.paper, 1.5 * paper.sum(), rtol=1e-6)


THREE = {  # W, b, ρ and a: the worst vertices give the range, or the curvature does
    "vertices": (
        [[0.6, -0.6, -0.1], [0.1, -0.4, 0.9], [-0.3, -0.2, 0.3]],
        *([-0.3, -0.1, 0.3], [0.5, 0.3, 0.5], [1.1, 1.2, 0.4]),
    ),
    "curvature": (
        [[0.0, -0.9, -0.4], [0.7, 0.0, -0.4], [0.0, -0.7, 0.4]],
        *([-0.4, -0.1, -0.7], [1.0, 5.0, 5.0], [0.5, 1.2, 1.0]),
    ),
}


@pytest.mark.parametrize("which", THREE)
def test_the_range_of_three_ridges_is_the_smaller_of_two_bounds(which):
    """Each ridge at its own worst vertex of one label, or M_T, both by their definitions."""
    w, b, rho, a = map(np.array, THREE[which])
    v = (w.T - b) / rho
    value, slope = np.log(np.cosh(v)), np.tanh(v)
    apart = value[:, None] - value[None] - slope[None] * (v[:, None] - v[None])  # [y, k, R]
    by_vertices = 1.5 * (0.4 + np.max(np.sum(a * rho**2 * apart.max(axis=1), axis=1)))
    # sech² is largest where |v| is least between the lowest and the highest vertex
    sech2 = 1 / np.cosh(np.linspace(v.min(axis=0), v.max(axis=0), 20_001)) ** 2
    tangent = w - w.mean(axis=1, keepdims=True)
    H = 0.4 * (np.eye(3) - 1 / 3) + tangent.T @ ((a * sech2.max(axis=0))[:, None] * tangent)
    by_curvature = 1.5 * np.linalg.eigvalsh(H)[-1]
    assert (by_vertices < 0.9 * by_curvature) == (which == "vertices")
    assert (by_curvature < 0.9 * by_vertices) == (which == "curvature")
    F = hyperbolic(lam=0.4, a=a, rho=rho, w=w, b=b, scale=1.5)
    actual = bounds.loss_range(F, 3).sharp
    np.testing.assert_allclose(actual, min(by_vertices, by_curvature), rtol=1e-5)
