"""Intervals that enclose, and a proof that is refused where the claim is false."""

import numpy as np
import pytest

from pgeom.diagnosis.bounds import SHARP_GRADIENT
from proofs_numeric.every_class_count import (
    bound,
    maximum,
    minimum,
    prove,
    square,
    square_root,
    variable,
)

FUNCTIONS = {
    "polynomial": lambda x, y: square(x) * (1 - y) - 3.0 * x,
    "root": lambda x, y: square_root(1 + square(x - y)),
    "steep": lambda x, y: square_root(square(x - y)),
    "larger": lambda x, y: maximum(x * y, square(x)),
    "smaller": lambda x, y: minimum(x - y, 0.5 * x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_intervals_enclose_values_and_slopes(name):
    def enclose(low, high):
        ends = [variable(low[i], high[i], slope=float(i == 0)) for i in range(2)]
        box = FUNCTIONS[name](*ends)
        return np.stack([box.value, box.slope])

    rng = np.random.default_rng(0)
    low, high = np.sort(rng.uniform(-1, 1, (2, 2, 200)), axis=0)
    box = enclose(low, high)
    for share in rng.uniform(size=(20, 2, 200)):
        p = low + share * (high - low)
        inside = enclose(p, p)
        assert np.all((box[:, 0] <= inside[:, 0]) & (inside[:, 1] <= box[:, 1]))


def test_the_scalars_bound_the_gradient_of_every_class_count():
    """f(s, t, b) of a distribution is at least its ½(‖J‖‖d‖ + ‖Jd‖)."""
    rng = np.random.default_rng(1)
    for K in (2, 3, 5, 20):
        for p in rng.dirichlet(np.full(K, 0.5), 50):
            s, t = p[0], p[1:].max()
            short = min(t, 1 - s - t) * (1 - s - t)
            b = (np.sum(p[1:] ** 2) - t**2) / short if short > 1e-12 else 0.0
            J, d = np.diag(p) - np.outer(p, p), p - np.eye(K)[0]
            size = np.linalg.norm(J, 2) * np.linalg.norm(d) + np.linalg.norm(J @ d)
            scalars = (np.array([x]) for x in (s, t / (1 - s), min(b, 1.0)))
            stated = bound(*(variable(x, x, slope=0.0) for x in scalars))
            assert size / 2 <= stated.value[1, 0] + 1e-9


def test_the_constant_is_proved_and_one_below_the_edge_of_monotony_is_not():
    assert prove(SHARP_GRADIENT).high == SHARP_GRADIENT
    assert prove(0.98 * SHARP_GRADIENT).high > 0.98 * SHARP_GRADIENT
