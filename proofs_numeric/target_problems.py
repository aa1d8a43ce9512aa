"""The conditional targets of APMS on which `displacement` is checked.

>>> [one.name for one in special_problems(3)]
['vertex', 'extremal family', 'anisotropic family', 'softplus family', 'competitors family']
"""

from typing import NamedTuple

import numpy as np

from pgeom.generators import Hyperbolic
from pgeom.paper.displacement import Penalty
from proofs_numeric import configurations
from proofs_numeric.instances import anisotropic, fill_ridges, isotropic, two_minima

SOFT = Penalty(tau=0.2, kappa=0.8, nu=0.4)
CORES = ("HPG experiments R=4", "random ridges 0", "extremal: one ridge")
VANISHING = (1e-2, 1e-3, 1e-4)  # β → 0
EDGE = 1e-3  # e, of the extremal families


class Problem(NamedTuple):
    """One target: a generator, η `[K]`, the penalty and β, with a name."""

    name: str
    F: Hyperbolic
    eta: np.ndarray
    penalty: Penalty
    beta: float


def problems(K: int) -> list[Problem]:
    """The experiments' APMS, random ridges, β → 0, and the special problems."""
    cases, rng = configurations.hyperbolics(K), np.random.default_rng([12, K])
    etas = [rng.dirichlet(np.full(K, c)) for c in (0.5, 3.0)]
    settings = [(configurations.EXPERIMENT, 0.2), (SOFT, 0.5)]
    rows = [
        Problem(f"{name}, η {i}, β={beta}, τ={penalty.tau}", cases.get(name), eta, penalty, beta)
        for name in CORES
        for i, eta in enumerate(etas)
        for penalty, beta in settings
    ]
    core = cases.get(CORES[0])
    rows += [Problem(f"β → 0: {beta:g}", core, etas[1], SOFT, beta) for beta in VANISHING]
    rows += special_problems(K)
    ridges = max(len(one.F.a) for one in rows)
    return [one._replace(F=fill_ridges(one.F, ridges)) for one in rows]


def special_problems(K: int) -> list[Problem]:
    """A certain η; problems at which a bound is attained; for K = 2 the case with two minima."""
    core = configurations.hyperbolics(K).get(CORES[0])
    rows = [Problem("vertex", core, np.eye(K)[0], configurations.EXPERIMENT, 0.2)]
    rows += [*_linear_families(K), _softplus_family(K)]
    if K > 2:
        rows.append(_competitors_family(K))
    if K == 2:
        case = Penalty(0.1, 0.0, 1.0)
        rows.append(Problem("two minima", two_minima(), np.array([0.75, 0.25]), case, 0.25))
    return rows


def _linear_families(K: int) -> list[Problem]:
    """The penalty is linear along e₁ − e₂, with the slope √2; F is isotropic, or has m < m_T."""
    eta = np.zeros(K)
    eta[:2] = 1 - EDGE, EDGE
    penalty = Penalty(tau=EDGE / 100, kappa=10.0, nu=0.1)  # one competitor counts, and σ = 1
    return [
        Problem("extremal family", isotropic(K), eta, penalty, EDGE / 2),
        Problem("anisotropic family", anisotropic(K), eta, penalty, EDGE / 2),
    ]


def _softplus_family(K: int) -> Problem:
    """The margin of the likely label is κ, where the softplus has its curvature 1/(4ν)."""
    eta, tau = _fill([0.8, 0.2], K), 0.05
    kappa = float(eta[0] - tau * np.log(np.exp(eta[1:] / tau).sum()))
    return Problem("softplus family", isotropic(K), eta, Penalty(tau, kappa, 1e-3), 4e-4)


def _competitors_family(K: int) -> Problem:
    """Two nearly equal competitors of a label with η = ½: p* moves along their difference only."""
    eta, penalty = _fill([0.5, 0.255, 0.245], K), Penalty(0.03, 30.0, 1.0)
    return Problem("competitors family", isotropic(K), eta, penalty, 0.024)


def _fill(first: list[float], K: int) -> np.ndarray:
    """A distribution that is nearly `first`, with a little for the other classes."""
    eta = np.full(K, 1e-4)
    eta[: len(first)] = first
    return eta / eta.sum()
