"""Checks as they are shown: short lines, nothing lost, and the worst case first."""

import io

import pytest
from rich.console import Console

from proofs_numeric import check_table
from proofs_numeric.check import upper_bound

RESULTS = {
    "first [/bold]": [
        upper_bound("ℓ ≤ M", "Prop. 1", observed=1.0, paper=4.0, sharp=2.0, how="K=2, mild"),
        upper_bound("ℓ ≤ M", "Prop. 1", observed=3.0, paper=4.0, sharp=2.0, how="K=3, |worse|"),
    ],
    "second": [upper_bound("a claim " * 20, "Eq. 2", observed=0.0, paper=1.0, how="K=2")],
}


def printed(width, **options):
    console = Console(file=io.StringIO(), width=width, markup=False)
    console.print(check_table.to_rich(RESULTS, **options))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 79, 100])
@pytest.mark.parametrize("verbose", [False, True])
def test_lines_are_short_and_nothing_is_lost(width, verbose):
    out = printed(width, verbose=verbose)
    assert max(map(len, out.splitlines())) <= width
    words = " ".join(out.split())
    for row in check_table.rows(RESULTS):
        for part in (row.group, f"{row.verdict} {row.ratio}", row.worst.paper_label, row.numbers):
            assert part in words
        assert (row.worst.how in words) == verbose
    assert "ℓ ≤ M" in words and words.count("a claim") == 20


def test_a_row_is_about_its_worst_case():
    worst, other = check_table.rows(RESULTS)
    assert (worst.verdict, worst.ratio, worst.cases) == ("FAILS", "1.5000", 2)
    expected = "observed 3; paper 4 (0.7500 used); sharp 2 (1.5000 used); median sharp/paper 0.500"
    assert worst.numbers == f"{expected}; 2 cases"
    assert (other.verdict, other.numbers) == ("holds", "observed 0; paper 1 (0.0000 used); 1 case")
    assert check_table.summary(RESULTS) == "3 checks: 1 FAIL"


def test_markdown_has_a_table_per_group():
    page = check_table.to_markdown(RESULTS, ["K=3: a note"])
    assert page.count("| verdict | ratio |") == 2 and "\n- K=3: a note\n" in page
    assert r"| FAILS | 1.5000 | ℓ ≤ M | Prop. 1 | observed 3;" in page
    assert page.count(r"K=3, \|worse\| |") == 1
