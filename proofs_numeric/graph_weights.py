"""Prop. (capm) needs L_G ⪰ 0, for which graph weights must not be negative.

The cosines of standardised Digits centroids are negative for most pairs, and Diag(W1) − W then has
the eigenvalue −2.71. The library's weights are a kernel, and it refuses negative ones.
"""

from functools import cache

import jax.numpy as jnp
import numpy as np

from pgeom.data import sources
from pgeom.paper import class_structure
from proofs_numeric.claims import Cases, Claim, Family

LABEL = "Eq. (capm-matrix)"
NEGATIVE = "beyond the paper: negative graph weights make the Laplacian indefinite"


@cache
def centroids(K: int) -> Cases:
    """Centroids `[K, d]`: random ones of twenty scales, and for K = 10 those of Digits."""
    rng = np.random.default_rng([17, K])
    found = {
        f"scale {scale:.3g}": rng.normal(size=(K, 5)) * scale for scale in np.logspace(-2, 2, 20)
    }
    dataset = sources.load("digits")
    if dataset.num_classes == K:
        x = np.asarray(dataset.features, np.float64)
        spread = x.std(axis=0)
        x = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        found["Digits"] = np.asarray(class_structure.class_stats(x, dataset.labels, K).centroids)
    return Cases(K, found)


def cosines(centroids: np.ndarray) -> np.ndarray:
    """The cosines between centroids `[K, d]`, and zero for a class with itself."""
    unit = centroids / np.linalg.norm(centroids, axis=1, keepdims=True)
    return unit @ unit.T * (1 - np.eye(len(unit)))


def least_eigenvalue(weights: np.ndarray) -> float:
    """Of Diag(W1) − W."""
    return np.linalg.eigvalsh(np.diag(weights.sum(axis=1)) - weights)[0]


def measure(cases: Cases, weights=class_structure.centroid_graph) -> dict:
    """The Laplacian of the library's weights."""
    graphs = [np.asarray(weights(one), np.float64) for one in cases.values.values()]
    least = np.array(
        [least_eigenvalue(W) / max(2 * np.abs(W).sum(axis=1).max(), 1e-9) for W in graphs]
    )
    return {
        "below": np.maximum(-least, 0.0),
        "apart": np.abs(least),
        "negative": np.array([-W.min() for W in graphs]),
        "asymmetry": np.array([np.abs(W - W.T).max() for W in graphs]),
    }


def measure_cosines(cases: Cases, laplacian=class_structure.laplacian) -> dict:
    """The Laplacian of cosines, and whether the library refuses them."""
    graph = cosines(cases.values["Digits"])
    try:
        laplacian(graph)
    except ValueError:
        return {"least": least_eigenvalue(graph), "printed": -2.71, "accepted": 0.0}
    return {"least": least_eigenvalue(graph), "printed": -2.71, "accepted": 1.0}


KERNEL = Family(
    centroids,
    measure,
    (
        Claim("L_G ⪰ 0: −λ_min", LABEL, "below ~ 1e-12"),
        Claim("λ_min(L_G) = 0", LABEL, "apart ~ 1e-12"),
        Claim("weights are not negative", LABEL, "negative ≤ 0"),
        Claim("weights are symmetric", LABEL, "asymmetry ~ 1e-12"),
    ),
    how="the library's weights",
    false={"cosines": {"weights": cosines}},
)
COSINES = Family(
    lambda K: centroids(K).select("Digits"),
    measure_cosines,
    (
        # to half a unit of its last digit
        Claim("cosines of Digits: λ_min = −2.71", NEGATIVE, "least ≈ printed ± 5e-3"),
        Claim("negative weights are refused", NEGATIVE, "accepted ~ 0"),
    ),
    how="cosines of standardised centroids",
    false={
        "−2.71 → −2.7": {"printed": lambda q: -2.7, "classes": 10},
        "nothing is refused": {"laplacian": jnp.asarray, "classes": 10},
    },
    classes=range(10, 11),
)
FAMILIES = KERNEL, COSINES
