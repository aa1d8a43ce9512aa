"""The report: all its files, words that follow the numbers, and a page that is safe to print on."""

import json
import re

import pytest

from experiments import report
from experiments.engine import devices, training
from experiments.engine.command import Command
from experiments.shell.errors import UsageError
from experiments.show import (
    model_findings,
    noise_findings,
    page,
    page_parts,
    paper_tables,
    records as gather,
    tables as forms,
    tail_findings,
    theory,
)
from experiments.show.figures.comparisons import RANKED
from experiments.show.item_files import Table
from experiments.show.outline import SECTIONS
from experiments.show.paper_figures import FIGURES, Figure
from experiments.show.paper_tables import TABLES
from experiments.show.statements import FINDINGS
from experiments.show.style import FORMS
from experiments.show.tables import Grid
from proofs_numeric import theory_figures
from tests.experiments.conftest import REPORTED, TWO, shrink_report, two_devices

PAPER_TABLES = {"datasets", "candidate-accuracy", "digits-noise", "longtail", "calibration"}
PAPER_FIGURES = {
    *("noise-accuracy", "reliability", "longtail", "natural-corruption", "attacks", "ablations"),
    *("hpg-curvature", "apms-displacement", "lr-sensitivity", "supp-theory-binary"),
    *("supp-theory-spectrum-regret", "supp-metric-heatmaps", "supp-clean-ranks"),
    *("supp-noise-nll-confidence", "supp-noise-confusions", "supp-longtail-details"),
    *("supp-calibration-gradients", "supp-optimization"),
}
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
        studies = gather.make_studies(TWO, REPORTED)
        command = Command(TWO, reported / "report")
        gather.train(studies, reported, command)
        assert command.trained == 0
        return gather.read(studies, reported)


def test_every_label_of_the_paper_has_a_place():
    assert {label for label, recipe in TABLES.items() if recipe.in_paper} == PAPER_TABLES
    drawn = {label for label, recipe in FIGURES.items() if recipe.in_paper}
    assert drawn | set(theory.FIGURES) == PAPER_FIGURES
    assert set(theory.FIGURES) == set(theory_figures.FIGURES)


def test_every_table_and_figure_has_its_question_and_its_finding():
    ours = {f"tab:{label}" for label in TABLES} | {f"fig:{label}" for label in FIGURES}
    proved = {f"tab:{theory.CLAIMS}", *(f"fig:{label}" for label in theory.FIGURES)}
    placed = [name for section in SECTIONS for name in section.items]
    assert sorted(placed) == sorted(ours | proved)
    assert set(FINDINGS) == ours
    assert SECTIONS[0].items == ("tab:decisions",) and SECTIONS[1].items == ("tab:claims",)


def test_losses_of_the_long_tail_alone_are_refused(tmp_path):
    with pytest.raises(UsageError, match="must have one of ce, "):
        report.main(losses=("ldam",), out=tmp_path / "report")
    assert not list(tmp_path.iterdir())


def test_every_table_and_figure_is_written(reported):
    names = {path.name for path in (reported / "report").iterdir()}
    assert {f"{label}.{kind}" for label in TABLES for kind in ("md", "tex", "json")} <= names
    drawn = [
        label for label in FIGURES if label != "critical-difference"
    ]  # of three losses or more
    assert {f"{label}.{form}" for label in drawn for form in FORMS} <= names
    assert {f"fig-{label}.tex" for label in drawn} <= names
    assert {"longtail.csv", "robustness-4.csv", "runs.csv", "runs.json", "index.html"} <= names


def test_a_second_report_trains_nothing(results, reported):
    assert results.seeds == 2
    assert set(results.runs["dataset"]) == {"digits", "long-tail"}


def test_every_finding_is_a_sentence(results):
    for name, finding in FINDINGS.items():
        text = finding(results)
        assert text is None or text.endswith("."), name
        assert text is None or "nan" not in text.split(), name


def test_the_findings_are_computed(results):
    frame = results.longtail["early stopping"]
    mean = frame[frame["loss"] == "ce"]["balanced_accuracy"].mean()
    assert f"scores {mean:.3f}" in tail_findings.stopping(results)
    noisiest = results.noise["digits"].query("regime == 'symmetric-40'")
    least = noisiest.groupby("label")["smooth_ece"].mean().idxmin()
    assert f"{least} by Smooth ECE" in model_findings.calibration_errors(results)
    assert "calibration, not independent evidence" in model_findings.agreement(results)
    assert "cannot be below 0.5, so all of this is descriptive" in model_findings.significance(
        results
    )


