"""`experiments.known_truth`: regrets equal their definition."""

import json

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.special import rel_entr

from experiments import known_truth
from experiments.engine.options import Options
from experiments.engine.replaying import describe_parts, rebuild_study
from experiments.engine.store import Store
from experiments.shell.errors import UsageError
from experiments.show import regrets
from pgeom.data.regimes import Regime
from pgeom.scores import bregman_divergence, bregman_score, conditional_risk

LOSSES = ("ce", "mae", "apms_held")
TINY = Options(seeds=("2",), epochs=2, batch_size=64, model="linear", stop_on="none")
SIZES = (60, 120)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, promotion_as_optax_needs_it, programs_compiled_once):
    out = tmp_path_factory.mktemp("known")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.engine.devices.prepare_devices", lambda devices: devices or 2)
        known_truth.main(classes=3, sizes=SIZES, losses=LOSSES, out=out, common=TINY)
    return known_truth.make_studies(TINY, 3, SIZES, losses=LOSSES), out


def test_every_size_has_as_many_steps():
    studies = known_truth.make_studies(Options(epochs=10, batch_size=100), 5, (4000, 250, 1000))
    assert [*studies] == [250, 1000, 4000]
    assert [study.training.epochs for study in studies.values()] == [120, 40, 10]


def test_regrets_are_divergences_from_the_exact_posterior(trained):
    studies, out = trained
    frame = regrets.measure_regrets(studies, out)
    # clean: one posterior; noisy: two; each raw and scaled
    assert len(frame) == len(SIZES) * len(LOSSES) * 2 * (1 + 2) * 2
    proper = dict(zip(frame["loss"], frame["proper"], strict=True))
    assert proper == {"ce": True, "mae": False, "apms_held": False}
    study, noisy = studies[120], Regime.parse("symmetric-40")
    forecasts = regrets.read_forecasts(study, noisy, out)
    observed = 0.6 * forecasts.posterior + 0.2 * (1 - forecasts.posterior)
    kind = {"size": 120, "regime": "symmetric-40", "loss": "mae", "seed": 1, "forecast": "scaled"}
    rows = frame[(frame[list(kind)] == pd.Series(kind)).all(axis=1)].set_index("posterior")
    for name, truth in (("clean", forecasts.posterior), ("observed", observed)):
        p = forecasts.scaled["mae"][1]
        kl = rel_entr(truth[1], p).sum(axis=1).mean()
        assert rows.loc[name, "log"] == pytest.approx(kl, rel=1e-9)
        brier = np.sum((truth[1] - p) ** 2, axis=1)
        assert rows.loc[name, "Brier"] == pytest.approx(brier.mean(), rel=1e-9)
        assert rows.loc[name, "distance"] == pytest.approx(np.sqrt(brier).mean(), rel=1e-9)


def test_the_regret_identity_holds_at_every_example(trained):
    """R(η, p) − R(η, η) = D_F(η, p), with risks as sums over the labels."""
    studies, out = trained
    study = studies[120]
    forecasts = regrets.read_forecasts(study, study.regimes[0], out)
    eta = forecasts.posterior[0]
    with jax.enable_x64(True):
        for make in regrets.SCORES.values():
            score, divergence = bregman_score(make(3)), bregman_divergence(make(3))
            risk = conditional_risk(score)
            for p in forecasts.raw.values():
                gap = risk(eta, p[0]) - risk(eta, eta) - divergence(eta, p[0])
                assert 0 < np.max(np.abs(gap)) < 1e-10


def test_tables_and_figures_are_written(trained):
    _, out = trained
    names = {path.name for path in out.iterdir()}
    assert {"tables-known-truth.md", "regret-sizes.png"} <= names
    page = (out / "tables-known-truth.md").read_text()
    assert "## regret to the posterior of observed labels, symmetric-40, as trained" in page
    assert "| Loss | 60 examples | 120 examples |" in page
    assert "best in their last epoch: not converged, try --epochs 4" in page


def test_a_run_can_be_rebuilt_from_its_record(trained):
    _, out = trained
    store = Store(out)
    record = next(r for r in store.records.values() if r["loss"] == "apms_held")
    study = rebuild_study(record, describe_parts(record, store.descriptions))
    assert study.dataset.posterior is not None and study.training.stop_on == "none"


def test_json_is_the_summary(trained, capsys):
    _, out = trained
    common = Options(**{**vars(TINY), "json": True})
    known_truth.main(classes=3, sizes=SIZES, losses=LOSSES, out=out, common=common)
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(SIZES) * len(LOSSES) * 3 * 2
    assert {"size", "regime", "posterior", "forecast", "log", "distance"} <= set(rows[0])


@pytest.mark.parametrize("regime", ["instance-40", "long-tail-3"])
def test_noise_that_is_no_channel_is_refused(regime, tmp_path):
    with pytest.raises(UsageError, match="is no channel"):
        known_truth.main(regimes=(regime,), out=tmp_path / "out", common=TINY)
    assert not (tmp_path / "out").exists()


def test_sizes_that_are_none_are_refused(tmp_path):
    with pytest.raises(UsageError, match="--sizes must be at least one number"):
        known_truth.main(sizes=(), out=tmp_path / "out", common=TINY)
    with pytest.raises(UsageError, match="a mixture must be"):
        known_truth.main(sizes=(5,), out=tmp_path / "out", common=TINY)
