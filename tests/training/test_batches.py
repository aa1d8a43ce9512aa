"""Batches, the parts in which they go through a model, and the gradients that these add up to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.losses import catalogue
from pgeom.models.cnn import CNN
from pgeom.training import program
from pgeom.training.program import batch_gradient
from tests.training.conftest import FEATURES, LOSSES, MODEL, make_cell

IMAGES = CNN((28, 28), 10)


@pytest.mark.parametrize(
    ("rows", "part"), [(256, 64), (128, 64), (512, 64), (64, 64), (50, 50), (250, 50), (360, 60)]
)
def test_a_convolutional_network_is_trained_in_parts_that_fit_the_caches(rows, part):
    assert program.part_rows(IMAGES, rows) == part
    assert part * IMAGES.activations <= program.CACHED


@pytest.mark.parametrize("cheap", [0.0, 1.0], ids=["without padding", "with padding"])
@pytest.mark.parametrize("loss", range(len(LOSSES)))
def test_gradients_of_parts_add_up_to_that_of_the_batch(loss, cheap, monkeypatch):
    monkeypatch.setattr(program, "CHEAP_PADDING", cheap)
    cell = make_cell(0)
    arrays = jax.tree.map(jnp.asarray, cell.arrays)
    key = jax.random.wrap_key_data(arrays.dropout)
    stacked = program.cut_epoch(arrays, jnp.asarray(cell.order(1)), MODEL.masks(key, 40), 24)
    specs = [catalogue.LOSSES[name] for name in LOSSES]

    def gradients(part):
        gradient = batch_gradient(MODEL, specs, jnp.asarray(FEATURES), arrays, part)
        parameters = jnp.asarray(cell.initial)
        first, last = (jax.tree.map(lambda leaf, n=n: leaf[n], stacked) for n in range(2))
        return [gradient(loss, jnp.asarray(0.1), parameters, batch) for batch in (first, last)]

    whole = gradients(24)
    assert all(np.linalg.norm(one) > 1e-3 for one in whole)
    for part in (12, 6):  # the last batch, of sixteen, is over before its last part of six
        for found, expected in zip(gradients(part), whole, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
