"""How much memory of its device a member takes, before anything is compiled."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from pgeom.training.member import predicted_at_once
from pgeom.training.placement import Setup, Sizes, shapes, shard_members


def member_bytes(setup: Setup, sizes: Sizes) -> int:
    """Upper bound on the memory that one member takes on its device, the features apart.

    What it holds of the member, twice, because a run's old state may outlive its new one; an
    epoch's masks; and the activations of a part with their gradients, or those of a prediction.
    """
    _, *held = shapes(replace(setup, devices=1, members_per_device=1), sizes, shard_members(1))
    at_once = 4 * setup.part(sizes.train)
    at_once += 2 * min(predicted_at_once(setup.model), max(sizes.validation, sizes.inputs))
    working = at_once * setup.model.activations * np.dtype(np.float32).itemsize
    masks = jax.eval_shape(lambda key: setup.model.masks(key, sizes.train), jax.random.key(0))
    return working + 2 * _bytes((held, masks))


def feature_bytes(setup: Setup, sizes: Sizes) -> int:
    """The memory that the features take on each device."""
    return _bytes(shapes(setup, sizes, shard_members(setup.devices))[0])


def _bytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
