"""The generators that the claims are checked on: the experiments', random ones, extremal ones.

Those of one kind and K have one shape, so that a claim compiles once for all of them: ridges of
zero weight fill up those with fewer.

>>> hyperbolics(3).select("wide|vertex").names
('extremal: wide ridge', 'extremal: off vertex')
"""

from functools import cache
from typing import cast

import jax
import numpy as np
from numpy.typing import ArrayLike

from pgeom.data import sources
from pgeom.data.regimes import Regime
from pgeom.data.splits import partition
from pgeom.generators import Hyperbolic, Quadratic
from pgeom.losses.structured import capm_generator, hpg_generator
from pgeom.paper.class_structure import class_stats
from pgeom.types import ClassStats
from proofs_numeric.claims import Cases

SEEDS = range(5)
RIDGES = (4, 16)  # of the experiments' HPG, and the most that its ablation has


@cache
def quadratics(K: int) -> Cases:
    """CAPM on every dataset with K classes, random metrics, and the extremal ones."""
    metrics = {
        f"CAPM {name} {regime} seed {seed}": experiment_matrix(name, regime, seed)
        for name, classes in dataset_classes().items()
        if classes == K
        for regime in sources.load(name).regimes
        for seed in SEEDS
    }
    rng = np.random.default_rng([1, K])
    for i, lam in enumerate((0.01, 0.3, 1.0)):
        factor = rng.normal(size=(K, K)) / np.sqrt(K)
        metrics[f"random metric {i}"] = lam * np.eye(K) + factor @ factor.T
    metrics["extremal: pair metric"] = pair_metric(K)
    metrics["extremal: identity"] = np.eye(K)
    return Cases(K, {name: Quadratic(float64(A)) for name, A in metrics.items()})


@cache
def hyperbolics(K: int) -> Cases:
    """HPG of the experiments, random ridges from wide to sharp, and the extremal ones."""
    with jax.enable_x64(False):  # as the experiments build it: float64 would draw other points
        built = {f"HPG experiments R={R}": hpg_generator(K, ridges=R) for R in RIDGES}
    found = {name: ridges(F.w, F.a, F.rho, F.b, F.lam, F.scale) for name, F in built.items()}
    found |= {f"random ridges {i}": random_ridges(K, i) for i in range(4)}
    found["extremal: one ridge"] = one_ridge(K)
    found["extremal: tilted ridge"] = tilted_ridge(K)
    found["extremal: wide ridge"] = one_ridge(K, rho=1e3)
    found["extremal: no ridge"] = isotropic(K)
    if K == 2:
        found["extremal: two minima"] = two_minima()
    if K == 3:
        found["extremal: off vertex"] = off_vertex()
    return Cases(K, found)


def dataset_classes() -> dict[str, int]:
    """The number of classes of each dataset of the paper."""
    return {name: sources.load(name).num_classes for name in sources.PAPER}


@cache
def experiment_matrix(name: str, regime: Regime, seed: int) -> np.ndarray:
    """CAPM's A `[K, K]` of one training part, the very one that the experiments train with."""
    dataset = sources.load(name)
    split, noise = partition(dataset, regime, seed)
    stats = class_stats(split.train.features, noise.labels, dataset.num_classes)
    with jax.enable_x64(False):  # float32, as in the experiments
        A = np.asarray(_matrix(stats), np.float64)
    return 0.5 * (A + A.T)  # a quadratic form sees no more; float32 leaves 1e-9 of asymmetry


@jax.jit
def _matrix(stats: ClassStats) -> jax.Array:
    """A with the constants of the experiments."""
    return capm_generator(stats).A


def pair_metric(K: int, c: float = 3.0) -> np.ndarray:
    """A = I + c(e₁ − e₂)(e₁ − e₂)ᵀ: its top eigenvector is a difference of vertices.

    There the loss attains M = 1 + 2c, and ‖∇_pℓ‖ attains √2 M, at p = e₂ for the label 1.
    """
    difference = np.eye(K)[0] - np.eye(K)[1]
    return np.eye(K) + c * np.outer(difference, difference)


