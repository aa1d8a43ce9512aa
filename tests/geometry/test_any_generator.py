"""Scores and their logit gradients for any generator, against references in fifty digits.

Rounding is allowed as much as the definition D_F(q, p) = F(q) − F(p) − ⟨∇F(p), q − p⟩ entails: a
few units in the last place of its terms. The library's own generators must keep their digits where
those terms cancel, too.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom import scores
from tests.geometry import exact_scores
from tests.geometry.battery import CASES
from tests.geometry.reference import mp

DIGITS = {np.float32: 1e-5, np.float64: 1e-9}  # relative to the true value
ULPS = 16  # relative to the terms: a few for each of the K products and for F's own rounding
GRID = 2.0**-10  # differences of logits on this grid are exact in float32: only exp rounds
# 1 − p_y, the mass of the competitors: to the digits of float32, and densely where ridges cross
COMPETITORS = np.array([0.5, 0.2, 0.1, 0.05, 0.01, 1e-3, 1e-5, 1e-7])
SMALLEST_MASS = COMPETITORS.min()
SATURATED = ([30.0, 0.0, -30.0, -10.0, 10.0], [20.0, 0.0, -20.0, -7.0, 5.0])


def on_grid(logits):
    return np.floor(np.asarray(logits) / GRID) * GRID


@cache
def ordinary_logits(K):
    """Random ones and ties, `[12, K]`."""
    draws = np.random.default_rng(5)
    random = np.concatenate([draws.normal(size=(5, K)), 3 * draws.normal(size=(5, K))])
    ties = [np.zeros(K), np.append([2.0, 2.0], np.linspace(1.0, -1.0, K - 2))]
    return on_grid(np.concatenate([random, ties]))


@cache
def logits_ahead(K):
    """Each label so far ahead that the mass of its competitors is just above each of those."""
    rows = on_grid(np.random.default_rng(6).normal(size=(K, len(COMPETITORS), K)))
    for label, label_rows in enumerate(rows):
        others = np.log(np.sum(np.exp(np.delete(label_rows, label, axis=1)), axis=1))
        label_rows[:, label] = on_grid(others + np.log1p(-COMPETITORS) - np.log(COMPETITORS))
    return rows.reshape(-1, K)


def saturated_logits(K):
    return np.array([row[:K] for row in SATURATED])


@cache
def labelled(K):
    """Logits `[n, K]` and labels `[n]`: every label at every point."""
    points = np.concatenate([ordinary_logits(K), logits_ahead(K), saturated_logits(K)])
    return np.repeat(points, K, axis=0), np.tile(np.arange(K), len(points))


@cache
def soft_targets(K):
    """Targets `[6, K]` that sum to one exactly: random, one with a zero, smoothed, one-hot."""
    parts = 2**12  # of a whole, which float32 can add up without rounding
    random = np.floor(np.random.default_rng(8).dirichlet(np.ones(K), size=3) * parts) / parts
    random[2, 1] = 0.0
    random[:, 0] += 1 - np.sum(random, axis=1)
    smoothed = np.full(K, 1 / 64)
    smoothed[2] += 1 - np.sum(smoothed)
    return np.concatenate([random, [smoothed], np.eye(K)[:2]])


@cache
def softly_labelled(K):
    """Logits `[n, K]` and targets `[n, K]`: every target at every point but those far ahead."""
    points, targets = np.concatenate([ordinary_logits(K), saturated_logits(K)]), soft_targets(K)
    return np.repeat(points, len(targets), axis=0), np.tile(targets, (len(points), 1))


@cache
def expected(name, soft):
    """The values, gradients, and sizes of the terms of both, at every example of the battery."""
    F, K = CASES[name].reference, CASES[name].K
    logits, _ = softly_labelled(K) if soft else labelled(K)
    targets = soft_targets(K) if soft else np.eye(K)
    points = logits[:: len(targets)]
    answers = [answer for z in points for answer in exact_scores.answers(F, z, targets)]
    return exact_scores.Answer(*(np.stack(part) for part in zip(*answers, strict=True)))


def computed(F, logits, targets, dtype):
    """The library's values and logit gradients, in one program."""
    loss = pgeom.on_logits(pgeom.bregman_score(F))
    targets = jnp.asarray(targets, dtype if targets.ndim > 1 else jnp.int32)
    logits = jnp.asarray(logits, dtype)
    value, gradient = jax.jit(jax.vmap(jax.value_and_grad(loss)))(logits, targets)
    assert value.dtype == gradient.dtype == dtype
    return np.asarray(value, np.float64), np.asarray(gradient, np.float64)


def refuse(errors, allowed, logits, targets, what):
    """Raise where an error is more than allowed, or is not a number."""
    if np.any(wrong := ~(errors <= allowed)):
        ratio = np.where(np.isnan(errors), np.inf, errors / allowed)
        worst = np.argmax(np.where(wrong, ratio, 0))
        raise AssertionError(
            f"{what}: {np.sum(wrong)} of {len(errors)} beyond the bound, by up to a factor of"
            f" {ratio[worst]:.3g} at logits {logits[worst]} with target {targets[worst]}"
        )


def representable(case, logits, dtype):
    """Where p^(a − 2), the second derivative of F as autodiff computes it, does not overflow."""
    log_smallest = np.min(logits, axis=1) - np.log(np.sum(np.exp(logits), axis=1))
    return case.steepest * log_smallest < np.log(float(np.finfo(dtype).max))


