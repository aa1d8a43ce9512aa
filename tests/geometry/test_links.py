"""Canonical links: exact where a formula or an independent method knows the answer."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import pgeom
from tests.geometry import active_set

G = pgeom.generators
DRAWS = 12


def draw_logits(rng, K, n=DRAWS):
    """Logits of sizes 1e-3 … 1e4, every third with ties, the first all equal."""
    z = rng.normal(size=(n, K)) * 10 ** rng.uniform(-3, 4, size=(n, 1))
    largest = np.abs(z[::3]).max(axis=1, keepdims=True)
    z[::3] = np.round(2 * z[::3] / largest) * largest
    z[0] = 0.0
    return z


def draw_matrix(rng, K):
    root = rng.normal(size=(K, K)) / np.sqrt(K)
    return root @ root.T + 0.3 * np.eye(K)


def draw_ridges(rng, K, R=5):
    w = rng.normal(size=(R, K))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    a, rho, b = rng.uniform(0.2, 2, R), rng.uniform(0.05, 0.5, R), 0.2 * rng.normal(size=R)
    return {"lam": 0.5, "a": a, "rho": rho, "w": w, "b": b, "scale": 1.3}


def true_gap(F, z, p):
    """max_j r_j − ⟨r, p⟩ in float64, relative to 1 + ‖z‖∞."""
    residual = z - np.stack([F.gradient(row) for row in p])
    gap = residual.max(axis=1) - np.sum(residual * p, axis=1)
    return np.max(gap / (1 + np.abs(z).max(axis=1)))


@pytest.fixture(scope="module", params=[3, 10, 100], ids="K={}".format)
def sized(request):
    K, rng = request.param, np.random.default_rng(request.param)
    return draw_matrix(rng, K), draw_ridges(rng, K), draw_logits(rng, K)


@pytest.mark.parametrize("kind", ["quadratic", "hyperbolic"])
def test_structured_links_agree_with_an_active_set_method(sized, kind):
    A, ridges, z = sized
    with jax.enable_x64(True):
        F = G.quadratic(jnp.asarray(A)) if kind == "quadratic" else G.hyperbolic(**ridges)
        p, info = pgeom.canonical_link(F, with_info=True)(jnp.asarray(z))
    exact = active_set.quadratic(A) if kind == "quadratic" else active_set.hyperbolic(**ridges)
    expected = np.stack([active_set.maximise(exact, row) for row in z])
    np.testing.assert_allclose(p, expected, atol=1e-12)
    assert np.all(np.asarray(info.gap) <= 1e-14 * (1 + np.abs(z).max(axis=1)))
    z32 = z.astype(np.float32)
    single, info = pgeom.canonical_link(F, with_info=True)(jnp.asarray(z32))
    assert single.dtype == jnp.float32 and info.gap.shape == (DRAWS,)
    limit = 1e-6 * (1 + np.abs(z32).max(axis=1))
    assert np.all(np.asarray(info.gap) <= limit)
    assert true_gap(exact, z32.astype(float), np.asarray(single, float)) <= 1e-6


@pytest.mark.parametrize("bits", [32, 64])
def test_shannon_is_softmax_cross_entropy(bits):
    tolerance, z = {32: 1e-6, 64: 1e-10}[bits], draw_logits(np.random.default_rng(0), 4)
    z = np.clip(z, -50, 50)
    labels = np.arange(DRAWS) % 4
    with jax.enable_x64(bits == 64):
        logits = jnp.asarray(z, f"float{bits}")
        np.testing.assert_allclose(
            pgeom.canonical_link(G.shannon)(logits), jax.nn.softmax(logits), atol=tolerance
        )
        expected = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.asarray(labels))
        actual = pgeom.fenchel_young(G.shannon)(logits, labels)
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("bits", [32, 64])
def test_the_squared_norm_is_sparsemax(bits):
    tolerance, z = {32: 1e-6, 64: 1e-10}[bits], draw_logits(np.random.default_rng(1), 4)
    labels = np.arange(DRAWS) % 4
    with jax.enable_x64(bits == 64):
        logits = jnp.asarray(z, f"float{bits}")
        p, loss = pgeom.canonical_link(G.squared_norm), pgeom.fenchel_young(G.squared_norm)
        np.testing.assert_allclose(p(logits), sparsemax(z / 2), atol=tolerance)
        # with ½‖p‖² as generator it is the sparsemax loss
        halved = pgeom.fenchel_young(0.5 * G.squared_norm)(logits, labels)
        np.testing.assert_allclose(
            halved, sparsemax_loss(z, labels), rtol=10 * tolerance, atol=tolerance
        )
        np.testing.assert_allclose(
            loss(2 * logits, labels), 2 * halved, rtol=10 * tolerance, atol=tolerance
        )


def sparsemax(z):
    """By sorting (Martins and Astudillo, 2016)."""
    descending = -np.sort(-z, axis=1)
    thresholds = (np.cumsum(descending, axis=1) - 1) / np.arange(1, z.shape[1] + 1)
    size = np.sum(descending > thresholds, axis=1)
    return np.maximum(z - thresholds[np.arange(len(z)), size - 1][:, None], 0)


def sparsemax_loss(z, labels):
    """Σ over the support of (z² − τ²)/2 − z_y + ½, with a shift by the largest logit."""
    z = z - z.max(axis=1, keepdims=True)
    p = sparsemax(z)
    support = p > 0
    threshold = (np.sum(np.where(support, z, 0), axis=1) - 1) / np.sum(support, axis=1)
    squares = np.sum(np.where(support, z**2 - threshold[:, None] ** 2, 0), axis=1)
    return 0.5 * squares - z[np.arange(len(z)), labels] + 0.5


def entmax(z):
    """Entmax 1.5 by sorting (Peters, Niculae and Martins, 2019)."""
    z = (z - z.max(axis=1, keepdims=True)) / 2
    descending, sizes = -np.sort(-z, axis=1), np.arange(1, z.shape[1] + 1)
    mean = np.cumsum(descending, axis=1) / sizes
    variance = sizes * (np.cumsum(descending**2, axis=1) / sizes - mean**2)
    thresholds = mean - np.sqrt(np.maximum((1 - variance) / sizes, 0))
    size = np.sum(thresholds <= descending, axis=1)
    return np.maximum(z - thresholds[np.arange(len(z)), size - 1][:, None], 0) ** 2


def test_tsallis_is_entmax(x64):
    z = draw_logits(np.random.default_rng(2), 6)
    z[1:] /= np.maximum(np.abs(z[1:]).max(axis=1, keepdims=True) / 50, 1)
    # their generator is (Σp^α − 1)/(α(α − 1)), ours α times that
    p = pgeom.canonical_link(G.tsallis(1.5))(jnp.asarray(1.5 * z))
    np.testing.assert_allclose(p, entmax(z), atol=1e-10)


def powers(alpha):
    return lambda x: (x**alpha - x) / (alpha - 1)


@pytest.mark.parametrize("alpha", [0.5, 1.5, 3.0])
def test_a_separable_function_has_the_link_of_its_closed_form(x64, alpha):
    z = jnp.asarray(np.clip(draw_logits(np.random.default_rng(3), 5), -30, 30))
    expected = pgeom.canonical_link(G.tsallis(alpha))(z)
    np.testing.assert_allclose(
        pgeom.canonical_link(G.separable(powers(alpha)))(z), expected, atol=1e-9
    )
    # as a plain function it is solved by the interior-point method
    plain = pgeom.canonical_link(lambda p: jnp.sum(powers(alpha)(p)))(z)
    np.testing.assert_allclose(plain, expected, atol=1e-6)


def test_a_sum_of_separable_generators(x64):
    z = jnp.asarray([[0.3, -0.2, 1.0], [5.0, 0.0, -5.0]])
    p = np.asarray(pgeom.canonical_link(G.shannon + 2.0 * G.squared_norm)(z))
    slack = z - (np.log(p) + 4 * p)  # constant over an interior solution
    np.testing.assert_allclose(slack - slack[:, :1], 0, atol=1e-10)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)


def test_the_spherical_link_maximises(x64):
    z = jnp.asarray([[0.3, -0.2, 0.1], [4.0, 3.9, -5.0]])
    p = np.asarray(pgeom.canonical_link(G.spherical)(z))
    residual = np.asarray(z) - p / np.linalg.norm(p, axis=1, keepdims=True)
    gap = residual.max(axis=1) - np.sum(residual * p, axis=1)
    np.testing.assert_allclose(gap, 0, atol=1e-12)


@pytest.mark.parametrize("F", [lambda p: jnp.sum(p**3), G.tsallis(0.5), G.tsallis(1.5)])
def test_the_inverse_link_inverts_inside(x64, F):
    p = jnp.asarray(np.random.default_rng(4).dirichlet(np.ones(4), 5))
    z = pgeom.inverse_link(F)(p)
    np.testing.assert_allclose(jnp.sum(z, axis=1), 0, atol=1e-10)
    np.testing.assert_allclose(pgeom.canonical_link(F)(z), p, atol=1e-9)


def test_a_shift_of_the_logits_changes_nothing_and_minus_infinity_rules_out():
    link = pgeom.canonical_link(G.tsallis(1.5))
    z = jnp.array([[0.3, 0.1, -0.2], [1.0, 0.5, 0.0]])
    np.testing.assert_allclose(link(z + 64.0), link(z), atol=1e-5)
    assert link(z.at[:, 1].set(-jnp.inf))[0, 1] == 0


def test_info_counts_steps():
    z = jnp.array([0.3, 0.1, -0.2])
    assert pgeom.canonical_link(G.shannon, with_info=True)(z)[1].steps == 0
    assert pgeom.canonical_link(G.tsallis(1.5), with_info=True)(z)[1].steps > 0


def test_half_precision_comes_back():
    z = jnp.asarray([[1.0, 0.0, -4.0]], jnp.bfloat16)
    p = pgeom.canonical_link(G.squared_norm)(z)
    assert p.dtype == jnp.bfloat16
    np.testing.assert_array_equal(p.astype(jnp.float32), [[0.75, 0.25, 0.0]])
    assert pgeom.fenchel_young(G.squared_norm)(z, jnp.array([1])).dtype == jnp.bfloat16


def test_a_function_that_is_not_convex_is_refused_in_one_line():
    z = jnp.array([[0.3, 0.1, -0.2]])
    with pytest.raises(ValueError, match="F must be convex") as error:
        pgeom.canonical_link(lambda p: -jnp.sum(p**2))(z)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="F must be convex"):
        pgeom.fenchel_young(lambda p: -jnp.sum(p**2))(z, jnp.array([0]))
    traced = jax.jit(pgeom.canonical_link(lambda p: -jnp.sum(p**2)))(z)
    assert np.all(np.isnan(traced))


def test_a_solution_at_a_kink_is_refused_by_link_and_loss():
    """The multipliers of one side of |p₀ − p₁| would make the loss 1.97 where it is 0.96."""

    def kinked(p):
        return jnp.sum(p**2) + jnp.abs(p[0] - p[1])

    z, loss = jnp.array([[0.3, 0.1, -0.2]]), pgeom.fenchel_young(kinked)
    with pytest.raises(ValueError, match="convex and smooth"):
        pgeom.canonical_link(kinked)(z)
    with pytest.raises(ValueError, match="convex and smooth") as error:
        loss(z, jnp.array([2]))
    assert "\n" not in str(error.value)
    assert np.isnan(jax.jit(loss)(z, jnp.array([2]))[0])
    away = jnp.array([[6.0, 0.0, -2.0]])  # p = e_0, where F has a gradient
    np.testing.assert_allclose(loss(away, jnp.array([2])), 6 - 2 + 2 + 1, rtol=1e-5)


def test_infinite_at_vertices_has_a_link_and_refuses_labels():
    def barrier(p):
        return -jnp.sum(jnp.log(p))

    z = jnp.array([[0.3, 0.1, -0.2]])
    p = np.asarray(pgeom.canonical_link(barrier)(z))
    slack = np.asarray(z) + 1 / p
    np.testing.assert_allclose(slack - slack[:, :1], 0, atol=1e-4)
    with pytest.raises(ValueError, match="finite at the targets"):
        pgeom.fenchel_young(barrier)(z, jnp.array([0]))
    soft = pgeom.fenchel_young(barrier)(z, jnp.array([[0.2, 0.3, 0.5]]))
    assert np.all(np.isfinite(soft)) and np.all(soft >= 0)


def test_where_the_maximiser_is_not_unique_one_of_them_is_returned():
    def flat(p):
        return (p[0] - 0.2) ** 2

    z = jnp.array([[0.0, 0.0, 0.0]])
    p, info = pgeom.canonical_link(flat, with_info=True)(z)
    np.testing.assert_allclose(p[0, 0], 0.2, atol=1e-3)
    np.testing.assert_allclose(jnp.sum(p), 1, atol=1e-6)
    assert info.gap[0] <= 1e-6
