"""The bound on the memory that a member takes."""

import jax

from pgeom.models.cnn import CNN
from pgeom.training import trainer
from pgeom.training.settings import Optimiser
from tests.training.conftest import FEATURES, MODEL, SIZES, make_setup, make_task


def test_the_memory_of_a_member_covers_its_arrays_and_grows_with_them():
    setup = make_setup(devices=1)
    group = trainer.assemble([make_task(0)], setup, trainer.shard_members(1))
    held = sum(leaf.nbytes for leaf in jax.tree.leaves((group.members, group.runs, group.inputs)))
    bound = trainer.member_bytes(setup, SIZES)
    assert bound > 2 * held + 4 * 16 * MODEL.activations
    assert trainer.member_bytes(setup, SIZES._replace(train=80)) > bound
    assert trainer.member_bytes(setup, SIZES._replace(features=9999)) == bound
    assert trainer.member_bytes(make_setup(("ce",), devices=1), SIZES) < bound
    # of a larger batch: what goes into and out of a layer, and the gradients of both
    larger = trainer.member_bytes(make_setup(devices=1, batch=32), SIZES) - bound
    assert larger == 16 * 4 * 4 * MODEL.activations
    # of a hundred more predictions: the rows, twice, and what goes into and out of a layer
    further = trainer.member_bytes(setup, SIZES._replace(inputs=SIZES.inputs + 100)) - bound
    assert further >= 100 * 4 * (2 * MODEL.activations + 2)
    several = make_setup(devices=2, members_per_device=5)
    assert trainer.member_bytes(several, SIZES) == bound  # it is of one member


def test_of_a_batch_that_is_trained_in_parts_one_part_counts():
    def bound(batch, **placing):
        setup = trainer.Setup(CNN((28, 28), 3), (), batch, Optimiser(), 1, **placing)
        return trainer.member_bytes(setup, SIZES._replace(train=512))

    assert bound(64) == bound(256) == bound(512) < bound(256, batched=True)


def test_the_memory_of_the_features_is_theirs_whatever_members_a_device_has():
    for members in (1, 5):
        setup = make_setup(devices=2, members_per_device=members)
        assert trainer.feature_bytes(setup, SIZES) == FEATURES.nbytes
