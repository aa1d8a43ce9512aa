"""The losses of the experiments, by name, with every constant of the protocol.

A builder makes a loss from the class statistics of one training partition; it may be called
inside a traced function, where each member of a vmap then has its own matrix.

>>> import jax.numpy as jnp
>>> from pgeom.types import Annealing, ClassStats
>>> stats = ClassStats(counts=jnp.array([5.0, 5.0]), centroids=jnp.array([[0.0], [1.0]]))
>>> loss = LOSSES["gce"](stats)
>>> loss(jnp.zeros(2), jnp.array(0), Annealing(step=0, beta0=0.2, horizon=100))
Array(0.54918, dtype=float32)
"""

from collections.abc import Callable
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.geometry.bregman import bregman_score
from pgeom.geometry.class_structure import capm_matrix
from pgeom.geometry.curvature import match_curvature
from pgeom.geometry.generators import Quadratic, hyperbolic
from pgeom.losses import likelihood, noise_robust, prior_adjusted, proper, tempered
from pgeom.types import CatalogueLoss, ClassStats, Generator

Builder = Callable[[ClassStats], CatalogueLoss]

GEOMETRY_SEED = 2025  # fixed, and independent of every data and model seed

# The paper states none of the constants marked ◇; they were fitted to its published tables.
MEAN_CURVATURE = 2.0  # ◇ the common target of CAPM and HPG, that of the Brier score
BETA0 = 0.2  # ◇ the initial coefficient of APMS
MARGIN = {"tau": 0.1, "kappa": 0.2, "nu": 0.1}  # ◇ of APMS


def low_rank_factor(K: int) -> np.ndarray:
    """CAPM's B `[K, r]` = 0.2·N(0, 1)/√r with r = min(4, K) ◇."""
    rank = min(4, K)
    draws = np.random.default_rng([GEOMETRY_SEED, 0, K]).standard_normal((K, rank))
    return 0.2 * draws / np.sqrt(rank)


def capm_generator(
    stats: ClassStats, *, lam=1.0, gamma=1.0, delta=0.2, low_rank=True
) -> Quadratic:  # ◇ λ, γ, δ
    """CAPM's generator, with the matrix of this training partition."""
    K = stats.counts.shape[0]
    factor = low_rank_factor(K) if low_rank else np.zeros((K, 0))
    A = capm_matrix(
        stats,
        lam=lam,
        gamma=gamma,
        delta=delta,
        low_rank=jnp.asarray(factor, stats.centroids.dtype),
        mean_curvature=MEAN_CURVATURE,
    )
    # definite by construction: no need to look at A, which is traced in the trainer
    return Quadratic(A)


def capm(stats: ClassStats, **terms) -> CatalogueLoss:
    """CAPM, with the terms of its generator."""
    return _steady(proper.on_logits(bregman_score(capm_generator(stats, **terms))))


@cache
def hpg_generator(K: int, ridges: int = 4) -> Generator:
    """HPG's generator: ◇ R = 4, λ = 1, a = ρ = 0.25, random unit w, ridges through the centre."""
    w = np.random.default_rng([GEOMETRY_SEED, 1, K]).standard_normal((ridges, K))
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    # a constant, also where a builder is being traced, and the same one in either precision
    with jax.ensure_compile_time_eval(), jax.enable_x64(False):
        F = hyperbolic(lam=1.0, a=0.25, rho=0.25, w=w, b=w.mean(axis=1))
        key = jax.random.key(GEOMETRY_SEED)
        # jitted, and the key an argument, to compile one small program and not one an operation
        match = jax.jit(lambda F, key: match_curvature(F, K, target=MEAN_CURVATURE, key=key))
        F = match(F, key)
        return jax.tree.map(np.asarray, F)  # an array of JAX would remember the mesh it met first


def hpg(stats: ClassStats, *, ridges: int = 4) -> CatalogueLoss:
    """HPG: its geometry depends on the number of classes alone."""
    K = stats.counts.shape[0]
    return _steady(proper.on_logits(bregman_score(hpg_generator(K, ridges))))


def apms(stats: ClassStats) -> CatalogueLoss:
    """APMS on the HPG core, annealed linearly."""
    F = hpg_generator(stats.counts.shape[0])

    def loss(logits, labels, annealing):
        schedule = {"beta0": annealing.beta0, "horizon": annealing.horizon}
        return proper.apms(F, **MARGIN, **schedule)(logits, labels, annealing.step)

    return loss


def _steady(loss: Callable) -> CatalogueLoss:
    """A loss that does not change over training, in the form of one that may."""
    return lambda logits, labels, annealing: loss(logits, labels)


def _plain(loss: Callable, **constants) -> Builder:
    """The builder of a loss that needs no class statistics."""
    return lambda stats: _steady(partial(loss, **constants))


def _counted(loss: Callable, **constants) -> Builder:
    """The builder of a loss that needs the class counts."""
    return lambda stats: _steady(partial(loss, class_counts=stats.counts, **constants))


GENERAL: dict[str, Builder] = {
    "ce": _plain(likelihood.cross_entropy),
    "label_smoothing": _plain(likelihood.label_smoothing, epsilon=0.1),
    "brier": _plain(proper.brier),
    "mae": _plain(noise_robust.mean_absolute_error, scale=2.0),  # ◇
    "focal": _plain(likelihood.focal, gamma=2.0),  # ◇
    "gce": _plain(noise_robust.generalized_cross_entropy, q=0.7),  # ◇
    "sce": _plain(noise_robust.symmetric_cross_entropy, alpha=0.1, beta=1.0, A=-4.0),  # ◇
    "apl": _plain(noise_robust.active_passive, alpha=1.0, beta=1.0),  # ◇
    "poly1": _plain(likelihood.poly1, epsilon=1.0),  # ◇
    "btl": _plain(tempered.bi_tempered, t1=0.8, t2=1.2),  # ◇
    "capm": capm,
    "hpg": hpg,
    "apms": apms,
}

LONG_TAIL: dict[str, Builder] = {
    "cb_ce": _counted(prior_adjusted.class_balanced_cross_entropy, beta=0.99),  # ◇
    "balanced_softmax": _counted(prior_adjusted.balanced_softmax),
    "logit_adjustment": _counted(prior_adjusted.logit_adjustment, tau=1.0),
    "ldam": _counted(prior_adjusted.ldam, max_margin=0.5, scale=8.0),  # ◇ the scale
}

LOSSES: dict[str, Builder] = {**GENERAL, **LONG_TAIL}
