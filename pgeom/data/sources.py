"""Datasets by name: the four of the paper and some more, or a file of yours in the same form.

A dataset is a whole population, not yet split: raw features, clean labels, whether the features
are intensities in [0, 1], on which a pixel perturbation makes sense, and the regimes it is studied
under. The synthetic ones are generated from a fixed seed of their own, so that a dataset never
depends on the seed of a run.

>>> digits = load("digits")
>>> digits.features.shape, digits.num_classes, digits.unit_range, digits.image_shape
((1797, 64), 10, True, (8, 8))
>>> [str(regime) for regime in digits.regimes]
['clean', 'symmetric-20', 'symmetric-40', 'pair-flip-40']
"""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from pgeom.data.dataset import REGIMES, Dataset, from_arrays
from pgeom.data.images import fashion_mnist, mnist1d
from pgeom.data.mixtures import FORM, is_mixture, mixture_dataset
from pgeom.data.splits import require_enough
from pgeom.messages import known_name

# 2 → 7, 3 → 8, 5 ↔ 6 and 7 → 1: how Patrini et al. (2017) confuse handwritten digits
DIGITS_MAP = (0, 1, 7, 8, 4, 6, 5, 1, 8, 9)


def load(name: str, *, target: str | None = None, impute: bool = False) -> Dataset:
    """A built-in dataset, made once, or the one in a file.

    Args:
      name: of `BUILT_IN`, `mixture-CLASSES-EXAMPLES`, or the path of a `.npz`, `.csv` or
        `.parquet` file, or of a folder with the IDX files of images.
      target: the column of the labels, of a `.csv` or `.parquet` file.
      impute: whether values of a file may be missing.

    Raises:
      ValueError: in one line, if there is no such dataset.
    """
    require_known(name)
    if is_path(name):
        from pgeom.data.files import read_dataset  # not above: pandas takes a second

        dataset = read_dataset(Path(name), target=target, impute=impute)
        require_enough(dataset)
        return dataset
    if target is not None or impute:
        raise ValueError(f"target= and impute=True are for tables, got {name!r}")
    return mixture_dataset(name) if is_mixture(name) else _made(BUILT_IN[name])


def require_known(name: str) -> None:
    """Refuse a word that names no dataset and is no path, without reading anything.

    Raises:
      ValueError: in one line, with the nearest name.
    """
    if not (is_mixture(name) or is_path(name)):
        forms = f"{FORM}, or the path of a .npz, .csv or .parquet file or of a folder of IDX files"
        known_name("dataset", name, (*BUILT_IN, forms))


def is_path(word: str) -> bool:
    """Whether a word looks like a path, or is one, and is no name of a dataset."""
    return word not in BUILT_IN and ("." in word or os.sep in word or os.path.exists(word))


@cache
def _made(build: Callable[[], Dataset]) -> Dataset:
    return build()


def _breast_cancer() -> Dataset:
    from sklearn import datasets

    features, labels = map(np.asarray, datasets.load_breast_cancer(return_X_y=True))
    return from_arrays("breast-cancer", features, labels, classes=("malignant", "benign"))


def _digits() -> Dataset:
    from sklearn import datasets

    pixels, labels = map(np.asarray, datasets.load_digits(return_X_y=True))
    regimes = f"{REGIMES} pair-flip-40"
    return from_arrays(
        "digits", pixels / 16.0, labels, regimes, image_shape=(8, 8), noise_map=DIGITS_MAP
    )


def _wine() -> Dataset:
    from sklearn import datasets

    features, labels = map(np.asarray, datasets.load_wine(return_X_y=True))
    return from_arrays("wine", features, labels, classes=("class_0", "class_1", "class_2"))


def _confusion() -> Dataset:
    from sklearn import datasets

    # The paper states 2,400 examples and six classes; it does not state any constant below.
    features, labels = datasets.make_classification(
        n_samples=2400,
        n_classes=6,
        n_features=18,
        n_informative=10,
        n_redundant=5,
        n_clusters_per_class=2,
        class_sep=0.85,
        flip_y=0.01,
        random_state=2025,
    )
    return from_arrays("confusion", features, labels, "clean symmetric-20 pair-flip-40")


def _long_tail() -> Dataset:
    from sklearn import datasets

    # The paper states 6,000 examples and ten balanced classes; it does not state any constant
    # below. flip_y = 0 keeps the population balanced exactly: 600 of each class.
    features, labels = datasets.make_classification(
        n_samples=6000,
        n_classes=10,
        n_features=30,
        n_informative=14,
        n_redundant=8,
        n_clusters_per_class=1,
        class_sep=1.1,
        flip_y=0.0,
        random_state=2023,
    )
    return from_arrays("long-tail", features, labels, "long-tail-30")


BUILT_IN: dict[str, Callable[[], Dataset]] = {
    "digits": _digits,
    "breast-cancer": _breast_cancer,
    "confusion": _confusion,
    "long-tail": _long_tail,
    "wine": _wine,
    "mnist1d": mnist1d,
    "fashion-mnist": fashion_mnist,
}
PAPER = ("digits", "breast-cancer", "confusion", "long-tail")
