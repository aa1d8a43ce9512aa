"""Published values beside ours: the data file, the arithmetic, and the words about it."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from experiments.show import published
from pgeom.data import sources
from pgeom.losses.catalogue import LOSSES

SIZES = {"candidate-accuracy": 44, "digits-noise": 36, "longtail": 32, "calibration": 20}
CELL = {"table": "t", "dataset": "digits", "regime": "clean", "loss": "ce", "metric": "nll"}


def cells_of(mean, sd):
    return pd.DataFrame([{**CELL, "mean": mean, "sd": sd}]).astype({"sd": float})


def runs_of(*values):
    where = {"dataset": "digits", "regime": "clean", "loss": "ce"}
    return pd.DataFrame([{**where, "seed": seed, "nll": v} for seed, v in enumerate(values)])


def test_the_data_file_has_every_published_cell():
    cells = published.load_published()
    assert cells["table"].value_counts().to_dict() == SIZES
    assert not cells.duplicated(["table", "dataset", "regime", "loss", "metric"]).any()
    assert set(cells["loss"]) <= set(LOSSES)
    regimes = {name: set(map(str, sources.load(name).regimes)) for name in sources.PAPER}
    assert all(row.regime in regimes[row.dataset] for row in cells.itertuples())
    assert cells["sd"].isna().equals(cells["table"] == "calibration")


def test_values_that_the_paper_repeats_agree():
    """Accuracy under 40% symmetric noise and on the long tail stands in two tables each."""
    cells = published.load_published()
    keys = ["dataset", "regime", "loss", "metric"]
    twice = cells[cells["table"] != "calibration"].groupby(keys)["mean"].agg(["size", "nunique"])
    assert (twice["size"] == 2).sum() == 8 and (twice["nunique"] == 1).all()


def test_the_difference_is_in_published_sd():
    found = published.compare(cells_of(0.5, 0.1), runs_of(0.6, 0.7)).iloc[0]
    assert found["ours"] == pytest.approx(0.65) and found["seeds"] == 2
    assert found["difference"] == pytest.approx((0.65 - 0.5) / 0.1)
    assert np.isnan(found["z"]), "two seeds are too few to ask"


def test_without_a_published_sd_it_is_in_ours():
    found = published.compare(cells_of(0.5, None), runs_of(0.6, 0.8)).iloc[0]
    assert found["difference"] == pytest.approx((0.7 - 0.5) / np.std([0.6, 0.8], ddof=1))


def test_z_asks_for_the_mean_of_five():
    values = np.linspace(0.4, 0.8, 20)
    found = published.compare(cells_of(0.5, 0.1), runs_of(*values)).iloc[0]
    standard_error = np.std(values, ddof=1) / np.sqrt(5)
    assert found["z"] == pytest.approx((0.5 - values.mean()) / standard_error)


def test_counts_have_teeth():
    """A cell one and a half sd away counts for two sd and not for one."""
    far = published.compare(cells_of(0.5, 0.1), runs_of(0.64, 0.66))
    near = published.compare(cells_of(0.5, 0.1), runs_of(0.54, 0.56)).assign(table="u")
    counted = published.count_cells(pd.concat([far, near])).set_index("table")
    assert counted.loc["t", ["cells", "within_one", "within_two"]].tolist() == [1, 0, 1]
    assert counted.loc["u", ["cells", "within_one", "within_two"]].tolist() == [1, 1, 1]
    assert counted.loc["all", ["cells", "within_one", "within_two"]].tolist() == [2, 1, 2]


def test_a_run_without_a_number_is_in_no_interval():
    found = published.compare(cells_of(0.5, 0.1), runs_of(None, None))
    assert published.count_cells(found)["within_two"].tolist() == [0, 0]


def test_the_tables_say_that_the_constants_were_fitted():
    found = published.compare(cells_of(0.5, 0.1), runs_of(*np.linspace(0.4, 0.8, 20)))
    for grid in (published.counts_grid(found), published.cells_grid(found)):
        notes = " ".join(grid.footnotes)
        assert "calibration, not independent evidence" in notes
        assert "has no published sd, so there it is in our own" in notes
        assert all(len(row) == len(grid.header) for row in grid.rows)


@pytest.mark.parametrize("seeds", [5, 20, 100])
@pytest.mark.parametrize("sds", [1, 2])
def test_the_yardstick_is_a_student_distribution(sds, seeds):
    """Its variable: the difference of two means over the sd of five, of four degrees of freedom."""
    bound = sds / np.sqrt(1 / 5 + 1 / seeds)
    expected = stats.t.cdf(bound, 4) - stats.t.cdf(-bound, 4)
    assert published.expected_share(sds, seeds) == pytest.approx(expected, rel=1e-12)
