"""A claim as data, the configurations that it is about, and the verdict.

A claim relates an extreme that was found to one bound or two, the sharper one first:

    "λ_max ≤ M_T ≤ M"     nothing exceeds the sharper bound, nor that the paper's
    "λ_min ≥ m_T ≥ m"     the same from below
    "λ_max = M"           the bound is attained, and not exceeded
    "error ~ 1e-12"       an identity: the error is what rounding may leave
    "slope ≈ −2.71 ± .01" the same, of two quantities

The words are quantities, measured together for all claims of a `Family`, or numbers. A family also
has false versions of what is measured, each of which must break one of its claims.

Ratios say how much of a bound is used: 1 is attained, more than 1 is a violation, for bounds from
below as for bounds from above.

>>> claim = Claim("loss ≤ M", "Prop. (capm)", "loss ≤ sharp ≤ M")
>>> check = claim.judge({"loss": 1.5, "sharp": 2.0, "M": 3.0}, "by hand")
>>> check.holds, check.ratio_to_paper, check.ratio_to_sharp
(True, 0.5, 0.75)
>>> Claim("loss ≤ M", "Prop. (capm)", "loss = M").judge({"loss": 1.5, "M": 3.0}, "by hand").holds
False
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from inspect import signature
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np

from pgeom.compilation import quick_jit

ROUNDING = 1e-9  # relative excess that float64 and a search may show over an exact bound
ATTAINED = 1e-6  # relative shortfall up to which a bound counts as attained


class Check(NamedTuple):
    """What was claimed, what was found, and whether the claim holds.

    Attributes:
      claim: the statement, the same for every configuration.
      paper_label: where the paper states it, or in words what is claimed beyond it; of a user's
        function also what is checked in place of a claim, a property of it or the arithmetic.
      paper_bound: the bound of the paper.
      sharp_bound: a sharper one, None where there is none.
      observed: the extreme that was found.
      ratio_to_paper: the share of the paper's bound that is used.
      ratio_to_sharp: the share of the sharper bound that is used.
      holds: the verdict.
      how: the configuration, and how the extreme was found.
      tolerance: of an identity, the error that rounding may leave; no bound of anyone's.
    """

    claim: str
    paper_label: str
    paper_bound: float | None
    sharp_bound: float | None
    observed: float
    ratio_to_paper: float | None
    ratio_to_sharp: float | None
    holds: bool
    how: str
    tolerance: float | None = None

    @property
    def used(self) -> float | None:
        """The share of the tightest bound that is used, or of the tolerance."""
        if self.tolerance is not None:
            return _ratio(self.observed, self.tolerance)
        return self.ratio_to_paper if self.ratio_to_sharp is None else self.ratio_to_sharp

    @property
    def sharpness(self) -> float | None:
        """The sharper bound over the paper's, where both are numbers."""
        if self.sharp_bound is None or not self.paper_bound or math.isinf(self.paper_bound):
            return None
        return self.sharp_bound / self.paper_bound


class Claim(NamedTuple):
    """One statement.

    Attributes:
      statement: in symbols.
      label: where the paper states it, or in words what goes beyond it.
      relation: the extreme, and the bounds; see the module. A single bound is the paper's, unless
        the label says that it goes beyond the paper.
      on: a pattern in the names of the configurations that it is about; by default all.
      when: a quantity that is true of the configurations that it is about.
      least: the least number of classes.
      shortfall: how far below the bound an extreme that attains it may stay.
      slack: how far above it a searched extreme may be.
      how: how the extreme was found, if otherwise than the others of its family.
    """

    statement: str
    label: str
    relation: str
    on: str = ""
    when: str = ""
    least: int = 2
    shortfall: float = ATTAINED
    slack: float = ROUNDING
    how: str = ""

    def judge(self, numbers: Mapping[str, Any], how: str) -> Check:
        """The verdict for one configuration, of which `numbers` has the quantities."""
        first, sign, *words = self.relation.split()
        names = [first, *words[::2]]
        observed, *limits = (float(numbers.get(x, x)) for x in names)
        here = self.statement, self.label
        if sign == "≈":
            observed, limits = abs(observed - limits[0]), limits[1:]
        if sign in "~≈":
            holds = math.isfinite(observed) and observed <= limits[0]
            return Check(*here, None, None, observed, None, None, holds, how, limits[0])
        beyond = self.label.startswith("beyond") and len(limits) == 1
        sharp, paper = (*limits, None) if beyond else (None, *limits)[-2:]
        share = (lambda x, y: _ratio(y, x)) if sign == "≥" else _ratio
        used = share(observed, paper), share(observed, sharp)
        ratios = [ratio for ratio in (*used, share(sharp, paper)) if ratio is not None]
        holds = math.isfinite(observed) and all(ratio <= 1 + self.slack for ratio in ratios)
        if sign == "=":
            holds = holds and min(ratios) >= 1 - self.shortfall
        return Check(*here, paper, sharp, observed, *used, holds, how)


