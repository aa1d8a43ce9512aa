"""Tables as other programs write them: other separators, and commas for decimal points."""

import numpy as np
import pandas as pd
import pytest

from pgeom.data.files import read_csv

TABLE = pd.DataFrame(
    {
        "age; in years": [31.5, 42.25, 53.0],
        "city": ["Rome, Italy", "Oslo", "Lima; Peru"],
        "count": [1, 2, 3],
        "job": ["nurse", "clerk", "nurse"],
    }
)


@pytest.mark.parametrize(
    ("separator", "decimal", "notes"),
    [
        (",", ".", ()),
        (";", ".", ("columns separated by ';'",)),
        (";", ",", ("columns separated by ';', with decimal commas",)),
        ("\t", ".", (r"columns separated by '\t'",)),
        ("\t", ",", (r"columns separated by '\t', with decimal commas",)),
    ],
)
def test_the_separator_is_found_and_said(tmp_path, separator, decimal, notes):
    TABLE.to_csv(tmp_path / "t.csv", sep=separator, decimal=decimal, index=False)
    frame, said = read_csv(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(frame, TABLE)
    assert tuple(said) == notes


def test_a_comma_wins_a_tie(tmp_path):
    (tmp_path / "t.csv").write_text("a;b,c\n1,2\n3,4\n")
    frame, said = read_csv(tmp_path / "t.csv")
    assert list(frame.columns) == ["a;b", "c"] and said == []
    np.testing.assert_array_equal(frame.to_numpy(), [[1, 2], [3, 4]])


def test_the_index_that_pandas_writes_is_found_behind_any_separator(tmp_path):
    TABLE.to_csv(tmp_path / "t.csv", sep=";")
    frame, said = read_csv(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(frame, TABLE)
    assert [note[:15] for note in said] == ["columns separat", "left out the fi"]
