"""The report: its items, sentences that follow the numbers, and a page that is safe to print on."""

import json
import re
from dataclasses import replace
from html import escape
from types import SimpleNamespace

import pandas as pd
import pytest

from experiments import report
from experiments.engine import devices, training
from experiments.engine.command import Command
from experiments.shell.errors import UsageError
from experiments.show import items, page, theory
from experiments.show.contrasts import CANDIDATES, CLEAN, DIGITS, PAIRS
from experiments.show.records import weigh
from experiments.show.tables import Grid, escape as to_tex, to_latex
from proofs_numeric import theory_figures
from tests.experiments.conftest import REPORTED, TWO, shrink_report, two_devices
from tests.experiments.show.planted import planted_runs

PAPER = {
    *("tab:datasets", "tab:candidate-accuracy", "tab:digits-noise", "tab:longtail"),
    *("tab:calibration", "fig:noise-accuracy", "fig:reliability", "fig:longtail"),
    *("fig:natural-corruption", "fig:attacks", "fig:ablations", "fig:lr-sensitivity"),
    *("fig:supp-metric-heatmaps", "fig:supp-clean-ranks", "fig:supp-noise-nll-confidence"),
    *("fig:supp-longtail-details", "fig:supp-calibration-gradients", "fig:supp-optimization"),
    *(f"fig:{label}" for label in theory.CHECKED),
}
FORMS = ("png", "pdf", "svg", "tex", "csv", "md")
BOUND = {"group": "loss_range", "claim": "ℓ ≤ M", "paper_label": "Prop. (capm)", "holds": True}
PROOFS = {
    "checks": [BOUND, BOUND, BOUND | {"claim": "ℓ ≥ 0"}],
    "median_sharp_to_paper": {"loss_range: ℓ ≤ M": 0.25},
}
EVIL = "<script>alert('1 & 2')</script>"


@pytest.fixture(scope="module")
def results(reported):
    """The records of the finished report, read again; nothing may be trained for it."""

    def train(*_):
        raise AssertionError("a finished run was trained again")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "prepare_devices", two_devices)
        patch.setattr(training, "train", train)
        shrink_report(patch)
        studies = report.make_studies(TWO, REPORTED)
        command = Command(TWO, reported / "report")
        command.train_in(studies.folders(reported))
        assert command.trained == 0
        return report.read(studies, reported / "report", theory=False)


@pytest.fixture(scope="module")
def written(results, tmp_path_factory):
    """The folder of every item in every form, and the page that links to them."""
    out = tmp_path_factory.mktemp("written")
    command = SimpleNamespace(out=out, formats=FORMS)
    sections = page.make_sections("report", items.of_results(results), command)
    (out / "index.html").write_text(page.to_html(page.Page("t", "l", [], sections, {}, [])))
    return out


def test_every_item_has_its_question_its_maker_and_its_place_in_the_paper(results):
    known = page.outline()
    placed = [name for section in known["report"] for name in section["items"]]
    assert len(placed) == len(set(placed)) and set(placed) <= set(items.of_results(results))
    assert {name for name in placed if known["items"][name].get("in_paper")} == PAPER
    assert set(theory.CHECKED) == set(theory_figures.FIGURES)
    assert known["report"][0]["items"] == ["fig:situations", "tab:decisions"]
    answered = {name for section in known["answer"] for name in section["items"]}
    assert answered | set(placed) == set(known["items"])
    assert answered == set(items.of_evidence(results.evidence))
    assert all(known["items"][name].get("caption") for name in placed if name.startswith("fig:"))


def test_losses_of_the_long_tail_alone_are_refused(tmp_path):
    with pytest.raises(UsageError, match="must have one of ce, "):
        report.main(losses=("ldam",), out=tmp_path / "report")
    assert not list(tmp_path.iterdir())


def test_the_page_is_all_that_is_written_unless_more_is_asked_for(reported, written):
    assert {path.name for path in (reported / "report").iterdir()} == {"index.html"}
    names = {path.name for path in written.iterdir()}
    assert {"longtail.tex", "longtail.csv", "longtail.md", "robustness.csv"} <= names
    assert {f"noise-accuracy.{form}" for form in ("png", "pdf", "svg", "tex")} <= names
    assert all(path.read_text().isascii() for path in written.glob("*.tex")), "signs TeX knows"


