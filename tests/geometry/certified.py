"""Generators with known truth: convex or not, and strictly or not, on K ≥ 3 classes."""

import jax
import jax.numpy as jnp
import numpy as np

from pgeom import generators

YES, NO = "proved", "disproved"


def huber(x):
    return jnp.where(jnp.abs(x) < 0.1, 0.5 * x**2, 0.1 * (jnp.abs(x) - 0.05))


def metric(K):
    factor = np.random.default_rng(0).normal(size=(K, K))
    return jnp.asarray(factor.T @ factor + 0.1 * np.eye(K))


CONVEX = {  # a name: (F of K, strictly convex)
    "squares": (lambda K: lambda p: jnp.sum(p**2), YES),
    "cubes": (lambda K: lambda p: jnp.sum(p**3), YES),
    "entropy": (lambda K: lambda p: jnp.sum(jax.scipy.special.xlogy(p, p)), YES),
    "entr": (lambda K: lambda p: -jnp.sum(jax.scipy.special.entr(p)), YES),
    "relative entropy": (lambda K: lambda p: jnp.sum(p * jnp.log(p / np.arange(1.0, K + 1))), YES),
    "norm": (lambda K: jnp.linalg.norm, YES),
    "metric norm": (lambda K: lambda p: jnp.sqrt(p @ metric(K) @ p), YES),
    "one plus squares": (lambda K: lambda p: jnp.sqrt(1 + jnp.sum(p**2)), YES),
    "log-sum-exp": (lambda K: lambda p: jax.nn.logsumexp(5 * p) / 5, YES),
    "maximum": (lambda K: jnp.max, NO),
    "maximum and squares": (lambda K: lambda p: jnp.max(p) + jnp.sum(p**2), YES),
    "roots": (lambda K: lambda p: -jnp.sum(jnp.sqrt(p)), YES),
    "logarithms": (lambda K: lambda p: -jnp.sum(jnp.log(p)), YES),
    "inverses": (lambda K: lambda p: jnp.sum(1 / (p + 0.1)), YES),
    "softplus": (lambda K: lambda p: jnp.sum(jax.nn.softplus(8 * (p - 0.5))), YES),
    "logaddexp": (lambda K: lambda p: jnp.sum(jnp.logaddexp(3 * p, 1 - p)), YES),
    "exponential": (lambda K: lambda p: jnp.exp(jnp.sum(p**2)), YES),
    "quadratic": (lambda K: lambda p: jnp.einsum("i,ij,j->", p, metric(K), p), YES),
    "squared hinge": (lambda K: lambda p: jnp.sum(jax.nn.relu(p - 0.4) ** 2), NO),
    "Huber": (lambda K: lambda p: jnp.where(p[0] > 0.5, p[0] - 0.25, p[0] ** 2), NO),
    "Huber of distances": (lambda K: lambda p: jnp.sum(huber(p - 0.3)), NO),
    "cubes beyond a half": (
        lambda K: lambda p: jnp.sum(jnp.where(p > 0.5, p**2 + (p - 0.5) ** 3, p**2)),
        YES,
    ),
    "distances": (lambda K: lambda p: jnp.sum(jnp.abs(p - 1 / K)), NO),
    "affine": (lambda K: lambda p: 2 * p[0] - 3, NO),
    "sorted": (lambda K: lambda p: jnp.sort(p) @ jnp.arange(K * 1.0), NO),
    "Tsallis": (lambda K: generators.tsallis(1.5), YES),
    "steep Tsallis": (lambda K: generators.tsallis(0.5), YES),
    "waves": (lambda K: lambda p: jnp.sum(p**2 + 0.1 * jnp.sin(3 * p)), YES),
    "nested": (lambda K: jax.jit(lambda p: jax.checkpoint(lambda q: jnp.sum(q**4))(p)), YES),
    "p³ norm": (lambda K: lambda p: jnp.sum(p**3) ** (1 / 3), YES),
    "order 4 norm": (lambda K: lambda p: jnp.linalg.norm(p - 0.25, ord=4), YES),
    "square of roots": (lambda K: lambda p: -(jnp.sum(jnp.sqrt(p)) ** 2), YES),
    "geometric mean": (lambda K: lambda p: -jnp.exp(jnp.mean(jnp.log(p))), NO),  # flat on faces
    "root of a product": (lambda K: lambda p: -jnp.sqrt(p[0] * p[1]), NO),
    "quadratic over linear": (lambda K: lambda p: (p[0] - p[1]) ** 2 / (1 + p[2]), NO),
    "inverse product": (lambda K: lambda p: 1 / jnp.prod(1 + p), YES),
    "entropy in bits": (lambda K: lambda p: jnp.sum(p * jnp.log2(p)), YES),
    "root of what is left": (lambda K: lambda p: -jnp.sqrt(2 - jnp.sum(p**2)), YES),
    "ramp to the 1.5": (lambda K: lambda p: jnp.sum(jax.nn.relu(p - 0.4) ** 1.5), NO),
    "Hellinger": (lambda K: lambda p: jnp.sum((jnp.sqrt(p) - jnp.sqrt(0.2)) ** 2), YES),
    "loop": (lambda K: lambda p: jax.lax.fori_loop(0, K, lambda i, x: x + p[i] ** 2, 0.0), YES),
}
OTHERS = {  # not convex
    "minus squares": lambda K: lambda p: -jnp.sum(p**2),
    "product": lambda K: lambda p: p[0] * p[1],
    "large waves": lambda K: lambda p: jnp.sum(p**2 + 0.3 * jnp.sin(3 * p)),
    "minimum": lambda K: jnp.min,
    "dented by a kink": lambda K: lambda p: jnp.sum(p**2) - 0.02 * jnp.abs(p[0] - 0.5),
    "falling geometric mean": lambda K: lambda p: jnp.exp(jnp.mean(jnp.log(p))),
    "shallow quartic": lambda K: lambda p: jnp.sum(p**4 - 0.02 * p**2),
    "Rényi": lambda K: lambda p: jnp.log(jnp.sum(p**2)),
    # in a tiny region only
    "narrow bump": lambda K: (
        lambda p: jnp.sum(p**2) + 1e-4 * jnp.exp(-(((p[0] - 0.37) / 0.003) ** 2))
    ),
    "narrow softplus": lambda K: (
        lambda p: jnp.sum(p**2) - 1e-6 * jnp.logaddexp(0.0, (p[0] - 0.83) / 1e-4)
    ),
}
