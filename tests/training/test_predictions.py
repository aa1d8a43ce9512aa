"""Predictions of a cell, which are made in parts."""

import jax.numpy as jnp
import numpy as np

from pgeom.training import program
from tests.training.conftest import FEATURES, MODEL, inputs_of, make_cell


def test_a_missing_value_is_the_mean_of_its_column():
    arrays, rows = make_cell(0).arrays, jnp.array([3, 1])
    features = FEATURES.copy()
    features[3, 2] = np.nan
    expected = np.where(np.arange(6) == 2, [[0], [1]], 1) * inputs_of(arrays, np.asarray(rows))
    found = program.standardise(jnp.asarray(features), arrays, rows)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found[0, 2] == 0 and not np.any(found[1] == 0)


def test_predictions_in_parts_are_those_at_once(monkeypatch):
    cell = make_cell(0)
    rows, parameters = jnp.arange(11), jnp.asarray(cell.initial)
    expected = MODEL.logits(parameters, inputs_of(cell.arrays, rows))
    for at_once in (11, 4, 1):  # the last part is padded
        monkeypatch.setattr(program, "AT_ONCE", at_once * MODEL.activations)
        assert program.predicted_at_once(MODEL) == at_once
        found = program.predict(MODEL, parameters, jnp.asarray(FEATURES), cell.arrays, rows)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(program, "AT_ONCE", 1)
    assert program.predicted_at_once(MODEL) == 1
