"""Functions with known truth, as users write them: convex or not, and strictly, for K ≥ 3."""

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import generators

YES, NO = "proved", "disproved"


def prior(K):
    weights = np.arange(1.0, K + 1)
    return jnp.asarray(weights / weights.sum())


def weights(K):
    return jnp.asarray(np.random.default_rng(7).normal(size=(K, K)))


def shares(K):
    return jnp.asarray(np.abs(np.random.default_rng(3).normal(size=(3, K))))


def gaps(K):
    return jnp.asarray(np.abs(np.subtract.outer(np.arange(K), np.arange(K))) * 1.0)


def metric(K):
    factor = np.random.default_rng(0).normal(size=(K, K))
    return jnp.asarray(factor.T @ factor + 0.1 * np.eye(K))


CONVEX = {  # a name: (F of K, strictly convex)
    "squares": (lambda K: lambda p: jnp.sum(p**2), YES),
    "cubes": (lambda K: lambda p: jnp.sum(p**3), YES),
    "entropy": (lambda K: lambda p: jnp.sum(jax.scipy.special.xlogy(p, p)), YES),
    "relative entropy": (lambda K: lambda p: jnp.sum(p * jnp.log(p / np.arange(1.0, K + 1))), YES),
    "norm": (lambda K: jnp.linalg.norm, YES),
    "log-sum-exp": (lambda K: lambda p: jax.nn.logsumexp(5 * p) / 5, YES),
    "maximum": (lambda K: jnp.max, NO),
    "roots": (lambda K: lambda p: -jnp.sum(jnp.sqrt(p)), YES),
    "logarithms": (lambda K: lambda p: -jnp.sum(jnp.log(p)), YES),
    "exponential": (lambda K: lambda p: jnp.exp(jnp.sum(p**2)), YES),
    "quadratic": (lambda K: lambda p: jnp.einsum("i,ij,j->", p, metric(K), p), YES),
    "squared hinge": (lambda K: lambda p: jnp.sum(jax.nn.relu(p - 0.4) ** 2), NO),
    "Huber": (lambda K: lambda p: jnp.where(p[0] > 0.5, p[0] - 0.25, p[0] ** 2), NO),
    "cubes beyond a half": (
        lambda K: lambda p: jnp.sum(jnp.where(p > 0.5, p**2 + (p - 0.5) ** 3, p**2)),
        YES,
    ),
    "affine": (lambda K: lambda p: 2 * p[0] - 3, NO),
    "sorted": (lambda K: lambda p: jnp.sort(p) @ jnp.arange(K * 1.0), NO),
    "Tsallis": (lambda K: generators.tsallis(1.5), YES),
    "waves": (lambda K: lambda p: jnp.sum(p**2 + 0.1 * jnp.sin(3 * p)), YES),
    "nested": (lambda K: jax.jit(lambda p: jax.checkpoint(lambda q: jnp.sum(q**4))(p)), YES),
    "p³ norm": (lambda K: lambda p: jnp.sum(p**3) ** (1 / 3), YES),
    "geometric mean": (lambda K: lambda p: -jnp.exp(jnp.mean(jnp.log(p))), NO),  # flat on faces
    "root of a product": (lambda K: lambda p: -jnp.sqrt(p[0] * p[1]), NO),
    "quadratic over linear": (lambda K: lambda p: (p[0] - p[1]) ** 2 / (1 + p[2]), NO),
    "inverse product": (lambda K: lambda p: 1 / jnp.prod(1 + p), YES),
    "ramp to the 1.5": (lambda K: lambda p: jnp.sum(jax.nn.relu(p - 0.4) ** 1.5), NO),
    "log cosh": (lambda K: lambda p: jnp.sum(jnp.log(jnp.cosh(2 * p))), YES),
    "std": (lambda K: jnp.std, NO),
    "pseudo-Huber": (lambda K: lambda p: jnp.sum(jnp.sqrt(1 + ((p - 0.3) / 0.1) ** 2) - 1), YES),
    "Rényi half": (lambda K: lambda p: -2 * jnp.log(jnp.sum(jnp.sqrt(p))), YES),
    "top two": (lambda K: lambda p: jnp.sum(jnp.sort(p)[-2:]), NO),
    "CRPS": (lambda K: lambda p: -jnp.sum(jnp.cumsum(p) * (1 - jnp.cumsum(p))), YES),
    "Jensen-Shannon": (
        lambda K: (
            lambda p: jnp.sum(
                0.5 * p * jnp.log(2 * p / (p + prior(K)))
                + 0.5 * prior(K) * jnp.log(2 * prior(K) / (p + prior(K)))
            )
        ),
        YES,
    ),
    "Cressie-Read": (
        lambda K: lambda p: jnp.sum(p * ((p / prior(K)) ** (2 / 3) - 1)) / (10 / 9),
        YES,
    ),
    "tanh": (lambda K: lambda p: -jnp.sum(jnp.tanh(2 * p)), YES),
    "gelu exact": (lambda K: lambda p: jnp.sum(jax.nn.gelu(p, approximate=False)), YES),
    "polynomial": (
        lambda K: lambda p: jnp.sum(jnp.polyval(jnp.array([1.0, 2.0, 3.0, 4.0]), p)),
        YES,
    ),
    "double where": (
        lambda K: lambda p: jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1.0)), 0.0)),
        YES,
    ),
    "clipped": (lambda K: lambda p: jnp.sum(p * jnp.log(jnp.clip(p, 1e-6, 1.0))), NO),
    "ridges": (
        lambda K: lambda p: jax.vmap(lambda w: jnp.logaddexp(w @ p, -w @ p))(weights(K)).sum(),
        YES,
    ),
    "input convex network": (
        lambda K: lambda p: jnp.sum(jax.nn.softplus(shares(K) @ jax.nn.softplus(weights(K) @ p))),
        YES,
    ),
    "affine in disguise": (lambda K: lambda p: jnp.sqrt(p) ** 2 @ jnp.arange(float(K)), NO),
    "root p(1-p)": (lambda K: lambda p: -jnp.sum(jnp.sqrt(p * (1 - p))), YES),
    "scan": (
        lambda K: lambda p: jax.lax.scan(lambda c, x: (c + x * jnp.log(x), None), 0.0, p)[0],
        YES,
    ),
    "harmonic": (lambda K: lambda p: -1 / jnp.sum(1 / p), NO),
}
OTHERS = {  # not convex, some of them in a tiny region only
    "minus squares": lambda K: lambda p: -jnp.sum(p**2),
    "large waves": lambda K: lambda p: jnp.sum(p**2 + 0.3 * jnp.sin(3 * p)),
    "minimum": lambda K: jnp.min,
    "dented by a kink": lambda K: lambda p: jnp.sum(p**2) - 0.02 * jnp.abs(p[0] - 0.5),
    "shallow quartic": lambda K: lambda p: jnp.sum(p**4 - 0.02 * p**2),
    "Rényi": lambda K: lambda p: jnp.log(jnp.sum(p**2)),
    "narrow bump": lambda K: (
        lambda p: jnp.sum(p**2) + 1e-4 * jnp.exp(-(((p[0] - 0.37) / 0.003) ** 2))
    ),
    "narrow softplus": lambda K: (
        lambda p: jnp.sum(p**2) - 1e-6 * jnp.logaddexp(0.0, (p[0] - 0.83) / 1e-4)
    ),
    "inverse Simpson": lambda K: lambda p: 1 / jnp.sum(p**2),
    "difference of norms": lambda K: (
        lambda p: jnp.linalg.norm(p) - 0.9 * jnp.linalg.norm(p - 1 / K)
    ),
    "cubic well": lambda K: lambda p: jnp.sum((p - 0.6) ** 3),
    "Gaussian": lambda K: lambda p: -jnp.exp(-8 * jnp.sum((p - 1 / K) ** 2)),
    "softmin": lambda K: lambda p: -jax.nn.logsumexp(-9 * p) / 9,
    "capped": lambda K: lambda p: jnp.minimum(jnp.sum(p**2), 0.8),
    "minus maximum": lambda K: lambda p: jnp.sum(p**2) - 3 * jnp.max(p),
    "tiny tanh": lambda K: lambda p: p @ p + 1e-5 * jnp.tanh((p[1] - 0.21) / 1e-3),
    "tiny at a vertex": lambda K: lambda p: jnp.sum(p**2) - 1e-3 * jax.nn.relu(p[0] - 0.99),
}
ON_TWO = {  # what is another on two classes
    "shallow quartic": (YES, YES),
    "Rényi": (YES, YES),
    **{name: (YES, YES) for name in ("clipped", "geometric mean", "harmonic", "ramp to the 1.5")},
    **{name: (YES, YES) for name in ("root of a product", "squared hinge")},
}


def make(name, K):
    return CONVEX[name][0](K) if name in CONVEX else OTHERS[name](K)


def truth(name, K):
    """Whether F is convex, and strictly."""
    known = (YES, CONVEX[name][1]) if name in CONVEX else (NO, NO)
    return ON_TWO.get(name, known) if K == 2 else known