@dataclass(frozen=True, eq=False)
class Cases:
    """Configurations for K classes, by name: pytrees of one shape, in float64."""

    K: int
    values: dict[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.values)

    @cached_property
    def stacked(self) -> Any:
        """All of them as one pytree, along a leading axis."""
        return jax.tree.map(lambda *leaves: np.stack(leaves), *self.values.values())

    def select(self, pattern: str) -> "Cases":
        """Those whose name has the pattern."""
        chosen = {name: x for name, x in self.values.items() if re.search(pattern, name)}
        return Cases(self.K, chosen)

    def map(self, function: Callable, *shared: Any, beside: tuple[Any, ...] = ()) -> Any:
        """`function(case, *beside, *shared)` of each in one program; `[c]` of all it returns.

        Args:
          function: of JAX arrays.
          shared: arguments that are the same for all.
          beside: arguments with a leading axis, along the cases.
        """
        results = _map((self.stacked, *beside), shared, function=function)
        return jax.tree.map(np.asarray, results)

    def evaluate(self, function: Callable, **fields: str) -> dict[str, np.ndarray]:
        """Fields of `function(F, K)`, a formula of the library, under other names; `[c]` each."""
        results = [function(F, self.K) for F in self.values.values()]
        return {new: np.array([getattr(x, old) for x in results]) for new, old in fields.items()}


@partial(quick_jit, static_argnames="function")
def _map(each, shared, *, function):
    return jax.vmap(lambda each: function(*each, *shared))(each)


@dataclass(frozen=True, eq=False)
class Family:
    """Claims about quantities that are measured together.

    Attributes:
      cases: the configurations for K classes.
      measure: `measure(cases, **ingredients)`, the quantities by name: one number per case, or one
        for all. One of them may be `how`, a text per case.
      claims: the claims.
      how: how the extremes were found.
      false: by name, what is false in a version that must break a claim: an ingredient of
        `measure`, or a quantity, multiplied by a number or made from all others by a function.
        It is tried for three classes, or for as many as `classes` says.
      classes: the numbers of classes for which it is checked.
      datasets: whether it is about the matrices of the experiments, and so by default also checked
        for the numbers of classes of their datasets.
    """

    cases: Callable[[int], Cases]
    measure: Callable[..., dict[str, Any]]
    claims: tuple[Claim, ...]
    how: str = ""
    false: dict[str, dict[str, Any]] = field(default_factory=dict)
    classes: range = range(2, 33)
    datasets: bool = False

    def checks(self, K: int) -> list[Check]:
        """Every claim for every configuration."""
        return self._judge(K, _measure(self, K)) if K in self.classes else []

    def check_with(self, changes: dict[str, Any]) -> list[Check]:
        """The same with what a false version changes."""
        K, known = changes.get("classes", 3), signature(self.measure).parameters
        ingredients = {name: x for name, x in changes.items() if name in known}
        q = self.measure(self.cases(K), **ingredients) if ingredients else _measure(self, K)
        others = {name: x for name, x in changes.items() if name in q}
        changed = {name: x(q) if callable(x) else x * q[name] for name, x in others.items()}
        return self._judge(K, q | changed)

    def _judge(self, K: int, q: dict[str, Any]) -> list[Check]:
        rows = []
        for claim, (i, name) in product(self.claims, enumerate(self.cases(K).names)):
            numbers = {key: x[i] if np.ndim(x) else x for key, x in q.items()}
            applies = numbers[claim.when] if claim.when else claim.least <= K
            if applies and re.search(claim.on, name):
                how = claim.how or numbers.get("how", self.how)
                rows.append(claim.judge(numbers, f"K={K}, {name}: {how}"))
        return rows


@cache
def _measure(family: Family, K: int) -> dict[str, Any]:
    cases = family.cases(K)
    return family.measure(cases) if cases.values else {}


def _ratio(small: float | None, large: float | None) -> float | None:
    """small/large; a bound that is not positive is not used at all where it is met, else broken."""
    if small is None or large is None:
        return None
    if large <= 0:
        return 0.0 if small <= large else math.inf
    return 1.0 if small == large else small / large  # the same, also of two infinite bounds
