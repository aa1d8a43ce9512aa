"""Divergences and scores on probabilities: against mpmath in float64, and where they easily fail.

Losses on logits, in float32 and for soft targets, are in `test_accuracy.py`.
"""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom import scores
from tests import test_accuracy as accuracy
from tests.test_accuracy import GENERATORS, mp

G = pgeom.generators
K = 3
LOGITS, LABELS = jnp.array([[0.3, -1.0, 0.8], [1.0, 2.0, 0.5]]), jnp.array([0, 2])


def loss(F):
    return pgeom.on_logits(pgeom.bregman_score(F))


def cubic(p):
    return jnp.sum(p**3)


def entropy(p):
    return jnp.sum(p * jnp.log(p))


def barrier(p):
    return -jnp.sum(jnp.log(p))


def draw_pairs(n=6):
    draws = np.random.default_rng(3)
    return (0.999 * draws.dirichlet(np.full(K, c), size=n) + 0.001 / K for c in (3.0, 0.7))


def everything(F, q, p, d, label):
    """What one program says of a pair of points, a direction and a label."""
    divergence, score = pgeom.bregman_divergence(F), pgeom.bregman_score(F)
    gradient, product = jax.jvp(jax.grad(F), (p,), (d,))
    D, (in_q, in_p) = jax.value_and_grad(divergence, (0, 1))(q, p)
    value, slope = jax.value_and_grad(score)(p, label)
    return {
        "F": F(p),
        "∇F": gradient,
        "Hd": product,
        "divergence": D,
        "slope in q": in_q,
        "slope in p": in_p,
        "score": value,
        "slope of the score": slope,
        "expected score": score(p, q),
        "risk": pgeom.conditional_risk(score)(q, p),
        "regret": pgeom.regret(score)(q, p),
    }


def exactly(F, q, p, d, label):
    """The same by the definitions, in mpmath."""
    q, p, d = ([mp.mpf(x) for x in row.tolist()] for row in (q, p, d))
    ends = [[mp.mpf(j == k) for j in range(K)] for k in range(K)]
    gradient = F.gradient(p)

    def divergence(to):
        return F.value(to) - F.value(p) - accuracy.dot(gradient, minus(to, p))

    expected = mp.fsum(w * divergence(end) for w, end in zip(q, ends, strict=True))
    D, H = divergence(q), lambda x: F.product(p, x)
    return {
        "F": F.value(p),
        "∇F": gradient,
        "Hd": H(d),
        "divergence": D,
        "slope in q": minus(F.gradient(q), gradient),
        "slope in p": H(minus(p, q)),
        "score": divergence(ends[label]),
        "slope of the score": H(minus(p, ends[label])),
        "expected score": expected,
        "risk": expected,
        "regret": D,
    }


def minus(x, y):
    return [a - b for a, b in zip(x, y, strict=True)]


@pytest.mark.parametrize("name", GENERATORS)
def test_every_identity_of_a_generator(name, x64):
    """Value, gradient, Hessian, divergence, score, regret and their slopes."""
    F, reference = GENERATORS[name](K)
    mp.dps = 50
    q, p = draw_pairs()
    d, labels = np.roll(q - p, 1, axis=1), np.arange(len(p)) % K
    program = jax.jit(jax.vmap(lambda *one: everything(F, *one)))
    actual = jax.tree.map(np.asarray, program(*map(jnp.asarray, (q, p, d)), labels))
    for i, one in enumerate(zip(q, p, d, labels, strict=True)):
        for what, expected in exactly(reference, *one).items():
            expected = np.array(expected, np.float64)
            size = 1e-11 * np.max(np.abs(expected))
            np.testing.assert_allclose(actual[what][i], expected, 1e-9, size, err_msg=what)
    assert np.all(actual["divergence"] > 0) and np.all(actual["score"] > 0)


# where scores are easily wrong -------------------------------------------------------------------


def kinked(p):
    return jnp.sum(p**2) + jax.nn.relu(p[0] - 0.9)


