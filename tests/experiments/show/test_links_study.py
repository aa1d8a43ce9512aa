"""`experiments.links`: both links on the same seeds, compared by what was recorded."""

import numpy as np
import pytest

from experiments import links, report
from experiments.engine.options import Options
from experiments.engine.results import read_logits
from experiments.shell.errors import UsageError
from experiments.show import links as link_effects
from experiments.show.items import link_grids
from experiments.show.records import Gatherer

TINY = Options(seeds=("2",), epochs=2, model="linear")
ASKED = {"dataset": ("breast-cancer",), "losses": ("brier",)}


@pytest.fixture(scope="module")
def trained(tmp_path_factory, promotion_as_optax_needs_it, programs_compiled_once):
    out = tmp_path_factory.mktemp("links")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.engine.devices.prepare_devices", lambda devices: devices or 2)
        links.main(**ASKED, out=out, common=TINY)
    return links.make_studies(TINY, **ASKED), out


def test_each_loss_has_both_links(trained):
    (study,), _ = trained
    assert [(loss.name, loss.link) for loss in study.losses] == [
        ("brier", "softmax"),
        ("brier_canonical", "canonical"),
    ]
    every = links.make_studies(TINY)
    assert [len(study.regimes) for study in every] == [4, 3, 3, 1]
    assert all(len(study.losses) == 8 for study in every)


def test_differences_are_those_of_the_records(trained):
    studies, out = trained
    runs = link_effects.read_links(studies, out)
    effects = link_effects.compare_links(runs)
    assert len(effects) == 3 * len(link_effects.compared_metrics(runs))
    means = runs.groupby(["regime", "loss"])["brier"].mean()
    for row in effects[effects["metric"] == "brier"].to_dict("records"):
        gain = means[row["regime"], "brier_canonical"] - means[row["regime"], "brier"]
        np.testing.assert_allclose(row["difference"], gain, atol=1e-6)
    table = link_effects.links_grid(effects)
    assert len(table.rows) == 3 and table.rows[0][:2] == ["breast-cancer, clean", "Brier"]
    assert "runs were best in their last epoch" in (out / "tables-links.md").read_text()


def test_the_hedged_nll_is_finite_where_a_label_has_probability_zero(trained):
    (study,), out = trained
    test = read_logits(study, study.regimes[0], out)
    p = np.exp(test.logits["brier_canonical"].astype(float))
    own = np.take_along_axis(p, test.labels[..., None], axis=2)[..., 0]
    expected = -np.log((114 * own + 0.5) / 115).mean(axis=1)  # a fifth of 569 examples
    actual = link_effects.read_links([study], out).query("loss == 'brier_canonical'")
    clean = actual[actual["regime"] == "clean"].sort_values("seed")["hedged_nll"]
    np.testing.assert_allclose(clean, expected, rtol=1e-5)
    sure = link_effects.hedged_nll(np.array([[[0.0, -np.inf]]]), np.array([[1]]), 9)
    np.testing.assert_allclose(sure, np.log(20))


def test_the_report_shows_the_study_once_it_is_complete(trained):
    studies, out = trained
    assert report.read_if_complete(studies, out / "elsewhere", Gatherer()) is None
    more = links.make_studies(Options(seeds=("3",), epochs=2, model="linear"), **ASKED)
    assert report.read_if_complete(more, out, Gatherer()) is None
    complete = report.read_if_complete(studies, out, Gatherer())
    (grid,) = link_grids(complete)
    assert len(grid.rows) == 3 and link_grids(None) == []


def test_other_links_are_refused():
    with pytest.raises(UsageError, match="--link must be softmax for"):
        links.main(**ASKED, common=Options(link="canonical"))
