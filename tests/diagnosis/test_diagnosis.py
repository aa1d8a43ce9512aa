"""`diagnose` tells the truth about many functions, finds dents, and never contradicts itself."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.diagnosis.formulas import known_formulas
from pgeom.generators import Quadratic, hyperbolic

pytestmark = pytest.mark.usefixtures("unchecked_module")

G = pgeom.generators


def relu(x):
    return jnp.maximum(x, 0.0)


def squares(p):
    return jnp.sum(p**2)


def float32_squares(p):
    """Σp², with the rounding of float32 whatever p is."""
    return jnp.sum(p.astype(jnp.float32) ** 2).astype(p.dtype)


def dent(p, centre=(1 / 3, 1 / 3, 1 / 3), width=0.01):
    distance = jnp.sum((p - jnp.asarray(centre, p.dtype)) ** 2)
    return jnp.sum(p**2) + 3 * width**2 * jnp.exp(-distance / (2 * width**2))


def ridge(p, rho=1e-3):
    v = (p[0] - 0.37) / rho
    return jnp.sum(p**2) + 10 * rho**2 * (jnp.logaddexp(v, -v) - math.log(2))


class Truth(NamedTuple):
    """Whether F is convex, strictly (None: flat to rounding), and smooth."""

    convex: bool
    strictly: bool | None
    smooth: bool = True


STRICT, FLAT, ROUNDED = Truth(True, True), Truth(True, False), Truth(True, None)
KINKED, FOLDED = Truth(True, True, False), Truth(True, False, False)
DENTED = Truth(False, False)

FUNCTIONS = {
    # convex, strictly as far as numbers can show
    "cubic": (lambda p: jnp.sum(p**3), STRICT),
    "shannon": (G.shannon, STRICT),
    "user entropy": (lambda p: jnp.sum(p * jnp.log(p)), STRICT),
    "tsallis half": (G.tsallis(0.5), STRICT),
    "spherical": (G.spherical, STRICT),
    "float32 inside": (float32_squares, STRICT),
    "narrow ridge": (ridge, STRICT),
    # convex, but flat somewhere or with kinks
    "maximum": (jnp.max, FOLDED),
    "threshold": (lambda p: squares(p) + relu(p[0] - 0.9), KINKED),
    # not convex
    "concave": (lambda p: -squares(p), DENTED),
    "dent at the centre": (dent, DENTED),
    "step": (lambda p: squares(p) + 0.01 * (p[0] > 0.41).astype(p.dtype), DENTED),
    "indefinite": (Quadratic(jnp.diag(jnp.array([0.0, 0.0, -1.9]))), DENTED),
}


@pytest.fixture(scope="module", params=FUNCTIONS)
def diagnosed(request):
    F, truth = FUNCTIONS[request.param]
    return request.param, F, truth, pgeom.diagnose(F, 3)


def test_the_verdict_is_the_truth(diagnosed):
    name, _, truth, actual = diagnosed
    assert actual.convex is truth.convex
    assert actual.strictly_convex is truth.strictly
    assert actual.smooth is truth.smooth or name == "step"  # a jump, of value or of slope
    assert actual.finite_inside


def test_a_witness_can_be_checked_by_hand(diagnosed):
    """D_F(η, p) of the definition, in NumPy's float64: negative beyond rounding, or zero."""
    _, F, truth, actual = diagnosed
    if truth.strictly is True:
        assert actual.witness is None
        return
    eta, p, divergence = actual.witness
    for point in (eta, p):
        assert np.all(point >= 0) and np.sum(point) == pytest.approx(1)
    with jax.enable_x64(True):
        by_hand = F(eta) - F(p) - jnp.dot(jax.grad(F)(p), eta - p)
    assert abs(float(by_hand) - divergence) <= actual.rounding
    assert (divergence < -actual.rounding) == (truth.convex is False)
    assert truth.convex is False or abs(divergence) <= actual.rounding
    assert truth.convex is False or np.linalg.norm(eta - p) > 0.05


def test_the_views_agree_and_nothing_is_contradictory(diagnosed):
    _, F, _, actual = diagnosed
    limits = actual.envelope
    assert limits.m <= limits.m_tangent <= limits.M_tangent <= limits.M
    assert pgeom.curvature.envelope(F, 3) == limits
    report = pgeom.check_generator(F=F, K=3)
    assert report[:3] == (actual.finite_at_vertices, actual.convex, actual.strictly_convex)
    if actual.convex:
        assert limits.m_tangent >= 0
        assert pgeom.bounds.loss_range(F, 3) == actual.loss_range
        assert pgeom.bounds.logit_gradient(F, 3) == actual.logit_gradient
        assert 0 <= actual.loss_range.sharp <= actual.loss_range.paper * (1 + 1e-12)
        assert 0 <= actual.logit_gradient.sharp <= actual.logit_gradient.paper
    else:
        assert limits.m_tangent < 0
        assert actual.loss_range is actual.logit_gradient is None
        for bound in (pgeom.bounds.loss_range, pgeom.bounds.logit_gradient):
            with pytest.raises(ValueError, match="F must be convex for a bound to hold, got D_F"):
                bound(F, 3)


def test_the_float32_score_is_as_good_as_its_terms(diagnosed):
    name, _, truth, actual = diagnosed
    if actual.finite_at_vertices and truth.convex:
        assert actual.float32.in_units <= 16 or actual.float32.relative <= 1e-5
        assert actual.float32.relative <= 1e-4 or truth != STRICT or name == "float32 inside"


