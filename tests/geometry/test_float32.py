"""In float32, next to a vertex: five digits of the value and of the logit gradient, any generator.

The references are closed forms in float64, written in the displacement d = e_y − p so that they
do not cancel themselves.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom

K = 5
DELTAS = np.logspace(-1, -7, 13)
DRAW = np.random.default_rng(11)
RATIOS = np.log(DRAW.dirichlet(np.ones(K - 1), size=len(DELTAS)))
ROOT = DRAW.normal(size=(K, K))
A = np.eye(K) + ROOT @ ROOT.T
W = DRAW.normal(size=(4, K))
W = W / np.linalg.norm(W, axis=1, keepdims=True)
LABEL = 2


def integral(second_derivative, x, h):
    """f(x + h) − f(x) − h f′(x) = h² ∫ (1 − t) f″(x + th) dt, by forty nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    t = (1 + nodes) / 2
    return h**2 * np.sum(weights / 2 * (1 - t) * second_derivative(x[:, None] + np.outer(h, t)), 1)


def ridges(rho, lam=1.0, a=0.25):
    b = W.mean(axis=1)

    def v(p):
        return (W @ p - b) / rho

    def value(p, d):
        each = integral(lambda x: 1 / np.cosh(x) ** 2, v(p), W @ d / rho)
        return lam / 2 * d @ d + np.sum(a * rho**2 * each)

    def hessian(p):
        return lam * np.eye(K) + a * (W.T / np.cosh(v(p)) ** 2) @ W

    return lambda: pgeom.generators.hyperbolic(lam=lam, a=a, rho=rho, w=W, b=b), value, hessian


def tsallis(alpha):
    def value(p, d):  # the competitors' share is Σ p_j^α in closed form
        mine = integral(lambda x: alpha * x ** (alpha - 2), p[[LABEL]], d[[LABEL]])[0]
        return mine + np.sum(np.delete(p, LABEL) ** alpha)

    return (
        lambda: pgeom.generators.tsallis(alpha),
        value,
        lambda p: np.diag(alpha * p ** (alpha - 2)),
    )


def spherical_value(p, d):
    norm, rest = np.linalg.norm(p), np.delete(p, LABEL)
    return rest @ rest / (norm * (norm + p[LABEL]))


def spherical_hessian(p):
    return np.eye(K) / np.linalg.norm(p) - np.outer(p, p) / np.linalg.norm(p) ** 3


CASES = {
    "capm": (
        lambda: pgeom.generators.quadratic(A.astype(np.float32)),
        lambda p, d: 0.5 * d @ A @ d,
        lambda p: A,
    ),
    "hpg": ridges(rho=0.25),
    "hpg-sharp": ridges(rho=0.05),
    "cubic": (
        lambda: lambda p: jnp.sum(p**3),
        lambda p, d: np.sum(d**2 * (3 * p + d)),  # q³ − p³ − 3p²(q − p) with q = p + d
        lambda p: np.diag(6 * p),
    ),
    "user-squares": (
        lambda: lambda p: jnp.sum(p**2),
        lambda p, d: d @ d,
        lambda p: 2 * np.eye(K),
    ),
    "brier": (
        lambda: pgeom.generators.squared_norm,
        lambda p, d: d @ d,
        lambda p: 2 * np.eye(K),
    ),
    "shannon": (
        lambda: pgeom.generators.shannon,
        lambda p, d: -np.log1p(-d[LABEL]),
        lambda p: np.diag(1 / p),
    ),
    "tsallis-half": tsallis(0.5),
    "tsallis-1.5": tsallis(1.5),
    "tsallis-2.5": tsallis(2.5),
    "spherical": (lambda: pgeom.generators.spherical, spherical_value, spherical_hessian),
}


def logits():
    """Logits `[13, K]` whose 1 − p_y runs from 1e-1 to 1e-7, rounded to float32."""
    mine = np.log1p(-DELTAS) - np.log(DELTAS)
    return np.insert(RATIOS, LABEL, mine, axis=1).astype(np.float32)


def reference(value, hessian, z):
    """ℓ and ∇_z ℓ in float64, with d from the competitors' mass."""
    p = np.exp(z - np.max(z))
    p = p / np.sum(p)
    d = -p
    d[LABEL] = np.sum(np.delete(p, LABEL))
    g = -hessian(p) @ d
    g = g - g[LABEL]  # the softmax Jacobian does not see a constant
    return value(p, d), p * (g - p @ g)


@pytest.mark.parametrize("name", CASES)
def test_five_digits_of_value_and_gradient_and_never_negative(name):
    make, value, hessian = CASES[name]
    loss = pgeom.on_logits(pgeom.bregman_score(make()))
    z, others = logits(), np.random.default_rng(0).normal(size=(2000, K)) * 12
    rows = jnp.asarray(np.concatenate([z, others]), jnp.float32)
    labels = np.concatenate([np.full(len(z), LABEL), np.argmax(others, axis=1)])
    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(loss)))(rows, labels)
    assert np.all(values >= 0)
    actual = values[: len(z)], gradients[: len(z)]
    pairs = [reference(value, hessian, row.astype(np.float64)) for row in z]
    expected, slope = (np.stack(part) for part in zip(*pairs, strict=True))
    assert actual[0].dtype == actual[1].dtype == jnp.float32
    np.testing.assert_allclose(actual[0], expected, rtol=1e-5)
    size = np.linalg.norm(slope, axis=1, keepdims=True)
    np.testing.assert_allclose(actual[1] / size, slope / size, atol=1e-5)


def test_the_naive_form_would_fail():
    """The test has teeth: the definition, in float32, misses all of it."""

    def naive(z):
        p, e = jax.nn.softmax(z), jnp.eye(K)[LABEL]
        F = lambda p: jnp.sum(p**3)  # noqa: E731
        return F(e) - F(p) - jnp.dot(jax.grad(F)(p), e - p)

    z, (_, value, hessian) = logits(), CASES["cubic"]
    actual = np.asarray(jax.jit(jax.vmap(naive))(jnp.asarray(z)))
    expected = np.array([reference(value, hessian, row.astype(np.float64))[0] for row in z])
    assert np.max(np.abs(actual / expected - 1)) > 1


@pytest.mark.parametrize("name", ["capm", "hpg", "cubic"])
def test_soft_targets_keep_their_digits(name):
    """D_F(η, p) where η and p differ by a hundredth to a thousandth of each class."""
    make, value, _ = CASES[name]
    draws = np.random.default_rng(5)
    p = draws.dirichlet(np.full(K, 5.0), size=8).astype(np.float32)
    q = (p * (1 + 1e-2 * draws.uniform(0.1, 1, size=p.shape))).astype(np.float32)
    actual = jax.jit(pgeom.bregman_divergence(make()))(jnp.asarray(q), jnp.asarray(p))
    wide = [(a.astype(np.float64), b.astype(np.float64)) for a, b in zip(q, p, strict=True)]
    np.testing.assert_allclose(actual, [value(b, a - b) for a, b in wide], rtol=1e-4)
