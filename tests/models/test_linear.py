"""Multinomial regression against plain NumPy."""

import jax
import numpy as np

from pgeom.models.model import Linear


def test_logits_are_affine():
    model, rng = Linear(5, 3), np.random.default_rng(0)
    vector, x = model.initial(rng), rng.normal(size=(7, 5)).astype(np.float32)
    bias, kernel = vector[:3], vector[3:].reshape(5, 3)
    np.testing.assert_allclose(model.logits(vector, x), x @ kernel + bias, rtol=1e-5, atol=1e-6)
    assert np.all(np.abs(vector) <= 5**-0.5) and model.size == 18


def test_nothing_is_random_in_training():
    assert Linear(5, 3).masks(jax.random.key(0), 4) == ()
