"""Every loss against its formula in plain NumPy float64, at the constants of the protocol."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.engine.linked import TSALLIS
from pgeom.losses import catalogue, structured
from pgeom.types import ClassStats

K = 5
DRAW = np.random.default_rng(4)
LOGITS = DRAW.normal(size=(25, K)) * 2
LABELS = np.arange(25) % K
COUNTS = np.array([360.0, 150.0, 60.0, 25.0, 12.0])
CENTROIDS = DRAW.normal(size=(K, 3))


def softmax(z):
    return np.exp(z - np.max(z)) / np.sum(np.exp(z - np.max(z)))


def ce(z, y):
    return -np.log(softmax(z)[y])


def label_smoothing(z, y):
    return -np.dot(0.9 * np.eye(K)[y] + 0.1 / K, np.log(softmax(z)))


def brier(z, y):
    return np.sum((softmax(z) - np.eye(K)[y]) ** 2)


def mae(z, y):
    return 2 * (1 - softmax(z)[y])


def focal(z, y):
    p = softmax(z)[y]
    return -((1 - p) ** 2) * np.log(p)


def gce(z, y):
    return (1 - softmax(z)[y] ** 0.7) / 0.7


def sce(z, y):
    return 0.1 * ce(z, y) + 1.0 * 4 * (1 - softmax(z)[y])


def apl(z, y):
    log_p = np.log(softmax(z))
    return log_p[y] / np.sum(log_p) + 1 - softmax(z)[y]


def poly1(z, y):
    return ce(z, y) + 1.0 * (1 - softmax(z)[y])


def btl(z, y, t1=0.8, t2=1.2):
    low, high = np.max(z), np.max(z) + 1e3
    for _ in range(200):  # bisection for the normaliser
        middle = (low + high) / 2
        p = (1 + (1 - t2) * (z - middle)) ** (1 / (1 - t2))
        low, high = (middle, high) if np.sum(p) > 1 else (low, middle)
    log_t1 = (p[y] ** (1 - t1) - 1) / (1 - t1)
    return -log_t1 - (1 - np.sum(p ** (2 - t1))) / (2 - t1)


def cb_ce(z, y):
    weights = (1 - 0.99) / (1 - 0.99**COUNTS)
    return weights[y] / np.mean(weights) * ce(z, y)


def balanced_softmax(z, y):
    return ce(z + np.log(COUNTS), y)


def logit_adjustment(z, y):
    return ce(z + np.log(COUNTS / np.sum(COUNTS)), y)


def ldam(z, y):
    margins = 0.5 * COUNTS**-0.25 / np.max(COUNTS**-0.25)
    return ce(8 * (z - margins * np.eye(K)[y]), y)


def capm(z, y):
    square = np.array([[np.sum((a - b) ** 2) for b in CENTROIDS] for a in CENTROIDS])
    graph = np.exp(-square / np.median(square[np.triu_indices(K, 1)])) * (1 - np.eye(K))
    graph = graph / np.max(np.sum(graph, axis=1))
    tail = np.sqrt(360.0 / COUNTS)
    B = structured.low_rank_factor(K)
    A = np.eye(K) + B @ B.T + np.diag(np.sum(graph, axis=1)) - graph
    A = A + 0.2 * np.diag(tail / np.mean(tail))
    A = A * 2 * K / np.trace(A)
    d = softmax(z) - np.eye(K)[y]
    return 0.5 * d @ A @ d


def hpg(z, y):
    F = structured.hpg_generator(K)
    w, s = np.asarray(F.w, np.float64), float(F.scale)
    b, p, e = w.mean(axis=1), softmax(z), np.eye(K)[y]

    def ridge(x):
        return 0.25 * 0.25**2 * np.sum(np.log(np.cosh((w @ x - b) / 0.25)))

    gradient = 0.25 * 0.25 * np.tanh((w @ p - b) / 0.25) @ w
    return s * (0.5 * (e - p) @ (e - p) + ridge(e) - ridge(p) - gradient @ (e - p))


def apms(z, y):
    p = softmax(z)
    margin = p[y] - 0.1 * np.log(np.sum(np.exp(np.delete(p, y) / 0.1)))
    return hpg(z, y) + 0.2 * (1 - 3 / 10) * 0.1 * np.log1p(np.exp((0.2 - margin) / 0.1))


FORMULAS = {f.__name__: f for f in (
    ce, label_smoothing, brier, mae, focal, gce, sce, apl, poly1, btl, cb_ce, balanced_softmax,
    logit_adjustment, ldam, capm, hpg, apms,
)}  # fmt: skip


def test_every_loss_of_the_catalogue_has_its_formula_here():
    assert set(FORMULAS) == set(catalogue.LOSSES)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_loss_is_its_formula(name, x64):
    stats = ClassStats(jnp.asarray(COUNTS), jnp.asarray(CENTROIDS))
    loss = jax.jit(lambda z, y: catalogue.LOSSES[name].build(stats, 0.3)(z, y))
    actual = loss(jnp.asarray(LOGITS), LABELS)
    expected = [FORMULAS[name](z, y) for z, y in zip(LOGITS, LABELS, strict=True)]
    tolerance = 1e-6 if name in ("hpg", "apms") else 1e-10  # HPG's parameters are float32
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=1e-14)


def test_tsallis_of_the_study_of_links_is_a_multiple_of_its_score(x64):
    """D_F(e_y, p) of F = 2(Σp^1.5 − 1) is 2 − 2Σp^1.5 − 3(√p_y − Σp^1.5)."""
    stats = ClassStats(jnp.asarray(COUNTS), jnp.asarray(CENTROIDS))
    p = np.exp(LOGITS) / np.sum(np.exp(LOGITS), axis=1, keepdims=True)
    own = p[np.arange(len(p)), LABELS]
    expected = 2 + np.sum(p**1.5, axis=1) - 3 * np.sqrt(own)
    actual = TSALLIS.build(stats)(jnp.asarray(LOGITS), jnp.asarray(LABELS))
    np.testing.assert_allclose(actual / actual[0], expected / expected[0], rtol=1e-10)
