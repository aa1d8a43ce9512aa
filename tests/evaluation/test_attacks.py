"""Perturbations: they stay where they should, and the attacks do what they are for."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.evaluation import attacks

NAMES = ("fgsm", "pgd", "apgd")
KEY = jax.random.key(7)


def attack(name, model, x, labels, epsilon):
    if name != "fgsm":
        return getattr(attacks, name)(KEY, model, x, labels, epsilon=epsilon)
    return attacks.fgsm(model, x, labels, epsilon=epsilon)


@pytest.mark.parametrize("confidence", [1.0, 1e3])
def test_a_linear_model_is_attacked_exactly(confidence):
    """Against wᵀx the best point of the ball is known, and every attack finds it.

    Also where the model is so sure that the slope of cross-entropy underflows.
    """
    w = confidence * jnp.array([[1.0, -2.0, 0.5]])
    x, labels = jnp.array([[0.9, 0.2, 0.5], [0.05, 0.97, 0.5]]), jnp.array([0, 0])

    def model(x):
        score = x @ w.T
        return jnp.concatenate([score, -score], axis=1)

    best = jnp.clip(x - 0.1 * jnp.sign(w), 0, 1)
    reached = {name: attack(name, model, x, labels, 0.1) for name in NAMES}
    chex.assert_trees_all_close(reached, dict.fromkeys(NAMES, best), atol=1e-6)


def indifferent(x):
    """A model without a slope: an attack on it stays where it starts."""
    return jnp.zeros((len(x), 3))


def test_an_attack_starts_anywhere_in_its_ball():
    """Uniform on [−ε, ε]: of mean 0 and variance ε²/3, up to the ends, and of its key."""
    x, labels = jnp.full((300, 200), 0.5), jnp.arange(300) % 3
    start = np.asarray(attacks.pgd(KEY, indifferent, x, labels, epsilon=0.3) - x)
    assert abs(start.mean()) < 4 * 0.3 / np.sqrt(3 * start.size)
    assert np.mean(start**2) == pytest.approx(0.3**2 / 3, rel=0.02)
    np.testing.assert_allclose([start.min(), start.max()], [-0.3, 0.3], atol=0.001)
    other = attacks.pgd(jax.random.key(8), indifferent, x, labels, epsilon=0.3)
    assert not np.allclose(other - x, start)


def test_gaussian_noise_has_its_deviation_and_is_clipped():
    x = jnp.full((200, 200), 0.5)
    noise = np.asarray(attacks.gaussian(KEY, x, sigma=0.1) - x)
    assert abs(noise.mean()) < 4 * 0.1 / 200
    assert noise.std() == pytest.approx(0.1, rel=4 / np.sqrt(2 * noise.size))
    edge = attacks.gaussian(KEY, jnp.zeros((200, 200)), sigma=0.2)
    assert float(edge.min()) == 0 and float(edge.max()) <= 1
    assert float(jnp.mean((edge == 0).astype(float))) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("fraction", [0.0, 0.1, 1.0])
def test_salt_and_pepper_changes_its_share_to_either_end(fraction):
    x = jnp.full((300, 300), 0.5)
    moved = np.asarray(attacks.salt_and_pepper(KEY, x, fraction=fraction))
    tolerance = 4 * np.sqrt(0.25 / moved.size)
    assert np.mean(moved == 0) == pytest.approx(fraction / 2, abs=tolerance)
    assert np.mean(moved == 1) == pytest.approx(fraction / 2, abs=tolerance)
    assert np.all((moved == 0) | (moved == 1) | (moved == 0.5))


def test_pgd_takes_twenty_steps_of_an_eighth_of_the_radius():
    """Against the loop written out, where slopes change sign so often that every step shows."""
    frequencies = jnp.array([[31.0, -47.0, 59.0], [-67.0, 23.0, 41.0]])

    def model(x):
        return 3 * jnp.sin(x @ frequencies)

    x, labels, radius = jnp.linspace(0.1, 0.9, 24).reshape(12, 2), jnp.arange(12) % 3, 0.2
    moved = jnp.clip(x + radius * jax.random.uniform(KEY, x.shape, minval=-1.0), 0, 1)
    slopes = jax.jit(jax.grad(lambda moved: attacks.attack_loss(model, moved, labels)))
    for _ in range(20):
        moved = moved + radius / 8 * jnp.sign(slopes(moved))
        moved = jnp.clip(jnp.clip(moved, x - radius, x + radius), 0, 1)
    actual = jax.jit(lambda x: attacks.pgd(KEY, model, x, labels, epsilon=radius))(x)
    np.testing.assert_allclose(actual, moved, atol=1e-5)
    assert (
        0 < np.mean(np.abs(actual - x) < 0.99 * radius) < 1
    )  # some ended inside, some at the edge
