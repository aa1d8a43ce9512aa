"""The functions whose values are frozen, by name: losses, generators and points."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import pgeom

CLASSES = (2, 3, 10, 1000)
FEW = 12  # entries of a vector over many classes that are kept
G, L = pgeom.generators, pgeom.losses


def counts(K):
    return np.arange(K, 0, -1) * 3


def draws(K):
    return np.random.default_rng(100 + K)


def ridges(K):
    w = draws(K).normal(size=(3, K))
    w = 0.9 * w / np.linalg.norm(w, axis=1, keepdims=True)
    return {
        "lam": 0.7,
        "a": np.array([0.4, 0.3, 0.9]),
        "rho": np.array([0.3, 0.25, 0.6]),
        "w": w,
        "b": w.mean(axis=1) + np.array([0.1, -0.05, 0.0]),
        "scale": 1.3,
    }


def matrix(K):
    root = draws(K).normal(size=(K, min(K, 5))) / 2
    return np.eye(K) + root @ root.T


def apms(K):
    loss = pgeom.apms(
        G.hyperbolic(**ridges(K)), tau=0.1, kappa=0.2, nu=0.1, beta0=0.2, horizon=10.0
    )
    return lambda z, y: loss(z, y, 3)


def losses(K):
    """Every loss, and those with other constants than their defaults."""
    by_counts = {"class_counts": counts(K)}
    return {
        "cross_entropy": L.cross_entropy,
        "label_smoothing": L.label_smoothing,
        "brier": L.brier,
        "mean_absolute_error": L.mean_absolute_error,
        "focal": L.focal,
        "focal-.5": partial(L.focal, gamma=0.5),
        "generalized_cross_entropy": L.generalized_cross_entropy,
        "gce-.2": partial(L.generalized_cross_entropy, q=0.2),
        "symmetric_cross_entropy": L.symmetric_cross_entropy,
        "active_passive": L.active_passive,
        "poly1": L.poly1,
        "bi_tempered": L.bi_tempered,
        "bi_tempered-finite": partial(L.bi_tempered, t1=0.5, t2=0.8),
        "class_balanced": partial(L.class_balanced_cross_entropy, **by_counts),
        "balanced_softmax": partial(L.balanced_softmax, **by_counts),
        "logit_adjustment": partial(L.logit_adjustment, **by_counts),
        "ldam": partial(L.ldam, **by_counts),
        "capm": pgeom.capm(matrix(K)),
        "hpg": pgeom.hpg(**ridges(K)),
        "apms": apms(K),
    }


SOFT = ("cross_entropy", "brier", "capm", "hpg", "apms")  # losses that take soft targets


def library_generators(K):
    """Generators of the library, sums and multiples of them."""
    quadratic, hyperbolic = G.quadratic(matrix(K)), G.hyperbolic(**ridges(K))
    return {
        "shannon": G.shannon,
        "tsallis-.5": G.tsallis(0.5),
        "tsallis-.8": G.tsallis(0.8),
        "tsallis-1.5": G.tsallis(1.5),
        "tsallis-2.5": G.tsallis(2.5),
        "tsallis-4": G.tsallis(4.0),
        "spherical": G.spherical,
        "squared_norm": G.squared_norm,
        "quadratic": quadratic,
        "hyperbolic": hyperbolic,
        "separable-quartic": G.separable(lambda x: x**2 + x**4),
        "separable-exp": G.separable(jnp.exp),
        "shannon+norm": 0.5 * G.shannon + G.squared_norm,
        "tsallis+shannon": G.tsallis(1.5) + 0.3 * G.shannon,
        "quadratic+hyperbolic": quadratic + 0.5 * hyperbolic,
        "3shannon": 3.0 * G.shannon,
        "quadratic+shannon": quadratic + 0.1 * G.shannon,
        "combine": G.combine((0.5, G.spherical), (2.0, G.squared_norm)),
        "generator": pgeom.generator(
            lambda p: jnp.sum(p**3), divergence=lambda q, p, d: jnp.sum(d**2 * (q + 2 * p))
        ),
    }


def user_generators(K):
    """Functions as a user would write them."""
    slopes = np.linspace(-1, 1, K)
    return {
        "cubic": lambda p: jnp.sum(p**3),
        "entropy": lambda p: jnp.sum(p * jnp.log(p)),
        "power-1.5": lambda p: jnp.sum(p**1.5),
        "logsumexp": lambda p: jax.nn.logsumexp(5 * p),
        "norm": lambda p: jnp.sqrt(jnp.sum(p**2)),
        "minus-root": lambda p: -jnp.sum(jnp.sqrt(p)),
        "renyi": lambda p: 2 * jnp.log(jnp.sum(p**1.5)),
        "penalised-brier": lambda p: jnp.sum(p**2) + (K - 1) / K * jnp.max(p),
        "gini-shannon": lambda p: jnp.sum(p**2) + jnp.sum(jax.scipy.special.xlogy(p, p)),
        "softplus": lambda p: jax.nn.softplus(4 * jnp.sum(p * slopes)) + 0.5 * jnp.sum(p**2),
        "kinked": lambda p: jnp.sum(p**2) + jnp.maximum(p[0] - 0.7, 0.0),
        "cosh": lambda p: jnp.sum(jnp.cosh(p * slopes)) + 0.2 * jnp.sum(p**2),
    }


def not_generators(K):
    """Functions that are to be refused, or are not strictly convex."""
    return {
        "concave": lambda p: -jnp.sum(p**2),
        "saddle": lambda p: p[0] ** 2 - p[1] ** 2,
        "linear": lambda p: p[0] - 2 * p[1],
        "flat": lambda p: (p[0] - p[1]) ** 2,
        "dented": lambda p: jnp.sum(p**2) - 0.02 * jnp.exp(-400 * (p[0] - 0.3) ** 2),
    }


def logits(K):
    """Rows far from and close to each other, `[10, K]`."""
    z = draws(K).normal(size=(10, K)) * np.array([0.1, 1, 1, 3, 3, 10, 10, 30, 100, 1e4])[:, None]
    return z - z.mean(axis=1, keepdims=True)


def labels(K):
    z = logits(K)
    best, worst = z.argmax(axis=1), z.argmin(axis=1)
    return np.where(
        np.arange(len(z)) % 3 == 0, worst, np.where(np.arange(len(z)) % 3 == 1, best, 0)
    )


def targets(K):
    soft = draws(K + 1).dirichlet(np.full(K, 0.7), 10)
    soft[:2] = 1 / K
    return soft
