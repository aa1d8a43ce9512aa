"""Prop. (capm) needs L_G ⪰ 0, for which graph weights must not be negative.

The cosines of standardised Digits centroids are negative for most pairs, and Diag(W1) − W then has
the eigenvalue −2.71. The library's weights are a kernel, and it refuses negative ones.
"""

from collections.abc import Callable

import numpy as np

from pgeom.data import sources
from pgeom.paper import class_structure
from proofs_numeric.check import Check, agreement, upper_bound

LABEL = "Eq. (capm-matrix)"
NEGATIVE = "beyond the paper: negative graph weights make the Laplacian indefinite"
EIGENVALUE = -2.71  # of the cosines of Digits, to half a unit of its last digit
DRAWS = 20


def cosines(centroids: np.ndarray) -> np.ndarray:
    """The cosines between centroids `[K, d]`, and zero for a class with itself."""
    unit = centroids / np.linalg.norm(centroids, axis=1, keepdims=True)
    return unit @ unit.T * (1 - np.eye(len(unit)))


def checks(
    K: int,
    *,
    weights: Callable = class_structure.centroid_graph,
    laplacian: Callable = class_structure.laplacian,
    eigenvalue: float = EIGENVALUE,
) -> list[Check]:
    """The library's weights and their Laplacian on K classes, under test; Digits for K = 10."""
    rng = np.random.default_rng([17, K])
    centroids = [rng.normal(size=(K, 5)) * scale for scale in np.logspace(-2, 2, DRAWS)]
    rows = check_laplacian(centroids, weights, f"K={K}: {DRAWS} random sets of centroids")
    if sources.load("digits").num_classes == K:
        digits = standardised_centroids("digits")
        rows += check_laplacian([digits], weights, "the centroids of Digits")
        rows += check_digits(digits, laplacian, eigenvalue)
    return rows


def check_laplacian(centroids: list[np.ndarray], weights, how: str) -> list[Check]:
    """Diag(W1) − W of the library's weights: no negative eigenvalue, and zero for 1."""
    graphs = np.stack([np.asarray(weights(one), np.float64) for one in centroids])
    L = _stated_laplacian(graphs)
    spectra = np.linalg.eigvalsh(L)
    size = np.abs(L).sum(axis=2).max()
    least, asymmetry = -spectra.min() / size, np.abs(graphs - graphs.transpose(0, 2, 1)).max()
    return [
        agreement("L_G ⪰ 0: −λ_min", LABEL, error=max(least, 0.0), tolerance=1e-12, how=how),
        agreement("λ_min(L_G) = 0", LABEL, error=abs(least), tolerance=1e-12, how=how),
        upper_bound("weights are not negative", LABEL, observed=-graphs.min(), paper=0.0, how=how),
        agreement("weights are symmetric", LABEL, error=asymmetry, tolerance=1e-12, how=how),
    ]


def check_digits(centroids: np.ndarray, laplacian, eigenvalue: float) -> list[Check]:
    """Cosines would make it indefinite, which is why they are refused."""
    graph = cosines(centroids)
    least = float(np.linalg.eigvalsh(_stated_laplacian(graph)).min())
    how = f"{np.mean(graph < 0):.0%} of the cosines are negative; λ_min = {least:.5f}"
    try:
        laplacian(graph)
        accepted = 1.0
    except ValueError as error:
        accepted, how = 0.0, f"{how}; {error}"
    claim, refused = "cosines of Digits: λ_min = −2.71", "negative weights are refused"
    return [
        agreement(claim, NEGATIVE, error=abs(least - eigenvalue), tolerance=5e-3, how=how),
        agreement(refused, NEGATIVE, error=accepted, tolerance=0.0, how=how),
    ]


def standardised_centroids(name: str) -> np.ndarray:
    """The class means `[K, d]` of all examples of a dataset, each feature standardised."""
    dataset = sources.load(name)
    x = np.asarray(dataset.features, np.float64)
    spread = x.std(axis=0)
    x = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.asarray(class_structure.class_stats(x, dataset.labels, dataset.num_classes).centroids)


def _stated_laplacian(weights: np.ndarray) -> np.ndarray:
    """Diag(W1) − W, `[..., K, K]`, of any weights."""
    return weights.sum(axis=-1)[..., None] * np.eye(weights.shape[-1]) - weights
