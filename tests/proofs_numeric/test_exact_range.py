"""The exact range against a fine grid of the faces, and what is returned when it gives up."""

import numpy as np
import pytest

from pgeom.scores import bregman_score
from proofs_numeric.configurations import off_vertex, random_ridges
from proofs_numeric.exact_range import GAP, largest_loss


@pytest.mark.parametrize("F", [off_vertex(), *map(random_ridges, [3] * 3, range(3))])
def test_nothing_on_a_face_exceeds_the_range_and_the_best_point_attains_it(F):
    found, label = largest_loss(F)
    t, score = np.linspace(0, 1, 4001), bregman_score(F)
    edge = np.stack([np.zeros(4001), t, 1 - t], axis=1)
    grid = [score(np.roll(edge, y, axis=1), np.full(4001, y)).max() for y in range(3)]
    assert found.low <= found.high <= found.low * (1 + 2 * GAP)
    assert max(grid) <= found.high
    assert found.point[label] == 0
    np.testing.assert_allclose(score(found.point, np.array(label)), found.low, rtol=1e-9)


def test_a_search_that_gives_up_still_bounds_the_loss():
    (found, _), (given_up, _) = largest_loss(off_vertex()), largest_loss(off_vertex(), most=1)
    assert given_up.low <= found.low <= found.high <= given_up.high
    assert given_up.high > 1.5 * given_up.low  # the vertices alone say little