def test_a_kink_is_seen_along_the_whole_path():
    """The jump at p₀ = .9, where the slope of F jumps, is the loss's own; it has no other."""
    score = jax.jit(jax.vmap(jax.value_and_grad(pgeom.bregman_score(kinked)), (0, None)))
    d = np.delete(np.linspace(0.001, 0.5, 500), 99)  # without .1, the kink
    values, slopes = score(jnp.asarray(np.stack([1 - d, d], axis=1), jnp.float32), 0)
    np.testing.assert_allclose(values, 2 * d**2 + np.where(d > 0.1, 0.1, 0.0), atol=2e-6)
    np.testing.assert_allclose(slopes, np.stack([-2 * d, 2 * d], axis=1), atol=1e-6)


def test_the_slope_in_the_weight_of_a_kink_is_seen_where_the_weight_is_zero():
    """D is linear in the weight, so that a unit that starts at zero can move."""

    def score(weight):
        F = lambda p: jnp.sum(p**2) + weight * jnp.maximum(p[0] - 0.5, 0.0)  # noqa: E731
        return pgeom.bregman_score(F)(jnp.array([0.2, 0.5, 0.3]), 0)

    slope = jax.jit(jax.vmap(jax.grad(score)))(jnp.array([0.0, 0.1]))
    np.testing.assert_allclose(slope, [0.5, 0.5], rtol=1e-6)


@pytest.mark.parametrize("F", [G.shannon, entropy, G.tsallis(1.0), G.combine((1.0, entropy))])
def test_every_form_of_entropy_at_saturated_logits(F):
    value, slope = jax.jit(jax.value_and_grad(loss(F)))(jnp.array([30.0, 0.0, -30.0]), 2)
    np.testing.assert_allclose(value, 60, rtol=1e-6)
    np.testing.assert_allclose(slope, [1.0, np.exp(-30.0), -1.0], rtol=1e-5)


def test_a_generator_infinite_at_the_vertices():
    """Its score is infinite, for labels and for expectations; its slopes are not."""
    p, q = jnp.array([0.6, 0.2, 0.2]), jnp.array([0.5, 0.3, 0.2])
    gradient = jax.jit(jax.value_and_grad(pgeom.bregman_score(barrier)))
    for target, end in ((0, np.eye(3)[0]), (q, q)):
        value, slope = gradient(p, target)
        assert value == np.inf
        np.testing.assert_allclose(slope, (p - end) / p**2, rtol=1e-5)  # H = diag(1/p²)
    expected = np.sum(q / p - np.log(q / p) - 1)
    actual = jax.jit(pgeom.bregman_divergence(barrier))(q, p)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("F", [cubic, G.shannon], ids=["cubic", "shannon"])
def test_regret_next_to_the_truth(F):
    """Equal to D_F(η, p) in float32, where a difference of two risks has no digits left."""
    steps, draws = np.array([1e-2, 1e-3, 1e-4]).repeat(8)[:, None], np.random.default_rng(4)
    directions = draws.normal(size=(24, 3))
    directions -= directions.mean(axis=1, keepdims=True)
    eta = draws.dirichlet(np.full(3, 5.0), size=24).astype(np.float32)
    p = (eta + steps * directions).astype(np.float32)
    actual = np.asarray(jax.jit(pgeom.regret(pgeom.bregman_score(F)))(eta, p), np.float64)
    q, p = eta.astype(np.float64), p.astype(np.float64)
    x = (p - q) / q
    exact = (q - p) ** 2 * (q + 2 * p) if F is cubic else q * (x - np.log1p(x))
    np.testing.assert_allclose(actual, np.sum(exact, axis=1), rtol=1e-4)


def test_a_users_own_score_has_a_risk_and_a_regret():
    def absolute(p, labels):
        return 1 - jnp.take_along_axis(p, labels[..., None], axis=-1)[..., 0]

    eta, p = jnp.array([[0.5, 0.3, 0.2]]), jnp.array([[0.2, 0.2, 0.6]])
    np.testing.assert_allclose(pgeom.conditional_risk(absolute)(eta, p), 1 - 0.28, rtol=1e-6)
    np.testing.assert_allclose(pgeom.regret(absolute)(eta, p), 0.38 - 0.28, rtol=1e-5)
    np.testing.assert_allclose(
        pgeom.on_logits(absolute)(jnp.log(p), np.array([2])), [0.4], rtol=1e-5
    )


