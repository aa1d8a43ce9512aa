"""`pgeom.certify` against generators with known truth, and against what searches find."""

import json
import sys
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.geometry.simplex import tangent_basis
from pgeom.losses.candidates import hpg_generator
from proofs_numeric import checker
from tests.geometry.certified import CONVEX, OTHERS, UNKNOWN

CLASSES = (5,)
FEW = ("squares", "norm", "quadratic", "Huber")


@cache
def certificate(name, K):
    F = CONVEX[name][0](K) if name in CONVEX else OTHERS[name](K)
    return pgeom.certify(F, K)


def check(found):
    return checker.verify(json.loads(json.dumps(found.document)))


@pytest.mark.parametrize("K", CLASSES)
@pytest.mark.parametrize("name", CONVEX)
def test_convex_generators_are_never_called_otherwise(name, K):
    found, (_, strictly) = certificate(name, K), CONVEX[name]
    assert found.convex == ("unknown" if name in UNKNOWN else "proved")
    assert found.strictly_convex in (strictly, "unknown")
    check(found)


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("K", (2, 3, 10))
def test_other_numbers_of_classes(name, K):
    found = certificate(name, K)
    assert found.convex == "proved"
    check(found)


@pytest.mark.parametrize("K", CLASSES)
@pytest.mark.parametrize("name", OTHERS)
def test_other_generators_are_disproved(name, K):
    found = certificate(name, K)
    assert (found.convex, found.strictly_convex) == ("disproved", "disproved")
    eta, p, value = found.witness
    with jax.enable_x64(True):
        F = OTHERS[name](K)
        slope = jnp.vdot(jax.grad(F)(jnp.asarray(p)), jnp.asarray(eta - p))
        assert F(jnp.asarray(eta)) - F(jnp.asarray(p)) - slope <= 1e-15
    assert value < 0 and np.isclose(eta.sum(), 1) and np.isclose(p.sum(), 1)
    check(found)


def test_few_strictness_verdicts_are_unknown():
    known = [n for n in CONVEX if n not in UNKNOWN]
    verdicts = [certificate(name, K).strictly_convex for name in known for K in CLASSES]
    assert verdicts.count("unknown") <= 0.1 * len(verdicts)


def test_the_norm_has_its_curvature():
    found = certificate("norm", 3)
    assert 0.999 / 3 <= found.m_tangent <= 1 / 3
    assert 3**0.5 <= found.M_tangent <= 1.001 * 3**0.5
    assert certificate("norm", 10).m_tangent == pytest.approx(0.1, rel=1e-9)


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
    assert found.reason == "F uses `lgamma`, which has no rule"
    step = pgeom.certify(lambda p: jnp.where(p[0] > 0.5, 1.0, 0.0), 3)
    assert step.convex == "unknown" and "condition" in step.reason
    assert "convex unknown" in check(found)


def test_a_lower_value_on_the_boundary_is_not_convex():
    below = pgeom.certify(lambda p: jnp.sum(jnp.where(p > 0, p**2, -1.0)), 3)
    assert below.convex == "unknown"
    assert pgeom.certify(lambda p: jnp.sum(jnp.sign(p)), 3).convex == "unknown"
    hidden = pgeom.certify(lambda p: jnp.where(jnp.isfinite(jnp.log(p[0])), 0.0, -1.0), 3)
    assert hidden.convex == "unknown"


def test_without_python_flint_one_line_says_what_to_install(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("pgeom.geometry.certificates.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'pgeom\[certify\]'"):
        pgeom.certify(lambda p: jnp.sum(p**2), 3)


@pytest.mark.parametrize("K", (1, 0, 2.5))
def test_the_number_of_classes_is_checked(K):
    with pytest.raises((TypeError, ValueError)):
        pgeom.certify(lambda p: jnp.sum(p**2), K)
