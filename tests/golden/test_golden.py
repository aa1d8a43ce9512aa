"""The comparison with frozen values sees what it should."""

import numpy as np
import pytest

from tests.golden.__main__ import differs, frozen, plain
from tests.golden.values import PARTS, part_metrics


def test_the_metrics_are_what_they_were():
    now, then = plain(part_metrics()), frozen("metrics")
    assert now.keys() == then.keys()
    assert {key: differs(key, now[key], then[key]) for key in then} == dict.fromkeys(then)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_frozen(part):
    assert len(frozen(part)) > 3


@pytest.mark.parametrize(
    ("key", "now", "then"),
    [
        ("ce value", np.float32([1.0, 1.00001]), np.float32([1.0, 1.0])),
        ("ce value", np.float64([1.0]), np.float32([1.0])),
        ("ce value", np.float32([1.0, np.nan]), np.float32([1.0, 1.0])),
        ("ce value", np.float32([1.0, -np.inf]), np.float32([1.0, np.inf])),
        ("run ce", np.float64([0.5002]), np.float64([0.5])),
        ("cubic search envelope", np.float64([1.01]), np.float64([1.0])),
        ("cubic verdict", "(True,)", "(False,)"),
    ],
)
def test_a_difference_is_seen(key, now, then):
    assert differs(key, now, then)
    assert differs(key, then, then) is None
