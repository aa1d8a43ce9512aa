"""The protocol's words: names and seeds."""

import pytest

from experiments.protocol import (
    LABELS,
    REGIMES,
    Training,
    UsageError,
    chosen,
    one_of,
    parse_seeds,
)
from pgeom.losses import catalogue


def test_the_constants_of_training():
    assert Training() == Training(45, 512, 1e-3, 0.2, 12, 8)
    assert len(catalogue.GENERAL) == 13 and len(catalogue.LOSSES) == 17
    assert set(LABELS) == set(catalogue.LOSSES)
    assert {name: len(regimes) for name, regimes in REGIMES.items()} == {
        "breast-cancer": 3,
        "digits": 4,
        "confusion": 3,
        "long-tail": 1,
    }


@pytest.mark.parametrize(
    ("words", "seeds"),
    [(("5",), (0, 1, 2, 3, 4)), (("0", "3"), (0, 3)), (("7,",), (7,)), (("2,2,0",), (2, 0))],
)
def test_seeds(words, seeds):
    assert parse_seeds(words) == seeds


@pytest.mark.parametrize("words", [("0",), ("-2",), (), ("a",), ("0", "-1"), (",",)])
def test_bad_seeds(words):
    with pytest.raises(UsageError, match="seeds must be"):
        parse_seeds(words)


def test_names_and_their_nearest():
    assert chosen("loss", ("hpg", "ce"), ("ce", "gce", "hpg")) == ("ce", "hpg")
    assert chosen("loss", (), ("ce", "gce")) == ("ce", "gce")
    with pytest.raises(UsageError, match="unknown loss 'hgp'; did you mean 'hpg'"):
        one_of("loss", "hgp", ("ce", "hpg"))
