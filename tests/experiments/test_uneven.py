"""Data with uneven classes: every table, test and figure of a page is about balanced accuracy."""

import json

import numpy as np
import pandas as pd
import pytest

from experiments import ablation, answer, links, longtail, noise
from experiments.engine import devices
from experiments.engine.options import Options
from experiments.engine.results import read_frame
from experiments.shell.errors import UsageError
from experiments.show.contrasts import CLEAN, TAIL, against_reference
from experiments.show.decisions import decide
from experiments.show.items import ablation_grids
from experiments.show.metrics import Samples, compared, headline
from experiments.show.summary import performance
from tests.experiments.conftest import two_devices
from tests.experiments.show.planted import planted_runs

SIZES = {"often": 90, "sometimes": 30, "seldom": 15}
COMMON = Options(
    seeds=("2",), epochs=2, target="kind", model="linear", batch_size=16, learning_rate=0.03
)
LOSSES = ("ce", "brier", "logit_adjustment")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The path of a table with three classes, the rarest a sixth of the largest."""
    rng = np.random.default_rng(0)
    kind = np.repeat(list(SIZES), list(SIZES.values()))
    level = pd.Series(kind).map({"often": 0.0, "sometimes": 0.4, "seldom": 0.8})
    columns = {name: rng.normal(level) for name in ("width", "height")}
    path = tmp_path_factory.mktemp("uneven") / "uneven.csv"
    pd.DataFrame({**columns, "kind": kind}).to_csv(path, index=False)
    return str(path)


@pytest.fixture(scope="module")
def tail(table, tmp_path_factory, promotion_as_optax_needs_it, programs_compiled_once):
    """The folder of `experiments.longtail` on it, with nothing said about the regime."""
    out = tmp_path_factory.mktemp("tail")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "prepare_devices", two_devices)
        longtail.main(dataset=table, losses=LOSSES, out=out, common=COMMON)
    return out


def rows(page: str, title: str) -> list[list[str]]:
    """The cells of the table under a title, the header first."""
    _, _, text = page.partition(f"## {title}\n\n")
    lines = [line for line in text.partition("\n\n")[0].splitlines() if "---" not in line]
    return [[cell.strip(" *") for cell in line.strip("| ").split("|")] for line in lines]


def test_a_natural_tail_is_taken_as_it_is(tail):
    page = (tail / "tables-longtail.md").read_text()
    title = "clean, classes as they are (90 to 15 examples), early stopping"
    scores, tests = rows(page, title), rows(page, f"{title}: against CE")
    assert scores[0] == ["Loss", "Balanced accuracy ↑", "Accuracy ↑", "NLL ↓", "Brier ↓", "ECE ↓"]
    assert tests[0][:2] == ["Loss", "ΔBalanced accuracy ↑"]
    means = {row[0]: float(row[1].split(" ")[0]) for row in scores[1:]}
    for label, difference, *_ in tests[1:]:
        assert float(difference.split()[0]) == pytest.approx(means[label] - means["CE"], abs=0.0011)


def test_the_test_has_the_sign_of_balanced_accuracy(table, tail):
    stopped, _ = longtail.make_studies(COMMON, LOSSES, table)
    frame = read_frame(stopped, tail)
    means = frame.groupby("loss", observed=True)[["accuracy", "balanced_accuracy"]].mean()
    gain = means.loc["logit_adjustment"] - means.loc["ce"]
    assert gain["accuracy"] < 0 < gain["balanced_accuracy"], "or the test could not tell"
    grid = against_reference(frame, "tail")
    cells = {row[0]: row[1] for row in grid.rows}
    assert cells["Logit adjustment"].startswith(f"{gain['balanced_accuracy']:+.3f}")


def test_the_noise_table_shows_both_and_tests_the_balanced_one(table, tmp_path, capsys):
    common = Options(**{**vars(COMMON), "json": True})
    asked = {"dataset": table, "regimes": ("clean",), "losses": ("ce", "brier")}
    noise.main(**asked, out=tmp_path, common=common)
    page = (tmp_path / "tables-uneven.md").read_text()
    assert (
        "| Loss | Balanced accuracy ↑ | Accuracy ↑ |" in page and "| ΔBalanced accuracy ↑ |" in page
    )
    first = json.loads(capsys.readouterr().out)[0]
    assert {"accuracy_mean", "balanced_accuracy_mean"} <= set(first)


def test_links_are_compared_by_it(table, tmp_path):
    common = Options(**{**vars(COMMON), "seeds": ("1",)})
    asked = {"dataset": (table,), "regimes": ("clean",), "losses": ("brier",)}
    links.main(**asked, out=tmp_path, common=common)
    page = (tmp_path / "tables-links.md").read_text()
    assert "| Cell | Loss | Balanced accuracy ↑ |" in page and "uneven, clean" in page


def test_ablations_are_compared_by_it(tmp_path):
    names = [one.name for family in ablation.families().values() for one in family]
    shifts = {(None, name, "balanced_accuracy"): -0.4 for name in names}
    runs = planted_runs(shifts, losses=tuple(names), places=(CLEAN[0],), seeds=2)
    frame = runs.assign(uneven=True, place="here")
    for grid in ablation_grids(frame, ablation.families()):
        assert grid.footnotes[0].startswith("balanced accuracy, mean")
        assert all(float(row[1].split(" ")[0]) < 0.6 for row in grid.rows)


@pytest.fixture(scope="module")
def answered(table, tmp_path_factory, promotion_as_optax_needs_it, programs_compiled_once):
    """The folder of an answer about the table, and its page."""
    out = tmp_path_factory.mktemp("answered")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "prepare_devices", two_devices)
        asked = {"dataset": table, "regimes": ("clean",), "losses": LOSSES}
        answer.main(**asked, page=out / "mine.md", out=out, common=COMMON)
    return out, (out / "mine.md").read_text()


def test_the_answer_is_about_the_table_and_nothing_else(answered, table):
    _, page = answered
    assert "Made by `a call from Python`" in page
    assert "docs/answer.md" not in page and "paper's claims" not in page
    assert "1 dataset, one model: nothing here is about others" in page


def test_the_answer_is_on_balanced_accuracy(answered):
    out, page = answered
    assert "### Balanced accuracy ↑: difference from CE" in page
    assert page.index("Balanced accuracy ↑: mean") < page.index("Accuracy ↑: mean")
    assert "Balanced accuracy: difference from CE" in (out / "index.html").read_text()
    rows = [line for line in page.splitlines() if " matters" in line or "| Clean labels |" in line]
    assert "| Balanced accuracy ↑ |" in rows[0] and "| NLL ↓ |" in rows[1] and len(rows) == 2


@pytest.mark.parametrize(
    ("uneven", "place", "first"),
    [
        (False, CLEAN[0], "accuracy"),
        (True, CLEAN[0], "balanced_accuracy"),
        (False, TAIL, "balanced_accuracy"),
        (True, TAIL, "balanced_accuracy"),
    ],
)
def test_every_table_asks_the_runs_for_their_metric(uneven, place, first):
    shifts = {(None, "ldam", "balanced_accuracy"): 0.2, (None, "ldam", "accuracy"): -0.1}
    runs = planted_runs(shifts, losses=("ce", "brier", "ldam"), places=(place,), seeds=20)
    runs = runs.assign(uneven=uneven)
    assert headline(runs).name == first
    gain = 0.2 if first == "balanced_accuracy" else -0.1
    tested = {row[0]: float(row[1].split()[0]) for row in against_reference(runs, "").rows}
    assert tested["LDAM"] == pytest.approx(gain, abs=0.005)
    names = [metric.name for metric in compared(runs)]
    assert names[0] == first and ("accuracy" in names) == (uneven or first == "accuracy")
    shown = performance(runs, "", place.regime)
    assert shown.header[1].lower().startswith(first.replace("_", " "))
    choice = decide(Samples(runs)).iloc[0]
    assert choice["metric"] == first and (choice["loss"] == "ldam") == (gain > 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"dataset": "wine"},
            r"--regime: long-tail-30: the ratio must be in \[1, 29\], .* 'wine' has 29 training "
            "examples; give long-tail-29 or less, or clean",
        ),
        ({"dataset": "wine", "regime": "long-tail-99"}, "--regime: long-tail-99: the ratio"),
        ({"dataset": "wine", "regime": "long-tial-9"}, "--regime: .* did you mean 'long-tail-9'"),
    ],
)
def test_a_tail_too_long_is_refused_in_terms_of_what_can_be_typed(settings, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        longtail.main(**settings, out=tmp_path / "out", common=Options(seeds=("1",)))
    assert not (tmp_path / "out").exists()


def test_regimes_are_of_a_dataset(tmp_path):
    for command in (answer, links):
        with pytest.raises(UsageError, match="--regimes needs --dataset"):
            command.main(regimes=("clean",), out=tmp_path / "out")
