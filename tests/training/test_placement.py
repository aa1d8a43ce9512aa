"""Groups of members on the devices of a mesh."""

import chex
import jax
import numpy as np
import pytest

from pgeom.training import trainer
from tests.training.conftest import FEATURES, SIZES, make_setup, make_task


def test_sizes_are_those_of_the_examples():
    assert trainer.task_sizes(FEATURES, make_task(0)) == SIZES


@pytest.mark.parametrize(("devices", "members"), [(1, 1), (2, 1), (2, 3)])
def test_a_group_has_so_many_members_on_each_device(devices, members):
    setup = make_setup(devices=devices, members_per_device=members)
    assert setup.group_size == devices * members
    sharding = trainer.shard_members(devices)
    group = trainer.assemble([make_task(0)], setup, sharding)
    assert len(group.members.rows.addressable_shards) == devices
    assert {shard.data.shape[0] for shard in group.members.rows.addressable_shards} == {members}


def test_a_group_is_its_tasks_and_stopped_copies_of_the_last():
    setup = make_setup(members_per_device=2)
    tasks = [make_task(0), make_task(1, wanted=(False, True, True))]
    group = trainer.assemble(tasks, setup, trainer.shard_members(2))
    for place, task in enumerate([*tasks, tasks[1], tasks[1]]):
        chex.assert_trees_all_equal(
            jax.tree.map(lambda leaf, place=place: np.asarray(leaf)[place], group.members),
            task.member,
        )
        np.testing.assert_array_equal(group.inputs[place], task.inputs)
        np.testing.assert_array_equal(group.orders(3)[place], task.order(3))
        for parameters in (group.runs.parameters, group.runs.best.parameters):
            np.testing.assert_array_equal(parameters[place], np.stack([task.initial] * 3))
    idle = [[True] * 3] * 2
    assert group.runs.stopping.stopped.tolist() == [[False] * 3, [True, False, False], *idle]


def test_an_assembled_group_has_the_shapes_that_are_compiled_for():
    setup, sharding = make_setup(), trainer.shard_members(2)
    group = trainer.assemble([make_task(0)], setup, sharding)
    features = trainer.share_features(FEATURES, sharding)
    found = trainer.Shapes(features, group.members, group.orders(1), group.runs, group.inputs)
    compiled = trainer.shapes(setup, SIZES, sharding)
    chex.assert_trees_all_equal_shapes_and_dtypes(found, compiled)


def test_what_is_fetched_is_a_host_array():
    group = trainer.assemble([make_task(0)], make_setup(), trainer.shard_members(2))
    fetched = trainer.fetch(group.inputs)
    assert isinstance(fetched, np.ndarray) and fetched.shape == (2, 20)


def test_the_features_are_whole_on_each_device():
    shared = trainer.share_features(FEATURES, trainer.shard_members(2))
    assert [shard.data.shape for shard in shared.addressable_shards] == [FEATURES.shape] * 2