def one_ridge(K: int, *, rho: float = 0.25) -> Hyperbolic:
    """A single ridge along (e₁ − e₂)/√2 through the centre, with s ≠ 1.

    Because Σw = 0 and wᵀp = b is met, M_T = M is attained at the centre; for K ≥ 3 a tangent
    direction misses the ridge, and m_T = m = sλ everywhere. L_H is attained at v = artanh(1/√3)
    where the ridge is sharp enough to get there, and the range M as ρ grows.
    """
    w = (np.eye(K)[:1] - np.eye(K)[1:2]) / np.sqrt(2)
    return ridges(w, [0.9], [rho], [0.0], 0.4, 1.7)


def tilted_ridge(K: int) -> Hyperbolic:
    """A single ridge with Σw ≠ 0 and ‖w‖ ≠ 1, sharp enough to meet v = artanh(1/√3).

    L_H is attained along w, which is no direction of the simplex: on the tangent space the Hessian
    changes more slowly.
    """
    return ridges(np.eye(K)[:1] + 0.3, [0.7], [0.3], [0.6], 0.2, 1.3)


def two_minima() -> Hyperbolic:
    """K = 2: D_F(η, ·) + βρ has a local minimum beside the global one; see `displacement`."""
    w = np.array([[1.0, -1.0]]) / np.sqrt(2)
    return ridges(w, [1.0], [0.1], [0.5 / np.sqrt(2)], 0.01)


def off_vertex() -> Hyperbolic:
    """K = 3: the loss is largest inside an edge, half as large again as at any vertex."""
    w = [
        [-0.32077569, -0.53254316, -0.78326288],
        [0.87247708, -0.45643424, 0.17450369],
        [-0.83728459, -0.44432106, 0.31864291],
    ]
    a, rho = [0.31845323, 0.73799637, 0.3939093], [0.69359086, 0.03566439, 0.05079797]
    return ridges(w, a, rho, [0.16869431, 0.10368032, -0.35156302], 0.0010676549635252042)


def isotropic(K: int) -> Hyperbolic:
    """H = I: no ridge at all."""
    return ridges(np.zeros((1, K)), [0.0], [1.0], [0.0], 1.0)


def anisotropic(K: int) -> Hyperbolic:
    """H constant, m = ½, and m_T = 1 along e₁ − e₂; up to 2 along the rest of the tangent space.

    Its ridges, one per tangent direction, are too wide for the Hessian to change on the simplex.
    """
    w = np.tril(np.ones((K - 1, K)), 0) - np.diag(np.arange(1.0, K), 1)[:-1]
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    return ridges(w, np.linspace(0.5, 1.5, K - 1), np.full(K - 1, 1e4), np.zeros(K - 1), 0.5)


def random_ridges(K: int, seed: int) -> Hyperbolic:
    """Eight ridges of random direction, width and offset, each crossing the simplex."""
    rng = np.random.default_rng([2, K, seed])
    w = rng.normal(size=(8, K))
    w /= np.linalg.norm(w, axis=1, keepdims=True) * rng.uniform(1.0, 1.5, (8, 1))
    mix = rng.uniform(size=8)
    lam, a, rho = 10 ** rng.uniform(-2, 0), rng.uniform(0, 1, 8), 10 ** rng.uniform(-1.5, 0, 8)
    b = mix * w.min(axis=1) + (1 - mix) * w.max(axis=1)
    return ridges(w, a, rho, b, lam, 10 ** rng.uniform(-0.5, 0.5))


def ridges(
    w: ArrayLike, a: ArrayLike, rho: ArrayLike, b: ArrayLike, lam: ArrayLike, scale: ArrayLike = 1.0
) -> Hyperbolic:
    """The generator with ridges `w[R, K]` and others of zero weight, up to one common number."""
    w = np.asarray(w)
    others = (0, max(*RIDGES, w.shape[1] - 1) - len(w))
    return Hyperbolic(
        lam=float64(lam),
        a=float64(np.pad(a, others)),
        rho=float64(np.pad(rho, others, constant_values=1.0)),
        w=float64(np.pad(w, (others, (0, 0)))),
        b=float64(np.pad(b, others)),
        scale=float64(scale),
    )


def float64(values: ArrayLike) -> jax.Array:
    """`values` in float64, whatever the precision of JAX: NumPy's, which JAX takes for its own."""
    return cast(jax.Array, np.asarray(values, np.float64))
