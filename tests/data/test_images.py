"""Fashion-MNIST from its files, MNIST-1D from its package, and what is said where they are not."""

import gzip

import numpy as np
import pytest

from pgeom.data import images, sources

RNG = np.random.default_rng(0)
PIXELS = {"train": RNG.integers(0, 256, (40, 28, 28)), "t10k": RNG.integers(0, 256, (10, 28, 28))}
LABELS = {"train": np.arange(40) % 10, "t10k": np.arange(10)[::-1]}


def idx(array):
    """An IDX file of unsigned bytes, written from its definition."""
    sizes = b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def write_fashion(folder, packed=True):
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "t10k"):
        for kind, array in (("images-idx3", PIXELS[part]), ("labels-idx1", LABELS[part])):
            path = folder / f"{part}-{kind}-ubyte{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(idx(array)) if packed else idx(array))


@pytest.fixture(autouse=True)
def no_other_folders(monkeypatch, tmp_path):
    monkeypatch.setattr(images, "SYSTEM_FOLDERS", (tmp_path / "system",))
    monkeypatch.delenv("PGEOM_DATA", raising=False)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("place", ["own", "own/fashion-mnist", "system/fashion-mnist"])
def test_fashion_is_read_from_where_it_is(tmp_path, monkeypatch, packed, place):
    write_fashion(tmp_path / place, packed)
    monkeypatch.setenv("PGEOM_DATA", str(tmp_path / "own"))
    fashion = images.fashion_mnist()
    assert fashion.features.shape == (50, 784) and fashion.features.dtype == np.float32
    pixels = np.concatenate([PIXELS["train"], PIXELS["t10k"]])
    np.testing.assert_array_equal(np.rint(fashion.features * 255).reshape(50, 28, 28), pixels)
    np.testing.assert_array_equal(fashion.labels, [*LABELS["train"], *LABELS["t10k"]])
    assert fashion.unit_range and fashion.image_shape == (28, 28)
    assert [str(regime) for regime in fashion.regimes][-1] == "asymmetric-40"


@pytest.mark.parametrize("packed", [True, False])
def test_a_folder_with_its_files_is_a_dataset(tmp_path, monkeypatch, packed):
    write_fashion(tmp_path / "my images", packed)
    monkeypatch.chdir(tmp_path)
    mine = sources.load("my images")
    assert (mine.name, mine.image_shape, mine.noise_map) == ("my-images", (28, 28), None)
    assert mine.features.shape == (50, 784) and mine.classes == tuple("0123456789")


def test_without_its_files_one_line_says_how_to_get_them(tmp_path, monkeypatch):
    write_fashion(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").unlink()
    monkeypatch.setenv("PGEOM_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="apt-get install dataset-fashion-mnist, or set") as error:
        images.fashion_mnist()
    assert "\n" not in str(error.value) and "PGEOM_DATA" in str(error.value)


GOOD = idx(PIXELS["t10k"])
BROKEN = {
    "empty": (b"", "as an IDX file of unsigned bytes: "),
    "floats": (bytes([0, 0, 13, 1]) + GOOD[4:], "as an IDX file of unsigned bytes: "),
    "torn": (GOOD[:-1], "as an IDX file of unsigned bytes: "),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_named_in_one_line(tmp_path, case):
    content, said = BROKEN[case]
    (tmp_path / "some").write_bytes(content)
    with pytest.raises(ValueError, match=said) as error:
        images.read_idx(tmp_path / "some")
    assert "some" in str(error.value) and "\n" not in str(error.value)


def test_the_package_itself():
    pytest.importorskip("mnist1d.data")
    signals = images.mnist1d()
    assert signals.features.shape == (5000, 40)
    np.testing.assert_array_equal(np.bincount(signals.labels), [500] * 10)
    assert signals.digest == images.mnist1d().digest