def compare(case, actual, true, examples, dtype):
    """Refuse values and gradients that are further from the reference than rounding entails."""
    (values, gradients), (logits, targets) = actual, examples
    digits, ulps = DIGITS[dtype], ULPS * float(np.finfo(dtype).eps)
    value_error = np.abs(values - true.value)
    norms = np.linalg.norm(true.gradient, axis=1)
    gradient_error = np.linalg.norm(gradients - true.gradient, axis=1)
    # Left out are the gradients of nine generators at one point, (30, 0, −30, …), in float32.
    finite = representable(case, logits, dtype)
    assert set(map(tuple, logits[~finite])) <= {tuple(SATURATED[0][: case.K])}
    assert dtype == np.float32 or np.all(finite)

    allowed = digits * np.abs(true.value) + ulps * true.value_terms
    refuse(value_error, allowed, logits, targets, "value")
    allowed = digits * norms + ulps * true.gradient_terms
    rows = logits[finite], targets[finite]
    refuse(gradient_error[finite], allowed[finite], *rows, "gradient")


def compare_digits(actual, true, examples, dtype):
    """Refuse what of the library's own generators does not have its digits, whatever cancels.

    Not beyond 1 − p_y = 1e-7. Gradients are compared for labels only, because η − p of a soft
    target has no more digits than p, and at points that are not saturated.
    """
    (values, gradients), (logits, targets) = actual, examples
    error = np.abs(values - true.value) / np.abs(true.value)
    kept = true.competitors >= SMALLEST_MASS
    refuse(error[kept], DIGITS[dtype], logits[kept], targets[kept], "digits of the value")
    if targets.ndim == 1:
        norms = np.linalg.norm(true.gradient, axis=1)
        error = np.linalg.norm(gradients - true.gradient, axis=1) / norms
        kept = kept & (np.max(np.abs(logits), axis=1) < np.min(np.max(SATURATED, axis=1)))
        refuse(error[kept], DIGITS[dtype], logits[kept], targets[kept], "digits of the gradient")


def check(name, soft, dtype):
    case, true = CASES[name], expected(name, soft)
    examples = softly_labelled(case.K) if soft else labelled(case.K)
    with jax.enable_x64(dtype == np.float64):
        actual = computed(case.make(), *examples, dtype)
    compare(case, actual, true, examples, dtype)
    if case.library:
        compare_digits(actual, true, examples, dtype)


@pytest.mark.parametrize("dtype", DIGITS)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_for_every_label(name, dtype):
    check(name, False, dtype)


@pytest.mark.parametrize("dtype", DIGITS)
@pytest.mark.parametrize("name", CASES)
def test_expected_scores_of_soft_targets(name, dtype):
    """One-hot targets are among them, and have the bounds of their labels."""
    check(name, True, dtype)


@pytest.mark.parametrize("name", CASES)
def test_references_are_their_own_derivatives(name):
    """Central differences of step h are right to h², far within the tolerance."""
    F, K = CASES[name].reference, CASES[name].K
    h, tolerance = mp.mpf("1e-15"), 1e-20
    p = exact_scores.softmax(tuple(ordinary_logits(K)[0]))
    hessian, terms = F.hessian(p), F.terms(p)
    for k in range(K):
        ahead, behind = ([x + s * h * (j == k) for j, x in enumerate(p)] for s in (1, -1))
        slope = (F.value(ahead) - F.value(behind)) / (2 * h)
        assert abs(slope - F.gradient(p)[k]) <= tolerance * (1 + abs(slope))
        both = zip(F.gradient(ahead), F.gradient(behind), strict=True)
        for j, (upper, lower) in enumerate(both):
            curvature = (upper - lower) / (2 * h)
            assert abs(curvature - hessian[j][k]) <= tolerance * (1 + abs(curvature))
            assert abs(hessian[j][k]) <= terms[j][k] * (1 + tolerance)


def plain_score(F, logits, label):
    """The definition as it stands."""
    p = jax.nn.softmax(logits)
    e_y = jnp.eye(len(logits), dtype=logits.dtype)[label]
    return F(e_y) - F(p) - jnp.dot(jax.grad(F)(p), e_y - p)


def test_another_generator_is_refused(x64):
    case, examples = CASES["user-cubic"], labelled(CASES["user-cubic"].K)
    actual = computed(case.make(), *examples, np.float64)
    with pytest.raises(AssertionError, match="value"):
        compare(case, actual, expected("user-quartic", False), examples, np.float64)
    values, gradients = actual
    with pytest.raises(AssertionError, match="gradient"):
        wrong = values, gradients * (1 + 1e-6)
        compare(case, wrong, expected("user-cubic", False), examples, np.float64)


def test_the_definition_has_no_digits_next_to_a_vertex():
    case, examples = CASES["squared-norm"], labelled(CASES["squared-norm"].K)
    score = jax.value_and_grad(lambda z, y: plain_score(case.make(), z, y))
    logits, labels = examples
    actual = jax.jit(jax.vmap(score))(jnp.asarray(logits, np.float32), labels)
    with pytest.raises(AssertionError, match="digits of the value"):
        compare_digits(actual, expected("squared-norm", False), examples, np.float32)


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
