"""Training on arrays: against a plain loop, whatever fills up the batches."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from pgeom.losses import catalogue
from pgeom.models.model import Linear
from pgeom.paper.class_structure import class_stats
from pgeom.sklearn import merge_equal
from pgeom.training import fit as fitting
from pgeom.training.fit import Examples, fit
from pgeom.training.settings import NEVER, Training

MODEL, LOSS = Linear(3, 3), catalogue.LOSSES["ce"]
SETTINGS = Training(epochs=4, batch_size=8, learning_rate=0.05, stopping=NEVER)


def examples(n=21, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 3)).astype(np.float32)
    return Examples(features, np.arange(n) % 3, rng.uniform(0.5, 3.0, n))


def plain_fit(data, seed, settings):
    """An ordinary loop with optax.adamw over weighted means of batches."""
    n, initial = len(data.labels), MODEL.initial(np.random.default_rng(seed).spawn(1)[0])
    optimiser = optax.chain(
        optax.clip_by_global_norm(5.0), optax.adamw(settings.learning_rate, weight_decay=1e-4)
    )
    parameters, history = jnp.asarray(initial), []
    state = optimiser.init(parameters)
    for epoch in range(1, settings.epochs + 1):
        order = np.random.default_rng([seed, epoch]).permutation(n)
        for first in range(0, n, settings.batch_size):
            x, y, w = (array[order[first : first + settings.batch_size]] for array in data)

            def objective(parameters, x=x, y=y, w=w):
                log_p = jax.nn.log_softmax(MODEL.logits(parameters, x))
                return -jnp.average(log_p[np.arange(len(y)), y], weights=w.astype(np.float32))

            updates, state = optimiser.update(jax.grad(objective)(parameters), state, parameters)
            parameters = optax.apply_updates(parameters, updates)
        history.append(np.asarray(parameters))
    return history


def test_equals_an_ordinary_loop_over_weighted_batches():
    data = examples()
    results = fit(MODEL, LOSS, data, None, SETTINGS, [3, 4])
    for seed, one in zip((3, 4), results, strict=True):
        expected = plain_fit(data, seed, SETTINGS)[-1]
        np.testing.assert_allclose(one.parameters[0], expected, rtol=2e-4, atol=2e-5)
        assert one.best_epoch.tolist() == one.stopped_epoch.tolist() == [4]


def test_the_best_epoch_is_by_the_weighted_nll_of_validation():
    data, validation = examples(), examples(9, seed=1)
    (one,) = fit(MODEL, LOSS, data, validation, SETTINGS, [3])
    history, curve = plain_fit(data, 3, SETTINGS), []
    for parameters in history:
        log_p = np.asarray(jax.nn.log_softmax(MODEL.logits(parameters, validation.features)))
        nll = -log_p[np.arange(9), validation.labels]
        curve.append(np.average(nll, weights=validation.weights))
    np.testing.assert_allclose(one.validation_loss[0], curve, rtol=1e-4)
    best = history[int(np.argmin(curve))]
    np.testing.assert_allclose(one.parameters[0], best, rtol=2e-4, atol=2e-5)


def first_cell(data, monkeypatch):
    """The features and the cell that the programs would be compiled for."""

    class Stopped(Exception):
        """It has come to the compilation."""

    def stop(model, losses, training, features, cell, **placing):
        raise Stopped(features, cell)

    monkeypatch.setattr(fitting, "static_settings", stop)
    with pytest.raises(Stopped) as stopped:
        fit(MODEL, LOSS, data, None, SETTINGS, [0])
    return stopped.value.args


@pytest.mark.parametrize("n", [17, 21, 24])
def test_sets_of_nearly_one_size_share_a_program_and_annealing_ends_with_the_last_step(
    n, monkeypatch
):
    features, cell = first_cell(examples(n), monkeypatch)
    assert len(features) == len(cell.arrays.y) == len(cell.order(1)) == 24  # three batches of eight
    assert np.sum(cell.arrays.weights > 0) == n
    assert cell.arrays.planned_steps == SETTINGS.epochs * 3


@pytest.mark.parametrize("K", [2, 4])
def test_class_statistics_are_by_weight(K):
    rng = np.random.default_rng(K)
    labels, weights = np.arange(12) % K, rng.integers(1, 4, 12)
    features = rng.normal(size=(12, 2))
    repeated = np.repeat(np.arange(12), weights)
    stats = class_stats(features.astype(np.float32), labels, K, weights=weights)
    for c in range(K):
        members = repeated[labels[repeated] == c]
        assert stats.counts[c] == len(members)
        np.testing.assert_allclose(stats.centroids[c], features[members].mean(0), rtol=1e-5)


def test_equal_examples_are_merged_and_others_are_not():
    x = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [1.0, 0.0]])
    merged = merge_equal(Examples(x, np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 4.0, 8.0])))
    found = {
        (*row, label, w)
        for row, label, w in zip(*map(np.ndarray.tolist, merged), strict=True)
        for row in [tuple(row)]
    }
    assert found == {(1.0, 0.0, 0, 5.0), (2.0, 0.0, 0, 2.0), (1.0, 0.0, 1, 8.0)}


def test_sizes_grow_by_a_quarter_at_most():
    sizes = sorted({fitting.round_up(n) for n in range(1, 5000)})
    assert all(n <= fitting.round_up(n) for n in range(5000))
    assert all(after <= 1.25 * before for before, after in pairwise(sizes))
    assert len(sizes) < 40
