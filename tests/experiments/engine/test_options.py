"""The study that a command line asks for: names, regimes and seeds."""

import pytest

from experiments.engine.options import Options, make_study, parse_seeds
from pgeom.frontend.errors import UsageError
from pgeom.losses.catalogue import GENERAL
from pgeom.training.settings import Rule, Training


def test_the_protocol_is_the_default():
    study = make_study("noise", Options(), "digits")
    assert study.seeds == (0, 1, 2, 3, 4) and study.runs == 4 * 5 * 13
    assert study.losses == tuple(GENERAL.values())
    assert study.model.width == 96 and study.training == Training()
    training = study.training
    assert (training.epochs, training.batch_size, training.learning_rate) == (45, 512, 1e-3)
    assert training.beta0 == 0.2 and training.stopping == Rule(12, 8)
    assert training.optimiser.weight_decay == 1e-4 and training.optimiser.clip == 5


def test_any_regime_on_any_dataset_and_in_the_order_of_the_dataset():
    asked = ("long-tail-5", "symmetric-40", "clean", "clean")
    study = make_study("noise", Options(), "breast-cancer", regimes=asked)
    assert [str(regime) for regime in study.regimes] == ["clean", "symmetric-40", "long-tail-5"]


BAD = {
    "asymetric-40": "unknown regime 'asymetric-40'; did you mean 'asymmetric-40'",
    "symmetric-140": "the level of symmetric must be in 1 … 100, got 140",
    "long-tail-30000": "ratio must be in",
}


@pytest.mark.parametrize("regime", BAD)
def test_a_regime_that_is_none_is_refused(regime):
    with pytest.raises(UsageError, match="--regimes: ") as error:
        make_study("noise", Options(), "digits", regimes=(regime,))
    assert BAD[regime] in str(error.value)


def test_an_unknown_model_is_refused():
    with pytest.raises(UsageError, match="unknown model 'mpl'; did you mean 'mlp'"):
        make_study("noise", Options(model="mpl"), "digits")


@pytest.mark.parametrize(
    ("words", "seeds"),
    [(("5",), (0, 1, 2, 3, 4)), (("0", "3"), (0, 3)), (("7,",), (7,)), (("2,2,0",), (2, 0))],
)
def test_seeds(words, seeds):
    assert parse_seeds(words) == seeds


def test_the_largest_seed():
    assert parse_seeds((f"{2**32 - 1},",)) == (2**32 - 1,)
    with pytest.raises(
        UsageError, match=r"^seeds must be at most 4294967295, got '1099511627776,'$"
    ):
        parse_seeds(("1099511627776,",))


def test_more_seeds_than_can_be_meant():
    hint = r"must be at most 100000 in number, got '1000000000'; the seed itself is '1000000000,'$"
    with pytest.raises(UsageError, match=hint):
        parse_seeds(("1000000000",))


@pytest.mark.parametrize("words", [("0",), ("-2",), (), ("a",), ("0", "-1"), (",",)])
def test_bad_seeds(words):
    with pytest.raises(UsageError, match="seeds must be"):
        parse_seeds(words)
