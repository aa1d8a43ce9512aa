"""The scikit-learn estimator beside scikit-learn's own network: the first fit and later ones.

A process fits one estimator on one dataset: once, which for pgeom includes compiling, and again
with other seeds. Both have two hidden layers of one width, and the same batches, learning rate and
epochs.
"""

import time
import warnings
from collections.abc import Iterator
from functools import partial

import jax
import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.page import Part
from benchmarks.processes import Processes
from pgeom.models.model import MLP
from pgeom.sklearn import ProperLossClassifier

DATASETS = {
    "wine": partial(datasets.load_wine, return_X_y=True),
    "digits": partial(datasets.load_digits, return_X_y=True),
    "synthetic": partial(
        datasets.make_classification, 12_500, 50, n_informative=6, n_classes=10, random_state=0
    ),
}
THEIRS, OURS = "MLPClassifier", "ProperLossClassifier"
BATCH, RATE = 64, 1e-3
LATER = 5


def measure(processes: Processes, seeds: int, epochs: int) -> Iterator[dict]:
    """Rows of fits, those of each estimator and dataset in a process of its own."""
    for dataset in DATASETS:
        for way in (THEIRS, OURS):
            yield processes.call("benchmarks.estimator.fit", dataset, way, epochs)


def fit(dataset: str, way: str, epochs: int) -> dict:
    """Seconds of the first fit and of later ones, and the accuracy of the last on new examples."""
    jax.config.update("jax_enable_compilation_cache", False)
    features, labels = map(np.asarray, DATASETS[dataset]())
    features = StandardScaler().fit_transform(features)
    x, test_x, y, test_y = train_test_split(features, labels, test_size=0.2, random_state=0)
    seconds = []
    # NumPy's threads slow down products as small as those of scikit-learn's network
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # that scikit-learn's network has not converged
        for seed in range(1 + LATER):
            estimator, begun = make(way, epochs, seed, x.shape[1]), time.perf_counter()
            estimator.fit(x, y)
            seconds.append(time.perf_counter() - begun)
    accuracy = float(np.mean(estimator.predict(test_x) == test_y))
    sizes = {"examples": len(x), "features": x.shape[1], "epochs": int(estimator.n_iter_)}
    row = {"dataset": dataset, "way": way, "accuracy": accuracy} | sizes
    return row | {"first": seconds[0], "later": float(np.median(seconds[1:]))}


def make(way: str, epochs: int, seed: int, features: int):
    """An estimator for so many features that has not been fitted."""
    if way == OURS:
        same = {"epochs": epochs, "batch_size": BATCH, "learning_rate": RATE}
        return ProperLossClassifier(**same, random_state=seed)
    width = MLP(features, 2).width
    same = {"max_iter": epochs, "batch_size": BATCH, "learning_rate_init": RATE}
    never = {"tol": 0.0, "n_iter_no_change": epochs}
    return MLPClassifier((width, width), **same, **never, random_state=seed)


PART = Part(
    "The scikit-learn estimator",
    "`pgeom.sklearn.ProperLossClassifier` beside `sklearn.neural_network.MLPClassifier`. A first "
    "fit of pgeom compiles a program, which every later fit on data of one shape uses.",
    measure,
    {
        "Data": "{dataset}, {examples:,} × {features}",
        "Estimator": "{way}",
        "First fit (s) ↓": "{first:.2f}",
        "Later fits (s) ↓": "{later:.2f}",
        "Accuracy ↑": "{accuracy:.3f}",
    },
    (
        f"batches of {BATCH}, equally many epochs, two hidden layers of one width; later fits: the "
        f"median of {LATER}",
        "a process for each line, with nothing cached before; NumPy has one thread, with which "
        "MLPClassifier is fastest",
    ),
)