def test_the_page_answers_question_by_question(reported):
    text = (reported / "report" / "index.html").read_text()
    # neither was the theory asked for, nor are the losses of any claim among the three, nor has
    # anyone run the study of links
    absent = ("theory", "claims", "links")
    known = page.outline()
    shown = [section for section in known["report"] if section["name"] not in absent]
    places = [text.index(f"<h2>{escape(one['question'])}</h2>") for one in shown]
    assert places == sorted(places)
    assert text.index('id="short"') < text.index('id="fig:situations"') < text.index("<nav")
    # ranks are of three losses or more
    names = {name for one in shown for name in one["items"]} - {"fig:critical-difference"}
    assert all(f'<article id="{name}">' in text for name in names)
    assert "fig:noise-accuracy in the paper" in text
    assert "@unpublished" in text and "Hardware" in text and "runs trained, " in text
    assert text.count("<svg ") == text.count('role="img"') == sum(x[:3] == "fig" for x in names)


def test_the_page_needs_no_network_and_its_files_are_there(written):
    text = (written / "index.html").read_text()
    links = set(re.findall(r'href="(?!#|data:)([^"]*)"', text))
    assert len(links) > 99 and all((written / link).is_file() for link in links)
    assert not re.search(r'src="|srcset=', text)
    urls = re.findall(r"url\((.)", text)
    assert set(urls) <= {"#"} and "@import" not in text and "fetch(" not in text
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text


def test_everything_printed_is_escaped(tmp_path):
    (tmp_path / "a.svg").write_text('<?xml version="1.0"?>\n<svg width="9pt"><g id="x"/></svg>')
    grid = Grid(EVIL, [EVIL, EVIL], [[EVIL, EVIL]] * 9, {(0, 1)}, [EVIL])
    item = page.Item(EVIL, EVIL, EVIL, EVIL, True, [grid, grid], tmp_path / "a.svg", [EVIL])
    made = page.Page(
        EVIL, EVIL, [EVIL], [page.Section(EVIL, EVIL, [item])] * 2, {EVIL: EVIL}, [EVIL]
    )
    text = page.to_html(made._replace(bibtex=EVIL))
    assert EVIL not in text and text.count("<script>") == 1


def test_the_comparison_as_json(reported, monkeypatch, capsys):
    shrink_report(monkeypatch)
    settings = {"losses": REPORTED, "out": reported / "report", "theory": False}
    report.main(**settings, common=replace(TWO, json=True))
    rows = json.loads(capsys.readouterr().out)
    assert {row["table"] for row in rows} >= {"candidate-accuracy", "longtail"}
    assert all(row["seeds"] == 2 and row["z"] is None for row in rows)


COMPARED = ("ce", "brier", "gce", *CANDIDATES)
GAINS = {(DIGITS, "gce", "accuracy"): 0.02}
PLACES = (CLEAN[1], DIGITS, PAIRS)


def said(shifts=None, losses=COMPARED, places=PLACES, seeds=30):
    runs = planted_runs(shifts, losses=losses, places=places, seeds=seeds)
    found = items.statements(weigh(runs))
    assert len(found) <= 3
    return found


def test_a_loss_is_said_to_be_better_only_where_it_is():
    first, *_ = said(GAINS)
    assert first.startswith("Shown to be better than CE") and "structured" not in first
    interval = r"\+0\.0\d\d \[\+0\.0\d\d, \+0\.0\d\d\]"
    assert re.search(rf"symmetric label noise: GCE \({interval} accuracy\)", first)
    lost = {key: -value for key, value in GAINS.items()}
    nothing = "In no situation with enough seeds to tell is a loss shown to be better than CE."
    assert said(lost)[0] == nothing
    assert said(GAINS, seeds=6)[0].startswith("With 3 seeds to estimate from, no comparison of so")


def test_a_candidate_is_said_to_beat_its_control_only_where_it_does():
    lower = said({(place, loss, "accuracy"): -0.03 for place in PLACES for loss in CANDIDATES})
    assert lower[1].startswith("None of CAPM, HPG and APMS is shown to reach a higher accuracy tha")
    assert "in any of 3 cells: the largest difference is -0.0" in lower[1]
    higher = said({(PAIRS, "hpg", "accuracy"): 0.03})[1]
    assert higher.startswith("Shown to reach a higher accuracy than Brier, the control without")
    assert "in some cell: HPG, at most by +0.03" in higher
    assert "[+0.0" in higher and higher.endswith("(HPG on digits, pair-flip-40).")
    assert not any("than Brier" in text for text in said(seeds=6)), "too few seeds for verdicts"
    assert not any("than Brier" in text for text in said(losses=("ce", "hpg", "gce")))


