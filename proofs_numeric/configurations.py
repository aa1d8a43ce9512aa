"""The generators that the claims are checked on: the experiments', random ones, extremal ones.

Configurations of one kind and K are stacked into one pytree, so that a claim compiles once for
all of them. Those with fewer ridges are padded with ridges of zero weight.

>>> hyperbolics(3).select("wide", "vertex").names
('extremal: wide ridge', 'extremal: off vertex')
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import numpy as np

from pgeom.generators import Hyperbolic, Quadratic
from pgeom.losses.catalogue import MARGIN
from pgeom.losses.structured import hpg_generator
from pgeom.paper.displacement import Penalty
from pgeom.types import Generator
from proofs_numeric import instances
from proofs_numeric.experiment_metrics import experiment_matrices
from proofs_numeric.instances import float64

RIDGES = (4, 16)  # of the experiments' HPG, and the most that its ablation has
EXPERIMENT = Penalty(**MARGIN)

G = TypeVar("G", bound=Generator)


class Configurations(NamedTuple, Generic[G]):
    """Generators of one kind and K, by name.

    Attributes:
      K: the number of classes.
      names: one per generator.
      generators: the generators one by one.
      stacked: all of them as one pytree, along a leading axis.
    """

    K: int
    names: tuple[str, ...]
    generators: tuple[G, ...]
    stacked: G

    def select(self, *parts: str) -> "Configurations[G]":
        """Those whose name contains any of the parts."""
        named = zip(self.names, self.generators, strict=True)
        return stack(self.K, {n: F for n, F in named if any(part in n for part in parts)})

    def get(self, name: str) -> G:
        """The generator of that name."""
        return self.generators[self.names.index(name)]

    def evaluate(self, function: Callable[[G, int], Any], *fields: str) -> list[np.ndarray]:
        """The named fields of `function(F, K)` for each F, one array per field."""
        results = [function(F, self.K) for F in self.generators]
        return [np.array([getattr(result, field) for result in results]) for field in fields]


def stack(K: int, generators: dict[str, G]) -> Configurations[G]:
    """Generators of one kind and shape, by name, as float64."""
    each = [jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), F) for F in generators.values()]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
    return Configurations(K, tuple(generators), tuple(each), stacked)


@cache
def quadratics(K: int) -> Configurations[Quadratic]:
    """CAPM on every dataset with K classes, random metrics, and the extremal ones."""
    generators = {name: Quadratic(float64(A)) for name, A in experiment_matrices(K).items()}
    rng = np.random.default_rng([1, K])
    for i, lam in enumerate((0.01, 0.3, 1.0)):
        factor = rng.normal(size=(K, K)) / np.sqrt(K)
        generators[f"random metric {i}"] = Quadratic(float64(lam * np.eye(K) + factor @ factor.T))
    generators["extremal: pair metric"] = instances.pair_metric(K)
    generators["extremal: identity"] = Quadratic(float64(np.eye(K)))
    return stack(K, generators)


@cache
def hyperbolics(K: int) -> Configurations[Hyperbolic]:
    """HPG of the experiments, random ridges from wide to sharp, and the extremal ones."""
    with jax.enable_x64(False):  # as the experiments build it: float64 would draw other points
        generators = {f"HPG experiments R={R}": hpg_generator(K, ridges=R) for R in RIDGES}
    generators |= {f"random ridges {i}": instances.random_ridges(K, i) for i in range(4)}
    generators["extremal: one ridge"] = instances.one_ridge(K)
    generators["extremal: tilted ridge"] = instances.tilted_ridge(K)
    generators["extremal: wide ridge"] = instances.one_ridge(K, rho=1e3)
    generators["extremal: no ridge"] = instances.isotropic(K)
    if K == 2:
        generators["extremal: two minima"] = instances.two_minima()
    if K == 3:
        generators["extremal: off vertex"] = instances.off_vertex()
    return stack(K, {name: instances.fill_ridges(F, max(RIDGES)) for name, F in generators.items()})
