"""The exact range against a fine grid of the faces, and what is returned when it gives up."""

import numpy as np
import pytest

from pgeom.scores import bregman_score
from proofs_numeric import exact_range, instances


def face_maximum(F, count=4001):
    """The largest loss on a grid of the faces p_y = 0 of three classes."""
    t = np.linspace(0, 1, count)
    edge = np.stack([np.zeros(count), t, 1 - t], axis=1)
    score = bregman_score(F)
    return max(float(score(np.roll(edge, y, axis=1), np.full(count, y)).max()) for y in range(3))


@pytest.mark.parametrize(
    "F", [instances.off_vertex(), *map(instances.random_ridges, [3] * 3, range(3))]
)
def test_nothing_on_a_face_exceeds_the_range_and_the_best_point_attains_it(F):
    found = exact_range.largest_loss(F)
    assert found.low <= found.high <= found.low * (1 + 2 * exact_range.GAP)
    assert face_maximum(F) <= found.high
    assert found.point[found.label] == 0
    attained = bregman_score(F)(found.point, np.array(found.label))
    np.testing.assert_allclose(attained, found.low, rtol=1e-9)


def test_a_search_that_gives_up_still_bounds_the_loss():
    F = instances.off_vertex()
    found, given_up = exact_range.largest_loss(F), exact_range.largest_loss(F, most=1)
    assert given_up.low <= found.low <= found.high <= given_up.high
    assert given_up.high > 1.5 * given_up.low  # the vertices alone say little
