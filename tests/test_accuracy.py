"""Every loss and every score beside mpmath: value, gradient and Hessian-vector product, in ε.

A loss joins by one line of `LOSSES`, a generator by one line of `GENERATORS`. References are direct
formulas in 150 digits, 1,300 for float64, which may therefore cancel where they please: only that
p and 1 − p are sums of exponentials is used. The product with a direction is the central difference
of the gradient, with a step of 1e-40.

`pytest -rP tests/test_accuracy.py` prints the worst case of each.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import pgeom

pytestmark = pytest.mark.usefixtures("unchecked_module")

mp = mpmath.MPContext()  # a context of its own: nobody else's precision changes
STEP = "1e-40"
DIGITS = {np.float32: 150, np.float64: 1300}
GRID = 2.0**-6  # differences of logits on this grid are exact in float32

G, L = pgeom.generators, pgeom.losses


class Point:
    """A point of the logits `[K]` in many digits, with what references need of its softmax."""

    def __init__(self, z):
        self.z, self.K = z, len(z)
        top = max(z)
        self.powers = [mp.exp(x - top) for x in z]
        total = mp.fsum(self.powers)
        log_total = mp.log(total)
        self.p = [x / total for x in self.powers]
        self.log_p = [x - top - log_total for x in z]
        self.total = total
        self.kept = {}

    def rest(self, y):
        """1 − p_y."""
        return mp.fsum(x for j, x in enumerate(self.powers) if j != y) / self.total

    def once(self, key, compute):
        """What `compute` returned the first time that it was asked for under this key."""
        if key not in self.kept:
            self.kept[key] = compute()
        return self.kept[key]


class Reference(NamedTuple):
    """The value and the gradient in the logits of `(point, eta)`; η = e_y stands for a label."""

    value: Callable
    slope: Callable


def dot(x, y):
    return mp.fdot(zip(x, y, strict=True))


def of_softmax(p, slope):
    """The gradient in the logits of a function of p with this gradient: J·slope."""
    mean = dot(p, slope)
    return [p_k * (s - mean) for p_k, s in zip(p, slope, strict=True)]


def label_of(eta):
    return eta.index(max(eta))


def of_label(value, rate):
    """A function of log p_y: `value(log p_y, p_y, 1 − p_y)`, and its derivative `rate`."""

    def parts(point, y):
        return point.log_p[y], point.p[y], point.rest(y)

    def slope(point, eta):
        y = label_of(eta)
        times = rate(*parts(point, y))
        return [times * (point.rest(y) if k == y else -p) for k, p in enumerate(point.p)]

    return Reference(lambda point, eta: value(*parts(point, label_of(eta))), slope)


def expected_log(weights):
    """−Σ_k w_k log p_k with w = weights(η)."""
    return Reference(
        lambda point, eta: -dot(weights(eta), point.log_p),
        lambda point, eta: [p - w for p, w in zip(point.p, weights(eta), strict=True)],
    )


def shifted(reference, shift, scale=1):
    """The reference at scale·(z + shift(η)); `shift` gives a list `[K]`."""

    def moved(point, eta):
        key = ("shifted", scale, tuple(shift(eta)))
        new = [scale * (z + s) for z, s in zip(point.z, shift(eta), strict=True)]
        return point.once(key, lambda: Point(new))

    return Reference(
        lambda point, eta: reference.value(moved(point, eta), eta),
        lambda point, eta: [scale * s for s in reference.slope(moved(point, eta), eta)],
    )


def times(weight, reference):
    """weight(y) times a reference."""
    return Reference(
        lambda point, eta: weight(label_of(eta)) * reference.value(point, eta),
        lambda point, eta: [weight(label_of(eta)) * s for s in reference.slope(point, eta)],
    )


def plus(*references):
    return Reference(
        lambda point, eta: mp.fsum(r.value(point, eta) for r in references),
        lambda point, eta: [
            mp.fsum(parts) for parts in zip(*(r.slope(point, eta) for r in references), strict=True)
        ],
    )


CROSS_ENTROPY = expected_log(lambda eta: eta)


def focal(gamma):
    return of_label(
        lambda log_p, p, rest: -(rest**gamma) * log_p,
        lambda log_p, p, rest: gamma * p * rest ** (gamma - 1) * log_p - rest**gamma,
    )


def power_loss(q):
    q = mp.mpf(q)
    return of_label(
        lambda log_p, p, rest: -mp.expm1(q * log_p) / q, lambda log_p, p, rest: -mp.exp(q * log_p)
    )


def complement(scale):
    return of_label(lambda log_p, p, rest: scale * rest, lambda log_p, p, rest: -scale * p)


def _normalised_value(point, eta):
    return point.log_p[label_of(eta)] / mp.fsum(point.log_p)


def _normalised_slope(point, eta):
    y, total = label_of(eta), mp.fsum(point.log_p)
    of_total = [1 - point.K * p for p in point.p]
    return [
        ((point.rest(y) if k == y else -p) - point.log_p[y] / total * t) / total
        for k, (p, t) in enumerate(zip(point.p, of_total, strict=True))
    ]


NORMALISED = Reference(_normalised_value, _normalised_slope)


def bi_tempered(t1, t2):
    """−log_{t1} p_y − (1 − Σ p_k^{2−t1})/(2 − t1), with λ by bisection and Newton steps."""

    def solve(point):
        z = [x - max(point.z) for x in point.z]

        def power(x):
            base = 1 + (1 - t2) * x
            return base ** (1 / (1 - t2)) if base > 0 else mp.mpf(0)

        def excess(lam):
            return mp.fsum(power(x - lam) for x in z) - 1

        low, high = mp.mpf(0), (mp.mpf(point.K) ** (t2 - 1) - 1) / (t2 - 1)
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        lam = low  # Σp is convex in λ, so that steps from below stay below
        for _ in range(12):
            p = [power(x - lam) for x in z]
            lam += (mp.fsum(p) - 1) / mp.fsum(x**t2 for x in p)
        return [power(x - lam) for x in z]

    def probabilities(point):
        return point.once(("bi-tempered", t2), lambda: solve(point))

    def value(point, eta):
        p, y = probabilities(point), label_of(eta)
        total = mp.fsum(x ** (2 - t1) for x in p)
        return -((p[y] ** (1 - t1) - 1) / (1 - t1)) - (1 - total) / (2 - t1)

    def slope(point, eta):
        p, y = probabilities(point), label_of(eta)
        escort = [x**t2 for x in p]
        total = mp.fsum(escort)
        in_p = [x ** (1 - t1) - (p[y] ** -t1 if k == y else 0) for k, x in enumerate(p)]
        mean = dot(escort, in_p) / total
        return [e * (s - mean) for e, s in zip(escort, in_p, strict=True)]

    return Reference(value, slope)


def penalty(tau, kappa, nu):
    """E_η r(p, Y), the margin penalty."""
    tau, kappa, nu = mp.mpf(tau), mp.mpf(kappa), mp.mpf(nu)

    def one(point, y):
        def compute():
            powers = [mp.exp(p / tau) if k != y else mp.mpf(0) for k, p in enumerate(point.p)]
            total = mp.fsum(powers)
            short = (kappa - point.p[y] + tau * mp.log(total)) / nu
            rate = 1 / (1 + mp.exp(-short))
            shares = [rate * x / total for x in powers]
            shares[y] -= rate
            return nu * mp.log1p(mp.exp(short)), of_softmax(point.p, shares)

        return point.once(("penalty", y), compute)

    def value(point, eta):
        return mp.fsum(w * one(point, y)[0] for y, w in enumerate(eta) if w)

    def slope(point, eta):
        parts = [[w * s for s in one(point, y)[1]] for y, w in enumerate(eta) if w]
        return [mp.fsum(entries) for entries in zip(*parts, strict=True)]

    return Reference(value, slope)


class Convex(NamedTuple):
    """A generator: F, ∇F and the product of its Hessian at p with d."""

    value: Callable
    gradient: Callable
    product: Callable


def score(F):
    """Σ_y η_y D_F(e_y, p)."""

    def value(point, eta):
        here, slope = point.once(("F", F), lambda: (F.value(point.p), F.gradient(point.p)))
        d = [q - p for q, p in zip(eta, point.p, strict=True)]
        ends = _vertex_values(F, point.K)
        return dot(eta, ends) - here - dot(slope, d)

    def slope(point, eta):
        d = [q - p for q, p in zip(eta, point.p, strict=True)]
        d = [
            q - p if q < 1 else point.rest(k)
            for k, (q, p) in enumerate(zip(eta, point.p, strict=True))
        ]
        return [-s for s in of_softmax(point.p, F.product(point.p, d))]

    return Reference(value, slope)


@cache
def _vertex_values(F, K):
    return [F.value([mp.mpf(j == k) for j in range(K)]) for k in range(K)]


def separable(f, slope, curvature):
    return Convex(
        lambda p: mp.fsum(f(x) for x in p),
        lambda p: [slope(x) for x in p],
        lambda p, d: [curvature(x) * y for x, y in zip(p, d, strict=True)],
    )


def power(a, sign=1, factor=1):
    a, factor = mp.mpf(a), mp.mpf(factor) * sign
    return separable(
        lambda x: factor * x**a,
        lambda x: factor * a * x ** (a - 1),
        lambda x: factor * a * (a - 1) * x ** (a - 2),
    )


ENTROPY = separable(lambda x: x * mp.log(x) if x else x, lambda x: mp.log(x) + 1, lambda x: 1 / x)


def tsallis(a):
    a = mp.mpf(a)
    return separable(
        lambda x: (x**a - x) / (a - 1),
        lambda x: (a * x ** (a - 1) - 1) / (a - 1),
        lambda x: a * x ** (a - 2),
    )


def weighted(*parts):
    """Σ c_i F_i."""
    c, F = [mp.mpf(c) for c, _ in parts], [F for _, F in parts]
    return Convex(
        lambda p: dot(c, [f.value(p) for f in F]),
        lambda p: [dot(c, e) for e in zip(*(f.gradient(p) for f in F), strict=True)],
        lambda p, d: [dot(c, e) for e in zip(*(f.product(p, d) for f in F), strict=True)],
    )


def norm(p):
    return mp.sqrt(dot(p, p))


SPHERICAL = Convex(
    norm,
    lambda p: [x / norm(p) for x in p],
    lambda p, d: [y / norm(p) - x * dot(p, d) / norm(p) ** 3 for x, y in zip(p, d, strict=True)],
)


def log_sum_exp(c):
    def shares(p):
        powers = [mp.exp(c * x) for x in p]
        return [x / mp.fsum(powers) for x in powers]

    def product(p, d):
        s = shares(p)
        return [c**2 * x * (y - dot(s, d)) for x, y in zip(s, d, strict=True)]

    return Convex(
        lambda p: mp.log(mp.fsum(mp.exp(c * x) for x in p)),
        lambda p: [c * x for x in shares(p)],
        product,
    )


def ridges(lam, a, rho, w, b):
    """λ/2 ‖p − u‖² + Σ_r a ρ² log cosh((w_r·p − b_r)/ρ)."""
    w, b = [[mp.mpf(float(x)) for x in row] for row in w], [mp.mpf(float(x)) for x in b]
    lam, a, rho = mp.mpf(lam), mp.mpf(a), mp.mpf(rho)

    def values(p):
        return [(dot(w_r, p) - b_r) / rho for w_r, b_r in zip(w, b, strict=True)]

    def back(x):
        return [dot(x, column) for column in zip(*w, strict=True)]

    def gradient(p):
        parts = back([a * rho * mp.tanh(v) for v in values(p)])
        return [lam * (x - mp.mpf(1) / len(p)) + y for x, y in zip(p, parts, strict=True)]

    def product(p, d):
        bends = [a * mp.sech(v) ** 2 * dot(w_r, d) for v, w_r in zip(values(p), w, strict=True)]
        return [lam * x + y for x, y in zip(d, back(bends), strict=True)]

    return Convex(
        lambda p: (
            lam / 2 * mp.fsum((x - mp.mpf(1) / len(p)) ** 2 for x in p)
            + a * rho**2 * mp.fsum(mp.log(mp.cosh(v)) for v in values(p))
        ),
        gradient,
        product,
    )


def low_rank(c):
    """½ (p − u)ᵀ(I + ccᵀ)(p − u)."""
    c = [mp.mpf(float(x)) for x in c]

    def product(p, d):
        along = dot(c, d)
        return [x + along * y for x, y in zip(d, c, strict=True)]

    def centred(p):
        return [x - mp.mpf(1) / len(p) for x in p]

    return Convex(
        lambda p: dot(centred(p), product(p, centred(p))) / 2,
        lambda p: product(p, centred(p)),
        product,
    )


def directions(K):
    """Three directions `[3, K]` of norm below one, and offsets `[3]`, that floats hold exactly."""
    draws = np.random.default_rng(K)
    w = draws.integers(-8, 9, size=(3, K)) / (16 * np.ceil(np.sqrt(K)))
    w = np.round(w * 256) / 256
    return w, draws.integers(-8, 9, size=3) / 64


def coefficients(K):
    return np.random.default_rng(K).integers(-8, 9, size=K) / 8


def hyperbolic(K, rho=0.25):
    w, b = directions(K)
    constants = {"lam": 0.75, "a": 0.5, "rho": rho, "w": w, "b": b}
    return G.hyperbolic(**constants), ridges(**constants)


def quadratic(K):
    c = coefficients(K)
    return G.quadratic(np.eye(K) + np.outer(c, c)), low_rank(c)


def same(F, reference):
    """A generator for any number of classes."""
    return lambda K: (F, reference)


GENERATORS = {  # of K, the generator and its reference
    "shannon": same(G.shannon, ENTROPY),
    "squared norm": same(G.squared_norm, power(2)),
    "spherical": same(G.spherical, SPHERICAL),
    **{f"tsallis {a}": lambda K, a=a: (G.tsallis(a), tsallis(a)) for a in (0.25, 0.5, 1.5, 2.5, 3)},
    "quadratic": quadratic,
    "hyperbolic": hyperbolic,
    "hyperbolic, sharp": lambda K: hyperbolic(K, 2.0**-6),
    "separable x⁴": same(G.separable(lambda x: x**4), power(4)),
    "shannon + squared norm": same(
        0.5 * G.shannon + G.squared_norm, weighted((0.5, ENTROPY), (1, power(2)))
    ),
    "tsallis + spherical": lambda K: (
        G.tsallis(0.5) + 2 * G.spherical,
        weighted((1, tsallis(0.5)), (2, SPHERICAL)),
    ),
    "user Σp²": same(lambda p: jnp.sum(p**2), power(2)),
    "user Σp³": same(lambda p: jnp.sum(p**3), power(3)),
    "user Σp log p": same(lambda p: jnp.sum(p * jnp.log(p)), ENTROPY),
    "user 2Σ(p − √p)": same(lambda p: 2 * jnp.sum(p - jnp.sqrt(p)), tsallis(0.5)),
    "user 4/3 Σ(p − p^¼)": same(lambda p: jnp.sum(p - p**0.25) / 0.75, tsallis(0.25)),
    "user ‖p‖": same(lambda p: jnp.sqrt(jnp.sum(p**2)), SPHERICAL),
    "user log Σ exp 5p": same(lambda p: jax.nn.logsumexp(5 * p), log_sum_exp(5)),
}


def counts(K):
    return np.arange(K, 0, -1) * 3


def _log_counts(eta):
    return [mp.log(3 * (len(eta) - k)) for k in range(len(eta))]


def _margins(eta):
    y, K = label_of(eta), len(eta)
    margin = mp.mpf(0.5) * (mp.mpf(1) / (K - y)) ** mp.mpf(0.25)
    return [-margin if k == y else mp.mpf(0) for k in range(K)]


def _class_weights(K):
    weights = [(1 - mp.mpf(0.75)) / (1 - mp.mpf(0.75) ** (3 * (K - k))) for k in range(K)]
    mean = mp.fsum(weights) / K
    return [w / mean for w in weights]


def _smoothed(eta):
    return [mp.mpf(0.875) * w + mp.mpf(0.125) / len(eta) for w in eta]


def with_constants(loss, **constants):
    return lambda logits, labels: loss(logits, labels, **constants)


class Case(NamedTuple):
    """A loss, its reference, and whether it takes soft targets."""

    loss: Callable
    reference: Reference
    soft: bool = False


def _score_case(generator):
    def case(K):
        F, reference = generator(K)
        return Case(pgeom.on_logits(pgeom.bregman_score(F)), score(reference), soft=True)

    return case


def _apms(K):
    F, reference = hyperbolic(K)
    constants = {"tau": 0.125, "kappa": 0.25, "nu": 0.125}
    loss = pgeom.apms(F, beta0=0.5, horizon=10.0, **constants)
    full = plus(score(reference), times(lambda y: mp.mpf(0.25), penalty(**constants)))
    return Case(lambda z, y: loss(z, y, 5), full, soft=True)


LOSSES = {  # of K
    "cross_entropy": lambda K: Case(L.cross_entropy, CROSS_ENTROPY, soft=True),
    "label_smoothing": lambda K: Case(
        with_constants(L.label_smoothing, epsilon=0.125), expected_log(_smoothed)
    ),
    "brier": lambda K: Case(L.brier, score(power(2)), soft=True),
    "mean_absolute_error": lambda K: Case(L.mean_absolute_error, complement(2)),
    **{
        f"focal {g}": lambda K, g=g: Case(with_constants(L.focal, gamma=g), focal(g))
        for g in (0.5, 2.0)
    },
    "generalized_cross_entropy": lambda K: Case(
        with_constants(L.generalized_cross_entropy, q=0.75), power_loss(0.75)
    ),
    "symmetric_cross_entropy": lambda K: Case(
        with_constants(L.symmetric_cross_entropy, alpha=0.125, beta=1.0, A=-4.0),
        plus(times(lambda y: mp.mpf(0.125), CROSS_ENTROPY), complement(4)),
    ),
    "active_passive": lambda K: Case(L.active_passive, plus(NORMALISED, complement(1))),
    "poly1": lambda K: Case(L.poly1, plus(CROSS_ENTROPY, complement(1))),
    "poly1 −1": lambda K: Case(
        with_constants(L.poly1, epsilon=-1.0),
        of_label(lambda log_p, p, rest: -log_p - rest, lambda log_p, p, rest: -rest),
    ),
    **{
        f"bi_tempered {t1}, {t2}": lambda K, t=(t1, t2): Case(
            with_constants(L.bi_tempered, t1=t[0], t2=t[1]), bi_tempered(*map(mp.mpf, t))
        )
        for t1, t2 in ((0.75, 1.25), (0.5, 2.0))
    },
    "class_balanced_cross_entropy": lambda K: Case(
        with_constants(L.class_balanced_cross_entropy, class_counts=counts(K), beta=0.75),
        times(lambda y: _class_weights(K)[y], CROSS_ENTROPY),
    ),
    "balanced_softmax": lambda K: Case(
        with_constants(L.balanced_softmax, class_counts=counts(K)),
        shifted(CROSS_ENTROPY, _log_counts),
    ),
    "logit_adjustment": lambda K: Case(
        with_constants(L.logit_adjustment, class_counts=counts(K), tau=0.5),
        shifted(CROSS_ENTROPY, lambda eta: [x / 2 for x in _log_counts(eta)]),
    ),
    "ldam": lambda K: Case(
        with_constants(L.ldam, class_counts=counts(K)), shifted(CROSS_ENTROPY, _margins, 8)
    ),
    "temperature 3": lambda K: Case(
        pgeom.on_logits(pgeom.bregman_score(G.shannon), temperature=3.0),
        shifted(CROSS_ENTROPY, lambda eta: [mp.mpf(0)] * len(eta), mp.mpf(1) / 3),
        soft=True,
    ),
    "apms": _apms,
    **{name: _score_case(generator) for name, generator in GENERATORS.items()},
}


def on_grid(x):
    return np.round(np.asarray(x) / GRID) * GRID


@cache
def logits_of(K):
    """Logits `[n, K]`: of every scale, tied, very uneven, and with one class far ahead."""
    draws = np.random.default_rng(K)
    scales = [scale * draws.normal(size=K) for scale in (1, 20, 100, 1e4)]
    tied = [np.zeros(K), np.where(np.arange(K) < 2, 0.0, -3.0 * np.arange(K))]
    uneven = [np.linspace(0.0, -60.0, K)]
    ahead = []
    for gap in (5.0, 16.0, 30.0):
        ahead.append(draws.normal(size=K))
        ahead[-1][draws.integers(K)] += gap
    rows = on_grid(scales + tied + uneven + ahead)
    return rows if K <= 3 else rows[[0, 1, 3, 5, 8]]  # references take time in proportion to K


@cache
def labels_of(K):
    return tuple(range(K)) if K <= 3 else (0, K // 2, K - 1)


@cache
def targets_of(K):
    """Soft targets `[3, K]` that sum to one exactly: random, of two classes, and smoothed."""
    parts = 2.0**12
    random = np.random.default_rng(K).dirichlet(np.full(K, 0.5), size=1)
    random = np.floor(random * parts) / parts
    random[:, 0] += 1 - np.sum(random)
    halves = np.zeros(K)
    halves[[0, K - 1]] = 0.25, 0.75
    smoothed = np.full(K, 2.0**-20)
    smoothed[1] += 1 - np.sum(smoothed)
    return np.stack([*random, halves, smoothed])


@cache
def points(K, digits):
    """Three points per row of logits, on either side of it too, and the direction of that side."""
    mp.dps = digits
    step = mp.mpf(STEP)
    vs = on_grid(np.random.default_rng(7).normal(size=(len(logits_of(K)), K)))
    triples = []
    for z, v in zip(logits_of(K), vs, strict=True):
        z, v = [mp.mpf(x) for x in z.tolist()], [mp.mpf(x) for x in v.tolist()]
        either = [[x + s * step * y for x, y in zip(z, v, strict=True)] for s in (1, -1)]
        triples.append((Point(z), *map(Point, either)))
    return vs, triples


def examples(K, soft):
    """Indices of logits `[n]` and targets `[n, K]`."""
    targets = targets_of(K) if soft else np.eye(K)[list(labels_of(K))]
    rows = np.repeat(np.arange(len(logits_of(K))), len(targets))
    return rows, np.tile(targets, (len(logits_of(K)), 1))


def expected(reference, K, soft, digits):
    """Value `[n, 1]`, gradient and product `[n, K]`, as objects."""
    mp.dps = digits
    step = mp.mpf(STEP)
    _, triples = points(K, digits)
    results = []
    for row, target in zip(*examples(K, soft), strict=True):
        here, ahead, behind = triples[row]
        eta = [mp.mpf(x) for x in target.tolist()]
        pair = zip(reference.slope(ahead, eta), reference.slope(behind, eta), strict=True)
        product = [(x - y) / (2 * step) for x, y in pair]
        results.append(([reference.value(here, eta)], reference.slope(here, eta), product))
    return [np.array(part, object) for part in zip(*results, strict=True)]


def computed(loss, K, soft, dtype):
    """The same by the library, in one program."""
    rows, targets = examples(K, soft)
    vs, _ = points(K, DIGITS[dtype])
    labels = jnp.asarray(targets, dtype) if soft else jnp.asarray(np.argmax(targets, axis=1))

    @jax.jit
    @jax.vmap
    def all_three(z, v, labels):
        def both(z):
            value, slope = jax.value_and_grad(loss)(z, labels)
            return slope, (value[None], slope)

        _, product, (value, slope) = jax.jvp(both, (z,), (v,), has_aux=True)
        return value, slope, product

    z, v = (jnp.asarray(x[rows], dtype) for x in (logits_of(K), vs))
    return [np.asarray(part, np.float64) for part in all_three(z, v, labels)]


class Worst(NamedTuple):
    """The largest error in units of rounding, and where it is.

    Attributes:
      of_norm: relative to the value, or to the norm of the vector.
      of_entry: relative to each entry.
    """

    of_norm: float
    of_entry: float
    where: str


def worst_error(actual, true, K, soft, dtype):
    """The worst of numbers `[n, m]`; what is next to underflow or overflows is left out."""
    info, (rows, targets) = np.finfo(dtype), examples(K, soft)
    least, most, worst = (
        mp.mpf(float(info.tiny)) * 1e10,
        float(info.max) / 2**30,
        Worst(0.0, 0.0, ""),
    )
    for got, want, row, target in zip(actual, true, rows, targets, strict=True):
        size = mp.norm(list(want))
        if size > most:
            assert np.all(np.isfinite(got))
            continue
        errors = [
            abs(mp.mpf(float(x)) - y) if np.isfinite(x) else mp.inf
            for x, y in zip(got, want, strict=True)
        ]
        of_norm = float(mp.norm(errors) / max(size, least)) / float(info.eps)
        each = [float(x / max(abs(y), least)) for x, y in zip(errors, want, strict=True)]
        of_entry = max(each) / float(info.eps)
        where = worst.where
        if of_norm >= worst.of_norm:
            where = f"logits {logits_of(K)[row][:6]}, target {target[:6]}: {got[:6]}"
        worst = Worst(max(of_norm, worst.of_norm), max(of_entry, worst.of_entry), where)
    return worst


def compare(name, case, K, soft, dtype, actual):
    """Print the worst of value, gradient and product, and refuse what is beyond its limit."""
    true = expected(case.reference, K, soft, DIGITS[dtype])
    # along a flat direction the product is all rounding
    flat = np.array(
        [mp.norm(list(h)) < 1e-20 * mp.norm(list(g)) for g, h in zip(*true[1:], strict=True)]
    )
    true[2], actual[2] = (np.where(flat[:, None], 0, x) for x in (true[2], actual[2]))
    refused = []
    for what, got, want in zip(("value", "gradient", "product"), actual, true, strict=True):
        worst = worst_error(got, want, K, soft, dtype)
        title = f"{name}, K = {K}, {'soft targets' if soft else 'labels'}: {what}"
        print(f"{title:65} {worst.of_norm:10.1f} ε, entries {worst.of_entry:10.1f} ε")
        if not worst.of_norm <= LIMITS.get(f"{name}: {what}", LIMITS.get(name, LIMIT)):
            refused.append(f"{what} off by {worst.of_norm:.3g} ε, at {worst.where}")
        if what != "product" and name in ENTRYWISE and not worst.of_entry <= ENTRY_LIMIT:
            refused.append(f"an entry of the {what} off by {worst.of_entry:.3g} ε")
    assert not refused, f"{name}, K = {K}: " + "; ".join(refused)


LIMIT = 500  # ε, relative to the value, or to the norm of the gradient or of the product
ENTRY_LIMIT = 2048  # ε, relative to every entry of a gradient
# What is promised of a function of a user's own is relative to the terms of F, of which the loss
# and its derivatives may be a small part: where they may be all rounding, they must be finite.
LIMITS = {name: 1024 for name in GENERATORS if name.startswith("user") or "separable" in name}
LIMITS["user ‖p‖"] = 1e100
# A function of p alone is stuck where p underflows; its derivatives are continued.
LIMITS |= {f"user {F}: value": 1e100 for F in ("Σp log p", "2Σ(p − √p)", "4/3 Σ(p − p^¼)")}
ENTRYWISE = {
    "cross_entropy",
    "balanced_softmax",
    "logit_adjustment",
    "class_balanced_cross_entropy",
    "focal 0.5",
    "focal 2.0",
    "poly1",
    "poly1 −1",
    "mean_absolute_error",
    "generalized_cross_entropy",
    "symmetric_cross_entropy",
    "shannon",
    "spherical",
}


@pytest.mark.parametrize("K", [2, 3, 30])
@pytest.mark.parametrize("name", LOSSES)
def test_labels(name, K):
    case = LOSSES[name](K)
    compare(name, case, K, False, np.float32, computed(case.loss, K, False, np.float32))


@pytest.mark.parametrize("K", [3, 30])
@pytest.mark.parametrize("name", [name for name in LOSSES if LOSSES[name](3).soft])
def test_soft_targets(name, K):
    case = LOSSES[name](K)
    compare(name, case, K, True, np.float32, computed(case.loss, K, True, np.float32))


@pytest.mark.parametrize("name", ["cross_entropy", "focal 2.0", "active_passive", "spherical"])
def test_float64(name, x64):
    case = LOSSES[name](3)
    compare(name, case, 3, False, np.float64, computed(case.loss, 3, False, np.float64))


@pytest.mark.parametrize("name", LOSSES)
def test_references_are_their_own_derivatives(name):
    mp.dps, step = DIGITS[np.float32], mp.mpf("1e-30")
    reference, z = LOSSES[name](3).reference, [mp.mpf(x) for x in (1.25, -0.5, 2)]
    for eta in ([mp.mpf(0), mp.mpf(1), mp.mpf(0)], [mp.mpf(0), mp.mpf(0), mp.mpf(1)]):
        slope = reference.slope(Point(z), eta)
        for k in range(3):
            moved = [[x + s * step * (j == k) for j, x in enumerate(z)] for s in (1, -1)]
            ahead, behind = (reference.value(Point(x), eta) for x in moved)
            assert abs((ahead - behind) / (2 * step) - slope[k]) < 1e-20


def plain_cross_entropy(z, y):
    return -jax.nn.log_softmax(z)[y]


def plain_brier(z, y):
    return jnp.sum((jax.nn.softmax(z) - jax.nn.one_hot(y, len(z))) ** 2)


def slightly_wrong(z, y):
    return L.cross_entropy(z, y) * (1 + 1e-4)


@pytest.mark.parametrize(
    ("name", "loss", "what"),
    [
        ("cross_entropy", plain_cross_entropy, "product off"),
        ("brier", plain_brier, "value off"),
        ("cross_entropy", slightly_wrong, "gradient off"),
        ("brier", L.cross_entropy, "value off"),
    ],
)
def test_another_formula_is_refused(name, loss, what):
    """A loss that cancels, that is off by a little, and that is another one."""
    with pytest.raises(AssertionError, match=what):
        case = LOSSES[name](3)
        compare(name, case, 3, False, np.float32, computed(loss, 3, False, np.float32))
