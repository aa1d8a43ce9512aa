"""A generator with three ridges over four classes, with its Hessian in NumPy, and points."""

import numpy as np

from pgeom.generators import hyperbolic

K = 4
DRAW = np.random.default_rng(7)
W = DRAW.normal(size=(3, K))
W = 0.9 * W / np.linalg.norm(W, axis=1, keepdims=True)
PARAMETERS = {
    "lam": 0.7,
    "a": np.array([0.4, 0.3, 0.9]),
    "rho": np.array([0.3, 0.25, 0.6]),
    "w": W,
    "b": W.mean(axis=1) + np.array([0.1, -0.05, 0.0]),
    "scale": 1.3,
}
F = hyperbolic(**PARAMETERS)
POINTS = 0.999 * np.concatenate([DRAW.dirichlet(np.full(K, c), size=10) for c in (0.5, 3.0)])
POINTS += 0.001 / K


def hessian(p):
    arguments = (W @ p - PARAMETERS["b"]) / PARAMETERS["rho"]
    weights = PARAMETERS["a"] / np.cosh(arguments) ** 2
    return PARAMETERS["scale"] * (PARAMETERS["lam"] * np.eye(K) + W.T @ np.diag(weights) @ W)
