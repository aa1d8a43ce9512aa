"""The one line that is said about a file that is no dataset, or an option that does not fit it."""

import numpy as np
import pytest

from pgeom.data import sources
from tests.data.test_files import JOBS, X, Y, people, save_npz


def arrays(**changes):
    return lambda path: save_npz(path, **{"X": X, "y": Y, **changes})


def with_value(value):
    changed = X.copy()
    changed[3, 2] = value
    return arrays(X=changed)


def text(content):
    return lambda path: path.write_text(content)


ROWS = "".join(f"{k},{job}\n" for k, job in enumerate(JOBS))
BAD = {
    "one-dimensional.npz": (
        arrays(X=X[:, 0]),
        "X must be a non-empty [n, d] array, or images",
    ),
    "nothing.npz": (lambda path: path.touch(), "nothing.npz: is no .npz file"),
    "nan.npz": (with_value(np.nan), "features must be finite, got nan; impute=True fills"),
    "huge.npz": (with_value(-1e153), "within ±1e+150 to be standardised, got -1e+153"),
    "no-y.npz": (lambda path: save_npz(path, X=X, z=Y), "must have arrays X and y, got X, z"),
    "short.npz": (arrays(y=Y[:5]), "labels must have shape [30] like features, got (5,)"),
    "regression.npz": (arrays(y=X[:, 0]), "at least 5 examples, got 1 of '"),
    "nothing.csv": (text(""), "nothing.csv: No columns to parse from file"),
    "twice.csv": (text("age,age,job\n1,2,a\n"), "column 2 must have a name of its own, got 'age'"),
    "folder.csv": (lambda path: path.mkdir(), "target= is for tables, got"),
    "unlabelled.csv": (text("age,job\n" + ROWS + "7,\n"), "1 missing label of 31"),
    "gap.csv": (
        text("age,job\n" + ROWS + ",nurse\n"),
        "1 missing value, in column age; impute=True",
    ),
    "huge.csv": (
        text("age,job\n" + ROWS + "1e200,nurse\n"),
        "numbers in column age must be finite, and within ±1e+150",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_line(tmp_path, name):
    write, said = BAD[name]
    write(tmp_path / name)
    with pytest.raises(ValueError) as error:
        sources.load(str(tmp_path / name), target=None if name.endswith(".npz") else "job")
    assert said in str(error.value) and "\n" not in str(error.value)
    assert name.partition(".")[0] in str(error.value)


def test_what_is_asked_for_must_be_there(tmp_path):
    people(job=JOBS).to_csv(tmp_path / "people.csv", index=False)
    save_npz(tmp_path / "mine.npz", X=X, y=Y)
    wanted = [
        ("peple.csv", {"target": "job"}, r"there is no file '.*'; did you mean '.*people.csv'\?"),
        ("people.csv", {}, "people.csv: needs target=, the column of the labels: age, city, job"),
        ("mine.npz", {"target": "y"}, "target= is for tables, got '.*mine.npz'"),
    ]
    for name, options, said in wanted:
        with pytest.raises(ValueError, match=said):
            sources.load(str(tmp_path / name), **options)


def test_a_name_that_is_neither_is_told_of_both():
    paths = "a .npz, .csv or .parquet file or of a folder of IDX files$"
    with pytest.raises(ValueError, match=rf"mixture-\S+, or the path of {paths}"):
        sources.load("digit")
