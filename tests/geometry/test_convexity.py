"""`check_generator` tells a user's mistake, with a pair that shows it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.generators import Quadratic

INDEFINITE = jnp.diag(jnp.array([1.0, 1.0, -0.9]))

VERDICTS = {  # finite at the vertices, convex, strictly convex
    "cubic": (lambda p: jnp.sum(p**3), (True, True, True)),
    "entropy": (pgeom.generators.shannon, (True, True, True)),
    "user-entropy": (lambda p: jnp.sum(p * jnp.log(p)), (False, True, True)),
    "spherical": (pgeom.generators.spherical, (True, True, True)),
    "flat along an edge": (lambda p: p[0] ** 2, (True, True, False)),
    "kinked": (jnp.max, (True, True, False)),
    "concave": (lambda p: -jnp.sum(p**2), (True, False, False)),
    "dented": (
        lambda p: jnp.sum(p**2) + 0.05 * jnp.exp(-200 * jnp.sum((p - 1 / 3) ** 2)),
        (True, False, False),
    ),
    "not a number": (lambda p: jnp.sqrt(p[0] - 0.5), (False, False, False)),
    "indefinite": (Quadratic(INDEFINITE - jnp.eye(3)), (True, False, False)),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_the_verdict_and_its_witness(name):
    F, expected = VERDICTS[name]
    report = pgeom.check_generator(F, 3)
    assert report[:3] == expected
    assert "searched" in report.how and "no proof" in report.how
    if expected[2]:
        assert report.witness is None
        return
    eta, p, divergence = report.witness
    for point in (eta, p):
        assert np.all(point >= 0) and np.sum(point) == pytest.approx(1)
    assert np.max(np.abs(eta - p)) > 1e-3
    if name == "not a number":
        assert np.isnan(divergence)
        return
    with jax.enable_x64(True):
        risk = jax.jit(pgeom.conditional_risk(pgeom.bregman_score(F)))
        advantage = float(
            risk(jnp.asarray(eta), jnp.asarray(p)) - risk(*map(jnp.asarray, (eta, eta)))
        )
    if expected[1]:
        assert advantage == pytest.approx(0, abs=1e-9)  # another forecast scores as well
    else:
        assert advantage < 0  # a dishonest forecast scores better
        assert advantage == pytest.approx(divergence, rel=1e-6)


def test_known_generators_are_known(hyperbolic_case):
    for F, how in (
        (pgeom.generators.quadratic(jnp.eye(4)), "exact"),
        (hyperbolic_case.make(), "closed form"),
    ):
        report = pgeom.check_generator(F, 4)
        assert report[:4] == (True, True, True, None)
        assert report.how.startswith(how)


def test_what_is_no_generator_is_refused():
    with pytest.raises(ValueError, match=r"F must return a scalar for p\[3\], got shape \(3,\)"):
        pgeom.check_generator(lambda p: p**2, 3)
    with pytest.raises(ValueError, match=r"K, the number of classes, must be .* got 1"):
        pgeom.check_generator(jnp.sum, 1)