def test_the_words_change_with_the_numbers(results):
    """Where cross-entropy gains much without stopping, it is called an effect of stopping."""
    names = list(results.longtail)
    free = results.longtail[names[1]]
    for gain, words in ((0.0, "does not depend on"), (0.5, "is an effect of")):
        stopped = results.longtail[names[0]]["balanced_accuracy"].astype(float)
        changed = free.assign(balanced_accuracy=stopped + gain)
        found = results._replace(longtail={**results.longtail, names[1]: changed})
        assert words in tail_findings.stopping(found)


def test_the_same_checkpoint_shown_twice_is_said(results):
    names = list(results.longtail)
    kept = results.longtail[names[0]]
    twice = results._replace(longtail={names[0]: kept, names[1]: kept})
    assert "HPG show the same model twice in 2 of 2 runs" in tail_findings.stopping(twice)
    other = kept.assign(best_epoch=kept["best_epoch"] + 1)
    apart = results._replace(longtail={names[0]: kept, names[1]: other})
    assert "twice in 0 of 2 runs" in tail_findings.stopping(apart)


def test_a_handful_of_images_does_not_tell_losses_apart(results):
    """Ten of many hundred against three is chance; hundreds more are not."""
    runs = results.robustness
    images = results.noisiest.labels.size
    for most, words in ((10, "indistinguishable"), (400, "HPG keeps most")):
        left = runs["loss"].map({"ce": 3 / images, "hpg": most / images}).astype(float)
        changed = results._replace(robustness=runs.assign(**{"apgd_0.1": left}))
        assert words in model_findings.attacks(changed)


def test_the_noise_finding_names_every_noisy_cell(results):
    text = noise_findings.winners(results)
    assert text.startswith("Of 3 cells with label noise")
    assert all(name in text for name in ("symmetric-20", "symmetric-40", "pair-flip-40"))


def test_ranks_leave_out_the_long_tail(results):
    text = noise_findings.ranks(results)
    assert "Over 16 cells × metrics without the long tail" in text  # four cells of digits


def test_that_no_loss_is_better_everywhere_is_said_only_if_so(results):
    def said(gain):
        frames = [
            {
                name: frame.assign(**{m: 1 + gain * (frame["loss"] != "ce") for m in RANKED})
                for name, frame in part.items()
            }
            for part in (results.noise, results.longtail)
        ]
        return results._replace(noise=frames[0], longtail=frames[1])

    assert "No loss is better" not in noise_findings.heatmap(said(0.1))
    assert noise_findings.heatmap(said(0.0)).startswith("No loss is better than cross-entropy e")
    assert noise_findings.ranks(said(0.0)).endswith("all losses have the same mean rank.")


def test_amplified_pixels_are_named(results):
    assert "of 64 have an sd below 0.05 and carry 99.8%" in model_findings.corruption(results)


def test_a_finding_without_its_losses_is_left_out(results):
    frame = results.noise["digits"]
    without = results._replace(noise={"digits": frame[frame["loss"] != "ce"]})
    assert noise_findings.noisiest_table(without) is None


def test_the_page_answers_question_by_question(reported):
    text = (reported / "report" / "index.html").read_text()
    # neither was the theory asked for, nor are the losses of any claim among the three, nor has
    # anyone run the study of links
    absent = ("theory", "claims", "links")
    questions = [section.question for section in SECTIONS if section.name not in absent]
    places = [text.index(f"<h2>{page.escape(question)}</h2>") for question in questions]
    assert places == sorted(places) and places[0] < text.index("What was found, in short")
    shown = {label: recipe for label, recipe in TABLES.items() if label not in absent}
    for label, recipe in shown.items():
        assert f'<article id="tab:{label}"><h3>{page.escape(recipe.heading)} ' in text
    assert "<code>python -m experiments.noise --dataset digits</code>" in text
    assert "<small>fig:noise-accuracy in the paper</small>" in text
    assert "@unpublished" in text and "Hardware" in text
    assert text.count("<svg ") == text.count('role="img"') == len(FIGURES) - 1


def test_the_page_needs_no_network_and_its_files_are_there(reported):
    text = (reported / "report" / "index.html").read_text()
    links = set(re.findall(r'href="(?!#|data:)([^"]*)"', text))
    assert links and all((reported / "report" / link).is_file() for link in links)
    assert not re.search(r'src="|srcset=', text)
    urls = re.findall(r"url\((.)", text)
    assert set(urls) <= {"#"} and "@import" not in text and "fetch(" not in text
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text


def test_published_values_stand_beside_ours(results):
    (grid,) = paper_tables.digits_noise(results)
    assert grid.header[:3] == ["Loss", "Accuracy ↑", "paper"]
    row = next(row for row in grid.rows if row[0] == "CE")
    assert row[2] == "0.915 ± 0.021" and row[4] == "0.762 ± 0.035"


