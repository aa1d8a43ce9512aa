"""The answer with tiny settings: what it trains, what it writes, and that it resumes."""

import json

import pytest

from experiments import answer, comparison
from experiments.engine import controls, devices
from experiments.engine.options import Options
from experiments.shell.errors import UsageError
from pgeom.losses.catalogue import GENERAL, LOSSES
from tests.experiments.conftest import shrink_ablation, two_devices

TINY = Options(seeds=("4",), epochs=1)
FEW = ("ce", "brier", "capm", "hpg", "apms", "logit_adjustment")
SETTINGS = {"losses": FEW, "controls": True, "control_seeds": 2, "common": TINY}


@pytest.fixture(scope="module")
def answered(tmp_path_factory, promotion_as_optax_needs_it, programs_compiled_once):
    """The folder of an answer: two datasets, four seeds, one epoch; two seeds for the controls."""
    out = tmp_path_factory.mktemp("answer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "prepare_devices", two_devices)
        shrink_answer(patch)
        answer.main(**SETTINGS, out=out, page=out / "docs/answer.md")
    return out


@pytest.fixture
def tiny(monkeypatch):
    shrink_answer(monkeypatch)


def shrink_answer(patch):
    patch.setattr(answer, "NOISE_DATASETS", ("digits",))
    patch.setattr(controls, "RATES", (1e-3, 1e-2))
    patch.setattr(controls, "LONGER", 2)
    shrink_ablation(patch)


def test_the_same_command_trains_nothing_more(answered, tiny, capsys):
    before = (answered / "docs/answer.md").read_text()
    answer.main(**SETTINGS, out=answered, page=answered / "docs/answer.md")
    said = " ".join(capsys.readouterr().out.split())
    assert "0 runs trained" in said and "runs of the protocol" in said
    assert (answered / "docs/answer.md").read_text() == before


def test_every_table_is_written_in_every_form(answered):
    labels = ("decisions", "claims", "ranks", "means", "controls", "against-ce", "against-brier")
    for label in labels:
        assert (answered / f"{label}.md").read_text().startswith("## ")
        assert r"\begin{tabular}" in (answered / f"{label}.tex").read_text()
    for name in ("effects", "decisions", "claims", "control-effects"):
        rows = json.loads((answered / f"{name}.json").read_text())
        assert rows and (answered / f"{name}.csv").read_text().count("\n") == len(rows) + 1
    drawn = ("forest-accuracy", "forest-nll", "forest-brier-calibrated-nll", "critical-difference")
    assert all((answered / f"{name}.{form}").exists() for name in drawn for form in ("png", "pdf"))


def test_the_page_has_the_command_and_its_figures(answered):
    page = (answered / "docs/answer.md").read_text()
    assert "Made by `a call from Python`, over 4 seeds" in page
    assert "over 4 seeds (controls: 2)" in page and "## How it was decided" in page
    assert "runs were best in their last epoch: not converged, try --epochs 2." in page
    assert "chosen learning rates are at an end of the grid" in page
    for picture in ("answer-forest-nll.png", "answer-critical-difference.png"):
        assert f"]({picture})" in page and (answered / "docs" / picture).exists()


def test_every_control_was_run(answered):
    rows = json.loads((answered / "control-effects.json").read_text())
    assert {row["control"] for row in rows} == {
        "the paper's protocol",
        *(control.name for control in controls.CONTROLS),
    }
    claimed = (answered / "claims.md").read_text()
    assert "Temperature scaling lowers the NLL" in claimed and "pair flips" in claimed


def test_json_is_the_comparisons(answered, tiny, capsys):
    common = Options(seeds=("4",), epochs=1, json=True)
    answer.main(losses=FEW, out=answered, common=common)
    rows = json.loads(capsys.readouterr().out)
    assert {row["reference"] for row in rows} == {"ce", "brier"}
    assert {row["regime"] for row in rows} >= {"clean", "long-tail-30"}


def test_the_paper_has_eleven_cells_and_the_controls_reuse_them():
    plan = answer.make_plan(Options(seeds=("100",)), tuple(LOSSES), 20)
    assert sum(len(study.regimes) for study in plan.protocol) == 11
    assert sum(study.runs for study in plan.protocol) == 100 * (10 * len(GENERAL) + len(LOSSES))
    folders = plan.folders(answer.Path("out"))
    rates = [study for study in plan.controls["chosen learning rate"]]
    kept = [study for study in rates if plan.folder(study, answer.Path("out")).name == "out"]
    assert {study.training.learning_rate for study in kept} == {1e-3}
    assert {len(study.seeds) for studies in plan.controls.values() for study in studies} == {20}
    assert len(folders) == 2


def test_the_datasets_are_those_of_the_published_tables():
    assert answer.NOISE_DATASETS == comparison.NOISE_DATASETS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"losses": ("hpg",)}, "--losses must have ce"),
        ({"losses": ("hgp",)}, "unknown loss 'hgp'"),
        ({"control_seeds": 0}, "--control-seeds must be at least 1, got 0"),
    ],
)
def test_bad_options_are_refused_before_anything_is_trained(settings, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        answer.main(**settings, out=tmp_path / "out", common=TINY)
    assert not (tmp_path / "out").exists()
