"""Links and Fenchel–Young losses against fifty digits, in units of rounding.

A unit is ε times how far the answer moves if each logit, and each slope of F, moves by its own
size: no method that reads rounded numbers is more accurate. The reference starts at the point found
in float64, solves the equations of its face in fifty digits, and confirms every condition of a
maximum, which for a convex F leaves nothing of the start. A generator of `tests/test_accuracy.py`
joins by a line of `CASES`; run with `-s` to see the worst of each.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from tests.test_accuracy import GENERATORS, Convex, dot, mp, power, same, weighted

pytestmark = pytest.mark.usefixtures("unchecked_module")

SCALES = [1.0, 30.0, 1e4]
NEGLIGIBLE = 2.0**-126  # the smallest normal number of float32; fifty digits see no less
LIMITS = {"value": 32, "gradient": 32, "product": 32, "link": 32}  # units


class Case(NamedTuple):
    """A generator and its reference, of K; whether that is Σ f(p_k), and what finds the link.

    Where an interior-point method does, it is accurate to ε, not to ε of each entry.
    """

    make: Callable
    separable: bool = False
    interior: bool = False


SEPARABLE = ["shannon", "squared norm", "tsallis 0.5", "tsallis 1.5", "tsallis 3"]
SEPARABLE += ["shannon + squared norm"]
CASES = {
    **{name: Case(GENERATORS[name], separable=True) for name in SEPARABLE},
    "separable": Case(
        same(
            pgeom.generators.separable(lambda x: x**2 + x**4),
            weighted((1, power(2)), (1, power(4))),
        ),
        separable=True,
    ),
    "spherical": Case(GENERATORS["spherical"]),
    "quadratic": Case(GENERATORS["quadratic"]),
    "hyperbolic": Case(GENERATORS["hyperbolic"]),
    "user Σp³ + Σp²": Case(
        same(
            lambda p: jnp.sum(p**3) + jnp.sum(p**2),
            weighted((1, power(3)), (1, power(2))),
        ),
        separable=True,
    ),
    "user Σp log p": Case(GENERATORS["user Σp log p"], separable=True, interior=True),
}


def exact(values):
    """An array of floats as a list of mpmath numbers: the same numbers, to the last bit."""
    return [mp.mpf(float(x)) for x in values]


def curvature(F: Convex, x):
    """f″(x) of a separable function."""
    return F.product([x], [mp.mpf(1)])[0]


class Question(NamedTuple):
    """Logits, targets and directions, `[n, K]`, in float32 numbers."""

    z: np.ndarray
    eta: np.ndarray
    v: np.ndarray


@functools.cache
def questions(K, dtype):
    """Normal and uneven logits of every scale, each with a label, another one and a soft target."""
    rng = np.random.default_rng(K)
    z = [scale * rng.normal(size=K) for scale in SCALES]
    z += [
        np.where(np.arange(K) == 0, 0, -scale * rng.uniform(0.5, 1, K)) for scale in (45, 350, 1e4)
    ]
    z = np.repeat(np.stack(z), 3, axis=0).astype(np.float32)
    top = np.argmax(z, axis=1)
    eta = np.eye(K)[np.where(np.arange(len(z)) % 3 == 0, top, (top + 1) % K)]
    soft = rng.integers(0, 2, (len(z), K)) + np.eye(K)[top]
    soft = np.floor(256 * soft / soft.sum(axis=1, keepdims=True)) / 256
    soft[np.arange(len(z)), top] += 1 - soft.sum(axis=1)
    eta[2::3] = soft[2::3]
    v = rng.normal(size=(len(z), K)).astype(np.float32)
    return Question(*(np.asarray(x, dtype) for x in (z, eta, v)))


class Answer(NamedTuple):
    """Value, gradient and product with the Hessian, and the unit of each."""

    value: float
    gradient: np.ndarray
    product: np.ndarray
    units: tuple


def root_of_slope(F: Convex, x, log_p):
    """log p with f′(p) = x, by Newton steps in log p that bisection guards; −∞ where x ≤ f′(0)."""
    low, high = mp.mpf(-40000), mp.mpf(1)

    def excess(log_p):
        return F.gradient([mp.exp(log_p)])[0] - x

    if excess(low) >= 0:
        return mp.ninf
    log_p = log_p if low < log_p < high else mp.mpf(-1)
    for step in range(100):
        p, wrong = mp.exp(log_p), excess(log_p)
        low, high = (log_p, high) if wrong < 0 else (low, log_p)
        following = log_p - wrong / (p * curvature(F, p))
        if abs(following - log_p) < mp.mpf("1e-42") * (1 + abs(log_p)):
            return following
        guarded = low < following < high and not 8 <= step < 30
        log_p = following if guarded else (low + high) / 2
    raise AssertionError("the reference did not settle")


def separable_maximiser(F: Convex, z):
    """By Newton steps in the threshold, guarded by bisection: f′(p_k) = z_k − θ and Σp = 1."""
    K, logs = len(z), [mp.mpf(-1)] * len(z)
    top = max(z)
    low, high = (top - F.gradient([mp.mpf(x)])[0] for x in (1, mp.mpf(1) / K))
    theta = low
    for _ in range(200):
        logs = [root_of_slope(F, x - theta, log_p) for x, log_p in zip(z, logs, strict=True)]
        p = [mp.exp(log_p) for log_p in logs]
        excess = mp.fsum(p) - 1
        low, high = (theta, high) if excess > 0 else (low, theta)
        following = theta + excess / mp.fsum(1 / curvature(F, x) for x in p if x > 0)
        if abs(following - theta) <= mp.mpf("1e-38") * (1 + abs(theta)):
            return p
        theta = following if low < following < high else (low + high) / 2
    raise AssertionError("the reference did not settle")


def face_maximiser(F: Convex, z, start):
    """By Newton steps along the face of a start, then every condition of a maximum is confirmed."""
    p = exact(start)
    face = [k for k in range(len(z)) if p[k] > 0]
    for _ in range(400):
        slope, q = F.gradient(p), [mp.sqrt(p[k]) for k in face]
        right = [a * (z[k] - slope[k]) for k, a in zip(face, q, strict=True)] + [1 - mp.fsum(p)]
        *x, level = mp.lu_solve(bordered(F, p, face), mp.matrix(right))
        steps = [a * y for a, y in zip(q, x, strict=True)]
        for k, step in zip(face, steps, strict=True):
            p[k] = max(p[k] + step, p[k] / 10**6)  # a step may be far too long
        if max(abs(step) / p[k] for k, step in zip(face, steps, strict=True)) < mp.mpf("1e-25"):
            break
    slope = F.gradient(p)
    assert min(p[k] for k in face) > 0
    assert all(z[k] - slope[k] < level + mp.mpf("1e-30") for k in range(len(z)))
    return p


def jacobian(F: Convex, separable, p, face):
    """∂p/∂z on the face, of p = argmax ⟨z, p⟩ − F(p)."""
    if separable:
        D = [1 / curvature(F, p[k]) for k in face]
        total, m = mp.fsum(D), range(len(D))
        others = [mp.fsum(D[:i] + D[i + 1 :]) for i in m]  # no difference, which would cancel
        return [[D[i] * (others[i] if i == j else -D[j]) / total for j in m] for i in m]
    inverse, m = bordered(F, p, face) ** -1, range(len(face))
    return [[mp.sqrt(p[face[i]] * p[face[j]]) * inverse[i, j] for j in m] for i in m]


def bordered(F: Convex, p, face):
    """The matrix of Hx + t1 = r, Σx = 0 on the face, for x/√p and √p r."""
    ends = [[mp.mpf(j == k) for j in range(len(p))] for k in range(len(p))]
    H, q = [F.product(p, end) for end in ends], [mp.sqrt(p[k]) for k in face]
    rows = [
        [a * H[i][j] * b for j, b in zip(face, q, strict=True)] + [a]
        for i, a in zip(face, q, strict=True)
    ]
    return mp.matrix([*rows, [*q, mp.mpf(0)]])


def responses(F: Convex, separable, p, z):
    """∂p/∂z `[K, K]`, and how far p moves with logits and slopes of F by their sizes."""
    face = [k for k in range(len(p)) if p[k] > NEGLIGIBLE]
    J, index = np.zeros((len(z), len(z))), np.ix_(face, face)
    J[index] = np.array(jacobian(F, separable, p, face), np.float64)
    sizes = np.array([float(max(z) - x) for x in z])
    slope = F.gradient([p[k] for k in face]) if separable else F.gradient(p)
    sizes[face] += np.abs(np.array(slope if separable else [slope[k] for k in face], np.float64))
    return J, np.abs(J) @ sizes


def answer(F: Convex, p, moves, z, eta, v, eps) -> Answer:
    """Value, gradient p − η and product, from the maximiser p."""
    behind = [x - max(z) for x in z]
    value = dot(behind, p) - F.value(p) - dot(behind, eta) + F.value(eta)
    gradient = np.array([a - b for a, b in zip(p, eta, strict=True)], np.float64)
    P, far = np.array(p, np.float64), np.abs(np.array(behind, np.float64))
    (J, moved), present = moves, P > NEGLIGIBLE
    worst = np.max(moved[present] / P[present])
    units = (
        eps * (abs(float(value)) + np.abs(gradient) @ far),
        eps * (np.abs(gradient) + moved),
        eps * (np.abs(J) @ np.abs(v)) * (1 + worst),
        eps * (P + moved),
    )
    return Answer(float(value), gradient, J @ v, units)


def measured(name, K, dtype, loss=pgeom.fenchel_young):
    """The largest error of value, gradient, link and product, in units."""
    case, ask = CASES[name], questions(K, dtype)
    (F, digits), mp.dps = case.make(K), 50

    @jax.jit
    def program(z, eta, v):
        gradient = jax.grad(lambda z: jnp.sum(loss(F)(z, eta)))
        slope, product = jax.jvp(gradient, (z,), (v,))
        return loss(F)(z, eta), slope, product, pgeom.canonical_link(F)(z)

    with jax.enable_x64(True):
        values, slopes, products, links = (np.asarray(x, np.float64) for x in program(*ask))
        starts = np.asarray(jax.jit(pgeom.canonical_link(F))(ask.z.astype(np.float64)))
    starts = np.maximum(starts, 1e-30) if case.interior else starts
    eps = float(np.finfo(dtype).eps)
    worst, p = np.zeros(4), None
    for i in range(len(ask.z)):
        z, eta = exact(ask.z[i]), exact(ask.eta[i])
        if i % 3 == 0:
            p = (
                separable_maximiser(digits, z)
                if case.separable
                else face_maximiser(digits, z, starts[i])
            )
            moves = responses(digits, case.separable, p, z)
        right = answer(digits, p, moves, z, eta, ask.v[i].astype(np.float64), eps)
        units = [unit + (eps if case.interior else NEGLIGIBLE) for unit in right.units]
        errors = [
            abs(values[i] - right.value) / units[0],
            np.max(np.abs(slopes[i] - right.gradient) / units[1]),
            np.max(np.abs(products[i] - right.product) / units[2]),
            np.max(np.abs(links[i] - np.array(p, np.float64)) / units[3]),
        ]
        worst = np.fmax(worst, np.where(np.isnan(errors), np.inf, errors))
    return worst


SINGLE = [(name, K, np.float32) for name in CASES for K in (3, 30)]
DOUBLE = [(name, 3, np.float64) for name in CASES if name not in SEPARABLE]


@pytest.mark.parametrize(("name", "K", "dtype"), SINGLE + DOUBLE)
def test_every_answer_is_within_a_few_units(name, K, dtype):
    worst = dict(zip(LIMITS, measured(name, K, dtype), strict=True))
    shown = ", ".join(f"{quantity} {units:.1f}" for quantity, units in worst.items())
    print(f"{name}, K = {K}, {np.dtype(dtype).name}: {shown}")
    for quantity, units in worst.items():
        assert units <= LIMITS[quantity], quantity


@pytest.mark.parametrize("name", ["shannon", "tsallis 1.5"])
def test_a_wrong_formula_is_seen(name):
    """The loss at logits of which one is off by a part in ten thousand."""

    def wrong(F):
        loss = pgeom.fenchel_young(F)
        return lambda z, eta: loss(z.at[:, 0].multiply(1 + 1e-4), eta)

    worst = dict(zip(LIMITS, measured(name, 3, np.float32, wrong), strict=True))
    assert worst["value"] > LIMITS["value"] and worst["gradient"] > LIMITS["gradient"]