def test_generators_may_close_over_traced_integers_and_booleans():
    def value(weight, order, cubed, z):
        def F(p):
            return weight * jnp.sum(jnp.where(cubed, p**3, p**2)) + jnp.sum(jnp.power(p, order))

        return jnp.sum(loss(F)(z, LABELS))

    known = [
        1.5 * loss(lambda p, n=n: jnp.sum(p**n))(LOGITS, LABELS)
        + loss(lambda p, m=m: jnp.sum(p**m))(LOGITS, LABELS)
        for n, m in ((3, 4), (2, 2))
    ]
    program = jax.jit(jax.vmap(jax.value_and_grad(value, (0, 3)), (None, 0, 0, None)))
    orders, cubes = jnp.array([4.0, 2.0]), jnp.array([True, False])
    values, (in_weight, in_z) = program(jnp.float32(1.5), orders, cubes, LOGITS)
    np.testing.assert_allclose(values, [jnp.sum(one) for one in known], rtol=1e-6)
    cubic_part = jnp.sum(loss(cubic)(LOGITS, LABELS))
    np.testing.assert_allclose(in_weight[0], cubic_part, rtol=1e-5)
    np.testing.assert_allclose(jnp.sum(in_z, axis=-1), 0, atol=1e-6)  # softmax sees no shift


def test_parameters_of_an_entropy_differentiate_where_a_probability_underflows():
    """∂/∂w of Σ w p log p: the score of each class's own term, finite at exact zeros."""
    logits, labels = jnp.array([[2.0, 0.0, 1.0], [200.0, 0.0, -200.0]]), jnp.array([0, 1])
    total = lambda w: loss(lambda p: jnp.sum(w * p * jnp.log(p)))(logits, labels).sum()  # noqa: E731
    slope = jax.jit(jax.grad(total))(jnp.ones(3))
    assert np.all(np.isfinite(slope))
    p = np.asarray(jax.nn.softmax(logits[0]), np.float64)
    np.testing.assert_allclose(slope[2], p[2], rtol=1e-5)  # D of x log x from p to 0 is p


@pytest.mark.parametrize(
    "F",
    [
        lambda p: jnp.sum(p * jnp.log(p) + (1 - p) * jnp.log(1 - p)),
        lambda p: -jnp.sqrt(1 - jnp.sum(p**2)),
    ],
    ids=["binary entropies", "ball"],
)
def test_a_slope_that_diverges_at_one_is_no_nan(F):
    program = jax.jit(jax.vmap(jax.value_and_grad(loss(F)), (0, None)))
    logits = jnp.array([[0.3, -1.0, 2.0], [20.0, 0.0, 0.0], [200.0, 0.0, 0.0], [1e4, -1e4, 0.0]])
    results = [program(logits, label) for label in range(3)]
    assert np.all(np.isfinite(np.concatenate([np.ravel(x) for x in jax.tree.leaves(results)])))
    with jax.enable_x64(True):
        p, q = jax.nn.softmax(logits[0].astype(float)), jnp.array([1 - 2e-12, 1e-12, 1e-12])
        exact = F(q) - F(p) - jnp.dot(jax.grad(F)(p), q - p)
    np.testing.assert_allclose(results[0][0][0], float(exact), rtol=1e-5)


SECOND = {  # generators, of which 1/p³ and the like are far out of range, and scores in closed form
    "entropy": (entropy, G.shannon),
    "xlogy": (lambda p: jnp.sum(jax.scipy.special.xlogy(p, p)), G.shannon),
    "ten entropies": (lambda p: 10 * jnp.sum(p * jnp.log(p)), 10 * G.shannon),
    "roots": (lambda p: -2 * jnp.sum(jnp.sqrt(p)), G.tsallis(0.5)),
    "powers": (lambda p: -4 / 3 * jnp.sum(p**0.25), G.tsallis(0.25)),
    "entropy and squares": (lambda p: jnp.sum(p * jnp.log(p) + p**2), None),
    "cubes": (cubic, None),
}


