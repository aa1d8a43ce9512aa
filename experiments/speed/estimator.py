"""The scikit-learn estimator against scikit-learn's own network: a first and a second fit.

`python -m experiments.speed.estimator digits ours 45` prints a row as JSON. Each process fits one
estimator on one dataset: once, which for pgeom includes compiling, and again with another seed.
Both have two hidden layers of one width, and the same batches, learning rate and epochs.
"""

import json
import os
import sys
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

DATASETS = ("wine", "digits", "synthetic")
WAYS = {"MLPClassifier": "theirs", "ProperLossClassifier": "ours"}
BATCH, RATE = 64, 1e-3


def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Standardised training features and labels, and those for testing."""
    from pgeom.data.dataset import fit_moments

    features, labels = _arrays(name)
    moments = fit_moments(features)
    features, test = moments.apply(features), np.arange(len(labels)) % 5 == 4
    return features[~test], labels[~test], features[test], labels[test]


def _arrays(name: str) -> tuple[np.ndarray, np.ndarray]:
    from pgeom.data import mixtures, sources

    if name != "synthetic":
        dataset = sources.load(name)
        order = np.random.default_rng(0).permutation(len(dataset.labels))
        return dataset.features[order], dataset.labels[order]
    rng = np.random.default_rng(0)
    dataset = mixtures.mixture_dataset("mixture-10-12500")  # of which 10,000 are for training
    wide = rng.normal(size=(len(dataset.labels), 50)) / 2
    return wide + dataset.features @ rng.normal(size=(6, 50)) / 6**0.5, dataset.labels


def make(way: str, epochs: int, seed: int, features: int):
    """An estimator for so many features that has not been fitted."""
    if way == "ours":
        from pgeom.sklearn import ProperLossClassifier

        same = {"epochs": epochs, "batch_size": BATCH, "learning_rate": RATE}
        return ProperLossClassifier(**same, random_state=seed)
    from sklearn.neural_network import MLPClassifier

    from pgeom.models.model import MLP

    width = MLP(features, 2).width
    same = {"max_iter": epochs, "batch_size": BATCH, "learning_rate_init": RATE}
    never = {"tol": 0.0, "n_iter_no_change": epochs}
    return MLPClassifier((width, width), **same, **never, random_state=seed)


def row(name: str, way: str, epochs: int) -> dict:
    """Seconds of both fits, and the accuracy of the second on what it has not seen."""
    x, y, test_x, test_y = load(name)
    make(way, epochs, 0, x.shape[1])  # imports are not part of a fit
    seconds = []
    # NumPy's threads slow down products as small as those of scikit-learn's network
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # that scikit-learn's network has not converged
        for seed in (0, 1):
            estimator, begun = make(way, epochs, seed, x.shape[1]), time.perf_counter()
            estimator.fit(x, y)
            seconds.append(time.perf_counter() - begun)
    accuracy = float(np.mean(estimator.predict(test_x) == test_y))
    sizes = {"examples": len(x), "features": x.shape[1], "epochs": int(estimator.n_iter_)}
    times = {"first": seconds[0], "second": seconds[1], "accuracy": accuracy}
    return {"dataset": name, "way": way, **sizes, **times}


if __name__ == "__main__":
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    dataset, contender, count = sys.argv[1:]
    print(json.dumps(row(dataset, contender, int(count))))
