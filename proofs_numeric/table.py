"""Checks by claim: as lines for a terminal, as Markdown, and as JSON.

>>> from proofs_numeric.claims import Claim
>>> claim = Claim("loss ≤ M", "Prop. (capm)", "loss ≤ sharp ≤ M")
>>> check = claim.judge({"loss": 1.5, "sharp": 2.0, "M": 3.0}, "by hand")
>>> to_json({"loss_range": [check]})["median_sharp_to_paper"]
{'loss_range: loss ≤ M': 0.6667}
>>> (row,) = rows([check])
>>> row.verdict, row.ratio
('holds', '0.7500')
"""

import math
from collections.abc import Iterable, Iterator
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from pgeom.messages import count

if TYPE_CHECKING:
    from proofs_numeric.claims import Check

Results = dict[str, list["Check"]]

TITLE = (
    "Claims of the paper, checked numerically. Before each claim, how much of its tightest bound, "
    "or of its tolerance, the worst case uses: 1 is attained, more than 1 is a violation."
)
COLUMNS = ("verdict", "ratio", "claim", "stated in", "numbers", "worst case")


class Row(NamedTuple):
    """One claim of a group: its worst configuration, in words.

    Attributes:
      worst: the configuration that fails, or else uses most of its tightest bound.
      verdict: of it.
      ratio: the share of the tightest bound that is used, or of the tolerance.
      numbers: what was observed, the bounds, and how sharp they are; or an error and its tolerance.
      sharpness: the median of sharp/paper over the configurations, None where either is missing.
    """

    worst: "Check"
    verdict: str
    ratio: str
    numbers: str
    sharpness: float | None


def rows(checks: "list[Check]") -> Iterator[Row]:
    """One row per claim, in the order of first appearance."""
    for claim in dict.fromkeys(check.claim for check in checks):
        same = [check for check in checks if check.claim == claim]
        ratios = [check.sharpness for check in same if check.sharpness is not None]
        worst, sharpness = max(same, key=_severity), median(ratios) if ratios else None
        verdict = "holds" if worst.holds else "FAILS"
        ratio = "–" if worst.used is None else f"{worst.used:.4f}"
        numbers = [*_numbers(worst), count(len(same), "case")]
        if sharpness is not None:
            numbers.insert(-1, f"median sharp/paper {sharpness:.3f}")
        yield Row(worst, verdict, ratio, "; ".join(numbers), sharpness)


def _numbers(check: "Check") -> Iterator[str]:
    """What is known of one configuration."""
    if check.tolerance is not None:
        yield f"error {check.observed:.3g}; tolerance {check.tolerance:.3g}"
    elif not (check.holds and math.isnan(check.observed)):  # as of a property
        yield f"observed {check.observed:.6g}"
    if check.paper_bound is not None:
        yield f"paper {check.paper_bound:.6g} ({check.ratio_to_paper:.4f} used)"
    if check.sharp_bound is not None:
        yield f"sharp {check.sharp_bound:.6g} ({check.ratio_to_sharp:.4f} used)"


def all_hold(results: Results) -> bool:
    """Whether every check holds."""
    return all(check.holds for checks in results.values() for check in checks)


def summary(results: Results) -> str:
    """How many checks there are, and how many of them fail."""
    verdicts = [check.holds for checks in results.values() for check in checks]
    failed = verdicts.count(False)
    outcome = "all hold" if failed == 0 else f"{failed} FAIL"
    return f"{count(len(verdicts), 'check')}: {outcome}"


def to_json(results: Results) -> dict[str, Any]:
    """Everything, ready for `json.dumps`: numbers that are not finite become null."""

    def finite(value):
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {
        "holds": all_hold(results),
        "median_sharp_to_paper": {
            f"{group}: {row.worst.claim}": finite(row.sharpness)
            for group, checks in results.items()
            for row in rows(checks)
            if row.sharpness is not None
        },
        "checks": [
            {"group": group} | {key: finite(value) for key, value in check._asdict().items()}
            for group, checks in results.items()
            for check in checks
        ],
    }


def to_rich(results: Results, *, verbose: bool = False) -> Group:
    """Verdict, ratio and claim on one line, numbers below; where the worst case is, if verbose.

    Lines are as wide as the console, and what does not fit is wrapped.
    """
    parts: list[Text | Table] = [Text(TITLE)]
    for group, checks in results.items():
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, justify="right", min_width=7)
        table.add_column(overflow="fold")
        for row in rows(checks):
            style = "green" if row.worst.holds else "bold red"
            table.add_row(Text(row.verdict, style), row.ratio, Text(row.worst.claim))
            for line in [f"{row.worst.paper_label}; {row.numbers}", *[row.worst.how] * verbose]:
                table.add_row("", "", Text(line, style="dim"))
        parts += [Text(f"\n{group}", "bold"), table]
    return Group(*parts)


def to_markdown(results: Results, notes: list[str]) -> str:
    """Everything about the worst case of each claim, as a page with a table per group."""
    lines = ["# Claims, checked numerically", "", TITLE, "", summary(results), ""]
    lines += [f"- {note}" for note in notes]
    for group, checks in results.items():
        cells = [
            (
                row.verdict,
                row.ratio,
                row.worst.claim,
                row.worst.paper_label,
                row.numbers,
                row.worst.how,
            )
            for row in rows(checks)
        ]
        lines += ["", f"## {group}", "", *markdown_table(COLUMNS, cells)]
    return "\n".join([*lines, ""])


def markdown_table(columns: Iterable[str], cells: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table."""
    columns = [*columns]
    escaped = [[text.replace("|", r"\|") for text in line] for line in cells]
    return [f"| {' | '.join(line)} |" for line in (columns, ["---"] * len(columns), *escaped)]


def _severity(check: "Check") -> tuple[bool, float]:
    """Failures first, then whatever uses most of its tightest bound."""
    used = check.used
    return not check.holds, -math.inf if used is None or math.isnan(used) else used