@pytest.mark.parametrize("name", SECOND)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_derivatives_are_right_where_those_of_a_generator_overflow(name, dtype):
    """The gradient and its own derivative, forward and in reverse, far from the label.

    Also where p_y, and 1/p_y, are no float any more. Beyond the largest float over 1e9 they stay
    where they are.
    """
    F, closed = SECOND[name]
    with jax.enable_x64(dtype == jnp.float64):
        z = jnp.asarray(
            [[gap, 0.0, 0.25] for gap in (16, 28, 30, 45, 60, 80, 100, 120, 1e4)], dtype
        )

        def both(F, z):
            v = jnp.asarray([2.0, -1.0, 0.5], z.dtype)
            slope = jax.grad(lambda z: loss(F)(z, 1))
            in_reverse = jax.grad(lambda z: jnp.vdot(slope(z), v))
            return slope(z), jax.jvp(slope, (z,), (v,))[1], in_reverse(z)

        results = jax.jit(jax.vmap(partial(both, F)))(z)
        results = [np.asarray(part, np.float64) for part in results]
    chex.assert_tree_all_finite(results)
    sizes = [np.max(np.abs(part), axis=1) for part in results]
    if name in ("roots", "powers"):
        assert all(np.all(np.diff(size) >= 0) for size in sizes)
    if closed is None:
        return
    with jax.enable_x64(True):
        exact = jax.jit(jax.vmap(partial(both, closed)))(jnp.asarray(z, float))
    for actual, expected in zip(results, map(np.asarray, exact), strict=True):
        norm = np.max(np.abs(expected), axis=1)
        kept = norm < (5e29 if dtype == jnp.float32 else 1e240)
        error = np.max(np.abs(actual - expected), axis=1)
        # in reverse, entries that are far below the gradient underflow on the way
        allowed = 512 * float(jnp.finfo(dtype).eps) * norm + 1e-24
        assert np.all((error <= allowed)[kept])


UNEVEN = {
    "the label far ahead": ("entropy", [87.0, 16.0, -15.0], 0),
    "next to what underflows": ("roots", [58.5, 0.0, -300.0], 1),
}


@pytest.mark.parametrize("case", UNEVEN)
def test_a_gradient_is_right_where_its_terms_are_uneven(case):
    """H(p)d where entries of d are tiny, and where some but not all derivatives overflow."""
    name, z, label = UNEVEN[case]
    F, closed = SECOND[name]
    gradient = jax.grad(loss(F))(jnp.array(z), label)
    expected = jax.grad(loss(closed))(jnp.array(z), label)
    np.testing.assert_allclose(gradient, expected, rtol=2e-5, atol=1e-6 * jnp.max(expected))


def test_the_gradient_of_the_score_holds_on_the_boundary():
    """H(p)(p − e_y) at exact vertices, where softmax arrives by underflow."""
    for F in (G.squared_norm, lambda p: jnp.sum(p**2)):
        slope = jax.jit(jax.vmap(jax.grad(pgeom.bregman_score(F)), (0, None)))(jnp.eye(3), 1)
        np.testing.assert_allclose(slope, 2 * (np.eye(3) - np.eye(3)[1]), atol=1e-6)
    for F in (entropy, lambda p: -jnp.sum(jnp.sqrt(p)), lambda p: -jnp.sum(p**0.25)):
        slope = jax.jit(jax.grad(pgeom.bregman_score(F)))(jnp.eye(3)[0], 1)
        assert np.all(np.isfinite(slope)) and slope[1] < -1e35  # of 1/p, and more


def test_the_value_keeps_its_derivative_inside_other_derivatives():
    """The slope of the value that a gradient returns beside it is H(p)(p − e_y) too."""
    z, direction = jnp.array([12.0, 0.0, -1.0]), jnp.array([0.3, 1.0, -0.2])
    both = jax.value_and_grad(lambda z: loss(cubic)(z, 0))
    (_, gradient), (slope, _) = jax.jit(lambda z, dot: jax.jvp(both, (z,), (dot,)))(z, direction)
    np.testing.assert_allclose(slope, jnp.dot(gradient, direction), rtol=1e-5)


