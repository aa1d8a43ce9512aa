"""The compiled trainer: against a plain loop, fair, and independent of company."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from pgeom.losses import catalogue
from pgeom.losses.spec import LossSpec
from pgeom.training import early_stopping, program, trainer
from tests.training.conftest import (
    BATCH,
    EPOCHS,
    LOSSES,
    MODEL,
    inputs_of,
    make_programs,
    make_task,
    train_group,
    trained,
)


def reference_run(task, loss_name, epochs, batch_size=BATCH):
    """One run by an ordinary loop with optax.adamw: (validation NLLs, parameters by epoch)."""
    member = task.member
    x, validation_x = inputs_of(member, member.rows), inputs_of(member, member.validation_rows)
    spec = catalogue.LOSSES[loss_name]
    optimiser = optax.chain(
        optax.clip_by_global_norm(5.0),
        optax.adamw(float(member.learning_rate), b1=0.9, b2=0.999, eps=1e-8, weight_decay=1e-4),
    )
    parameters = jnp.asarray(task.initial)
    state, step, curve, history = optimiser.init(parameters), 0, [], []

    @jax.jit
    def update(parameters, state, x, y, masks, step):
        loss = spec.build(member.stats, step / member.planned_steps)

        def objective(w):
            return jnp.mean(loss(MODEL.logits(w, x, masks), y))

        updates, state = optimiser.update(jax.grad(objective)(parameters), state, parameters)
        return optax.apply_updates(parameters, updates), state

    for epoch in range(1, epochs + 1):
        order = task.order(epoch)
        key = jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(member.dropout)), epoch - 1)
        masks = MODEL.masks(key, len(order))
        for first in range(0, len(order), batch_size):
            part = slice(first, first + batch_size)
            batch = order[part]
            kept = tuple(mask[part] for mask in masks)
            parameters, state = update(parameters, state, x[batch], member.y[batch], kept, step)
            step += 1
        log_p = jax.nn.log_softmax(MODEL.logits(parameters, validation_x))
        curve.append(-np.mean(np.asarray(log_p)[np.arange(20), member.validation_y]))
        history.append(np.asarray(parameters))
    return np.array(curve), history


@pytest.mark.parametrize("loss", LOSSES)
def test_equals_an_ordinary_loop(programs, loss):
    task = make_task(0)
    curve, history = reference_run(task, loss, EPOCHS)
    one = trained(programs, [task])[0]
    place = LOSSES.index(loss)
    np.testing.assert_allclose(one.validation_nll[place], curve, rtol=2e-5)
    best = int(np.argmin(curve))
    assert one.best_epoch[place] == best + 1
    assert one.best_step[place] == (best + 1) * 3
    np.testing.assert_allclose(one.parameters[place], history[best], atol=2e-5)
    logits = MODEL.logits(history[best], inputs_of(task.member, task.inputs))
    np.testing.assert_allclose(one.logits[place], logits, atol=1e-4)


@pytest.mark.parametrize("batch", [20, 64])
def test_batches_that_divide_the_examples_or_hold_them_all(batch):
    task = make_task(3, wanted=[True])
    curve, _ = reference_run(task, "ce", 2, batch)
    one = trained(make_programs(("ce",), devices=1, batch=batch), [task], epochs=2)[0]
    np.testing.assert_allclose(one.validation_nll[0], curve, rtol=2e-5)


def test_padding_that_is_trained_on_changes_nothing(monkeypatch):
    monkeypatch.setattr(program, "CHEAP_PADDING", 1.0)
    assert program.last_rows(40, 24) == 24
    task = make_task(3, wanted=[True])
    curve, _ = reference_run(task, "ce", 2, 24)
    one = trained(make_programs(("ce",), devices=1, batch=24), [task], epochs=2)[0]
    np.testing.assert_allclose(one.validation_nll[0], curve, rtol=2e-5)


@pytest.mark.parametrize("batch", [16, 24])
def test_batches_in_parts_give_the_same_run(batch, monkeypatch):
    monkeypatch.setattr(trainer, "part_rows", lambda model, rows: rows // 4)
    task = make_task(3, wanted=[True])
    curve, history = reference_run(task, "gce", 2, batch)
    one = trained(make_programs(("gce",), devices=1, batch=batch), [task], epochs=2)[0]
    np.testing.assert_allclose(one.validation_nll[0], curve, rtol=2e-5)
    np.testing.assert_allclose(one.parameters[0], history[one.best_epoch[0] - 1], atol=2e-5)


def test_members_together_equal_members_in_turn(programs):
    tasks = [make_task(seed, learning_rate=rate) for seed, rate in enumerate((1e-2, 5.0, 3e-3))]
    together = trained(make_programs(devices=1, members_per_device=3, batched=True), tasks)
    for one, alone in zip(together, trained(programs, tasks), strict=True):
        np.testing.assert_allclose(one.validation_nll, alone.validation_nll, rtol=1e-4)
        np.testing.assert_array_equal(one.best_epoch, alone.best_epoch)
        np.testing.assert_allclose(one.logits, alone.logits, rtol=1e-3, atol=1e-3)


def test_all_losses_of_a_member_share_weights_batches_and_masks():
    # the same loss twice: anything not shared would set the two runs apart
    one = trained(make_programs(("ce", "ce")), [make_task(0, wanted=[True] * 2)])[0]
    np.testing.assert_array_equal(one.parameters[0], one.parameters[1])


def test_members_differ(programs):
    first, second = trained(programs, [make_task(0), make_task(1)])
    assert not np.allclose(first.parameters, second.parameters)
    assert not np.array_equal(make_task(0).order(1), make_task(1).order(1))
    assert not np.array_equal(make_task(0).order(1), make_task(0).order(2))


def test_a_run_does_not_depend_on_its_company(programs):
    among_many = trained(programs, [make_task(seed) for seed in range(3)])[2]
    alone = trained(make_programs(("apms",), devices=1), [make_task(2, wanted=[True])])[0]
    place = LOSSES.index("apms")
    np.testing.assert_allclose(alone.validation_nll[0], among_many.validation_nll[place], atol=1e-5)
    np.testing.assert_allclose(alone.logits[0], among_many.logits[place], atol=1e-4)


def test_twice_the_same(programs):
    tasks = [make_task(0), make_task(1)]
    chex.assert_trees_all_equal(trained(programs, tasks), trained(programs, tasks))


def test_annealing_reaches_apms_alone(programs):
    without, with_it = trained(programs, [make_task(0, planned=1), make_task(0, planned=1000)])
    np.testing.assert_array_equal(without.parameters[:2], with_it.parameters[:2])
    assert not np.allclose(without.parameters[2], with_it.parameters[2])


def test_a_stopped_run_is_frozen_and_the_group_ends_early(programs):
    eager = early_stopping.Rule(minimum=1, patience=1)
    seen = []
    tasks = [make_task(0, rule=eager, learning_rate=5.0), make_task(1, learning_rate=1e-2)]
    stopped, running = train_group(programs, tasks, 30, lambda *now: seen.append(now))
    assert np.all(stopped.stopped_epoch < running.stopped_epoch)
    for place, last in enumerate(stopped.stopped_epoch):
        assert np.all(np.isfinite(stopped.validation_nll[place, :last]))
        assert np.all(np.isnan(stopped.validation_nll[place, last:]))
        curve = stopped.validation_nll[place, :last]
        assert stopped.best_epoch[place] == 1 + int(np.argmin(curve))
    assert running.validation_nll.shape[1] == running.stopped_epoch.max() < 30
    numbers, flags = zip(*seen, strict=True)
    assert numbers == tuple(range(1, running.stopped_epoch.max() + 1))
    assert flags[-1].shape == (2, 3) and np.all(flags[-1]) and not np.all(flags[-2])


def test_every_epoch_is_reported_also_where_none_has_stopped(programs):
    seen = []
    train_group(
        programs, [make_task(0)], 3, lambda epoch, stopped: seen.append((epoch, stopped.shape))
    )
    assert seen == [(1, (1, 3)), (2, (1, 3)), (3, (1, 3))]


def test_divergence_is_reported_and_poisons_nobody():
    def broken(stats, progress):
        healthy = progress * EPOCHS * 3 < 3.5  # the first four steps
        return lambda logits, labels: jnp.sum(logits**2, axis=-1) * jnp.where(healthy, 1.0, jnp.nan)

    spec = LossSpec("broken", "Broken", "Tests", broken, annealed=True)
    programs = make_programs(("ce", spec))
    task = make_task(1, wanted=[True] * 2)
    spoiled, healthy = trained(programs, [make_task(0, spoil=True, wanted=[True] * 2), task])
    assert np.all(spoiled.diverged_epoch == 1) and np.all(spoiled.best_epoch == 0)
    assert healthy.diverged_epoch.tolist() == [0, 2]
    assert healthy.best_epoch[1] == 1
    chex.assert_tree_all_finite((healthy.logits, healthy.parameters))
    alone = trained(programs, [task])[0]
    np.testing.assert_array_equal(alone.parameters[0], healthy.parameters[0])


def test_every_epoch_is_announced_with_the_runs_that_have_stopped(programs):
    calls, stops_at_three = [], early_stopping.Rule(minimum=3, patience=0)
    train_group(programs, [make_task(0, rule=stops_at_three)], 3, lambda *said: calls.append(said))
    assert [epoch for epoch, _ in calls] == [1, 2, 3]
    assert [stopped.tolist() for _, stopped in calls] == [[[False] * 3]] * 2 + [[[True] * 3]]
