"""Canonical links in single precision: large α, steep slopes, and any unit of F and z."""

from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.links import threshold

G = pgeom.generators
UNITS = [1e-12, 1e-5, 1e-3, 1e5, 1e12]
LABELS = np.array([2, 0, 1, 2])
Z = np.array([[0.3, 0.1, 0.0], [0.02, 0.0, -0.01], [3.0, -1.0, 2.5], [0.0, 0.0, 0.0]], np.float32)


def cubic(p):
    return jnp.sum(p**3) + jnp.sum(p**2)


def exact_tsallis(z, alpha):
    """By bisection with 60 digits: p^(α−1) = (α−1)(z − τ)/α, and p sums to one."""
    with localcontext() as context:
        context.prec = 60
        z, beta = [Decimal(float(x)) for x in z], Decimal(alpha) - 1

        def point(tau):
            return [(beta * max(x - tau, Decimal(0)) / (beta + 1)) ** (1 / beta) for x in z]

        low, high = max(z) - (beta + 1) / beta, max(z)
        for _ in range(160):
            middle = (low + high) / 2
            low, high = (middle, high) if sum(point(middle)) >= 1 else (low, middle)
        return np.array([float(x) for x in point(low)])


@pytest.fixture(scope="module")
def rows():
    """Normal logits, with exact ties, with ties but for one digit, small, and an odd one."""
    z = np.random.default_rng(0).normal(size=(6, 10)).astype(np.float32)
    z[2, :4], z[3] = 1.5, 0.0
    z[4, 1] = np.nextafter(z[4, 0], np.float32(9))
    z[5] *= np.float32(1e-3)
    z[0] = [-0.284, 0.919, 0.998, -1.036, 0.881, -1.004, 2.178, 0.498, 0.972, -0.013]
    return z


@pytest.fixture(scope="module")
def tsallis_link():
    """One program for every α."""
    return jax.jit(lambda alpha, z: pgeom.canonical_link(G.tsallis(alpha))(z))


@pytest.mark.parametrize("alpha", [2.5, 5.0, 10.0])
def test_tsallis_of_large_order_keeps_its_digits(rows, tsallis_link, alpha):
    p = tsallis_link(jnp.float32(alpha), rows)
    expected = np.stack([exact_tsallis(row, alpha) for row in rows])
    np.testing.assert_allclose(p, expected, atol=1e-5)
    np.testing.assert_allclose(np.sum(p, axis=1), 1, atol=1e-6)


def test_a_right_answer_for_a_large_order_is_not_refused(rows):
    p = pgeom.canonical_link(G.tsallis(5.0))(rows)
    np.testing.assert_allclose(p[0, [6, 2]], [0.985696, 0.014304], atol=1e-6)


def test_where_the_curvature_vanishes_the_derivative_is_finite():
    """f″(1e-5) = 1e-39 is zero in float32: that entry takes what the largest one gives."""
    p, r = jnp.array([[0.99999], [1e-5], [0.0]]), jnp.array([[1.0], [0.0], [0.0]])
    x = jax.jit(lambda p, r: threshold.respond(G.tsallis(10.0), p, 0 * p, r))(p, r)
    np.testing.assert_allclose(x[:, 0], [0.1, -0.1, 0], rtol=1e-3)


def barrier(p):
    return -jnp.sum(jnp.log(p))


@pytest.mark.parametrize("F", [G.tsallis(0.5), barrier], ids=["root", "log"])
def test_steep_slopes_are_no_reason_to_refuse(F):
    z, link = np.random.default_rng(0).normal(size=(8, 4)), pgeom.canonical_link(F)
    for size, tolerance in [(1e4, 2e-2), (1e12, 1e-6), (1e30, 1e-6)]:
        p = np.asarray(link(jnp.asarray(size * z, jnp.float32)))
        np.testing.assert_allclose(p[np.arange(8), np.argmax(z, axis=1)], 1, atol=tolerance)
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)


MAKERS = {
    "tsallis": lambda s: s * G.tsallis(3.0),
    "quadratic": lambda s: G.quadratic(s * jnp.diag(jnp.array([1.0, 2.0, 3.0]))),
    "any": lambda s: lambda p: s * cubic(p),
}


@pytest.fixture(scope="module", params=MAKERS)
def scaled(request):
    """p, L/s and the gap over s, as one program of the unit s."""

    @jax.jit
    def program(s):
        F, z = MAKERS[request.param](s), s * Z
        p, info = pgeom.canonical_link(F, with_info=True)(z)
        return p, pgeom.fenchel_young(F)(z, LABELS) / s, info.gap / s

    return program


def test_no_unit_is_special(scaled):
    p, loss, _ = scaled(jnp.float32(1.0))
    for s in UNITS:
        p_scaled, loss_scaled, gap = scaled(jnp.float32(s))
        np.testing.assert_allclose(p_scaled, p, atol=2e-6, err_msg=str(s))
        np.testing.assert_allclose(loss_scaled, loss, rtol=2e-5, atol=2e-6, err_msg=str(s))
        assert np.all(gap <= 2e-6)


def test_small_generators_are_solved_and_small_errors_seen():
    z = np.float32(1e-6) * np.array([3.0, 1.0, 0.0], np.float32)
    loss = pgeom.fenchel_young(1e-7 * G.squared_norm)(z, jnp.array(2))
    np.testing.assert_allclose(loss, 3e-6, rtol=1e-5)  # z_0 − z_2, since p = e_0
    with pytest.raises(ValueError, match="F must be convex"):
        pgeom.canonical_link(lambda p: -1e-7 * cubic(p))(z)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("gap", [45.06, 350.0])
def test_no_multiplier_is_read_off_a_negligible_entry(bits, gap):
    """p₁ is e^−86 or e^−696: its slope is all that rounding and underflow make of it."""
    F = 0.5 * G.shannon + G.squared_norm
    with jax.enable_x64(bits == 64):
        z = jnp.asarray([0.0, -gap], f"float{bits}")
        p = pgeom.canonical_link(F)(z)
        loss = pgeom.fenchel_young(F)(z, jnp.array(0))
    expected = np.exp(2 * (2.5 - gap) - 1)  # from ½ log p₁ + ½ + 2p₁ = z₁ − z₀ + ½ + 2
    rounding = {32: 1e-38, 64: 1e-307}[bits]
    np.testing.assert_allclose(p[1], expected, rtol=1e-4, atol=rounding)
    np.testing.assert_allclose(loss, expected / 2, rtol=1e-4, atol=rounding)


def test_no_multiplier_is_read_off_the_rounding_of_a_steep_slope():
    """The slopes of Σ√p at entries of 1e-8 are 1e4, and known to .001."""
    F, z = G.tsallis(0.5), jnp.array([1e4, -7e3, -1.3e4])
    # by fifty digits: about Σ_j 1/(z₀ − z_j)
    np.testing.assert_allclose(pgeom.fenchel_young(F)(z, jnp.array(0)), 1.022965e-4, rtol=1e-5)
