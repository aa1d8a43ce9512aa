"""What the figures of the report draw: differences, bars that end, axes that are equal."""

import numpy as np
import pytest

from experiments import ablation
from experiments.engine import measures
from experiments.show.figures.compared import FILLS
from experiments.show.figures.panels import short
from experiments.show.figures.studies import hardware, paired_gains
from experiments.show.metrics import METRICS


def texts(axis):
    return [text.get_text() for text in axis.texts]


def ticks(axis, which="x"):
    return [tick.get_text() for tick in getattr(axis, f"get_{which}ticklabels")()]


@pytest.mark.parametrize("label", ["noise-accuracy", "attacks", "supp-longtail-details"])
def test_error_bars_end_at_zero_and_one(label, drawn):
    """The accuracies are uniform on [.05, 1], so that a plain mean ± sd would leave the range."""
    ends = [
        segment[:, 1]
        for axis in drawn(label).axes
        for bars in axis.collections
        for segment in bars.get_segments()
    ]
    assert len(ends) > 13 and np.min(ends) >= 0 and np.max(ends) <= 1


def test_attacks_have_the_same_linear_axes(drawn):
    axes = drawn("attacks").axes
    assert [axis.get_title().partition(":")[0] for axis in axes] == ["FGSM", "PGD", "APGD"]
    assert {(axis.get_xlim(), axis.get_ylim(), axis.get_yscale()) for axis in axes} == {
        (axes[0].get_xlim(), axes[0].get_ylim(), "linear")
    }
    assert [float(tick) for tick in axes[0].get_xticks()] == [0, *map(float, measures.RADII)]


def test_the_chart_of_cells_has_the_verdict_of_every_comparison(drawn, every_loss):
    axis, effects = drawn("supp-metric-heatmaps").axes[0], every_loss.evidence.effects
    rows = effects[(effects["reference"] == "ce") & (effects["metric"] == "accuracy")]
    assert len(ticks(axis)) == 4 and ticks(axis)[0] == "digits, clean\nAccuracy ↑"
    assert sorted(texts(axis)) == sorted(short(f"{x:+.3f}") for x in rows["difference"])
    codes = axis.collections[0].get_array()
    assert codes.count() == len(rows) and codes.mask.sum() == 3 * 4, "the losses of the tail alone"
    place = ticks(axis, "y").index("HPG"), 3
    (verdict,) = rows[(rows["loss"] == "hpg") & (rows["dataset"] == "long-tail")]["verdict"]
    assert list(FILLS)[int(codes[place])] == verdict


def test_the_chart_of_situations_has_every_verdict_and_choice(drawn, every_loss):
    axis, judged = drawn("situations").axes[0], every_loss.evidence.judged
    assert len(ticks(axis, "y")) == judged["label"].nunique() == 16
    chosen = {x["situation"]: x["label"] for x in every_loss.evidence.decisions.to_dict("records")}
    expected = [
        f"[{number}]" if chosen[row["situation"]] == row["label"] else number
        for row in judged.to_dict("records")
        for number in [short(f"{row['difference']:+.3f}")]
    ]
    assert sorted(texts(axis)) == sorted(expected)
    assert any(text.startswith("[") for text in expected) or set(chosen.values()) == {"CE"}


def test_ablations_are_paired_differences_without_lines(drawn, every_loss):
    for axis, variants in zip(drawn("ablations").axes, ablation.families().values(), strict=True):
        drawn_lines = [line for line in axis.lines if line.get_linestyle() != "None"]
        assert len(drawn_lines) == 1 and set(drawn_lines[0].get_ydata()) == {0}
        assert sum("(protocol)" in tick for tick in ticks(axis)) == 1
        assert len(ticks(axis)) == len(variants)
    runs = every_loss.ablation[every_loss.ablation["place"] == "digits, symmetric-40"]
    gains = paired_gains(runs, ablation.CAPM, ablation.CAPM[0], METRICS["accuracy"])
    assert (gains["capm"] == 0).all() and gains.shape == (3, len(ablation.CAPM))
    one = runs.set_index(["loss", "seed"])["accuracy"]
    expected = one["capm-no-tail", 2] - one["capm", 2]
    assert gains.loc[2, "capm-no-tail"] == pytest.approx(expected)
    assert ticks(drawn("ablations").axes[-1]) == ["0", "0.05", "0.1", "0.2\n(protocol)", "0.5"]


def test_axes_have_the_names_of_what_they_show(drawn, every_loss):
    counts = [f"{k}\n{n}" for k, n in enumerate(every_loss.tail_counts)]
    assert ticks(drawn("supp-longtail-details").axes[0]) == counts
    axis = drawn("lr-sensitivity").axes[0]
    assert axis.get_xticks()[-1] == every_loss.rate_counts.sum(axis=1).max()
    labels = [text.get_text() for text in axis.get_legend().get_texts()]
    assert labels == ["3×10⁻⁴", "10⁻³", "3×10⁻³"]
    assert hardware(every_loss.runtime) == "x86_64, 1 CPU device"
    assert hardware(every_loss.runtime) in drawn("supp-optimization").axes[1].get_title()


def test_ranks_are_those_of_the_test_and_leave_out_the_long_tail(drawn, every_loss):
    ranked = every_loss.evidence.ranked
    first = drawn("critical-difference").axes[0]
    (shown,) = [line.get_xdata() for line in first.lines if line.get_linestyle() == "None"]
    np.testing.assert_array_equal(shown, np.sort(ranked[0].ranking.mean_ranks))
    order = np.argsort(ranked[0].ranking.mean_ranks, kind="stable")
    assert ticks(first, "y") == [ranked[0].labels[loss] for loss in order]
    assert ranked[0].ranking.cells == 3
