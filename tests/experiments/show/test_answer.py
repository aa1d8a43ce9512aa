"""The answer with tiny settings: what it trains, what it writes, and that it resumes."""

import json

import pytest
from markupsafe import escape

from experiments import answer
from experiments.engine import controls, devices
from experiments.engine.options import Options
from experiments.shell.errors import UsageError
from experiments.show.page import outline
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
    patch.setattr(answer, "PAPER_DATASETS", ("digits",))
    patch.setattr(controls, "RATES", (1e-3, 1e-2))
    patch.setattr(controls, "LONGER", 2)
    shrink_ablation(patch)


def test_the_same_command_trains_nothing_more(answered, tiny, capsys):
    before = (answered / "docs/answer.md").read_text()
    answer.main(**SETTINGS, out=answered, page=answered / "docs/answer.md")
    said = " ".join(capsys.readouterr().out.split())
    assert "0 runs trained" in said and "runs of the protocol" in said
    assert str(answered / "docs/answer.md") in said  # which is not in the folder itself
    assert (answered / "docs/answer.md").read_text() == before


def test_the_pages_have_the_command_their_tables_and_figures(answered):
    page, html = ((answered / name).read_text() for name in ("docs/answer.md", "index.html"))
    assert page.startswith("# Which loss, by how much, how sure\n\nMade by `a call from Python`")
    assert "over 4 seeds (controls: 2)" in page and "## How it was decided" in page
    assert "runs were best in their last epoch: not converged, try --epochs 2" in page
    assert "chosen learning rates are at an end of the grid" in page
    for section in outline()["answer"]:
        assert f"## {section['question']}" in page
        assert f"<h2>{escape(section['question'])}</h2>" in html
    for picture in ("situations", "forest-nll", "critical-difference"):
        path = f"answer-{picture}.png"
        assert f"]({path})" in page and (answered / "docs" / path).exists()
    assert "Temperature scaling lowers the NLL" in page and "pair flips" in page
    for name in ("the paper's protocol", *(control.name for control in controls.CONTROLS)):
        assert name in page


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
