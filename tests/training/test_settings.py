"""The settings of a run are the protocol's, and its optimiser is AdamW with clipping."""

import chex
import jax.numpy as jnp
import numpy as np
import optax

from pgeom.training.settings import PROTOCOL, Optimiser, Training


def test_the_protocols_constants():
    assert Training() == PROTOCOL
    assert (PROTOCOL.epochs, PROTOCOL.batch_size, PROTOCOL.learning_rate) == (45, 512, 1e-3)
    assert (PROTOCOL.beta0, PROTOCOL.stopping) == (0.2, (12, 8))
    adamw = PROTOCOL.optimiser
    assert (adamw.clip, adamw.weight_decay) == (5.0, 1e-4)
    assert (adamw.b1, adamw.b2, adamw.eps) == (0.9, 0.999, 1e-8)


def test_settings_are_values():
    assert hash(Training()) == hash(PROTOCOL) and Training(epochs=3) != PROTOCOL
    assert Optimiser() == PROTOCOL.optimiser != Optimiser(clip=1.0)


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
