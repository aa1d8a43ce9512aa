"""Temperature scaling of a link: that of softmax, and forecasts with zeros."""

import jax
import jax.numpy as jnp
import numpy as np

import pgeom
from experiments.engine.scoring import fit_link_temperature, link_nll

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(60, 3)).astype(np.float32) * 3
LABELS = np.argmax(Z / 2 + RNG.gumbel(size=Z.shape), axis=1)  # draws from softmax(Z/2)


def test_softmax_is_scaled_as_by_bisection():
    for prior in (0.0, 1.0):
        expected = pgeom.calibration.fit_temperature(Z, LABELS, prior=prior)
        actual = fit_link_temperature(
            jax.nn.softmax, jnp.asarray(Z), jnp.asarray(LABELS), prior=prior
        )
        np.testing.assert_allclose(actual.temperature, expected.temperature, rtol=2e-3)
        assert not actual.at_bound


def test_a_sparse_link_is_heated_until_no_label_is_ruled_out():
    link = pgeom.canonical_link(pgeom.generators.squared_norm)
    z, labels = jnp.asarray(Z), jnp.asarray(LABELS)
    assert jnp.sum(link_nll(link, z, labels)) == jnp.inf
    fit = jax.jit(lambda z, labels: fit_link_temperature(link, z, labels, prior=0.0))(z, labels)
    best = jnp.sum(link_nll(link, z / fit.temperature, labels))
    assert jnp.isfinite(best)
    for factor in (0.9, 1.1):
        assert jnp.sum(link_nll(link, z / (factor * fit.temperature), labels)) >= best


def test_what_has_no_best_temperature_ends_at_a_bound():
    """Where every label has the largest logit, the colder the better, and else the hotter."""
    for labels, limit in ((np.argmax(Z, axis=1), 0.0), (np.argmin(Z, axis=1), np.inf)):
        fit = fit_link_temperature(jax.nn.softmax, jnp.asarray(Z), jnp.asarray(labels), prior=0.0)
        assert fit.at_bound
        np.testing.assert_allclose(1 / (1 + fit.temperature), 1 / (1 + limit), atol=0.01)