def test_it_reads_as_a_table_and_its_repr_is_short(diagnosed):
    _, _, truth, actual = diagnosed
    lines = str(actual).splitlines()
    assert len(repr(actual)) < 100 and "\n" not in repr(actual)
    said = {line[:24].strip(): line[24:] for line in lines}
    assert said["convex"].startswith("yes" if truth.convex else "NO")
    assert ("D(η,p)" in said.get("why", "")) == (actual.witness is not None)
    assert truth.smooth or "does not see it" in said["smooth"] or "yes" in said["smooth"]
    assert "narrower than about 0.0" in said["may have missed"]


def test_the_envelope_of_a_narrow_ridge_is_its_top():
    """H = 2I + 10 sech² e₀e₀ᵀ, whose top no random point hits."""
    actual = pgeom.curvature.envelope(ridge, 3)
    exact = 2.0, 12.0, 2.0, 2 + 10 * 2 / 3
    np.testing.assert_allclose(actual[:4], exact, rtol=1e-6)
    assert actual.how == "searched"


def test_bounds_hold_where_they_were_wrong():
    assert pgeom.bounds.loss_range(jnp.max, 3)[:2] == (np.inf, 1.0)  # the curvature is 0
    with pytest.raises(ValueError, match="F must be convex"):
        pgeom.bounds.logit_gradient(lambda p: -squares(p), 3)
    matrix = G.quadratic(jnp.diag(jnp.array([1.0, 3.0, 2.0])))
    assert pgeom.bounds.logit_gradient(matrix, 3).how == "closed form"
    assert pgeom.bounds.loss_range(matrix, 3).how == "exact"


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Dent:
    """A dent of a given width and centre in Σp² + .3Σp³; a pytree, so that all share programs."""

    width: float
    centre: np.ndarray

    def __call__(self, p):
        width, centre = (jnp.asarray(x, p.dtype) for x in (self.width, self.centre))
        bump = 6 * width**2 * jnp.exp(-jnp.sum((p - centre) ** 2) / (2 * width**2))
        return jnp.sum(p**2) + 0.3 * jnp.sum(p**3) + bump


@pytest.mark.parametrize(("K", "width", "least"), [(3, 0.01, 6)])
def test_dents_are_found(K, width, least):
    draws = np.random.default_rng([K, 1])
    dents = [Dent(np.float64(width), draws.dirichlet(np.ones(K))) for _ in range(6)]
    assert sum(pgeom.check_generator(F, K).convex is False for F in dents) >= least
    assert pgeom.diagnose(dents[0], K).resolution < 0.01


def test_many_classes_are_searched_without_a_matrix(monkeypatch):
    K = 40

    def matrix(*_):
        raise AssertionError("a K×K matrix was made")

    monkeypatch.setattr(jax, "hessian", matrix)
    weights = jnp.linspace(1.0, 3.0, K)
    actual = pgeom.diagnose(lambda p: jnp.sum(weights.astype(p.dtype) * p**2), K)
    assert actual.convex and actual.strictly_convex and actual.smooth
    assert 2.0 <= actual.envelope.m_tangent < 2.1 and 5.9 < actual.envelope.M_tangent <= 6.0
    bad = pgeom.diagnose(lambda p: jnp.sum(p**2) - 3 * p[0] * p[1] - 2 * p[0] ** 2, K)
    assert bad.convex is False and bad.witness.divergence < 0


def test_sums_of_structured_generators_are_known_without_a_search():
    w = np.array([[0.6, -0.8, 0.0]])
    ridges = hyperbolic(lam=0.5, a=0.3, rho=0.2, w=w, b=0.1)
    F = 2 * G.quadratic(jnp.diag(jnp.array([1.0, 2.0, 3.0]))) + ridges + G.squared_norm
    parts = [
        known_formulas(part, 3).envelope
        for part in (G.quadratic(2 * jnp.diag(jnp.arange(1.0, 4.0))), ridges)
    ]
    actual = pgeom.diagnose(F, 3)
    assert actual.resolution is None and actual.envelope.how == "closed form"
    expected = [sum(e[i] for e in parts) + 2.0 for i in range(4)]
    np.testing.assert_allclose(actual.envelope[:4], expected, rtol=1e-6)
    points = np.random.default_rng(2).dirichlet(np.ones(3), 500)
    with jax.enable_x64(True):
        loss = np.asarray(pgeom.bregman_score(F)(points, np.arange(500) % 3))
    assert np.max(loss) <= actual.loss_range.sharp <= actual.loss_range.paper
    lipschitz = pgeom.bounds.hessian_lipschitz(F, 3)
    assert lipschitz == pgeom.bounds.hessian_lipschitz(ridges, 3)


@pytest.mark.parametrize("view", [pgeom.check_generator, pgeom.diagnose])
@pytest.mark.parametrize("single", [-1.0, 0.5])
def test_a_search_in_float64_does_not_speak_for_another_function(view, single):
    def F(p):
        return jnp.sum(p**2) * (1.0 if p.dtype == jnp.float64 else single)

    with pytest.raises(ValueError, match=r"F must be one function in float32 and in float64, got"):
        view(F, 3)


@pytest.mark.parametrize("height", [1e-1, 1e-5])
def test_a_step_down_is_not_convex(height):
    F = lambda p: squares(p) - height * (p[0] > 0.5).astype(p.dtype)  # noqa: E731
    assert pgeom.check_generator(F, 10).convex is False


def test_rounding_of_a_few_points_is_no_witness():
    """(eˣ − 1 − x)/x² is convex, and garbage where x is small: unknown, not a False."""

    def F(p):
        x = p[0] - 0.3
        return 1e-4 * squares(p) + (jnp.exp(x) - 1 - x) / x**2

    assert pgeom.check_generator(F, 3).convex is None
