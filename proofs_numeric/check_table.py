"""Checks as a table, one line per claim, and as JSON.

>>> from proofs_numeric.check import upper_bound
>>> bounds = {"paper": 3.0, "sharp": 2.0}
>>> check = upper_bound("loss ≤ M", "Prop. (capm)", observed=1.5, **bounds, how="by hand")
>>> to_json({"loss_range": [check]})["median_sharp_to_paper"]
{'loss_range: loss ≤ M': 0.6667}
"""

import math
from collections.abc import Iterator
from statistics import median
from typing import Any

from rich.table import Table
from rich.text import Text

from proofs_numeric.check import Check

Results = dict[str, list[Check]]


def all_hold(results: Results) -> bool:
    """Whether every check holds."""
    return all(check.holds for checks in results.values() for check in checks)


def to_json(results: Results) -> dict[str, Any]:
    """Everything, ready for `json.dumps`: numbers that are not finite become null."""
    rows = [
        {"group": group} | {key: _finite_or_none(value) for key, value in check._asdict().items()}
        for group, checks in results.items()
        for check in checks
    ]
    return {
        "holds": all_hold(results),
        "median_sharp_to_paper": {
            name: _finite_or_none(ratio) for name, ratio in median_sharpness(results).items()
        },
        "checks": rows,
    }


def median_sharpness(results: Results) -> dict[str, float]:
    """The median over configurations of sharp/paper, for each claim that has both."""
    return {
        f"{group}: {claim}": ratio
        for group, claim, checks in _claims(results)
        if (ratio := _median_ratio(checks)) is not None
    }


def to_table(results: Results) -> Table:
    """One line per claim: its worst configuration, and the median of sharp/paper over all."""
    table = Table(title="Claims of the paper, checked numerically", title_justify="left")
    table.add_column("claim", no_wrap=True)
    for name in ("paper bound", "sharp bound", "observed", "of paper", "of sharp", "sharp/paper"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("cases", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("stated in", no_wrap=True)
    table.add_column("worst case", no_wrap=True, overflow="ellipsis", max_width=48)
    previous = None
    for group, claim, checks in _claims(results):
        if group != previous:
            table.add_section()
            table.add_row(Text(group, style="bold"))
            previous = group
        table.add_row(*_line(claim, checks))
    return table


def _line(claim: str, checks: list[Check]) -> list[str | Text]:
    worst = max(checks, key=_severity)
    verdict = Text("holds", "green") if worst.holds else Text("FAILS", "bold red")
    bounds = (worst.paper_bound, worst.sharp_bound, worst.observed)
    ratios = (worst.ratio_to_paper, worst.ratio_to_sharp, _median_ratio(checks))
    numbers = [f"{'–' if x is None else f'{x:.6g}'}" for x in bounds]
    shares = [f"{'–' if x is None else f'{x:.4f}'}" for x in ratios]
    return [
        f"  {claim}",
        *numbers,
        *shares,
        str(len(checks)),
        verdict,
        worst.paper_label,
        Text(worst.how),
    ]


def _severity(check: Check) -> tuple[bool, float]:
    """Failures first, then whatever uses most of its tightest bound."""
    ratio = check.ratio_to_paper if check.ratio_to_sharp is None else check.ratio_to_sharp
    return not check.holds, -math.inf if ratio is None or math.isnan(ratio) else ratio


def _median_ratio(checks: list[Check]) -> float | None:
    """The median of sharp/paper over the configurations."""
    pairs = [(c.paper_bound, c.sharp_bound) for c in checks if c.sharp_bound is not None]
    both = [(paper, sharp) for paper, sharp in pairs if paper and math.isfinite(paper)]
    return median(sharp / paper for paper, sharp in both) if both else None


def _claims(results: Results) -> Iterator[tuple[str, str, list[Check]]]:
    """`(group, claim, its checks)`, in the order of first appearance."""
    for group, checks in results.items():
        for claim in dict.fromkeys(check.claim for check in checks):
            yield group, claim, [check for check in checks if check.claim == claim]


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