def test_everything_printed_is_escaped(tmp_path):
    (tmp_path / "a.svg").write_text('<?xml version="1.0"?>\n<svg width="9pt"><g id="x"/></svg>')
    grid = Grid(EVIL, [EVIL, EVIL], [[EVIL, EVIL]] * 9, {(0, 1)}, [EVIL])
    table = Table(EVIL, EVIL, [grid, grid], EVIL, in_paper=True)
    figure = Figure(EVIL, EVIL, tmp_path / "a.svg", EVIL, EVIL)
    contents = page.Contents(
        EVIL, [EVIL], {"longtail": table}, {"longtail": figure}, {EVIL: EVIL}, EVIL
    )
    text = page.html(contents)
    assert EVIL not in text and text.count("<script>") == 1
    parts = page_parts.table_item(EVIL, table) + page_parts.figure_item(EVIL, figure)
    assert EVIL not in parts


def test_the_comparison_as_json(results):
    rows = json.loads(paper_tables.as_json(results))
    assert {row["table"] for row in rows} >= {"candidate-accuracy", "longtail"}
    assert all(row["seeds"] == 2 and row["z"] is None for row in rows)


def test_latex_is_escaped_and_marked():
    grid = Grid("a_b: 40%", ["Loss", "NLL ↓"], [["A&B", "0.1 ± 0.2"]], {(0, 1)}, ["β₀ ≤ 1"])
    text = forms.to_latex(grid, "some-label")
    assert r"\label{tab:some-label}" in text and r"A\_b: 40\%. $\beta$$_0$ $\leq$ 1." in text
    assert r"A\&B & \textbf{0.1 $\pm$ 0.2}\\" in text


def test_latex_takes_no_text_of_a_user_for_its_own():
    assert forms.escape("[2em] *") == "{[}2em{]} {*}"
    assert forms.escape("\\input{x}\n\n<b>") == r"\textbackslash{}input\{x\}  $<$b$>$"


def test_latex_knows_every_sign_that_the_tables_use(reported):
    for path in (reported / "report").glob("*.tex"):
        assert path.read_text().isascii(), path.name


def test_a_theory_that_is_there_is_not_made_again(tmp_path):
    for label in theory.FIGURES:
        for form in FORMS:
            (tmp_path / f"{label}.{form}").write_text("<svg/>")
    (tmp_path / "proofs.json").write_text(json.dumps(PROOFS))
    with theory.proving(tmp_path) as proving:
        assert proving.process is None
        figures, tables = proving.finish()
    assert set(figures) == set(theory.FIGURES)
    assert tables[theory.CLAIMS].finding == (
        "3 checks of 2 claims: all hold; 1 with a sharper bound, by a factor of up to 4.0."
    )
    assert tables[theory.CLAIMS].grids[0].rows[0][:4] == ["ℓ ≤ M", "holds", "×4.00", "2"]
    (tmp_path / "proofs.json").unlink()
    with theory.proving(tmp_path) as proving:
        assert proving.process is not None


def test_a_claim_that_fails_is_named(tmp_path):
    failed = PROOFS["checks"][1] | {"holds": False}
    table = theory.claims_table(PROOFS | {"checks": [*PROOFS["checks"], failed]}, tmp_path)
    assert "these fail: ℓ ≤ M;" in table.finding


def test_a_figure_of_the_theory_says_of_its_claims_what_the_checks_say():
    drawn = theory.FIGURES["hpg-curvature"]
    checks = [
        {"group": "curvature", "claim": "M_T ≤ M", "holds": True},
        {"group": "curvature", "claim": "m ≤ m_T", "holds": False},
        {"group": "regret", "claim": "D ≤ M", "holds": False},
    ]
    ratios = {drawn.compared: 0.5}

    def said(*places):
        chosen = [checks[place] for place in places]
        return theory.finding(drawn, {"checks": chosen, "median_sharp_to_paper": ratios})

    assert theory.finding(drawn, None) == drawn.caption
    assert "Of 1 checks of the claims about it, all hold. The sharper bound is 0.50" in said(0, 2)
    assert "Of 2 checks of the claims about it, these fail: m ≤ m_T." in said(0, 1)
    assert "checks" not in said(2)


def test_that_every_winner_falls_behind_is_said_only_if_so(results):
    def said(gain):
        noise = {
            name: frame.assign(
                accuracy=0.5 + gain * (frame["loss"] != "ce"),
                nll=1.0 - 0.1 * (frame["loss"] != "ce"),
            )
            for name, frame in results.noise.items()
        }
        return noise_findings.winners(results._replace(noise=noise))

    assert "falls behind cross-entropy" in said(-0.1)
    assert "falls behind" not in said(0.1) and "falls behind" not in said(0.0)


def test_no_process_is_left_behind(tmp_path):
    with pytest.raises(KeyboardInterrupt), theory.proving(tmp_path) as proving:
        raise KeyboardInterrupt
    assert proving.process.poll() is not None
