"""Numbers as tables print them."""

import math

import pytest

from experiments.show.tables import mean_sd, p_value


@pytest.mark.parametrize(
    ("mean", "sd", "text"),
    [
        (0.92, 0.0159, "0.920 ± 0.016"),
        (0.92, math.nan, "0.920"),
        (math.nan, math.nan, "diverged"),
        (math.nan, 0.1, "diverged"),
    ],
)
def test_mean_and_standard_deviation(mean, sd, text):
    assert mean_sd(mean, sd) == text


@pytest.mark.parametrize(("value", "text"), [(1.0, "1"), (0.0625, ".0625"), (0.001953125, ".0020")])
def test_p_values(value, text):
    assert p_value(value) == text
