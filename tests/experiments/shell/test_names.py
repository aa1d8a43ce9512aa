"""Names that a user types, and hints about those that are not known."""

import pytest

import pgeom
from experiments import links
from experiments.engine.options import Options, parse_kinds, parse_noise_map
from experiments.shell.errors import UsageError
from experiments.shell.names import choose_all
from pgeom.losses import catalogue
from pgeom.messages import describe_error, nearest

LOSSES = ("ce", "gce", "hpg")


def test_known_names_come_in_the_known_order_once():
    assert choose_all("loss", ("hpg", "ce", "hpg"), LOSSES) == ("ce", "hpg")
    assert choose_all("loss", (), LOSSES) == LOSSES


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hgp", "unknown loss 'hgp'; did you mean 'hpg'? known: ce, gce, hpg"),
        ("xyz", "unknown loss 'xyz'; known: ce, gce, hpg"),
    ],
)
def test_an_unknown_name_is_refused_in_one_line(name, message):
    with pytest.raises(UsageError) as refused:
        choose_all("loss", ("ce", name), LOSSES)
    assert str(refused.value) == message


@pytest.mark.parametrize("joined", ["ce,gce", "ce, gce", "ce;gce", "ce gce", "ce,", ",ce"])
def test_several_names_in_one_word_are_to_be_separated(joined):
    with pytest.raises(UsageError, match=r"^unknown loss '.*'; separate by spaces: ce( gce)?$"):
        choose_all("loss", (joined,), LOSSES)


# what a user may type, and the loss that is meant
EXPECTED = {
    "crossentropy": "ce",
    "cross_entropy": "ce",
    "cross-entropy": "ce",
    "CrossEntropy": "ce",
    "CrossEntropyLoss": "ce",
    "cross entropy": "ce",
    "crossentropie": "ce",
    "log-loss": "ce",
    "nll_loss": "ce",
    "Brier score": "brier",
    "focal_loss": "focal",
    "labelsmoothing": "label_smoothing",
    "bitempered": "btl",
    "generalised_cross_entropy": "gce",
    "symmetric-cross-entropy": "sce",
    "mean_absolute_error": "mae",
    "class_balanced_cross_entropy": "cb_ce",
    "balanced softmax": "balanced_softmax",
    "HPG": "hpg",
}


@pytest.mark.parametrize("typed", EXPECTED)
def test_the_loss_that_is_meant_is_named(typed):
    with pytest.raises(UsageError, match=f"did you mean '{EXPECTED[typed]}'"):
        choose_all("loss", (typed,), catalogue.LOSSES, catalogue.SYNONYMS)


@pytest.mark.parametrize("typed", ["ce", "CE", "cross-entropy", "log_loss"])
def test_no_other_loss_is_meant_by_one_that_is_not_among_those_known(typed):
    with pytest.raises(UsageError, match=f"^unknown loss '{typed}'; known: brier, hpg$"):
        choose_all("loss", (typed,), ("brier", "hpg"), catalogue.SYNONYMS)
    assert nearest("la", ("ce", "gce"), catalogue.SYNONYMS) is None


OF_OPTIONS = {
    "regimes": (lambda: parse_kinds(("clean,symmetric-40",)), "clean symmetric-40"),
    "regimes quoted": (lambda: parse_kinds(("clean pair-flip-20",)), "clean pair-flip-20"),
    "noise map": (lambda: parse_noise_map(["0:1,1:0"], ("0", "1")), "0:1 1:0"),
    "losses": (lambda: Options().check_words("digits", losses=("ce,brier",)), "ce brier"),
    "datasets": (lambda: links.main(dataset=("digits,wine",)), "digits wine"),
}


@pytest.mark.parametrize("option", OF_OPTIONS)
def test_so_in_every_option_that_takes_several(option):
    ask, separated = OF_OPTIONS[option]
    with pytest.raises(UsageError) as refused:
        ask()
    assert str(refused.value).endswith(f"; separate by spaces: {separated}")


def test_the_line_of_an_error_that_says_most():
    assert describe_error(ValueError("first\nsecond")) == "ValueError: first"
    assert describe_error(ValueError()) == "ValueError"
    callback = RuntimeError("INTERNAL: Traceback (most recent call last):\n  File\nKeyError: 1")
    assert describe_error(callback) == "RuntimeError: KeyError: 1"


def test_every_function_of_the_library_is_meant_by_its_name():
    for name in pgeom.losses.__all__:
        meant = nearest(name, catalogue.LOSSES, catalogue.SYNONYMS)
        assert meant == catalogue.SYNONYMS.get(name, name) and meant in catalogue.LOSSES
