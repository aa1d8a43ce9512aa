"""One line per loss: every battery covers them all."""

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.losses.catalogue import LOSSES as CATALOGUE
from pgeom.types import ClassStats

LOSSES = {
    "cross_entropy": lambda K: pgeom.losses.cross_entropy,
    "label_smoothing": lambda K: pgeom.losses.label_smoothing,
    "brier": lambda K: pgeom.losses.brier,
    "mean_absolute_error": lambda K: pgeom.losses.mean_absolute_error,
    "focal": lambda K: pgeom.losses.focal,
    "focal-half": lambda K: bound(pgeom.losses.focal, gamma=0.5),
    "generalized_cross_entropy": lambda K: pgeom.losses.generalized_cross_entropy,
    "symmetric_cross_entropy": lambda K: pgeom.losses.symmetric_cross_entropy,
    "active_passive": lambda K: pgeom.losses.active_passive,
    "poly1": lambda K: pgeom.losses.poly1,
    "bi_tempered": lambda K: pgeom.losses.bi_tempered,
    "bi_tempered-finite": lambda K: bound(pgeom.losses.bi_tempered, t1=0.5, t2=0.8),
    "class_balanced": lambda K: bound(
        pgeom.losses.class_balanced_cross_entropy, class_counts=counts(K)
    ),
    "balanced_softmax": lambda K: bound(pgeom.losses.balanced_softmax, class_counts=counts(K)),
    "logit_adjustment": lambda K: bound(pgeom.losses.logit_adjustment, class_counts=counts(K)),
    "ldam": lambda K: bound(pgeom.losses.ldam, class_counts=counts(K)),
    "capm": lambda K: CATALOGUE["capm"].build(stats(K), 0.3),
    "hpg": lambda K: CATALOGUE["hpg"].build(stats(K), 0.3),
    "apms": lambda K: CATALOGUE["apms"].build(stats(K), 0.3),
    "shannon": lambda K: generator_loss(pgeom.generators.shannon),
    "tsallis-half": lambda K: generator_loss(pgeom.generators.tsallis(0.5)),
    "spherical": lambda K: generator_loss(pgeom.generators.spherical),
    "user-cubic": lambda K: generator_loss(lambda p: jnp.sum(p**3)),
    "user-entropy": lambda K: generator_loss(lambda p: jnp.sum(p * jnp.log(p))),
}


def bound(loss, **constants):
    return lambda logits, labels: loss(logits, labels, **constants)


def generator_loss(F):
    return pgeom.on_logits(pgeom.bregman_score(F))


def counts(K):
    return np.arange(K, 0, -1) * 3


def stats(K):
    centroids = np.random.default_rng(0).normal(size=(K, 5)).astype(np.float32)
    return ClassStats(jnp.asarray(counts(K), jnp.float32), jnp.asarray(centroids))


@pytest.fixture(params=LOSSES)
def name(request):
    """The name of each loss in turn."""
    return request.param


@pytest.fixture
def build(name):
    """`build(K) -> loss`, for each loss in turn."""
    return lambda K: built(name, K)


@cache
def built(name, K):
    return LOSSES[name](K)
