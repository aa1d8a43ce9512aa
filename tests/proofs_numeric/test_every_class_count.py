"""Intervals that enclose, and a proof that is refused where the claim is false."""

import numpy as np
import pytest

from pgeom.diagnosis import bounds
from proofs_numeric import every_class_count
from proofs_numeric.intervals import Interval, maximum, minimum, square, square_root, variable

FUNCTIONS = {
    "polynomial": lambda x, y: square(x) * (1 - y) - 3.0 * x,
    "root": lambda x, y: square_root(1 + square(x - y)),
    "larger": lambda x, y: maximum(x * y, square(x)),
    "smaller": lambda x, y: minimum(x - y, 0.5 * x),
}


def at_points(function, x, y):
    """The function and its slope in x at points, as intervals without width."""
    return function(variable(x, x, slope=1.0), variable(y, y, slope=0.0))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_intervals_enclose_values_and_slopes(name):
    rng = np.random.default_rng(0)
    low, high = np.sort(rng.uniform(-1, 1, (2, 2, 200)), axis=0)
    ends = [variable(low[i], high[i], slope=float(i == 0)) for i in range(2)]
    box = FUNCTIONS[name](*ends)
    for share in rng.uniform(size=(20, 2, 200)):
        inside = at_points(FUNCTIONS[name], *(low + share * (high - low)))
        assert np.all((box.low <= inside.low) & (inside.high <= box.high))
        assert np.all((box.slope_low <= inside.slope_low) & (inside.slope_high <= box.slope_high))


def test_a_slope_that_may_be_unbounded_is():
    root = square_root(variable(np.zeros(1), np.ones(1), slope=1.0))
    assert np.isneginf(root.slope_low[0]) and np.isposinf(root.slope_high[0])
    assert isinstance(root, Interval)


def test_the_scalars_bound_the_gradient_of_every_class_count():
    """f(s, t, b) of a distribution is at least its ½(‖J‖‖d‖ + ‖Jd‖)."""
    rng = np.random.default_rng(1)
    for K in (2, 3, 5, 20):
        for p in rng.dirichlet(np.full(K, 0.5), 50):
            s, t = p[0], p[1:].max()
            rest = 1 - s - t
            short = min(t, rest) * rest
            b = (np.sum(p[1:] ** 2) - t**2) / short if short > 1e-12 else 0.0
            J, d = np.diag(p) - np.outer(p, p), p - np.eye(K)[0]
            size = np.linalg.norm(J, 2) * np.linalg.norm(d) + np.linalg.norm(J @ d)
            scalars = (np.array([x]) for x in (s, t / (1 - s), min(b, 1.0)))
            stated = every_class_count.bound(*(variable(x, x, slope=0.0) for x in scalars))
            assert size / 2 <= stated.high[0] + 1e-9


def test_the_constant_is_proved_and_one_below_the_edge_of_monotony_is_not():
    assert every_class_count.prove(bounds.SHARP_GRADIENT).undecided == 0
    assert every_class_count.prove(0.98 * bounds.SHARP_GRADIENT).undecided > 0
