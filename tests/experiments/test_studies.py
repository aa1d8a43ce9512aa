"""The smaller experiments with tiny settings: what they write, and that they resume."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import ablation, calibration, longtail, lr_sensitivity, robustness, runtime
from experiments.engine import measures
from experiments.engine.options import Options
from experiments.engine.store import Store
from experiments.shell.errors import UsageError
from tests.experiments.conftest import REPORTED, TWO

GENERAL = tuple(loss for loss in REPORTED if loss != "logit_adjustment")
FIELDS = (*measures.NATURAL, *measures.ATTACKS, "input_gradient_norm")


def lines(folder):
    return list(Store(folder).records.values())


def names_what_has_not_converged(page):
    return "best in their last epoch: not converged, try --epochs 4" in page.read_text()


def names(folder):
    return {path.name for path in folder.iterdir()}


def said(capsys):
    return " ".join(capsys.readouterr().out.split())


def test_longtail_trains_every_loss_in_both_ways(reported, capsys):
    out = reported / "longtail"
    longtail.main(losses=REPORTED, out=out, common=TWO)
    assert "0 runs trained, 12 reused" in said(capsys)
    assert {"tables-longtail.md", "longtail.png"} <= names(out)
    assert len({record["made_from"]["training"] for record in lines(out)}) == 2
    assert names_what_has_not_converged(out / "tables-longtail.md")


def test_without_early_stopping_nothing_stops():
    stopped, free = longtail.make_studies(Options(), ("ce",))
    assert stopped.training.stopping.patience < 45 < free.training.stopping.patience
    assert stopped.losses == free.losses and stopped.training != free.training


def test_robustness_records_every_perturbation(reported, capsys):
    out = reported / "robustness"
    robustness.main(losses=GENERAL, out=out, common=TWO)
    assert "0 runs trained, 4 reused" in said(capsys)
    assert {"natural-corruption.png", "attacks.png", "tables-robustness.md"} <= names(out)
    assert names_what_has_not_converged(out / "tables-robustness.md")
    for record in lines(out):
        assert all(np.isfinite(record[field]) for field in FIELDS)
        for radius in ("0.1", "0.2"):
            assert record[f"pgd_{radius}"] <= record[f"fgsm_{radius}"] + 0.01


def test_ablation_names_its_variants(reported, tiny_ablation, capsys):
    out = reported / "ablation"
    ablation.main(out=out, common=TWO)
    assert "0 runs trained" in said(capsys)
    page = (out / "tables-ablation.md").read_text()
    assert all(f"| {name} |" in page for name in ("CAPM", "HPG, 0", "APMS, 0.2"))
    assert "ablations.png" in names(out)
    assert "runs were best in their last epoch" in page


def test_every_learning_rate_is_counted(reported, capsys):
    out = reported / "lr_sensitivity"
    lr_sensitivity.main(regimes=("clean",), losses=GENERAL, out=out, common=TWO)
    # the report found the protocol's own rate among the records of the noise experiment
    assert "4 runs trained, 8 reused" in said(capsys)
    page = (out / "tables-lr-sensitivity.md").read_text()
    rows = [line.split("|")[2:-1] for line in page.splitlines() if line.startswith("| ")][1:]
    assert [sum(map(int, row)) for row in rows] == [2, 2], "one rate per seed"
    at_end = sum(int(row[0]) + int(row[-1]) for row in rows)
    assert f"{at_end} of 4 chosen learning rates are at an end of the grid" in page
    assert names_what_has_not_converged(out / "tables-lr-sensitivity.md")


def test_calibration_scores_before_and_after(tmp_path, reported, capsys):
    calibration.main(losses=GENERAL, out=tmp_path, common=TWO)
    assert {"tables-calibration.md", "calibration.png"} <= names(tmp_path)
    assert all(record["temperature"] > 0 for record in lines(tmp_path))
    page = (tmp_path / "tables-calibration.md").read_text()
    assert names_what_has_not_converged(tmp_path / "tables-calibration.md")
    assert "| Loss | NLL ↓ | Calibrated NLL ↓ | ECE ↓ | Calibrated ECE ↓ |" in page
    assert "| Loss | ECE ↓ | Debiased ECE ↓ | Smooth ECE ↓ | Classwise ECE ↓ |" in page


def test_runtime_keeps_what_it_measured(reported, capsys):
    out = reported / "runtime"
    before = lines(out)
    assert [(record["loss"], record["seed"]) for record in before] == [("ce", 0), ("ce", 1)]
    assert all(record["seconds"] > 0 for record in before)
    runtime.main(losses=("ce",), out=out, common=TWO)
    assert lines(out) == before and "each loss alone" in said(capsys)


def test_perturbations_need_pixels(tmp_path):
    with pytest.raises(UsageError, match=r"every feature in .0, 1., .* got 'breast-cancer'"):
        robustness.main(dataset="breast-cancer", out=tmp_path / "out", common=TWO)
    assert not (tmp_path / "out").exists()


def test_every_experiment_takes_another_dataset(tmp_path):
    common = replace(TWO, seeds=("0,",))
    settings = {"dataset": "breast-cancer", "losses": ("ce",), "common": common}
    calibration.main(**settings, out=tmp_path / "calibration")
    assert "breast-cancer, clean" in (tmp_path / "calibration/tables-calibration.md").read_text()
    longtail.main(**settings, regime="long-tail-5", out=tmp_path / "longtail")
    assert (
        "## long-tail-5, early stopping" in (tmp_path / "longtail/tables-longtail.md").read_text()
    )
    runtime.main(**settings, out=tmp_path / "runtime")
    assert "breast-cancer, clean: each" in (tmp_path / "runtime/tables-runtime.md").read_text()
