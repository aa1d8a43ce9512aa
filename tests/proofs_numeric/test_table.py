"""Checks as they are shown: short lines, nothing lost, and the worst case first."""

import io
import json

import pytest
from rich.console import Console

from proofs_numeric import table
from proofs_numeric.claims import Claim


def check(statement, relation, x, how):
    return Claim(statement, "Prop. 1", relation).judge({"x": x}, how)


RESULTS = {
    "first [/bold]": [
        check("ℓ ≤ M", "x ≤ 2 ≤ 4", 1.0, "K=2, mild"),
        check("ℓ ≤ M", "x ≤ 2 ≤ 4", 3.0, "K=3, |worse|"),
    ],
    "second": [check("a claim " * 20, "x ≤ 1", 0.0, "K=2"), check("same", "x ~ 1e-12", 2e-13, "")],
}


@pytest.mark.parametrize("width", [40, 79, 100])
@pytest.mark.parametrize("verbose", [False, True])
def test_lines_are_short_and_nothing_is_lost(width, verbose):
    console = Console(file=io.StringIO(), width=width, markup=False)
    console.print(table.to_rich(RESULTS, verbose=verbose))
    out = console.file.getvalue()
    assert max(map(len, out.splitlines())) <= width
    words = " ".join(out.split())
    for row in [*table.rows(RESULTS["first [/bold]"]), *table.rows(RESULTS["second"])]:
        for part in (f"{row.verdict} {row.ratio}", row.worst.paper_label, row.numbers):
            assert part in words
        assert (row.worst.how in words) == verbose or not row.worst.how
    assert "first [/bold]" in words and "ℓ ≤ M" in words and words.count("a claim") == 20


def test_a_row_is_about_its_worst_case():
    (worst,), (other, same) = map(table.rows, RESULTS.values())
    assert (worst.verdict, worst.ratio) == ("FAILS", "1.5000")
    expected = "observed 3; paper 4 (0.7500 used); sharp 2 (1.5000 used); median sharp/paper 0.500"
    assert worst.numbers == f"{expected}; 2 cases"
    assert (other.verdict, other.numbers) == ("holds", "observed 0; paper 1 (0.0000 used); 1 case")
    assert same.numbers == "error 2e-13; tolerance 1e-12; 1 case" and same.ratio == "0.2000"
    assert table.summary(RESULTS) == "4 checks: 1 FAIL"


def test_markdown_and_json_have_everything():
    page = table.to_markdown(RESULTS, ["K=3: a note"])
    assert page.count("| verdict | ratio |") == 2 and "\n- K=3: a note\n" in page
    assert r"| FAILS | 1.5000 | ℓ ≤ M | Prop. 1 | observed 3;" in page
    assert page.count(r"K=3, \|worse\| |") == 1
    assert json.loads(json.dumps(table.to_json(RESULTS)))["holds"] is False
