"""Datasets from files: what is read, how it is named, and what identifies it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pgeom.data import files, sources
from pgeom.data.dataset import safe_name
from pgeom.data.regimes import Regime
from pgeom.data.splits import partition

N = 30
X = np.random.default_rng(0).normal(size=(N, 4))
Y = np.arange(N) % 3
JOBS = np.array(["nurse", "clerk", "doctor"])[Y]


def people(**more):
    return pd.DataFrame({"age": X[:, 0], "city": np.array(["Rome", "Oslo"])[Y % 2], **more})


def save_npz(path, **arrays):
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(("labels", "classes"), [(Y, "012"), (7 * Y - 7, ("-7", "0", "7"))])
def test_arrays(tmp_path, labels, classes):
    dataset = sources.load(str(save_npz(tmp_path / "mine.npz", X=X, y=labels)))
    np.testing.assert_array_equal(dataset.features, X)
    np.testing.assert_array_equal(dataset.labels, Y)
    assert (dataset.name, dataset.classes) == ("mine", tuple(classes))
    assert dataset.notes == (f"mine.npz: the classes are, in this order, {', '.join(classes)}",)
    assert [str(regime) for regime in dataset.regimes] == sources.REGIMES.split()


@pytest.mark.parametrize("shape", [(8, 8), (6, 5), (4, 4, 3)])
def test_arrays_of_images_have_a_shape(tmp_path, shape):
    pixels = np.random.default_rng(0).random((N, *shape))
    pixels[:, 0] = 0  # as the border of images often is
    dataset = sources.load(str(save_npz(tmp_path / "mine.npz", X=pixels, y=Y)))
    np.testing.assert_array_equal(dataset.features, pixels.reshape(N, -1))
    assert dataset.image_shape == shape


def test_a_table(tmp_path):
    people(job=JOBS).to_csv(tmp_path / "people.csv", index=False)
    dataset = sources.load(str(tmp_path / "people.csv"), target="job")
    np.testing.assert_array_equal(dataset.features[:, 0], X[:, 0])
    np.testing.assert_array_equal(dataset.features[:, 1:], np.eye(2)[1 - Y % 2])
    assert dataset.name == "people" and dataset.classes == ("clerk", "doctor", "nurse")
    assert dataset.notes == (
        "people.csv: standardised by the training part: age",
        "people.csv: one-hot encoded city (2 values)",
        "people.csv: the classes are, in this order, clerk, doctor, nurse",
    )


def test_a_parquet_file_is_the_same_dataset(tmp_path):
    pytest.importorskip("pyarrow")
    table = people(job=JOBS)
    table.to_csv(tmp_path / "people.csv", index=False)
    table.to_parquet(tmp_path / "people.parquet")
    one, other = (
        sources.load(str(tmp_path / f"people.{kind}"), target="job") for kind in ("csv", "parquet")
    )
    assert one.digest == other.digest and one.classes == other.classes


def test_imputed_values_are_the_mean_of_each_training_part(tmp_path):
    table = people(job=JOBS)
    table.loc[::4, "age"] = np.nan
    table.to_csv(tmp_path / "people.csv", index=False)
    dataset = sources.load(str(tmp_path / "people.csv"), target="job", impute=True)
    assert np.isnan(dataset.features).sum() == 8
    for seed in range(3):
        split, _ = partition(dataset, Regime.parse("clean"), seed)
        parts = (split.train, split.validation, split.test)
        assert all(np.isfinite(part.features).all() for part in parts)
        assert sum((part.features[:, 0] == 0).sum() for part in parts) == 8
        np.testing.assert_allclose(split.train.features[:, 0].mean(), 0, atol=1e-6)


def test_the_content_and_not_the_place_identifies_a_file(tmp_path):
    (tmp_path / "a").mkdir()
    for folder in (tmp_path, tmp_path / "a"):
        save_npz(folder / "mine.npz", X=X, y=Y)
    one, other = (sources.load(str(f / "mine.npz")) for f in (tmp_path, tmp_path / "a"))
    assert one.digest == other.digest
    changed = sources.load(str(save_npz(tmp_path / "mine.npz", X=X + 1e-9, y=Y)))
    assert changed.digest != one.digest, "read again, and seen to be another"


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("my data (1)", "my-data-1"),
        ("..", "dataset"),
        ("größe", "größe"),
        ("a_b.c-d", "a_b.c-d"),
        ("%%%", "dataset"),
        ("x" * 150, "x" * 100),
    ],
)
def test_a_name_is_safe_in_the_names_of_files(stem, name):
    assert safe_name(stem) == name == Path(name).name


TABLE = pd.DataFrame(
    {"age": [31.5, 42.25], "city": ["Rome, Italy", "Lima; Peru"], "n": [1, 2], "job": ["a", "b"]}
)


@pytest.mark.parametrize(
    ("separator", "decimal", "notes"),
    [
        (",", ".", ()),
        (";", ",", ("columns separated by ';', with decimal commas",)),
        ("\t", ".", (r"columns separated by '\t'",)),
    ],
)
def test_the_separator_is_found_and_said(tmp_path, separator, decimal, notes):
    TABLE.to_csv(tmp_path / "t.csv", sep=separator, decimal=decimal, index=False)
    frame, said = files.read_csv(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(frame, TABLE)
    assert tuple(said) == notes
