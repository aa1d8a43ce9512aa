"""The report: all its files, words that follow the numbers, and a page that is safe to print on."""

import json
import re

import pytest

from experiments.engine import jobs
from experiments.engine.command import Command
from experiments.report import (
    __main__ as report,
    conclusions,
    gather,
    page,
    paper_tables,
    theory_figures,
)
from experiments.report.paper_figures import FIGURES, Figure
from experiments.report.paper_tables import TABLES, Table
from experiments.tables import latex
from experiments.tables.grid import Grid
from pgeom.frontend.errors import UsageError
from proofs_numeric import proof_figures
from tests.experiments.conftest import REPORTED, TWO, shrink_report

PAPER_TABLES = {"datasets", "candidate-accuracy", "digits-noise", "longtail", "calibration"}
PAPER_FIGURES = {
    *("noise-accuracy", "reliability", "longtail", "natural-corruption", "attacks", "ablations"),
    *("hpg-curvature", "apms-displacement", "lr-sensitivity", "supp-theory-binary"),
    *("supp-theory-spectrum-regret", "supp-metric-heatmaps", "supp-clean-ranks"),
    *("supp-noise-nll-confidence", "supp-noise-confusions", "supp-longtail-details"),
    *("supp-calibration-gradients", "supp-optimization"),
}
EVIL = "<script>alert('1 & 2')</script>"


@pytest.fixture
def results(reported, monkeypatch):
    """The records of the finished report, read again; nothing may be trained for it."""

    def train(*_):
        raise AssertionError("a finished run was trained again")

    monkeypatch.setattr(jobs, "train", train)
    shrink_report(monkeypatch)
    studies = gather.make_studies(TWO, REPORTED)
    command = Command(TWO, reported / "report")
    gather.train(studies, reported, command)
    assert command.stats.runs == 0
    return gather.read(studies, reported)


def test_every_label_of_the_paper_has_a_place():
    assert {label for label, (_, _, in_paper) in TABLES.items() if in_paper} == PAPER_TABLES
    drawn = {label for label, recipe in FIGURES.items() if recipe.in_paper}
    assert drawn | set(theory_figures.CAPTIONS) == PAPER_FIGURES
    assert set(theory_figures.CAPTIONS) == set(proof_figures.FIGURES)


def test_losses_of_the_long_tail_alone_are_refused(tmp_path):
    with pytest.raises(UsageError, match="must have one of ce, "):
        report.main(losses=("ldam",), out=tmp_path / "report")
    assert not list(tmp_path.iterdir())


def test_every_table_and_figure_is_written(reported):
    names = {path.name for path in (reported / "report").iterdir()}
    assert {f"{label}.{kind}" for label in TABLES for kind in ("md", "tex")} <= names
    assert {f"{label}.{kind}" for label in FIGURES for kind in ("png", "pdf")} <= names
    assert {"early-stopping.md", "early-stopping.png", "index.html"} <= names


def test_a_second_report_trains_nothing(results, reported):
    assert results.seeds == 2
    assert set(results.runs["dataset"]) == {"digits", "long-tail"}


def test_the_findings_are_computed(results):
    said = conclusions.sentences(results)
    assert "calibration, not independent evidence" in said[0]
    frame = results.longtail["early stopping"]
    mean = frame[frame["loss"] == "ce"]["balanced_accuracy"].mean()
    assert any(f"scores {mean:.3f}" in sentence for sentence in said)
    assert "least attainable p is 0.5, so all of this is descriptive" in said[-1]


def test_the_words_change_with_the_numbers(results):
    """Where cross-entropy gains much without stopping, it is called an effect of stopping."""
    names = list(results.longtail)
    free = results.longtail[names[1]]
    for gain, words in ((0.0, "does not depend on"), (0.5, "is an effect of")):
        stopped = results.longtail[names[0]]["balanced_accuracy"].astype(float)
        changed = free.assign(balanced_accuracy=stopped + gain)
        found = results._replace(longtail={**results.longtail, names[1]: changed})
        assert words in conclusions.early_stopping(found)


def test_a_finding_without_its_losses_is_left_out(results):
    frame = results.noise["digits"]
    without = frame[frame["loss"] != "ce"]
    assert conclusions.noise(results._replace(noise={"digits": without})) is None


def test_the_page_names_every_label_and_command(reported):
    text = (reported / "report" / "index.html").read_text()
    assert text.index("What was found") < text.index("<h2>Tables</h2>")
    for kind, labels in (("tab", TABLES), ("fig", FIGURES)):
        assert all(f'<section id="{kind}:{label}">' in text for label in labels)
    assert "<code>python -m experiments.noise --dataset digits</code>" in text
    assert text.count("<img ") == text.count('src="data:image/png;base64,') == len(FIGURES)


def test_the_page_needs_no_network(reported):
    text = (reported / "report" / "index.html").read_text()
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)
    assert "url(" not in text and "@import" not in text and "fetch(" not in text
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text


def test_everything_printed_is_escaped(tmp_path):
    (tmp_path / "a.png").write_bytes(b"picture")
    grid = Grid(EVIL, [EVIL], [[EVIL], [EVIL]], {(0, 0)}, [EVIL])
    table = Table([grid], EVIL, in_paper=True)
    figure = Figure([tmp_path / "a.png"], f'"{EVIL}', EVIL)
    text = page.html([EVIL], {EVIL: table}, {EVIL: figure})
    assert EVIL not in text and text.count("<script>") == 1
    assert f'alt="&quot;{page.escape(EVIL)}"' in text


def test_the_comparison_as_json(results):
    rows = json.loads(paper_tables.as_json(results))
    assert {row["table"] for row in rows} >= {"candidate-accuracy", "longtail"}
    assert all(row["seeds"] == 2 and row["z"] is None for row in rows)


def test_latex_is_escaped_and_marked():
    grid = Grid("a_b: 40%", ["Loss", "NLL ↓"], [["A&B", "0.1 ± 0.2"]], {(0, 1)}, ["β₀ ≤ 1"])
    text = latex.to_latex(grid, "some-label")
    assert r"\label{tab:some-label}" in text and r"A\_b: 40\%. $\beta$$_0$ $\leq$ 1." in text
    assert r"A\&B & \textbf{0.1 $\pm$ 0.2}\\" in text


def test_latex_takes_no_text_of_a_user_for_its_own():
    assert latex.escape("[2em] *") == "{[}2em{]} {*}"
    assert latex.escape("\\input{x}\n\n<b>") == r"\textbackslash{}input\{x\}  $<$b$>$"


def test_latex_knows_every_sign_that_the_tables_use(reported):
    for path in (reported / "report").glob("*.tex"):
        assert path.read_text().isascii(), path.name


def test_theory_figures_that_are_there_are_not_drawn_again(tmp_path):
    for label in theory_figures.CAPTIONS:
        for suffix in (".png", ".pdf"):
            (tmp_path / f"{label}{suffix}").write_bytes(b"picture")
    with theory_figures.drawing(tmp_path) as drawing:
        assert drawing.process is None
        assert set(drawing.finish()) == set(theory_figures.CAPTIONS)
    (tmp_path / f"{label}.pdf").unlink()
    with theory_figures.drawing(tmp_path) as drawing:
        assert drawing.process is not None


def test_no_process_is_left_behind(tmp_path):
    with pytest.raises(KeyboardInterrupt), theory_figures.drawing(tmp_path) as drawing:
        raise KeyboardInterrupt
    assert drawing.process.poll() is not None
