"""What a run is stopped on: each criterion against its definition, and in the compiled program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pgeom.evaluation import calibration, metrics
from pgeom.training import early_stopping
from pgeom.training.early_stopping import epoch_value
from pgeom.training.settings import STOP_ON
from tests.training.conftest import EPOCHS, MODEL, inputs_of, make_cell, make_programs, trained
from tests.training.test_trainer import reference_run

LABELS = np.arange(20) % 3


def value(stop_on, logits, weights=None, epoch=5):
    logits = jnp.asarray(logits, jnp.float32)
    weights = jnp.ones(20) if weights is None else weights
    nll = jnp.average(-jax.nn.log_softmax(logits)[np.arange(20), LABELS], weights=weights)
    return epoch_value(stop_on, logits, LABELS.astype(np.int32), weights, nll, jnp.int32(epoch))


def draw(seed=0):
    return np.random.default_rng(seed).normal(size=(20, 3)) + 3 * np.eye(3)[LABELS]


def expected_value(stop_on, logits, labels, epoch):
    """A criterion by the public metrics."""
    fit = calibration.fit_temperature(logits, labels, prior=1.0)
    return {
        "nll": lambda: metrics.nll(logits, labels),
        "calibrated-nll": lambda: metrics.nll(calibration.rescale(logits, fit.temperature), labels),
        "accuracy": lambda: -metrics.accuracy(logits, labels),
        "none": lambda: -float(epoch),
    }[stop_on]()


@pytest.mark.parametrize("stop_on", STOP_ON)
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_metric(stop_on, seed):
    logits = jnp.asarray(3 * draw(seed), jnp.float32)
    actual = value(stop_on, logits)
    np.testing.assert_allclose(actual, expected_value(stop_on, logits, LABELS, 5), rtol=1e-5)


@pytest.mark.parametrize("stop_on", STOP_ON)
def test_the_trainer_keeps_the_epoch_with_the_lowest_value(stop_on):
    cell = make_cell(3, learning_rate=0.05, wanted=[True])
    _, history = reference_run(cell, "ce", EPOCHS)
    arrays = cell.arrays
    x = inputs_of(arrays, arrays.validation_rows)
    logits = [MODEL.logits(parameters, x) for parameters in history]
    values = [
        float(expected_value(stop_on, z, arrays.validation_y, epoch))
        for epoch, z in enumerate(logits, start=1)
    ]
    programs = make_programs(("ce",), devices=1, stop_on=stop_on)
    (one,) = trained(programs, [cell])
    best = int(np.argmin(values))
    assert one.best_epoch.tolist() == [best + 1]
    np.testing.assert_allclose(one.parameters[0], history[best], atol=1e-4)
    np.testing.assert_allclose(one.last_logits[0], logits[-1], atol=1e-3)
    if stop_on == "none":
        np.testing.assert_array_equal(one.logits, one.last_logits)


def test_the_last_epoch_is_where_a_run_stopped(programs):
    eager = early_stopping.Rule(minimum=1, patience=1)
    cell = make_cell(0, rule=eager, learning_rate=5.0)
    (one,) = trained(programs, [cell], epochs=30)
    place = int(np.argmax(one.stopped_epoch > one.best_epoch))
    assert one.stopped_epoch[place] > one.best_epoch[place]
    assert not np.allclose(one.logits[place], one.last_logits[place])
    _, history = reference_run(cell, ("ce", "capm", "apms")[place], int(one.stopped_epoch[place]))
    expected = MODEL.logits(history[-1], inputs_of(cell.arrays, cell.arrays.inputs))
    np.testing.assert_allclose(one.last_logits[place], expected, rtol=2e-2, atol=2e-2)
