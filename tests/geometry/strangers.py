"""More generators with known truth, written as users write them.

Truths are for K ≥ 3 classes; `tests.geometry.certified_table` knows which differ on two.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, xlogy

YES, NO = "proved", "disproved"


def prior(K):
    weights = np.arange(1.0, K + 1)
    return jnp.asarray(weights / weights.sum())


def halves(K):
    """1/2, 1/4, …, of which the sum is exactly 1."""
    return jnp.asarray([0.5 ** min(k + 1, K - 1) for k in range(K)])


def weights(K, n=None):
    return jnp.asarray(np.random.default_rng(7).normal(size=(n or K, K)))


def shares(K):
    return jnp.asarray(np.abs(np.random.default_rng(3).normal(size=(3, K))))


def mixing(K):
    return jnp.asarray(0.8 * np.eye(K) + 0.2 / K)


def gaps(K):
    return jnp.asarray(np.abs(np.subtract.outer(np.arange(K), np.arange(K))) * 1.0)


CONVEX = {
    "brier and entropy": (
        lambda K: lambda p: 0.5 * jnp.sum(p**2) + 0.1 * jnp.sum(xlogy(p, p)),
        YES,
    ),
    "log1p": (lambda K: lambda p: -jnp.sum(jnp.log1p(p)), YES),
    "exps": (lambda K: lambda p: jnp.sum(jnp.exp(p)), YES),
    "cosh": (lambda K: lambda p: jnp.sum(jnp.cosh(3 * (p - 1 / K))), YES),
    "log cosh": (lambda K: lambda p: jnp.sum(jnp.log(jnp.cosh(2 * p))), YES),
    "sin": (lambda K: lambda p: -jnp.sum(jnp.sin(3 * p)), YES),
    "variance": (lambda K: jnp.var, YES),
    "std": (lambda K: jnp.std, NO),
    "distance": (lambda K: lambda p: jnp.linalg.norm(p - halves(K)), NO),
    "squared distance": (lambda K: lambda p: jnp.linalg.norm(p - prior(K)) ** 2, YES),
    "abs 1.5": (lambda K: lambda p: jnp.sum(jnp.abs(p - prior(K)) ** 1.5), YES),
    "abs cubed": (lambda K: lambda p: jnp.sum(jnp.abs(p - 1 / K) ** 3), YES),
    "pseudo-Huber": (lambda K: lambda p: jnp.sum(jnp.sqrt(1 + ((p - 0.3) / 0.1) ** 2) - 1), YES),
    "smooth maximum": (lambda K: lambda p: 0.1 * jax.nn.logsumexp(p / 0.1), YES),
    "Rényi half": (lambda K: lambda p: -2 * jnp.log(jnp.sum(jnp.sqrt(p))), YES),
    "norm cubed": (lambda K: lambda p: jnp.sum(p**2) ** 1.5, YES),
    "squares squared": (lambda K: lambda p: jnp.sum(p**2) ** 2, YES),
    "inverse entropy": (lambda K: lambda p: 1 / (1 - jnp.sum(xlogy(p, p))), YES),
    "perplexity inverse": (lambda K: lambda p: jnp.exp(jnp.sum(xlogy(p, p))), YES),
    "root of entropy": (lambda K: lambda p: -jnp.sqrt(1 - jnp.sum(xlogy(p, p))), YES),
    "max squared": (lambda K: lambda p: jnp.max(p) ** 2, NO),
    "top two": (lambda K: lambda p: jnp.sum(jnp.sort(p)[-2:]), NO),
    "ptp": (lambda K: jnp.ptp, NO),
    "low rank": (lambda K: lambda p: (p @ prior(K)) ** 2, NO),
    "tangent definite": (
        lambda K: lambda p: p @ p - 2 * jnp.mean(p) * jnp.sum(p) + p @ prior(K),
        YES,
    ),
    "Rao": (lambda K: lambda p: -p @ gaps(K) @ p, YES),
    "RPS": (lambda K: lambda p: jnp.sum(jnp.cumsum(p) ** 2), YES),
    "CRPS": (lambda K: lambda p: -jnp.sum(jnp.cumsum(p) * (1 - jnp.cumsum(p))), YES),
    "weighted entropy": (lambda K: lambda p: jnp.sum(prior(K) * p * jnp.log(p)), YES),
    "log of what is left": (lambda K: lambda p: -jnp.log(1 - 0.5 * p @ p), YES),
    "chi2 triangular": (lambda K: lambda p: jnp.sum((p - prior(K)) ** 2 / (p + prior(K))), YES),
    "chi2": (lambda K: lambda p: jnp.sum((p - prior(K)) ** 2 / prior(K)), YES),
    "Neyman": (lambda K: lambda p: jnp.sum((p - prior(K)) ** 2 / p), YES),
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
    "reverse KL": (lambda K: lambda p: jnp.sum(prior(K) * jnp.log(prior(K) / p)), YES),
    "Gini": (lambda K: lambda p: -jnp.sum(p * (1 - p)), YES),
    "tanh": (lambda K: lambda p: -jnp.sum(jnp.tanh(2 * p)), YES),
    "atan": (lambda K: lambda p: -jnp.sum(jnp.arctan(p)), YES),
    "sigmoid": (lambda K: lambda p: -jnp.sum(jax.nn.sigmoid(p)), YES),
    "erf": (lambda K: lambda p: -jnp.sum(erf(p)), YES),
    "silu": (lambda K: lambda p: jnp.sum(jax.nn.silu(p)), YES),
    "gelu": (lambda K: lambda p: jnp.sum(jax.nn.gelu(p)), YES),
    "gelu exact": (lambda K: lambda p: jnp.sum(jax.nn.gelu(p, approximate=False)), YES),
    "leaky relu": (lambda K: lambda p: jnp.sum(jax.nn.leaky_relu(p - 0.3)), NO),
    "elu": (lambda K: lambda p: jnp.sum(jax.nn.elu(p - 0.5)), YES),
    "polynomial": (
        lambda K: lambda p: jnp.sum(jnp.polyval(jnp.array([1.0, 2.0, 3.0, 4.0]), p)),
        YES,
    ),
    "double where": (
        lambda K: lambda p: jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1.0)), 0.0)),
        YES,
    ),
    "epsilon": (lambda K: lambda p: jnp.sum(p * jnp.log(p + 1e-7)), YES),
    "clipped": (lambda K: lambda p: jnp.sum(p * jnp.log(jnp.clip(p, 1e-6, 1.0))), NO),
    "quadratic and linear": (
        lambda K: lambda p: p @ (2 * jnp.eye(K) + 1) @ p + jnp.arange(float(K)) @ p,
        YES,
    ),
    "ridges": (
        lambda K: lambda p: jax.vmap(lambda w: jnp.logaddexp(w @ p, -w @ p))(weights(K)).sum(),
        YES,
    ),
    "log cosh ridges": (lambda K: lambda p: jnp.sum(jnp.log(jnp.cosh(weights(K) @ p - 0.1))), YES),
    "input convex network": (
        lambda K: lambda p: jnp.sum(jax.nn.softplus(shares(K) @ jax.nn.softplus(weights(K) @ p))),
        YES,
    ),
    "relu network": (
        lambda K: lambda p: jnp.sum(jax.nn.relu(shares(K) @ jax.nn.relu(weights(K) @ p) - 0.5)),
        NO,
    ),
    "mixed entropy": (lambda K: lambda p: jnp.sum(xlogy(mixing(K) @ p, mixing(K) @ p)), YES),
    "affine norm": (lambda K: lambda p: jnp.linalg.norm(weights(K) @ p), YES),
    "l1": (lambda K: lambda p: jnp.linalg.norm(p, ord=1), NO),
    "linf": (lambda K: lambda p: jnp.linalg.norm(p, ord=jnp.inf), NO),
    "minus minimum": (lambda K: lambda p: -jnp.min(p), NO),
    "barrier": (lambda K: lambda p: p @ p - 0.01 * jnp.sum(jnp.log(p)), YES),
    "affine in disguise": (lambda K: lambda p: jnp.sqrt(p) ** 2 @ jnp.arange(float(K)), NO),
    "cbrt": (lambda K: lambda p: -jnp.sum(jnp.cbrt(p)), YES),
    "root p(1-p)": (lambda K: lambda p: -jnp.sum(jnp.sqrt(p * (1 - p))), YES),
    "Fermi": (lambda K: lambda p: jnp.sum(xlogy(p, p) + xlogy(1 - p, 1 - p)), YES),
    "Bhattacharyya": (lambda K: lambda p: -jnp.log(jnp.sum(jnp.sqrt(p * prior(K)))), YES),
    "spherical alpha 1.5": (lambda K: lambda p: jnp.sum(p**1.5) ** (1 / 1.5), YES),
    "power 1.1": (lambda K: lambda p: jnp.sum(p**1.1), YES),
    "hinge squares": (lambda K: lambda p: jnp.sum(jnp.maximum(0, 1 - 2 * p) ** 2), YES),
    "scan": (
        lambda K: lambda p: jax.lax.scan(lambda c, x: (c + x * jnp.log(x), None), 0.0, p)[0],
        YES,
    ),
    "norm of roots weights": (lambda K: lambda p: jnp.sqrt(jnp.sum(prior(K) * p**2) + 0.01), YES),
    "lse of squares": (lambda K: lambda p: jax.nn.logsumexp(p**2), YES),
    "maximum of two": (lambda K: lambda p: jnp.maximum(jnp.sum(p**2), jnp.sum(p**3) + 0.1), YES),
    "max quadratics": (lambda K: lambda p: jnp.maximum(p @ p, 2 * p @ p - 0.5), YES),
    "exp of a norm": (lambda K: lambda p: jnp.exp(2 * jnp.linalg.norm(p)), YES),
    "square of entropy": (lambda K: lambda p: (3 + jnp.sum(xlogy(p, p))) ** 2, YES),
    "log-sum-exp ridges": (lambda K: lambda p: jax.nn.logsumexp(weights(K, K + 2) @ p), YES),
    "reciprocal sum": (lambda K: lambda p: 1 / jnp.sum(jnp.sqrt(p)), YES),
    "harmonic": (lambda K: lambda p: -1 / jnp.sum(1 / p), NO),
}
OTHERS = {
    "Rényi 3": lambda K: lambda p: 0.5 * jnp.log(jnp.sum(p**3)),
    "inverse Simpson": lambda K: lambda p: 1 / jnp.sum(p**2),
    "minus inverse Simpson": lambda K: lambda p: -1 / jnp.sum(p**2),
    "minus norm": lambda K: lambda p: -jnp.linalg.norm(p),
    "difference of norms": lambda K: (
        lambda p: jnp.linalg.norm(p) - 0.9 * jnp.linalg.norm(p - 1 / K)
    ),
    "cos": lambda K: lambda p: jnp.sum(jnp.cos(6 * p)),
    "cubic well": lambda K: lambda p: jnp.sum((p - 0.6) ** 3),
    "Gaussian": lambda K: lambda p: -jnp.exp(-8 * jnp.sum((p - 1 / K) ** 2)),
    "entropy upside down": lambda K: lambda p: -jnp.sum(xlogy(p, p)),
    "sigmoid wide": lambda K: lambda p: jnp.sum(jax.nn.sigmoid(9 * (p - 0.5))),
    "indefinite": lambda K: lambda p: p @ p - 2.5 * p[0] ** 2,
    "softmin": lambda K: lambda p: -jax.nn.logsumexp(-9 * p) / 9,
    "entropy less squares": lambda K: lambda p: jnp.sum(xlogy(p, p)) - 0.8 * jnp.sum(p**2) * 2,
    "capped": lambda K: lambda p: jnp.minimum(jnp.sum(p**2), 0.8),
    "minus maximum": lambda K: lambda p: jnp.sum(p**2) - 3 * jnp.max(p),
    "log of clipped": lambda K: lambda p: -jnp.sum(jnp.log(jnp.maximum(p, 1e-6))),
    "added mean": lambda K: lambda p: p @ p + 2.0 * K**2 * jnp.prod(p) ** (2 / K),
    # in a tiny region only
    "tiny dent": lambda K: lambda p: p @ p - 1e-5 * jnp.exp(-jnp.sum((p - prior(K)) ** 2) / 1e-6),
    "tiny tanh": lambda K: lambda p: p @ p + 1e-5 * jnp.tanh((p[1] - 0.21) / 1e-3),
    "tiny kink": lambda K: lambda p: p @ p - 1e-4 * jnp.abs(p[0] - p[1] - 0.05),
    "tiny at a vertex": lambda K: lambda p: jnp.sum(p**2) - 1e-3 * jax.nn.relu(p[0] - 0.99),
    "tiny wave": lambda K: lambda p: p @ p + 4e-7 * jnp.sin(5e3 * p[0]),
}
