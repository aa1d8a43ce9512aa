"""Canonical links and Fenchel–Young losses: optimality, parameters, units, and what is refused.

Values, gradients and Hessians are compared with fifty digits in `test_link_accuracy.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.links import threshold

pytestmark = pytest.mark.usefixtures("unchecked_module")

G = pgeom.generators
Z = np.array([[0.3, 0.1, 0.0], [0.02, 0.0, -0.01], [3.0, -1.0, 2.5], [0.0, 0.0, 0.0]], np.float32)
LABELS = np.array([2, 0, 1, 2])
STEP = 1e-5  # of differences


def cubic(p):
    return jnp.sum(p**3) + jnp.sum(p**2)


def barrier(p):
    return -jnp.sum(jnp.log(p))


def kinked(p):
    return jnp.sum(p**2) + jnp.abs(p[0] - p[1])


# optimality ---------------------------------------------------------------------------------------


def draw_logits(rng, K, n):
    """Logits of sizes 1e-3 … 1e4, every third with ties, the first all equal, and small ones."""
    z = rng.normal(size=(n, K)) * 10 ** rng.uniform(-3, 4, size=(n, 1))
    largest = np.abs(z[::3]).max(axis=1, keepdims=True)
    z[::3] = np.round(2 * z[::3] / largest) * largest
    z[0], z[-3:] = 0.0, 1e-2 * rng.normal(size=(3, K))
    return z.astype(np.float32)


def draw_matrix(rng, K):
    root = rng.normal(size=(K, K)) / np.sqrt(K)
    return root @ root.T + 0.3 * np.eye(K)


def draw_ridges(rng, K, steepest=2.0, narrowest=0.05, R=5):
    w = rng.normal(size=(R, K))
    w /= 1.00001 * np.linalg.norm(w, axis=1, keepdims=True)
    a = 10 ** rng.uniform(-1, np.log10(steepest), R)
    rho = 10 ** rng.uniform(np.log10(narrowest), -0.3, R)
    b, lam = 0.2 * rng.normal(size=R), 10 ** rng.uniform(-3, 0)
    values = {"lam": lam, "a": a, "rho": rho, "w": w, "b": b}
    return {name: np.float32(value) for name, value in values.items()}


def ridge_slope(p, *, lam, a, rho, w, b):
    a, rho, w, b = (np.asarray(x, float) for x in (a, rho, w, b))
    return lam * (p - 1 / p.shape[1]) + (a * rho * np.tanh((p @ w.T - b) / rho)) @ w


def true_gap(slope, z, p):
    """max_j r_j − ⟨r, p⟩ of r = z − ∇F(p) in float64, relative to 1 + ‖z‖∞."""
    residual = np.asarray(z, float) - slope
    gap = residual.max(axis=1) - np.sum(residual * np.asarray(p, float), axis=1)
    return np.max(gap / (1 + np.abs(z).max(axis=1)))


@pytest.mark.parametrize(("K", "bits"), [(289, 32), (10, 64)])
def test_a_sum_of_structured_generators_has_a_link_without_a_gap(K, bits):
    """Supports of a few classes and of all; with curvature the gap bounds the distance."""
    rng = np.random.default_rng(K)
    A, ridges, z = draw_matrix(rng, K), draw_ridges(rng, K), draw_logits(rng, K, 12)
    with jax.enable_x64(bits == 64):
        F = G.quadratic(jnp.asarray(A)) + G.hyperbolic(**ridges) + 0.5 * G.squared_norm
        p, info = pgeom.canonical_link(F, with_info=True)(jnp.asarray(z, f"float{bits}"))
    assert p.dtype == f"float{bits}" and info.gap.shape == (12,)
    p = np.asarray(p, float)
    support = np.sum(p > 0, axis=1)
    assert support.max() > K / 2 and support.min() <= 2
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    limit = {32: 1e-6, 64: 1e-13}[bits]
    slope = (p - 1 / K) @ A + ridge_slope(p, **ridges) + p
    assert true_gap(slope, z, p) <= limit
    assert np.all(np.asarray(info.gap) <= limit * (1 + np.abs(z).max(axis=1)))


@pytest.mark.parametrize("steepest", [2.0, 20.0])
def test_sharp_ridges_are_solved_to_rounding(steepest):
    """Ridges so narrow that curvature jumps: Newton steps overshoot, and gradients crawl."""
    link = jax.jit(lambda F, z: pgeom.canonical_link(F, with_info=True)(z))
    rng = np.random.default_rng(0)
    for _ in range(20):
        ridges, z = draw_ridges(rng, 10, steepest, 1e-4), draw_logits(rng, 10, 30)
        p, info = link(G.hyperbolic(**ridges), jnp.asarray(z))
        # curvature times the rounding of p is in every slope
        limit = 1e-6 + np.finfo(np.float32).eps * max(0.0, float(ridges["a"].max()) - 2)
        assert true_gap(ridge_slope(np.asarray(p, float), **ridges), z, p) <= limit, ridges
        assert np.all(np.asarray(info.gap) <= limit * (1 + np.abs(z).max(axis=1))), ridges


def test_a_class_with_a_small_logit_is_in_the_support():
    """Among twenty classes that are close to each other and one that is far from them."""
    K = 289
    A = np.eye(K) + 3.0 * (np.arange(K)[:, None] < 20) * (np.arange(K)[None, :] < 20)
    z = np.where(np.arange(K) < 20, -0.1 * np.arange(K), -20.0).astype(np.float32)
    z[100] = -1.75
    p = pgeom.canonical_link(G.quadratic(jnp.asarray(A, jnp.float32)))(jnp.asarray(z)[None])
    assert p[0, 100] > 0.1 and np.sum(z > z[100]) > 17
    p = np.asarray(p, float)
    assert true_gap((p - 1 / K) @ A, z[None], p) <= 1e-6


def powers(alpha):
    return lambda x: (x**alpha - x) / (alpha - 1)


@pytest.mark.parametrize("alpha", [0.5, 1.5, 5.0])
def test_a_function_has_the_link_of_its_closed_form(x64, alpha):
    """As a separable one by a threshold, and as any by the interior-point method."""
    z = jnp.asarray(np.clip(draw_logits(np.random.default_rng(3), 5, 12), -30, 30), float)
    expected = pgeom.canonical_link(G.tsallis(alpha))(z)
    np.testing.assert_allclose(
        pgeom.canonical_link(G.separable(powers(alpha)))(z), expected, atol=1e-9
    )
    plain = pgeom.canonical_link(lambda p: jnp.sum(powers(alpha)(p)))(z)
    np.testing.assert_allclose(plain, expected, atol=1e-6)


@pytest.mark.parametrize("F", [cubic, G.tsallis(0.5), G.tsallis(1.5)])
def test_the_inverse_link_inverts_inside(x64, F):
    p = jnp.asarray(np.random.default_rng(4).dirichlet(np.ones(4), 5))
    z = pgeom.inverse_link(F)(p)
    np.testing.assert_allclose(jnp.sum(z, axis=1), 0, atol=1e-10)
    np.testing.assert_allclose(pgeom.canonical_link(F)(z), p, atol=1e-9)


@pytest.mark.parametrize("F", [G.tsallis(1.5), G.quadratic(np.eye(3)), cubic])
def test_a_shift_changes_nothing_and_minus_infinity_rules_out(F):
    link, z = pgeom.canonical_link(F), jnp.asarray(Z)
    np.testing.assert_allclose(link(z + 64.0), link(z), atol=1e-5)
    assert np.all(link(z.at[:, 1].set(-jnp.inf))[:, 1] == 0)


def test_info_counts_steps():
    z = jnp.array([0.3, 0.1, -0.2])
    assert pgeom.canonical_link(G.shannon, with_info=True)(z)[1].steps == 0
    assert pgeom.canonical_link(G.tsallis(1.5), with_info=True)(z)[1].steps > 0


# losses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("F", [G.tsallis(1.5), cubic])
def test_the_loss_is_the_divergence_inside_and_larger_on_the_boundary(F, x64):
    z = jnp.asarray(np.concatenate([Z, 9 * Z]), float)
    p, labels = pgeom.canonical_link(F)(z), np.tile(LABELS, 2)
    losses, scores = pgeom.fenchel_young(F)(z, labels), pgeom.bregman_score(F)(p, labels)
    inside = np.min(p, axis=1) > 0
    assert 0 < np.sum(inside) < len(inside)
    np.testing.assert_allclose(losses[inside], scores[inside], atol=1e-8)
    of_zero = np.asarray(p)[np.arange(8), labels] == 0
    assert np.all(losses[of_zero] > scores[of_zero] + 1e-6)
    np.testing.assert_allclose(pgeom.fenchel_young(F)(z, p), 0, atol=1e-9)
    np.testing.assert_allclose(pgeom.fenchel_young(F)(z, jnp.eye(3)[labels]), losses, rtol=1e-9)


@pytest.mark.parametrize("F", [G.shannon, G.squared_norm, cubic])
def test_a_loss_too_large_for_its_dtype_is_infinite_and_not_blamed_on_the_generator(F):
    loss = pgeom.fenchel_young(F)
    z = jnp.asarray([6e4, -6e4, 0.0], jnp.float16)
    half = loss(z, jnp.array(1))
    assert half.dtype == jnp.float16 and np.isposinf(half)
    assert loss(z, jnp.array(0)) == 0
    assert np.isposinf(loss(jnp.asarray([3e38, -3e38, 0.0]), jnp.array(1)))
    far = jnp.asarray([1e30, 0.0, -1.0])
    np.testing.assert_allclose(loss(far, jnp.array(1)), 1e30, rtol=1e-5)


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


# derivatives --------------------------------------------------------------------------------------


def quartic(a):
    return G.separable(lambda x: a * x**2 + x**4)


FAMILIES = {
    "tsallis": G.tsallis,
    "separable": quartic,
    "quadratic": lambda a: G.quadratic(jnp.diag(a * jnp.array([1.0, 2.0, 3.0]))),
    "user": lambda a: lambda p: jnp.sum(a * p**2 + p**4),
    "mixed": lambda a: quartic(a) + (lambda p: a * p[0] ** 2),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_are_differentiated_wherever_f_closes_over_them(name, x64):
    """Of loss and link, forwards and backwards, against differences."""
    make, a, z = FAMILIES[name], 1.5, jnp.array([[1.0, 0.0, -4.0], [0.3, 0.1, 0.2]])

    def loss(a):
        return jnp.sum(pgeom.fenchel_young(make(a))(z, np.array([1, 0])))

    def link(a):
        return jnp.sum(pgeom.canonical_link(make(a))(z)[:, 0] ** 2)

    def values_and_slopes(a):
        both = jax.value_and_grad(loss)(a), jax.value_and_grad(link)(a)
        return (*both, (loss(a), jax.jacfwd(loss)(a)))

    behind, here, ahead = [a - STEP, a, a + STEP]
    program = jax.jit(jax.vmap(values_and_slopes))
    for values, slopes in program(jnp.array([behind, here, ahead])):
        difference = (values[2] - values[0]) / (ahead - behind)
        np.testing.assert_allclose(slopes[1], difference, rtol=1e-6, atol=1e-9)


def test_orders_on_both_sides_of_two_may_be_mapped_over():
    orders, link = jnp.array([0.5, 1.5, 3.0]), lambda a: pgeom.canonical_link(G.tsallis(a))(Z)
    expected = jnp.stack([link(float(alpha)) for alpha in orders])
    assert jnp.max(jnp.abs(jax.vmap(link)(orders) - expected)) < 1e-6


def test_tiny_tangents_do_not_underflow():
    """Conjugate gradients square what they are given: 1e-30 is linear in it all the same."""
    F = G.quadratic(draw_matrix(np.random.default_rng(0), 3).astype(np.float32))
    _, along = jax.linearize(pgeom.canonical_link(F), jnp.asarray([0.05, -0.1, 0.02]))
    tangent = jnp.array([1.0, 0.5, -0.2])
    np.testing.assert_allclose(1e30 * along(1e-30 * tangent), along(tangent), rtol=1e-5)
    # along 1 nothing moves, and what rounding leaves of it must not be blown up
    common = 1.0 + 1e-7 * jnp.array([0.3, 0.9, 0.1])
    assert np.all(np.abs(along(common)) < 1e-5)


@pytest.mark.parametrize("F", [G.quadratic(np.diag([1.0, 2.0, 3.0])), cubic])
def test_the_value_beside_a_gradient_has_that_gradient(F, x64):
    """Differentiating a value and a gradient at once meets the loss at a point that is known."""
    z, eta = jnp.array([0.3, 0.1, -0.4]), jnp.array([0.2, 0.5, 0.3])

    @jax.jit
    def both(z):
        both = jax.value_and_grad(lambda z: pgeom.fenchel_young(F)(z, eta))
        return both(z), jax.jacfwd(both)(z)

    (_, gradient), (slope, _) = both(z)
    np.testing.assert_allclose(slope, gradient, rtol=1e-9)


def test_where_the_curvature_vanishes_the_derivative_is_finite():
    """f″(1e-5) = 1e-39 is zero in float32: that entry takes what the largest one gives."""
    p, r = jnp.array([[0.99999], [1e-5], [0.0]]), jnp.array([[1.0], [0.0], [0.0]])
    x = jax.jit(lambda p, r: threshold.respond(G.tsallis(10.0), p, 0 * p, r))(p, r)
    np.testing.assert_allclose(x[:, 0], [0.1, -0.1, 0], rtol=1e-3)


# single precision, and any unit of F and z --------------------------------------------------------


def test_a_right_answer_for_a_large_order_is_not_refused():
    z = [-0.284, 0.919, 0.998, -1.036, 0.881, -1.004, 2.178, 0.498, 0.972, -0.013]
    p = pgeom.canonical_link(G.tsallis(5.0))(jnp.array(z))
    np.testing.assert_allclose(p[jnp.array([6, 2])], [0.985696, 0.014304], atol=1e-6)


@pytest.mark.parametrize("F", [G.tsallis(0.5), barrier], ids=["root", "log"])
def test_steep_slopes_are_no_reason_to_refuse(F):
    z, link = np.random.default_rng(0).normal(size=(8, 4)), pgeom.canonical_link(F)
    for size, tolerance in [(1e4, 2e-2), (1e30, 1e-6)]:
        p = np.asarray(link(jnp.asarray(size * z, jnp.float32)))
        np.testing.assert_allclose(p[np.arange(8), np.argmax(z, axis=1)], 1, atol=tolerance)
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)


UNITS = {
    "tsallis": lambda s: s * G.tsallis(3.0),
    "quadratic": lambda s: G.quadratic(s * jnp.diag(jnp.array([1.0, 2.0, 3.0]))),
    "any": lambda s: lambda p: s * cubic(p),
}


@pytest.mark.parametrize("name", UNITS)
def test_no_unit_is_special(name):
    @jax.jit
    def program(s):
        F, z = UNITS[name](s), s * Z
        p, info = pgeom.canonical_link(F, with_info=True)(z)
        return p, pgeom.fenchel_young(F)(z, LABELS) / s, info.gap / s

    p, loss, _ = program(jnp.float32(1.0))
    for s in (1e-12, 1e-3, 1e5, 1e12):
        p_scaled, loss_scaled, gap = program(jnp.float32(s))
        np.testing.assert_allclose(p_scaled, p, atol=2e-6, err_msg=str(s))
        np.testing.assert_allclose(loss_scaled, loss, rtol=2e-5, atol=2e-6, err_msg=str(s))
        assert np.all(gap <= 2e-6)


def test_small_generators_are_solved_and_small_errors_seen():
    z = np.float32(1e-6) * np.array([3.0, 1.0, 0.0], np.float32)
    loss = pgeom.fenchel_young(1e-7 * G.squared_norm)(z, jnp.array(2))
    np.testing.assert_allclose(loss, 3e-6, rtol=1e-5)  # z_0 − z_2, since p = e_0
    with pytest.raises(ValueError, match="F must be convex"):
        pgeom.canonical_link(lambda p: -1e-7 * cubic(p))(z)


@pytest.mark.parametrize(("bits", "gap", "rounding"), [(32, 45.06, 1e-38), (64, 350.0, 1e-307)])
def test_no_multiplier_is_read_off_a_negligible_entry(bits, gap, rounding):
    """p₁ is e^−86 or e^−696: its slope is all that rounding and underflow make of it."""
    F = 0.5 * G.shannon + G.squared_norm
    with jax.enable_x64(bits == 64):
        z = jnp.asarray([0.0, -gap], f"float{bits}")
        p = pgeom.canonical_link(F)(z)
        loss = pgeom.fenchel_young(F)(z, jnp.array(0))
    expected = np.exp(2 * (2.5 - gap) - 1)  # from ½ log p₁ + ½ + 2p₁ = z₁ − z₀ + ½ + 2
    np.testing.assert_allclose(p[1], expected, rtol=1e-4, atol=rounding)
    np.testing.assert_allclose(loss, expected / 2, rtol=1e-4, atol=rounding)


def test_no_multiplier_is_read_off_the_rounding_of_a_steep_slope():
    """The slopes of Σ√p at entries of 1e-8 are 1e4, and known to .001."""
    F, z = G.tsallis(0.5), jnp.array([1e4, -7e3, -1.3e4])
    # by fifty digits: about Σ_j 1/(z₀ − z_j)
    np.testing.assert_allclose(pgeom.fenchel_young(F)(z, jnp.array(0)), 1.022965e-4, rtol=1e-5)


# what is refused ----------------------------------------------------------------------------------


def test_a_function_that_is_not_convex_is_refused_in_one_line():
    F, z = lambda p: -jnp.sum(p**2), jnp.asarray(Z)
    for call in (lambda: pgeom.canonical_link(F)(z), lambda: pgeom.fenchel_young(F)(z, LABELS)):
        with pytest.raises(ValueError, match="F must be convex") as error:
            call()
        assert "\n" not in str(error.value)
    assert np.all(np.isnan(jax.jit(pgeom.canonical_link(F))(z)))


def test_a_solution_at_a_kink_is_refused_by_link_and_loss():
    """The multipliers of one side of |p₀ − p₁| would make the loss 1.97 where it is 0.96."""
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
    z = jnp.array([[0.3, 0.1, -0.2]])
    p = np.asarray(pgeom.canonical_link(barrier)(z))
    slack = np.asarray(z) + 1 / p
    np.testing.assert_allclose(slack - slack[:, :1], 0, atol=1e-4)
    with pytest.raises(ValueError, match="finite at the targets"):
        pgeom.fenchel_young(barrier)(z, jnp.array([0]))
    soft = pgeom.fenchel_young(barrier)(z, jnp.array([[0.2, 0.3, 0.5]]))
    assert np.all(np.isfinite(soft)) and np.all(soft >= 0)


def test_nan_at_a_vertex_is_a_limit_or_refused():
    """0·log 0 is NaN and stands for its limit; NaN all around a vertex stands for nothing."""
    z, label = jnp.array([0.3, 0.1, -0.2]), jnp.array(0)

    def undefined_near_vertices(p):
        return jnp.sum(p**2) + jnp.where(jnp.max(p) > 0.999, jnp.nan, 0.0)

    expected = pgeom.fenchel_young(G.shannon)(z, label)
    entropy = pgeom.fenchel_young(lambda p: jnp.sum(p * jnp.log(p)))
    np.testing.assert_allclose(entropy(z, label), expected, rtol=1e-5)
    with pytest.raises(ValueError, match=r"finite at the targets, .* got nan"):
        pgeom.fenchel_young(undefined_near_vertices)(z, label)


def test_where_the_maximiser_is_not_unique_one_of_them_is_returned():
    flat = pgeom.canonical_link(lambda p: (p[0] - 0.2) ** 2, with_info=True)
    p, info = flat(jnp.zeros((1, 3)))
    np.testing.assert_allclose(p[0, 0], 0.2, atol=1e-3)
    np.testing.assert_allclose(jnp.sum(p), 1, atol=1e-6)
    assert info.gap[0] <= 1e-6
