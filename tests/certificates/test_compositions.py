"""Random compositions of functions, of which no search contradicts the certificate."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.simplex import tangent_basis
from proofs_numeric import checker

pytestmark = pytest.mark.usefixtures("unchecked_module")

ROUNDING = 1e-7  # of curvature, relative to its size


def form(rng, K):
    """An affine function, half of the time positive."""
    w = rng.integers(-4, 5, K) / 2.0
    shift = (
        float(-w.min() + rng.choice([0.0, 0.5])) if rng.random() < 0.5 else rng.integers(-2, 3) / 4
    )
    return lambda p: w @ p + shift


def positive(rng, K):
    w, shift = rng.integers(0, 4, K) / 2.0, float(rng.choice([0.25, 1.0]))
    return lambda p: w @ p + shift


def terms(rng, K):
    """Kinds of terms, each as a function that draws one."""
    r = float(rng.choice([0.3, 0.5, 1.5, 2.0, 2.5, 3.0, 4.0]))
    q = float(rng.choice([1.5, 2.0, 3.0, 4.0]))
    a, b, c = form(rng, K), positive(rng, K), positive(rng, K)
    e = [float(x) for x in rng.choice([-2.0, -1.0, -0.5, 1 / 3, 0.5, 1.0, 1.5, 2.0], 2)]
    return {
        "power": lambda p: jnp.sum(p**r),
        "lq norm": lambda p: jnp.sum(p**q) ** (1 / q),
        "geometric mean": lambda p: jnp.exp(jnp.mean(jnp.log(p))),
        "product of powers": lambda p: b(p) ** e[0] * c(p) ** e[1],
        "quotient": lambda p: a(p) ** 2 / b(p),
        "ramp": lambda p: jax.nn.relu(a(p)) ** max(r, 1.5),
        "kink": lambda p: jnp.abs(a(p)),
        "entropy": lambda p: jnp.sum(p * jnp.log(p)),
        "logarithm": lambda p: jnp.log(b(p)),
        "softplus": lambda p: jax.nn.softplus(3 * a(p)),
        "log-sum-exp": lambda p: jax.nn.logsumexp(jnp.stack([a(p), b(p), 2 * c(p)])),
        "loop": lambda p: jax.lax.fori_loop(0, K, lambda i, x: x + p[i] ** 2 * b(p), 0.0),
        "exponential": lambda p: jnp.exp(a(p) ** 2 + b(p)),
    }


def generator(seed):
    """A sum of one to three terms, with both signs, perhaps inside another function."""
    rng = np.random.default_rng([18, seed])
    K = int(rng.integers(2, 6))
    chosen = []
    for _ in range(rng.integers(1, 4)):
        kinds = terms(rng, K)
        name = str(rng.choice(list(kinds)))
        factor = float(rng.choice([1.0, 1.0, 1.0, 0.25, -0.05, -1.0]))
        chosen.append((factor, name, kinds[name]))
    outer = str(rng.choice(["", "", "", "exp", "square", "root", "relu"]))
    functions = {
        "": lambda x: x,
        "exp": lambda x: jnp.exp(0.5 * x),
        "square": lambda x: (x + 3) ** 2,
        "root": lambda x: jnp.sqrt(1 + x**2),
        "relu": lambda x: jax.nn.relu(x - 0.5),
    }

    def F(p):
        return functions[outer](sum(c * f(p) for c, _, f in chosen))

    shown = " ".join(f"{c:+g}·{name}" for c, name, _ in chosen)
    return F, K, f"{outer}({shown}), K = {K}"


def search(F, K):
    """The least and the largest curvature at many points, and the size of each Hessian."""
    rng = np.random.default_rng(K)
    parts = [rng.dirichlet(np.full(K, a), 1500) for a in (0.3, 1.0, 4.0)]
    parts += [0.999 * rng.dirichlet(np.full(K, a), 500) + 0.001 / K for a in (0.05, 0.3)]
    points = np.concatenate(parts)
    points = points[points.min(axis=1) > 1e-6]
    with jax.enable_x64(True):
        H = np.asarray(jax.jit(jax.vmap(jax.hessian(F)))(jnp.asarray(points)))
    basis = tangent_basis(K)
    H = basis.T @ H @ basis
    H = H[np.isfinite(H).all(axis=(1, 2))]
    values = np.linalg.eigvalsh(H)
    return values[:, 0], values[:, -1], np.abs(values).max(axis=1)


def faults(seed):
    """What contradicts the certificate of a random generator, and the certificate."""
    F, K, shown = generator(seed)
    found = pgeom.certify(F, K)
    low, high, size = search(F, K)
    slack = ROUNDING * (1 + size)
    complaints = []
    if found.convex == "proved" and (low < -slack).any():
        complaints.append("proved, but it bends down")
    if found.m_tangent is not None and (low < float(found.m_tangent) - slack).any():
        complaints.append("m_T is too large")
    if found.M_tangent is not None and (high > float(found.M_tangent) + slack).any():
        complaints.append("M_T is too small")
    if found.convex == "disproved" and not _falls(F, found.witness):
        complaints.append("disproved, but the witness does not fall")
    try:
        checker.verify(json.loads(json.dumps(found.document)))
    except Exception as error:
        complaints.append(f"refused: {error}")
    return complaints, found, shown


def _falls(F, witness):
    """Whether D_F(η, p) is negative at the witness up to rounding."""
    with jax.enable_x64(True):
        eta, p = jnp.asarray(witness.eta), jnp.asarray(witness.p)
        value = F(eta) - F(p) - jnp.vdot(jax.grad(F)(p), eta - p)
        return bool(value <= 1e-12 * (1 + abs(F(p))))


@pytest.mark.parametrize("seed", range(4))
def test_no_search_contradicts_a_certificate(seed):
    complaints, found, shown = faults(seed)
    assert not complaints, (shown, found)


def test_the_search_contradicts_a_false_certificate(monkeypatch):
    true = pgeom.certify
    cubes = (lambda p: jnp.sum(p**3), 3, "Σp³")
    monkeypatch.setitem(globals(), "generator", lambda seed: cubes)
    monkeypatch.setattr(pgeom, "certify", lambda F, K: true(lambda p: F(p) + jnp.sum(p**2), K))
    assert faults(0)[0] == ["m_T is too large"]


def test_the_search_finds_curvature():
    low, high, _ = search(lambda p: jnp.sum(p**3), 3)
    assert np.min(low) < 0.1 and np.max(high) > 2.5
