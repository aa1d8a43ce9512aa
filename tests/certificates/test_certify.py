"""`pgeom.certify` against generators with known truth, and against what searches find."""

import json
import sys
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.certificates import certify_range
from pgeom.certificates.disproofs import rational_point
from pgeom.losses.structured import hpg_generator
from pgeom.simplex import tangent_basis
from proofs_numeric import checker
from tests.certificates.functions import OTHERS

pytestmark = pytest.mark.usefixtures("unchecked_module")

BYTES = jnp.uint8
FALLING = ("minus squares", "dented by a kink", "narrow bump")


def check(found):
    return checker.verify(json.loads(json.dumps(found.document)))


@pytest.mark.parametrize("name", FALLING)
def test_a_disproof_has_a_witness(name):
    found = pgeom.certify(OTHERS[name](5), 5)
    assert (found.convex, found.strictly_convex) == ("disproved", "disproved")
    eta, p, value = found.witness
    with jax.enable_x64(True):
        F = OTHERS[name](5)
        slope = jnp.vdot(jax.grad(F)(jnp.asarray(p)), jnp.asarray(eta - p))
        assert F(jnp.asarray(eta)) - F(jnp.asarray(p)) - slope <= 1e-15
    assert value < 0 and np.isclose(eta.sum(), 1) and np.isclose(p.sum(), 1)
    check(found)


def test_the_curvature_of_hpg_is_what_a_search_finds():
    F = hpg_generator(3)
    grid = [(i, j, 120 - i - j) for i in range(121) for j in range(121 - i)]
    with jax.enable_x64(True):
        H = jax.vmap(jax.hessian(F))(jnp.array(grid) / 120)
        basis = tangent_basis(3)
        curvatures = np.linalg.eigvalsh(basis.T @ np.asarray(H) @ basis)
    found = pgeom.certify(F, 3)
    assert 0.99 * curvatures.min() <= found.m_tangent <= curvatures.min()
    assert curvatures.max() <= found.M_tangent <= 1.01 * curvatures.max()
    check(found)


def test_what_cannot_be_read_is_named():
    found = pgeom.certify(lambda p: jnp.sum(jax.scipy.special.gammaln(p + 1)), 3)
    assert (found.convex, found.method) == ("unknown", "none")
    instead = "write F without it, or let pgeom.diagnose search"
    assert found.reason == f"F uses `lgamma`, which has no rule; {instead}"
    step = pgeom.certify(lambda p: jnp.where(p[0] > 0.5, 1.0, 0.0), 3)
    assert step.convex == "unknown" and "condition" in step.reason
    assert "convex unknown" in check(found)


BY_DTYPE = {
    "branch": lambda p: jnp.sum(p**2) if p.dtype == jnp.float64 else -jnp.sum(p**2),
    "factor": lambda p: (p.dtype.itemsize - 6) * jnp.sum(p**2),
    "in a branch": lambda p: jax.jit(BY_DTYPE["branch"])(p),
    "order": lambda p: jnp.sum(p**2) - (p[0] if p.dtype == jnp.float64 else p[1]) ** 2,
}
ONE_FUNCTION = {
    "rounded literals": lambda p: jnp.sum(0.1 * p**2) + 1e-300,
    "rounded constants": lambda p: jnp.sum(np.array([0.1, 0.2, 0.3], p.dtype) * p**2),
    "computed in float32": lambda p: jnp.sum(p.astype(jnp.float32) ** 2).astype(p.dtype),
    "computed in float64": lambda p: jnp.sum(p.astype(float) ** 2),
}


@pytest.mark.parametrize("name", BY_DTYPE)
def test_nothing_is_claimed_of_two_functions(name):
    """What is proved of the float64 program would be false of the float32 program."""
    found = pgeom.certify(BY_DTYPE[name], 3)
    assert found.convex == found.strictly_convex == "unknown" and "dtype of p" in found.reason
    with pytest.raises(ValueError, match="dtype of p"):
        certify_range(BY_DTYPE[name], 3)


@pytest.mark.parametrize("name", ONE_FUNCTION)
def test_rounding_makes_no_other_function(name):
    assert pgeom.certify(ONE_FUNCTION[name], 3).convex == "proved"


