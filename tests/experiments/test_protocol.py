"""The protocol's words: names, seeds, regimes, streams."""

import numpy as np
import pytest

from experiments.protocol import (
    LABELS,
    REGIMES,
    Training,
    UsageError,
    chosen,
    noise_of,
    one_of,
    parse_seeds,
    stream,
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


def test_regimes():
    assert noise_of("clean") == ("clean", 0.0)
    assert noise_of("pair-flip-40") == ("pair-flip", 0.4)
    assert noise_of("long-tail-30") == ("long-tail", 0.3)


def test_names_and_their_nearest():
    assert chosen("loss", ("hpg", "ce"), ("ce", "gce", "hpg")) == ("ce", "hpg")
    assert chosen("loss", (), ("ce", "gce")) == ("ce", "gce")
    with pytest.raises(UsageError, match="unknown loss 'hgp'; did you mean 'hpg'"):
        one_of("loss", "hgp", ("ce", "hpg"))


def test_streams_are_separate_and_reproducible():
    names = [("noise", "digits", "clean", 0), ("init", "digits", "clean", 0)]
    names += [("noise", "digits", "clean", 1), ("noise", "digits", "symmetric-20", 0)]
    names += [("noise", "confusion", "clean", 0), ("order", "digits", "clean", 0, 1)]
    first = [stream(*name).integers(2**62) for name in names]
    assert len(set(first)) == len(names)
    assert first == [stream(*name).integers(2**62) for name in names]
    assert isinstance(stream(*names[0]), np.random.Generator)
