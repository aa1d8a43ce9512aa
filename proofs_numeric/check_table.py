"""Checks by claim: as lines for a terminal, as Markdown, and as JSON.

>>> from proofs_numeric.check import upper_bound
>>> bounds = {"paper": 3.0, "sharp": 2.0}
>>> check = upper_bound("loss ≤ M", "Prop. (capm)", observed=1.5, **bounds, how="by hand")
>>> to_json({"loss_range": [check]})["median_sharp_to_paper"]
{'loss_range: loss ≤ M': 0.6667}
>>> (row,) = rows({"loss_range": [check]})
>>> row.verdict, row.ratio
('holds', '0.7500')
"""

import math
from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from pgeom.messages import count
from proofs_numeric.check import Check

Results = dict[str, list[Check]]

TITLE = (
    "Claims of the paper, checked numerically. Before each claim, how much of its tightest bound, "
    "or of its tolerance, the worst case uses: 1 is attained, more than 1 is a violation."
)
COLUMNS = ("verdict", "ratio", "claim", "stated in", "numbers", "worst case")


class Row(NamedTuple):
    """One claim of a group: its worst configuration, and how many there are.

    Attributes:
      group: the name of the check.
      worst: the configuration that fails, or else uses most of its tightest bound.
      cases: the number of configurations.
      sharpness: the median of sharp/paper over them, None where either is missing.
    """

    group: str
    worst: Check
    cases: int
    sharpness: float | None

    @property
    def verdict(self) -> str:
        return "holds" if self.worst.holds else "FAILS"

    @property
    def ratio(self) -> str:
        """The share of the tightest bound that is used, or of the tolerance."""
        return "–" if self.worst.used is None else f"{self.worst.used:.4f}"

    @property
    def numbers(self) -> str:
        """What was observed, the bounds, and how sharp they are; or an error and its tolerance."""
        worst = self.worst
        if worst.tolerance is not None:
            limit = f"error {worst.observed:.3g}; tolerance {worst.tolerance:.3g}"
            return f"{limit}; {count(self.cases, 'case')}"
        no_extreme = worst.holds and math.isnan(worst.observed)  # of a property
        parts = [] if no_extreme else [f"observed {worst.observed:.6g}"]
        for name, bound, used in (
            ("paper", worst.paper_bound, worst.ratio_to_paper),
            ("sharp", worst.sharp_bound, worst.ratio_to_sharp),
        ):
            if bound is not None:
                share = "" if used is None else f" ({used:.4f} used)"
                parts.append(f"{name} {bound:.6g}{share}")
        if self.sharpness is not None:
            parts.append(f"median sharp/paper {self.sharpness:.3f}")
        return "; ".join([*parts, count(self.cases, "case")])


def rows(results: Results) -> Iterator[Row]:
    """One row per claim, in the order of first appearance."""
    for group, checks in results.items():
        for claim in dict.fromkeys(check.claim for check in checks):
            same = [check for check in checks if check.claim == claim]
            yield Row(group, max(same, key=_severity), len(same), _median_ratio(same))


def all_hold(results: Results) -> bool:
    """Whether every check holds."""
    return all(check.holds for checks in results.values() for check in checks)


def summary(results: Results) -> str:
    """How many checks there are, and how many of them fail."""
    verdicts = [check.holds for checks in results.values() for check in checks]
    failed = verdicts.count(False)
    outcome = "all hold" if failed == 0 else f"{failed} FAIL"
    return f"{count(len(verdicts), 'check')}: {outcome}"


def median_sharpness(results: Results) -> dict[str, float]:
    """The median over configurations of sharp/paper, for each claim that has both."""
    return {
        f"{row.group}: {row.worst.claim}": row.sharpness
        for row in rows(results)
        if row.sharpness is not None
    }


def to_json(results: Results) -> dict[str, Any]:
    """Everything, ready for `json.dumps`: numbers that are not finite become null."""
    checks = [
        {"group": group} | {key: _finite_or_none(value) for key, value in check._asdict().items()}
        for group, checks in results.items()
        for check in checks
    ]
    return {
        "holds": all_hold(results),
        "median_sharp_to_paper": {
            name: _finite_or_none(ratio) for name, ratio in median_sharpness(results).items()
        },
        "checks": checks,
    }


def to_rich(results: Results, *, verbose: bool = False) -> Group:
    """Verdict, ratio and claim on one line, numbers below; where the worst case is, if verbose.

    Lines are as wide as the console, and what does not fit is wrapped.
    """
    groups: dict[str, Table] = {}
    for row in rows(results):
        table = groups.setdefault(row.group, _layout())
        style = "green" if row.worst.holds else "bold red"
        table.add_row(Text(row.verdict, style), row.ratio, Text(row.worst.claim))
        details = [f"{row.worst.paper_label}; {row.numbers}", *[row.worst.how] * verbose]
        for line in details:
            table.add_row("", "", Text(line, style="dim"))
    parts = [part for name, table in groups.items() for part in (Text(f"\n{name}", "bold"), table)]
    return Group(Text(TITLE), *parts)


def to_markdown(results: Results, notes: list[str]) -> str:
    """Everything about the worst case of each claim, as a page with a table per group."""
    lines = ["# Claims, checked numerically", "", TITLE, "", summary(results), ""]
    lines += [f"- {note}" for note in notes]
    previous = None
    for row in rows(results):
        if row.group != previous:
            lines += ["", f"## {row.group}", "", _cells(COLUMNS), "|" + "---|" * len(COLUMNS)]
            previous = row.group
        worst = row.worst
        texts = (row.verdict, row.ratio, worst.claim, worst.paper_label, row.numbers, worst.how)
        lines.append(_cells(texts))
    return "\n".join([*lines, ""])


def _cells(texts: tuple[str, ...]) -> str:
    return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |"


def _layout() -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right", min_width=7)
    table.add_column(overflow="fold")
    return table


def _severity(check: Check) -> tuple[bool, float]:
    """Failures first, then whatever uses most of its tightest bound."""
    used = check.used
    return not check.holds, -math.inf if used is None or math.isnan(used) else used


def _median_ratio(checks: list[Check]) -> float | None:
    """The median of sharp/paper over the configurations."""
    pairs = [(c.paper_bound, c.sharp_bound) for c in checks if c.sharp_bound is not None]
    both = [(paper, sharp) for paper, sharp in pairs if paper and math.isfinite(paper)]
    return median(sharp / paper for paper, sharp in both) if both else None


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