def test_without_python_flint_one_line_says_what_to_install(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("pgeom.certificates.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'pgeom\[certify\]'"):
        pgeom.certify(lambda p: jnp.sum(p**2), 3)


def squares(p):
    return jnp.sum(p**2)


def half_log(p):
    return jnp.log(p[0] - 0.5)


UNDEFINED = {  # somewhere inside the simplex, though not in every simplification
    "is not a number": lambda p: jnp.where(jnp.isnan(half_log(p)), -squares(p), squares(p)),
    "equals itself": lambda p: jnp.where(
        jnp.sqrt(p[0] - 0.5) == jnp.sqrt(p[0] - 0.5), squares(p), 2 * squares(p) + 5
    ),
    "square of a root": lambda p: squares(p) + jnp.sqrt(p[0] - 0.5) ** 2,
    "exp of log": lambda p: squares(p) + jnp.exp(2 * half_log(p)),
    "cube of a root": lambda p: squares(p) + ((p[0] - 0.5) ** (1 / 3)) ** 3,
    "nothing of a log": lambda p: squares(p) + 0 * half_log(p),
    "log1p less itself": lambda p: squares(p) + jnp.log1p(p[0] - 1.5) - jnp.log1p(p[0] - 1.5),
    "inverse root": lambda p: squares(p) + 0 * jax.lax.rsqrt(p[0] - 0.5),
    "quotient": lambda p: squares(p) + (p[0] - 0.5) / (p[0] - 0.5),
    "inverse": lambda p: squares(p) + 0 * (p[0] - 0.5) ** -1,
    "variable exponent": lambda p: squares(p) + 0 * (p[0] - 0.5) ** p[1],
    "log of an inner root": lambda p: squares(p) + 0 * jnp.log(1 + jnp.sqrt(p[0] - 0.5)),
    "infinite at a vertex": lambda p: jnp.where(
        jnp.isnan(jnp.log(p[0]) - jnp.log(p[1])), -1.0, squares(p)
    ),
    "is infinite": lambda p: jnp.where(jnp.log(p[0]) == -jnp.inf, -1.0, squares(p)),
}
UNREAD = {
    "window": lambda p: (
        squares(p)
        - 10
        * jnp.sum(jax.lax.reduce_window(p, 0.0, lambda a, b: jnp.hypot(a, b), (3,), (1,), "SAME"))
    ),
    "random": lambda p: squares(p) + p @ jax.random.normal(jax.random.key(0), 3),
    "integers by chance": lambda p: squares(p) * jax.lax.rng_uniform(1, 9, ()).astype(p.dtype),
    "integers of a face": lambda p: squares(p) * -jnp.where(p[0] > 0, 1, 2),
    "loop of unknown length": lambda p: jax.lax.while_loop(
        lambda x: x < 1, lambda x: x + squares(p), p[0]
    ),
    "branch of a condition": lambda p: jax.lax.cond(p[0] > 0.5, squares, jnp.sum, p),
    "complex": lambda p: jnp.abs(1j) * squares(p),
    "condition of conditions": lambda p: jnp.where((p[0] > 0.5) == (p[1] > 0.5), 1.0, 2.0),
}


@pytest.mark.parametrize("name", UNDEFINED | UNREAD)
def test_what_is_undefined_or_unread_is_refused(name):
    found = pgeom.certify((UNDEFINED | UNREAD)[name], 3)
    assert (found.convex, found.strictly_convex) == ("unknown", "unknown")
    assert (found.m_tangent, found.M_tangent) == (None, None)
    assert found.reason.startswith("F uses ") and "\n" not in found.reason
    check(found)


WEIGHTED = {  # Σ w p², with w in the arithmetic of its type
    "products wrap": (lambda: jnp.full(3, 100, jnp.int8) * jnp.int8(2), (-56, -56, -56)),
    "conversions wrap": (lambda: (jnp.arange(3) - 2).astype(BYTES), (254, 255, 0)),
    "powers wrap": (lambda: jnp.full(3, 10, jnp.int32) ** 10, (1410065408,) * 3),
    "bits": (lambda: ~jnp.arange(3), (-1, -2, -3)),
    "sum": (lambda: jnp.sum(jnp.arange(3)), (3, 3, 3)),
    "cumulative sum": (lambda: jnp.cumsum(jnp.arange(1, 4)), (1, 3, 6)),
    "empty sum": (lambda: 4 - jnp.sum(jnp.ones(0)), (4, 4, 4)),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_integers_are_those_of_their_type(name):
    weights, expected = WEIGHTED[name]
    found = pgeom.certify(lambda p: jnp.sum(weights().astype(p.dtype) * p**2), 3)
    basis = tangent_basis(3)
    curvatures = np.linalg.eigvalsh(2 * basis.T @ np.diag(expected) @ basis)
    assert found.convex == ("proved" if curvatures[0] > 0 else "disproved")
    assert float(found.M_tangent) == pytest.approx(curvatures[-1], rel=1e-3)
    if found.convex == "proved":
        assert float(found.m_tangent) == pytest.approx(curvatures[0], rel=1e-3)
    check(found)


def flat_below_a_quarter(p):
    x, y = p[0] - 0.25, p[1] - 0.75
    return jnp.exp(2 * x + jnp.sqrt(2 * x**2 + 2 * y**2))  # exp(2x + 2|x|) on two classes


def test_a_root_of_what_vanishes_inside_is_not_analytic():
    found = pgeom.certify(flat_below_a_quarter, 2)
    assert (found.convex, found.strictly_convex) == ("proved", "unknown")
    check(found)


VERIFIED = {
    "flat at 0": (lambda p: -jnp.sum(jnp.arctan(p)) - jnp.sum(jnp.sin(p)), "proved"),
    "chosen by a number": (
        lambda p: jax.lax.select_n(jnp.int32(1), -squares(p), squares(p)),
        "proved",
    ),
    "counted loop": (
        lambda p: jax.lax.while_loop(
            lambda x: x[0] < 3, lambda x: (x[0] + 1, x[1] + (x[0] + 1) * p[x[0]] ** 2), (0, 0.0)
        )[1],
        "proved",
    ),
    "branch by a number": (
        lambda p: jax.lax.switch(jnp.int32(7), [lambda q: -squares(q), squares], p),
        "proved",
    ),
    "ramp to the 2.5": (lambda p: squares(p) + jnp.maximum(p[0] - 0.3, 0) ** 2.5, "proved"),
    "falling ramp": (lambda p: squares(p) - 9 * jnp.maximum(p[0] - 0.3, 0) ** 2.5, "disproved"),
    "cubes beyond zero": (lambda p: jnp.sum((p - 0.01) ** 3), "disproved"),
    "fourth power beyond zero": (lambda p: squares(p) + (p[0] - 0.01) ** 4, "proved"),
    "semidefinite root": (lambda p: squares(p) + 0 * jnp.sqrt(jnp.var(p)), "proved"),
    "negative denominator": (lambda p: squares(p) + 1 / (p[0] - 2) / 9, "proved"),
}


@pytest.mark.parametrize("name", VERIFIED)
def test_verdicts_are_those_of_the_checker(name):
    F, convex = VERIFIED[name]
    found = pgeom.certify(F, 3)
    assert found.convex == convex
    check(found)


RANGES = {  # F, its least and its largest value on three classes
    "squares": (squares, 1 / 3, 1),
    "product": (lambda p: p[0] * p[1] ** 2, 0, 4 / 27),
    "sine": (lambda p: jnp.sin(4 * p[0]), np.sin(4), 1),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_range_is_proved_and_attained(name):
    F, least, largest = RANGES[name]
    found = certify_range(F, 3, gap=0.02)
    assert found.least <= least + 1e-9 and largest - 1e-9 <= found.largest
    assert least <= found.lowest <= found.least + Fraction(1, 50)
    assert found.largest - Fraction(1, 50) <= found.highest <= largest
    assert f"'largest': {found.largest}" in check(found)


def test_points_next_to_the_boundary_are_inside():
    point = rational_point(np.array([1e-20, 0.25, 0.75]))
    assert sum(point) == 1 and min(point) > 0
    with pytest.raises(ValueError, match="outside the open simplex"):
        rational_point(np.array([0.0, 0.25, 0.75]))


def test_the_range_of_a_convex_function_of_many_classes():
    """Whose lowest points, among those that are tried, have tiny entries."""
    found = certify_range(lambda p: jax.nn.logsumexp(20 * p[1:]) - 20 * p[0], 40)
    low, high = np.log(39) - 20, np.log(38 + np.exp(20))
    np.testing.assert_allclose([float(found.least), float(found.lowest)], low, rtol=1e-9)
    np.testing.assert_allclose([float(found.highest), float(found.largest)], high, rtol=1e-9)