def test_a_batch_in_chunks_has_the_values_of_one_that_is_not(monkeypatch):
    """Some chunks are computed by the definition alone; one has points that need the integral."""
    p = np.random.default_rng(4).dirichlet(np.ones(3), size=20).astype(np.float32)
    p[3] = [1 - 2e-5, 1e-5, 1e-5]
    labels = jnp.asarray(np.arange(20) % 3)

    def values():  # of another function each time, for which nothing has been traced
        return pgeom.bregman_score(lambda p: jnp.sum(p**3))(p, labels)

    whole = values()
    monkeypatch.setattr(scores, "AT_ONCE", 4 * 3 * scores.NODES[4])
    np.testing.assert_allclose(values(), whole, rtol=1e-6)


def test_float64_scores_of_a_large_batch(x64):
    """XLA on a CPU computes rectified products of some large batches wrongly."""
    W = np.random.default_rng(1).normal(size=(5, 3))

    def F(p):
        return jnp.sum(jnp.maximum(jnp.dot(W, p), 0.0)) + jnp.sum(p**2)

    n = 17_000
    p, labels = np.random.default_rng(0).dirichlet(np.ones(3), size=n), np.arange(n) % 3
    ends, units = W.T[labels], np.eye(3)[labels]
    # the divergence of max(x, 0) from wp to wq: where they differ in sign, |wq|
    rectified = np.where(p @ W.T > 0, np.maximum(-ends, 0), np.maximum(ends, 0)).sum(1)
    actual = pgeom.bregman_score(F)(p, labels)
    np.testing.assert_allclose(actual, rectified + np.sum((p - units) ** 2, axis=1), atol=1e-12)


def test_a_vertex_of_no_weight_may_be_infinite():
    score = pgeom.bregman_score(lambda p: -jnp.log(p[0] + p[1]))
    actual = score(jnp.array([0.3, 0.3, 0.4]), jnp.array([0.5, 0.5, 0.0]))
    np.testing.assert_allclose(actual, np.log(0.6) + 0.4 / 0.6, rtol=1e-5)


@pytest.mark.parametrize("delta", [1e-2, 1e-7])
def test_a_vertex_of_a_class_without_probability(delta):
    """Where p_2 is 0 the Hessian of p log p or −√p is infinite, and has no part in the score."""
    delta = float(np.float32(delta))
    p, root = jnp.array([[1 - delta, delta, 0.0]], jnp.float32), np.sqrt(1 - delta)
    roots = np.sqrt(delta) / 2 + np.expm1(np.log1p(-delta) / 2) + delta / (2 * root)
    for F, expected in ((entropy, -np.log1p(-delta)), (lambda p: -jnp.sum(jnp.sqrt(p)), roots)):
        actual = jax.jit(pgeom.bregman_score(F))(p, jnp.array([0]))
        np.testing.assert_allclose(actual, [expected], rtol=1e-6)


# soft targets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("small", [5e-39, 0.0])
def test_a_target_below_the_smallest_normal_number_counts_as_zero(small):
    """Its logarithm is −∞ where the processor rounds it to zero, which no convex F is."""
    eta, point = jnp.array([0.5, 0.5, small], jnp.float32), jnp.array([0.2, 0.3, 0.5])
    expected = pgeom.bregman_score(G.shannon)(point, eta)
    np.testing.assert_allclose(pgeom.bregman_score(entropy)(point, eta), expected, rtol=1e-6)


def test_rounding_next_to_a_vertex_makes_no_score_negative(x64):
    """The score of η itself is the mean of F at the vertices less F(η), which cancel."""
    w = np.array([[0.5, -0.5], [-0.5, 0.5]])
    ridges = G.hyperbolic(lam=0.5, a=0.8, rho=0.1, w=w, b=0.2, scale=1.3)
    beside = np.geomspace(1e-17, 1e-6, 2000)[:, None]
    others = np.random.default_rng(0).dirichlet(np.ones(2), size=2000)
    eta = (1 - beside) * np.array([1.0, 0.0]) + beside * others
    for F in (ridges, ridges + 0.5 * G.squared_norm):
        assert np.all(pgeom.bregman_score(F)(eta, eta) >= 0)


