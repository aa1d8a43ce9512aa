"""Limits and equalities between losses, with optax as the outside reference for cross-entropy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import pgeom
from pgeom.losses.catalogue import LOSSES
from pgeom.types import ClassStats

K = 6
LOGITS = np.random.default_rng(0).normal(size=(30, K)).astype(np.float32) * 3
LABELS = np.arange(30) % K
L = pgeom.losses


def generator_loss(F):
    return pgeom.on_logits(pgeom.bregman_score(F))


def optax_cross_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels)


def squared_error(logits, labels):
    return jnp.sum((jax.nn.softmax(logits) - jax.nn.one_hot(labels, K)) ** 2, axis=-1)


def complement(logits, labels):
    return 1 - jnp.exp(-optax_cross_entropy(logits, labels))


def with_constants(loss, **constants):
    return lambda logits, labels: loss(logits, labels, **constants)


def ridges():
    w = np.eye(K)[:3].astype(np.float32)
    return {"lam": 1.0, "a": 0.5, "rho": 0.3, "w": w, "b": 0.1}


def annealed(beta0, step, **constants):
    F = pgeom.generators.hyperbolic(**ridges())
    loss = pgeom.apms(F, tau=0.1, kappa=0.2, nu=0.1, beta0=beta0, horizon=10, **constants)
    return lambda logits, labels: loss(logits, labels, step)


EQUALITIES = {  # a loss, what it must equal, and how closely
    "cross-entropy is optax's": (L.cross_entropy, optax_cross_entropy, 1e-6),
    "Tsallis at two": (generator_loss(pgeom.generators.tsallis(2.0)), squared_error, 5e-6),
    "CAPM sees only the tangent space": (
        pgeom.capm(2 * jnp.eye(K) + jnp.ones((K, K))),
        squared_error,
        1e-5,
    ),
    "APMS at zero": (annealed(0.0, 3), pgeom.hpg(**ridges()), 1e-6),
    "APMS after its horizon": (annealed(0.7, 10), pgeom.hpg(**ridges()), 1e-6),
    "focal at zero": (with_constants(L.focal, gamma=0.0), optax_cross_entropy, 1e-6),
    "GCE at one": (with_constants(L.generalized_cross_entropy, q=1.0), complement, 1e-5),
    "bi-tempered at one": (
        with_constants(L.bi_tempered, t1=1.0, t2=1.0),
        optax_cross_entropy,
        1e-6,
    ),
    "bi-tempered near one": (
        with_constants(L.bi_tempered, t1=0.9999, t2=1.0001),
        optax_cross_entropy,
        5e-3,
    ),
    "smoothing by everything": (
        with_constants(L.label_smoothing, epsilon=1.0),
        lambda z, y: -jnp.mean(jax.nn.log_softmax(z), axis=-1),
        1e-6,
    ),
    "SCE without its reverse": (
        with_constants(L.symmetric_cross_entropy, alpha=1.0, beta=0.0),
        optax_cross_entropy,
        1e-6,
    ),
    "SCE without its forward part": (
        with_constants(L.symmetric_cross_entropy, alpha=0.0, beta=2.0),
        lambda z, y: 8 * complement(z, y),
        1e-5,
    ),
    "APL without its passive part": (
        with_constants(L.active_passive, alpha=1.0, beta=0.0),
        lambda z, y: optax_cross_entropy(z, y) / -jnp.sum(jax.nn.log_softmax(z), axis=-1),
        1e-6,
    ),
    "APL without its active part": (
        with_constants(L.active_passive, alpha=0.0, beta=1.0),
        complement,
        1e-5,
    ),
    "class balance without memory": (
        with_constants(L.class_balanced_cross_entropy, class_counts=np.arange(1, 7), beta=0.0),
        optax_cross_entropy,
        1e-6,
    ),
    "logit adjustment by nothing": (
        with_constants(L.logit_adjustment, class_counts=np.arange(1, 7), tau=0.0),
        optax_cross_entropy,
        1e-6,
    ),
}


@pytest.mark.parametrize("name", EQUALITIES)
def test_limit(name):
    loss, limit, tolerance = EQUALITIES[name]
    actual, expected = jax.jit(lambda z, y: (loss(z, y), limit(z, y)))(jnp.asarray(LOGITS), LABELS)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def test_the_penalty_of_apms_is_weighted_by_the_schedule():
    z, y = jnp.asarray(LOGITS), jnp.asarray(LABELS)
    weights = {(0, 1.0): 0.7, (4, 1.0): 0.42, (5, 2.0): 0.175}  # of a step and a power

    @jax.jit
    def every(z, y):
        penalty = pgeom.margin.penalty(jax.nn.softmax(z), y, tau=0.1, kappa=0.2, nu=0.1)
        actual = [annealed(0.7, step, power=power)(z, y) for step, power in weights]
        return actual, pgeom.hpg(**ridges())(z, y), penalty

    actual, core, penalty = every(z, y)
    for values, weight in zip(actual, weights.values(), strict=True):
        np.testing.assert_allclose(values, core + weight * penalty, rtol=1e-5)


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_a_temperature_divides_the_logits(temperature):
    z, y = jnp.asarray(LOGITS), jnp.asarray(LABELS)
    for F in (pgeom.generators.shannon, lambda p: jnp.sum(p**3)):
        plain = pgeom.on_logits(pgeom.bregman_score(F))
        warm = pgeom.on_logits(pgeom.bregman_score(F), temperature=temperature)
        warm, plain = jax.jit(lambda z, y, w=warm, p=plain: (w(z, y), p(z / temperature, y)))(z, y)
        np.testing.assert_allclose(warm, plain, rtol=1e-5)


def test_apms_of_the_catalogue_is_its_hpg_at_zero():
    stats = ClassStats(jnp.full(K, 5.0), jnp.asarray(LOGITS[:K]))
    pair = LOSSES["apms"].variant("off", "Off", beta0=0.0), LOSSES["hpg"]
    both = jax.jit(lambda *zy: [spec.build(stats, 0.3)(*zy) for spec in pair])
    actual, expected = both(LOGITS, LABELS)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
