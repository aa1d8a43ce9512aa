"""Names that a user types, and hints about those that are not known."""

import pytest

from pgeom.frontend.errors import UsageError
from pgeom.frontend.names import choose, choose_all, nearest

LOSSES = ("ce", "gce", "hpg")


def test_known_names_come_in_the_known_order_once():
    assert choose("loss", "hpg", LOSSES) == "hpg"
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
        choose("loss", name, LOSSES)
    assert str(refused.value) == message
    with pytest.raises(UsageError, match=f"unknown loss '{name}'"):
        choose_all("loss", ("ce", name), LOSSES)


def test_capitals_make_no_name_less_similar():
    assert nearest("HPG", LOSSES) == "hpg"
    assert nearest("CAPN", ("CAPM", "HPG")) == "CAPM"


def test_nothing_is_near_where_nothing_is_similar():
    assert nearest("xyz", LOSSES) is None
    assert nearest("hpg", ()) is None
