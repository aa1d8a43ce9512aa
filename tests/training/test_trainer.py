"""The compiled trainer: against a plain loop, fair, and independent of company."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from pgeom.losses import catalogue
from pgeom.losses.spec import LossSpec
from pgeom.training import early_stopping, program
from tests.training.conftest import (
    BATCH,
    EPOCHS,
    LOSSES,
    MODEL,
    inputs_of,
    make_cell,
    make_programs,
    train_group,
    trained,
)


def reference_run(cell, loss_name, epochs, batch_size=BATCH):
    """One run by an ordinary loop with optax.adamw: (validation NLLs, parameters by epoch)."""
    arrays = cell.arrays
    x, validation_x = inputs_of(arrays, arrays.rows), inputs_of(arrays, arrays.validation_rows)
    spec = catalogue.LOSSES[loss_name]
    optimiser = optax.chain(
        optax.clip_by_global_norm(5.0),
        optax.adamw(float(arrays.learning_rate), b1=0.9, b2=0.999, eps=1e-8, weight_decay=1e-4),
    )
    parameters = jnp.asarray(cell.initial)
    state, step, curve, history = optimiser.init(parameters), 0, [], []

    @jax.jit
    def update(parameters, state, x, y, masks, step):
        loss = spec.build(arrays.stats, step / arrays.planned_steps)

        def objective(w):
            return jnp.mean(loss(MODEL.logits(w, x, masks), y))

        updates, state = optimiser.update(jax.grad(objective)(parameters), state, parameters)
        return optax.apply_updates(parameters, updates), state

    for epoch in range(1, epochs + 1):
        order = cell.order(epoch)
        key = jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(arrays.dropout)), epoch - 1)
        masks = MODEL.masks(key, len(order))
        for first in range(0, len(order), batch_size):
            part = slice(first, first + batch_size)
            batch = order[part]
            kept = tuple(mask[part] for mask in masks)
            parameters, state = update(parameters, state, x[batch], arrays.y[batch], kept, step)
            step += 1
        log_p = jax.nn.log_softmax(MODEL.logits(parameters, validation_x))
        curve.append(-np.mean(np.asarray(log_p)[np.arange(20), arrays.validation_y]))
        history.append(np.asarray(parameters))
    return np.array(curve), history


@pytest.mark.parametrize("loss", LOSSES)
def test_equals_an_ordinary_loop(programs, loss):
    cell = make_cell(0)
    curve, history = reference_run(cell, loss, EPOCHS)
    one = trained(programs, [cell])[0]
    place = LOSSES.index(loss)
    np.testing.assert_allclose(one.validation_loss[place], curve, rtol=2e-5)
    best = int(np.argmin(curve))
    assert one.best_epoch[place] == best + 1
    assert one.best_step[place] == (best + 1) * 3
    np.testing.assert_allclose(one.parameters[place], history[best], atol=2e-5)
    logits = MODEL.logits(history[best], inputs_of(cell.arrays, cell.arrays.inputs))
    np.testing.assert_allclose(one.logits[place], logits, atol=1e-4)


@pytest.mark.parametrize("batch", [20, 64])
def test_batches_that_divide_the_examples_or_hold_them_all(batch):
    cell = make_cell(3, wanted=[True])
    curve, _ = reference_run(cell, "ce", 2, batch)
    one = trained(make_programs(("ce",), devices=1, batch=batch), [cell], epochs=2)[0]
    np.testing.assert_allclose(one.validation_loss[0], curve, rtol=2e-5)


@pytest.mark.parametrize("batch", [16, 24])
def test_batches_in_parts_give_the_same_run(batch, monkeypatch):
    monkeypatch.setattr(program, "part_rows", lambda model, rows: rows // 4)
    cell = make_cell(3, wanted=[True])
    curve, history = reference_run(cell, "gce", 2, batch)
    one = trained(make_programs(("gce",), devices=1, batch=batch), [cell], epochs=2)[0]
    np.testing.assert_allclose(one.validation_loss[0], curve, rtol=2e-5)
    np.testing.assert_allclose(one.parameters[0], history[one.best_epoch[0] - 1], atol=2e-5)


def test_cells_together_equal_cells_in_turn(programs):
    cells = [make_cell(seed, learning_rate=rate) for seed, rate in enumerate((1e-2, 5.0, 3e-3))]
    together = trained(make_programs(devices=1, cells_per_device=3, batched=True), cells)
    for one, alone in zip(together, trained(programs, cells), strict=True):
        np.testing.assert_allclose(one.validation_loss, alone.validation_loss, rtol=1e-4)
        np.testing.assert_array_equal(one.best_epoch, alone.best_epoch)
        np.testing.assert_allclose(one.logits, alone.logits, rtol=1e-3, atol=1e-3)


def test_a_run_does_not_depend_on_its_company(programs):
    among_many = trained(programs, [make_cell(seed) for seed in range(3)])[2]
    alone = trained(make_programs(("apms",), devices=1), [make_cell(2, wanted=[True])])[0]
    place = LOSSES.index("apms")
    np.testing.assert_allclose(
        alone.validation_loss[0], among_many.validation_loss[place], atol=1e-5
    )
    np.testing.assert_allclose(alone.logits[0], among_many.logits[place], atol=1e-4)


def test_annealing_reaches_apms_alone(programs):
    without, with_it = trained(programs, [make_cell(0, planned=1), make_cell(0, planned=1000)])
    np.testing.assert_array_equal(without.parameters[:2], with_it.parameters[:2])
    assert not np.allclose(without.parameters[2], with_it.parameters[2])


def test_a_stopped_run_is_frozen_and_the_group_ends_early(programs):
    eager = early_stopping.Rule(minimum=1, patience=1)
    seen = []
    cells = [make_cell(0, rule=eager, learning_rate=5.0), make_cell(1, learning_rate=1e-2)]
    stopped, running = train_group(programs, cells, 30, lambda *now: seen.append(now))
    assert np.all(stopped.stopped_epoch < running.stopped_epoch)
    for place, last in enumerate(stopped.stopped_epoch):
        assert np.all(np.isfinite(stopped.validation_loss[place, :last]))
        assert np.all(np.isnan(stopped.validation_loss[place, last:]))
        curve = stopped.validation_loss[place, :last]
        assert stopped.best_epoch[place] == 1 + int(np.argmin(curve))
    assert running.validation_loss.shape[1] == running.stopped_epoch.max() < 30
    numbers, flags = zip(*seen, strict=True)
    assert numbers == tuple(range(1, running.stopped_epoch.max() + 1))
    assert flags[-1].shape == (2, 3) and np.all(flags[-1]) and not np.all(flags[-2])


def test_divergence_is_reported_and_poisons_nobody():
    def broken(stats, progress):
        healthy = progress * EPOCHS * 3 < 3.5  # the first four steps
        return lambda logits, labels: jnp.sum(logits**2, axis=-1) * jnp.where(healthy, 1.0, jnp.nan)

    spec = LossSpec("broken", "Broken", "Tests", broken, annealed=True)
    programs = make_programs(("ce", spec))
    cell = make_cell(1, wanted=[True] * 2)
    spoiled, healthy = trained(programs, [make_cell(0, spoil=True, wanted=[True] * 2), cell])
    assert np.all(spoiled.diverged_epoch == 1) and np.all(spoiled.best_epoch == 0)
    assert healthy.diverged_epoch.tolist() == [0, 2]
    assert healthy.best_epoch[1] == 1
    chex.assert_tree_all_finite((healthy.logits, healthy.parameters))
    alone = trained(programs, [cell])[0]
    np.testing.assert_array_equal(alone.parameters[0], healthy.parameters[0])
