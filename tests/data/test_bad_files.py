"""The one line that is said about a file that is no dataset, or an option that does not fit it."""

import pickle

import numpy as np
import pytest

from pgeom.data import sources
from tests.data.test_files import JOBS, N, X, Y, people, save_npz


def objects(path):
    np.savez(path, X=X.astype(object), y=Y)


def dumped(path):
    path.write_bytes(pickle.dumps({"X": X, "y": Y}))


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
        "X must be a [n, d] array of real numbers, or images",
    ),
    "texts.npz": (arrays(X=X.astype(str)), "X must be a [n, d] array of real numbers, or images"),
    "objects.npz": (objects, "objects.npz has pickled objects, which could run code"),
    "dumped.npz": (dumped, "dumped.npz is no .npz file: write one by numpy.savez"),
    "nothing.npz": (lambda path: path.touch(), "nothing.npz is no .npz file"),
    "nan.npz": (with_value(np.nan), "1 missing value, in column X[:, 2]; --impute fills"),
    "inf.npz": (with_value(-np.inf), "1 infinite value, in column X[:, 2]"),
    "huge.npz": (with_value(-1e153), "1 oversized value, in column X[:, 2]; at most 1e+150 can be"),
    "single.npz": (
        arrays(X=np.where(X > 1, 2e38, X).astype(np.float32)),
        "oversized values, in columns X[:, 0], X[:, 1], X[:, 2], X[:, 3]; at most 1e+38 can be",
    ),
    "no-y.npz": (lambda path: save_npz(path, X=X, z=Y), "must have arrays X and y, got X, z"),
    "short.npz": (arrays(y=Y[:5]), "y must have shape [30] like X, got (5,)"),
    "one-hot.npz": (arrays(y=np.eye(3)[Y]), "y must have shape [30] like X, got (30, 3)"),
    "regression.npz": (arrays(y=X[:, 0]), "labels must be classes, got the number 0.12573"),
    "endless.npz": (arrays(y=np.where(Y, Y, np.inf)), "labels must be classes, got the number inf"),
    "constant.npz": (arrays(X=0 * X + 7), "4 constant features say nothing: X[:, 0], X[:, 1], "),
    "five.npz": (arrays(X=np.zeros((N, 1, 1, 1, 1))), "X must be a [n, d] array of real numbers"),
    "one-class.npz": (arrays(y=0 * Y), "labels must have at least 2 classes, got only '0'"),
    "few.npz": (arrays(y=np.where(np.arange(N) < 4, 9, Y)), "5 examples, got 4 of '9'"),
    "no-rows.npz": (arrays(X=X[:0], y=Y[:0]), "no-rows.npz has no rows"),
    "no-columns.npz": (arrays(X=X[:, :0]), "no-columns.npz has no features"),
    "nothing.csv": (text(""), "nothing.csv is empty"),
    "header.csv": (text("age,job\n"), "header.csv has no rows"),
    "twice.csv": (text("age,age,job\n1,2,a\n"), "twice.csv has two columns called 'age'"),
    "unnamed.csv": (text("age,,job\n1,2,a\n"), "unnamed.csv: column 2 has no name"),
    "ragged.csv": (text("age,job\n" + ROWS + "1,2,3,4\n"), "cannot read '"),
    "long.csv": (text("age,job\n1,a,2\n2,b,3\n"), "long.csv has rows longer than its header"),
    "binary.csv": (lambda path: path.write_bytes(bytes(range(256))), "cannot read '"),
    "folder.csv": (lambda path: path.mkdir(), "cannot read '"),
    "lonely.csv": (text("job\n" + "a\nb\n" * 9), "lonely.csv has no features"),
    "other.csv": (text("age,jobs\n" + ROWS), "no column 'job'; did you mean 'jobs'?"),
    "unlike.csv": (text("x,y\n" + ROWS), "unlike.csv has no column 'job'; it has x, y"),
    "unlabelled.csv": (text("age,job\n" + ROWS + "7,\n"), "1 missing label of 31"),
    "gap.csv": (text("age,job\n" + ROWS + ",nurse\n"), "1 missing value, in column age; --impute"),
    "infinite.csv": (text("age,job\n" + ROWS + "-inf,nurse\n"), "1 infinite value, in column age"),
    "huge.csv": (text("age,job\n" + ROWS + "1e200,nurse\n"), "1 oversized value, in column age"),
    "same.csv": (
        text("age,c,job\n" + ROWS.replace(",", ",x,")),
        "1 constant feature says nothing: c",
    ),
    "few.csv": (text("age,job\n" + ROWS + "7,pilot\n"), "5 examples, got 1 of 'pilot'"),
    "text.txt": (text("age,job\n" + ROWS), "must be the path of a .npz, .csv or .parquet file"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_line(tmp_path, name):
    write, said = BAD[name]
    write(tmp_path / name)
    with pytest.raises(ValueError) as error:
        sources.load(str(tmp_path / name), target=None if name.endswith(".npz") else "job")
    assert said in str(error.value) and "\n" not in str(error.value)
    assert name in str(error.value)


def test_what_is_asked_for_must_be_there(tmp_path):
    people(job=JOBS).to_csv(tmp_path / "people.csv", index=False)
    save_npz(tmp_path / "mine.npz", X=X, y=Y)
    wanted = [
        ("peple.csv", {"target": "job"}, r"there is no file '.*'; did you mean '.*people.csv'\?"),
        ("people.csv", {}, "people.csv needs --target, the column of the labels: age, city, job"),
        ("mine.npz", {"target": "y"}, "--target is for tables; the labels of mine.npz are its"),
    ]
    for name, options, said in wanted:
        with pytest.raises(ValueError, match=said):
            sources.load(str(tmp_path / name), **options)


@pytest.mark.parametrize("options", [{"target": "job"}, {"impute": True}])
def test_options_of_files_are_refused_for_built_in_datasets(options):
    with pytest.raises(ValueError, match=f"--{next(iter(options))} is for datasets from files"):
        sources.load("digits", **options)


def test_a_name_that_is_neither_is_told_of_both():
    paths = "a .npz, .csv or .parquet file, or of a folder with IDX files$"
    with pytest.raises(ValueError, match=rf"mixture-\S+, or the path of {paths}"):
        sources.load("digit")
