"""Auto-PGD: the algorithm as published, step by step, and models that only look robust."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.evaluation import attacks

N, D = 6, 5
RADIUS = 0.02  # further on a label may be third, where the ratio is flat and signs are rounding
KEY = jax.random.key(11)


def reference(objective, slope, project, x, step):
    """Algorithm 1 of Croce and Hein for one example, as a plain loop over plain numbers."""
    ends = [0, 22, 41, 57, 70, 80, 87, 93, 99]
    before, best, values = x, x, [objective(x)]
    x = project(x + step * np.sign(slope(x)))
    values.append(objective(x))
    if values[1] > values[0]:
        best = x
    steps, best_values = {0: step}, {0: values[0]}
    for k in range(1, 100):
        if k in ends:
            j = ends.index(k)
            since = range(ends[j - 1], k)
            rises = sum(values[i + 1] > values[i] for i in since)
            unchanged = steps[ends[j - 1]] == step and best_values[ends[j - 1]] == objective(best)
            if rises < 0.75 * len(since) or unchanged:
                step, x = step / 2, best
                values[k] = objective(best)
            steps[k], best_values[k] = step, objective(best)
        z = project(x + step * np.sign(slope(x)))
        before, x = x, project(x + 0.75 * (z - x) + 0.25 * (x - before))
        values.append(objective(x))
        if values[-1] > objective(best):
            best = x
    return best


def plain_dlr(logits, label):
    others = sorted(value for k, value in enumerate(logits) if k != label)
    ranked = sorted(logits)
    return (others[-1] - logits[label]) / (ranked[-1] - ranked[-3] if len(ranked) > 2 else 1.0)


def plain_slope(logits, jacobian, label):
    """The gradient of the ratio by the quotient rule, from ∂z/∂x `[D, K]`."""
    order = np.argsort(logits)
    rival = next(k for k in order[::-1] if k != label)
    gap, slope = logits[rival] - logits[label], jacobian[:, rival] - jacobian[:, label]
    if len(order) == 2:
        return slope
    first, third = order[-1], order[-3]
    spread = logits[first] - logits[third]
    return slope / spread - gap / spread**2 * (jacobian[:, first] - jacobian[:, third])


def network(K):
    """A small network that is far from linear: its logits in NumPy and in JAX, and ∂z/∂x."""
    rng = np.random.default_rng(K)
    first, second = rng.normal(0, 2.5, (D, 12)), rng.normal(0, 1.5, (12, K))
    return (
        lambda x: np.sin(x @ first) @ second,
        lambda x: jnp.sin(x @ jnp.asarray(first, x.dtype)) @ jnp.asarray(second, x.dtype),
        lambda x: (first * np.cos(x @ first)) @ second,
    )


@pytest.mark.parametrize("K", [2, 3, 5])
def test_it_is_the_published_algorithm(K, x64):
    plain, model, jacobian = network(K)
    rng = np.random.default_rng(5)
    x, labels = rng.uniform(0.05, 0.95, (N, D)), np.arange(N) % K
    found = attacks.apgd(KEY, model, jnp.asarray(x), jnp.asarray(labels), epsilon=RADIUS)
    start = np.clip(x + RADIUS * np.asarray(jax.random.uniform(KEY, (N, D), float, -1, 1)), 0, 1)
    for one in range(N):
        best = attack_plainly(plain, jacobian, x[one], labels[one], start[one])
        np.testing.assert_allclose(found[one], best, atol=1e-9)


def attack_plainly(model, jacobian, x, label, start, epsilon=RADIUS):
    """The reference against one example."""
    low, high = np.clip(x - epsilon, 0, 1), np.clip(x + epsilon, 0, 1)

    def value(p):
        return plain_dlr(model(p), label)

    def slope(p):
        return plain_slope(model(p), jacobian(p), label)

    best = reference(value, slope, lambda p: np.clip(p, low, high), start, 2 * epsilon)
    return best if value(best) > value(x) else x


@pytest.mark.parametrize("change", ["MOMENTUM", "RHO"])
def test_the_comparison_sees_another_constant(change, x64, monkeypatch):
    monkeypatch.setattr(attacks, change, 0.6)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        test_it_is_the_published_algorithm(5, None)


@pytest.mark.parametrize("K", [2, 3, 7])
def test_dlr_is_positive_where_the_label_is_not_predicted(K):
    rng = np.random.default_rng(1)
    logits, labels = jnp.asarray(rng.normal(size=(60, K)), jnp.float32), jnp.arange(60) % K
    ratio = attacks.dlr(logits, labels)
    np.testing.assert_array_equal(ratio > 0, jnp.argmax(logits, axis=1) != labels)
    expected = [
        plain_dlr(row, label) for row, label in zip(np.asarray(logits), labels, strict=True)
    ]
    np.testing.assert_allclose(ratio, expected, rtol=1e-5)
    if K > 2:
        np.testing.assert_allclose(attacks.dlr(1e4 * logits + 3, labels), ratio, rtol=1e-3)


def test_dlr_and_its_slope_are_finite_where_logits_are_equal():
    values, slopes = jax.vmap(jax.value_and_grad(lambda z: attacks.dlr(z[None], LABEL)[0]))(TIES)
    assert jnp.all(jnp.isfinite(values)) and jnp.all(jnp.isfinite(slopes))


LABEL = jnp.array([0])
TIES = jnp.array([[0.0, 0.0, 0.0, -1.0], [1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 0.0, 0.0]])


def test_a_checkpoint_looks_whether_the_best_point_is_a_new_one():
    """Though the loss rose at every step: not since the last checkpoint, and not twice in a row."""
    best = attacks._Tried(jnp.zeros((3, 2)), jnp.array([1.0, 1.0, 2.0]), jnp.ones((3, 2)))
    here, ones, steps = best._replace(x=jnp.ones((3, 2))), jnp.ones(3), jnp.array(4)
    halved = jnp.array([False, True, False])
    state = attacks._Search(here, here.x, best, ones, 4.0 * ones, ones, halved)
    after = attacks._look_back(state, steps)
    assert after.halved.tolist() == [True, False, False]
    assert after.step.tolist() == [0.5, 1, 1] and after.here.x[:, 0].tolist() == [0, 1, 1]
