"""The generators that the claims are checked on: the experiments', random ones, extremal ones.

Configurations of one kind and K are stacked into one pytree, so that a claim compiles once for
all of them. Ridges of no weight fill up those that have fewer than the others.

>>> hyperbolics(3).only("extremal").names
('extremal: one ridge', 'extremal: wide ridge', 'extremal: no ridge', 'extremal: off vertex')
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax
import numpy as np

from pgeom.geometry.displacement import Penalty
from pgeom.geometry.generators import Hyperbolic, Quadratic
from pgeom.losses import catalogue
from proofs_numeric import instances
from proofs_numeric.experiment_metrics import experiment_matrices

RIDGES = (4, 16)  # of the experiments' HPG, and the most that its ablation has
EXPERIMENT = Penalty(tau=0.1, kappa=0.2, nu=0.1)  # the catalogue's APMS, as a test makes sure


class Configurations(NamedTuple):
    """Generators of one kind and K: names, each by itself, all stacked along a leading axis."""

    K: int
    names: tuple[str, ...]
    each: tuple
    stacked: Quadratic | Hyperbolic

    def only(self, *parts: str) -> "Configurations":
        """Those whose name contains any of the parts."""
        named = zip(self.names, self.each, strict=True)
        return stack(self.K, {n: F for n, F in named if any(part in n for part in parts)})

    def named(self, name: str) -> Quadratic | Hyperbolic:
        """The one of that name."""
        return self.each[self.names.index(name)]

    def each_of(self, of: Callable, *fields: str) -> list[np.ndarray]:
        """The named fields of `of(F, K)` for each F, an array a field."""
        results = [of(F, self.K) for F in self.each]
        return [np.array([getattr(result, field) for result in results]) for field in fields]


def stack(K: int, generators: dict) -> Configurations:
    """Generators of one kind and shape, by name, as float64."""
    each = [jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), F) for F in generators.values()]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
    return Configurations(K, tuple(generators), tuple(each), stacked)


@cache
def quadratics(K: int) -> Configurations:
    """CAPM on every dataset with K classes, random metrics, and the extremal ones."""
    found = {name: Quadratic(A) for name, A in experiment_matrices(K).items()}
    rng = np.random.default_rng([1, K])
    for i, lam in enumerate((0.01, 0.3, 1.0)):
        factor = rng.normal(size=(K, K)) / np.sqrt(K)
        found[f"random metric {i}"] = Quadratic(lam * np.eye(K) + factor @ factor.T)
    found["extremal: pair metric"] = instances.pair_metric(K)
    found["extremal: identity"] = Quadratic(np.eye(K))
    return stack(K, found)


@cache
def hyperbolics(K: int) -> Configurations:
    """HPG of the experiments, random ridges from wide to sharp, and the extremal ones."""
    with jax.enable_x64(False):  # as the experiments build it: float64 would draw other points
        found = {f"HPG experiments R={R}": catalogue.hpg_generator(K, R) for R in RIDGES}
    found |= {f"random ridges {i}": instances.random_ridges(K, i) for i in range(4)}
    found["extremal: one ridge"] = instances.one_ridge(K)
    found["extremal: wide ridge"] = instances.one_ridge(K, rho=1e3)
    found["extremal: no ridge"] = instances.isotropic(K)
    if K == 2:
        found["extremal: two minima"] = instances.two_minima()
    if K == 3:
        found["extremal: off vertex"] = instances.off_vertex()
    return stack(K, {name: instances.filled(F, max(RIDGES)) for name, F in found.items()})