def test_a_claim_is_said_to_be_contradicted_only_if_it_is():
    robust = ("mae", "sce", "gce", "apl")
    only = {"losses": (*COMPARED, *robust), "places": (DIGITS,)}
    (text,) = (x for x in said({(DIGITS, "mae", "accuracy"): -0.05}, **only) if "Contrad" in x)
    assert "“With 40% symmetric noise on digits MAE is more accurate than CE" in text
    interval = r"-0\.0\d\d \[-0\.0\d\d, -0\.0\d\d\]"
    assert re.search(rf"\(MAE − \w+, digits, symmetric-40: {interval}\)", text)
    forward = {(DIGITS, loss, metric): shift for loss in robust for metric, shift in BETTER.items()}
    assert not any("Contradicted" in one for one in said(forward, **only))
    row = {"label": "reversed", "claim": "A", "deciding": "B", "difference": 1, "low": 0, "high": 2}
    several = [SimpleNamespace(claims=pd.DataFrame([row] * count)) for count in (2, 3)]
    two, three = map(items.reversed_claims, several)
    assert "among others" not in two and three.startswith("Contradicted by these runs, among othe")
    assert two.count("“A” (B: +1.000 [+0.000, +2.000])") == three.count("“A”") == 2


BETTER = {"accuracy": 0.05, "nll": -0.3, "brier": -0.2}


def test_latex_is_escaped_and_marked():
    grid = Grid("a_b: 40%", ["Loss", "NLL ↓"], [["A&B", "0.1 ± 0.2"]], {(0, 1)}, ["β₀ ≤ 1"])
    text = to_latex(grid, "some-label")
    assert r"\label{tab:some-label}" in text and r"A\_b: 40\%. $\beta$$_0$ $\leq$ 1." in text
    assert r"A\&B & \textbf{0.1 $\pm$ 0.2} \\" in text
    assert to_tex("[2em] *") == "{[}2em{]} {*}"
    assert to_tex("\\input{x}\n\n<b>") == r"\textbackslash{}input\{x\}  $<$b$>$"


def test_a_theory_that_is_there_is_not_made_again(tmp_path):
    for label in theory.CHECKED:
        theory.picture(label, tmp_path).write_text("<svg/>")
    (tmp_path / "proofs.json").write_text(json.dumps(PROOFS))
    with theory.proving(tmp_path) as process:
        assert process is None
    grid = theory.claims_grid(theory.read_proofs(tmp_path))
    assert grid.rows[0][:4] == ["ℓ ≤ M", "holds", "×4.00", "2"]
    failed = PROOFS["checks"] + [BOUND | {"holds": False}]
    assert theory.claims_grid(PROOFS | {"checks": failed}).rows[0][1] == "FAILS"
    (tmp_path / "proofs.json").unlink()
    with pytest.raises(KeyboardInterrupt), theory.proving(tmp_path) as process:
        assert process.poll() is None
        raise KeyboardInterrupt
    assert process.poll() is not None, "no process is left behind"


def test_a_figure_of_the_theory_says_of_its_claims_what_the_checks_say():
    label = "hpg-curvature"
    checks = [
        {"group": "curvature", "claim": "M_T ≤ M", "holds": True},
        {"group": "curvature", "claim": "m ≤ m_T", "holds": False},
        {"group": "regret", "claim": "D ≤ M", "holds": False},
    ]
    ratios = {theory.CHECKED[label][1]: 0.5}

    def found(*places):
        chosen = [checks[place] for place in places]
        return theory.finding(label, {"checks": chosen, "median_sharp_to_paper": ratios})

    assert found(0, 2).startswith(
        "All 1 checks of the claims about it hold. The sharper bound is 0.5"
    )
    assert found(0, 1).startswith("Of the claims about it these fail: m ≤ m_T.")
    assert "checks" not in found(2) and "fail" not in found(2)