def test_a_gap_that_is_truly_negative_is_told(x64):
    """Of a function that is not convex the expected score may be negative, and says so."""
    eta = np.array([0.5, 0.25, 0.25])
    actual = pgeom.bregman_score(lambda p: -jnp.sum(p**2))(eta, eta)
    np.testing.assert_allclose(actual, np.sum(eta**2) - 1)


NEXT_TO_A_VERTEX = {  # generators, and the relative error that is allowed in float32
    "spherical": (G.spherical, 1e-6),
    "tsallis-2.5": (G.tsallis(2.5), 1e-6),
    "tsallis-half": (G.tsallis(0.5), 1e-6),
    "quadratic": (G.quadratic(np.eye(3) + 0.5), 1e-6),
    "combination": (0.5 * G.shannon + G.squared_norm, 1e-6),
    "user-cubic": (cubic, 1e-6),
    "user-entropy": (entropy, 1e-5),
    "user-p^1.5": (lambda p: jnp.sum(p**1.5), 3e-3),
    "separable": (G.separable(lambda x: x**4), 1e-6),
}


@pytest.mark.parametrize("name", NEXT_TO_A_VERTEX)
def test_the_expected_score_of_the_truth_next_to_a_vertex(name):
    """Σ_y η_y ℓ(p, y) at p = η, which a difference of values of F rounds to nothing."""
    F, tolerance = NEXT_TO_A_VERTEX[name]
    rest = np.array([1e-2, 1e-3, 1e-4, 1e-6, 1e-9])[:, None] * np.array([[0.75, 0.25]])
    eta = np.insert(rest, 1, 1 - np.sum(rest, axis=1), axis=1)
    logits = np.log(eta).astype(np.float32)
    actual = jax.jit(loss(F))(logits, jnp.asarray(eta, jnp.float32))
    at_eta = jax.jit(pgeom.bregman_score(F))(*[jnp.asarray(eta, jnp.float32)] * 2)
    with jax.enable_x64(True):
        labelled = jax.jit(jax.vmap(jax.vmap(loss(F), (None, 0)), (0, None)))
        values = labelled(jnp.asarray(logits, float), jnp.arange(3))
        expected = np.sum(eta * np.asarray(values), axis=1)
    np.testing.assert_allclose(actual, expected, rtol=tolerance)
    np.testing.assert_allclose(at_eta, expected, rtol=tolerance)


# cost --------------------------------------------------------------------------------------------


def equations(loss, K):
    """How many there are in the gradient for K classes, in programs inside of it too."""
    gradient = jax.make_jaxpr(jax.grad(loss))(jnp.zeros(K), jnp.full(K, 1 / K))
    return str(gradient).count(" = ")


def test_the_gradient_is_one_hessian_vector_product():
    """Its program does not grow with the number of classes."""
    assert equations(loss(cubic), 4) == equations(loss(cubic), 40) > 10

    def label_by_label(z, eta):
        return sum(eta[y] * loss(cubic)(z, y) for y in range(len(z)))

    assert equations(label_by_label, 4) > 1.5 * equations(label_by_label, 2)


@pytest.mark.parametrize("soft", [False, True])
def test_memory_is_linear_in_the_classes(soft):
    """A K×K matrix per example would make it quadratic."""

    def needed(function, K):
        targets = jax.ShapeDtypeStruct((8, K) if soft else (8,), jnp.float32 if soft else jnp.int32)
        gradient = jax.jit(jax.grad(lambda z, y: jnp.sum(function(z, y))))
        program = gradient.lower(jax.ShapeDtypeStruct((8, K), jnp.float32), targets).compile()
        return program.memory_analysis().temp_size_in_bytes

    def with_matrix(z, y):
        return jax.vmap(lambda z: jnp.linalg.det(jax.hessian(cubic)(jax.nn.softmax(z))))(z)

    assert needed(loss(cubic), 5000) <= 16 * needed(loss(cubic), 500)
    assert needed(with_matrix, 500) > 50 * needed(with_matrix, 50)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_labels_of_any_integer_type(dtype):
    p = jnp.full((2, 300), 1 / 300)
    actual = pgeom.bregman_score(G.squared_norm)(p, np.array([0, 100], dtype))
    np.testing.assert_allclose(actual, 1 - 1 / 300, rtol=1e-5)
