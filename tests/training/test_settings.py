"""The settings of a run: the protocol's, those chosen by size, and AdamW with clipping."""

import math
from dataclasses import replace

import chex
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from pgeom.training.settings import PAPER, PROTOCOL, Optimiser, Training, fit_to_size


def test_the_protocols_constants():
    assert Training() == PROTOCOL
    assert (PROTOCOL.epochs, PROTOCOL.batch_size, PROTOCOL.learning_rate) == (45, 512, 1e-3)
    assert PROTOCOL.stopping == (12, 8)
    adamw = PROTOCOL.optimiser
    assert (adamw.clip, adamw.weight_decay) == (5.0, 1e-4)
    assert (adamw.b1, adamw.b2, adamw.eps) == (0.9, 0.999, 1e-8)


def test_a_step_is_optaxs():
    rate, constants = 0.03, {"b1": 0.8, "b2": 0.9, "eps": 1e-3, "weight_decay": 0.2}
    ours = Optimiser(clip=2.0, **constants).transformation()
    theirs = optax.chain(optax.clip_by_global_norm(2.0), optax.adamw(rate, **constants))
    w = jnp.asarray(np.random.default_rng(0).normal(size=5), jnp.float32)
    ours_state, theirs_state = ours.init(w), theirs.init(w)
    for scale in (10.0, 0.1, 1.0):  # clipped, and not
        gradient = scale * jnp.ones(5)
        direction, ours_state = ours.update(gradient, ours_state, w)
        step, theirs_state = theirs.update(gradient, theirs_state, w)
        chex.assert_trees_all_close(-rate * direction, step, rtol=1e-6)


@pytest.mark.parametrize("examples", [1, 36, 594, 1_386, 12_000, 42_000, 60_000, 10**6, 10**7])
def test_the_sizes_chosen_suit_the_number_of_examples(examples):
    chosen = fit_to_size(examples)
    steps = math.ceil(examples / chosen.batch_size)
    assert 64 <= chosen.batch_size <= 512 and math.log2(chosen.batch_size).is_integer()
    assert steps >= 60 or chosen.batch_size == 64
    assert PROTOCOL.epochs <= chosen.epochs <= 1000
    assert chosen.epochs * steps >= 20_000 or chosen.epochs == 1000
    assert chosen.stopping.patience >= 10 and chosen.stopping.patience * steps >= 1000
    kept = {"epochs": 45, "batch_size": 512, "stopping": PAPER}
    assert replace(chosen, **kept) == PROTOCOL
