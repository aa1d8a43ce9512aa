"""What the figures of the report draw: differences, bars that end, axes that are equal."""

import numpy as np
import pytest
from scipy import stats

from experiments import ablation
from experiments.engine import measures
from experiments.longtail import ways_to_stop
from experiments.show import published
from experiments.show.figures.comparisons import cell_means, short
from experiments.show.figures.studies import hardware, paired_gains
from experiments.show.tables import Grid


def texts(axis):
    return [text.get_text() for text in axis.texts]


@pytest.mark.parametrize(
    "label", ["noise-accuracy", "natural-corruption", "attacks", "supp-longtail-details"]
)
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


def test_heatmaps_are_differences_from_cross_entropy(drawn, every_loss):
    first = drawn("supp-metric-heatmaps").axes[0]
    means = cell_means(every_loss.runs, "accuracy")
    shown = texts(first)
    assert shown[0] == short(f"{means.loc['ce', 'digits clean']:.2f}")
    assert first.get_yticklabels()[1].get_text() == "Label smoothing"
    gain = means.loc["label_smoothing", "digits clean"] - means.loc["ce", "digits clean"]
    cells = means.shape[1]
    assert shown[cells] == short(f"{gain:+.2f}")
    image = first.collections[0]
    assert image.norm.vmin == -image.norm.vmax, "the scale is centred on no difference"


def test_ablations_are_paired_differences_without_lines(drawn, every_loss):
    for axis, variants in zip(drawn("ablations").axes, ablation.families().values(), strict=True):
        drawn_lines = [line for line in axis.lines if line.get_linestyle() != "None"]
        assert len(drawn_lines) == 1 and set(drawn_lines[0].get_ydata()) == {0}
        ticks = [tick.get_text() for tick in axis.get_xticklabels()]
        assert sum("(protocol)" in tick for tick in ticks) == 1 and len(ticks) == len(variants)
    runs = every_loss.ablation[every_loss.ablation["place"] == "digits, symmetric-40"]
    gains = paired_gains(runs, ablation.CAPM, ablation.CAPM[0], "accuracy")
    assert (gains["capm"] == 0).all() and gains.shape == (3, len(ablation.CAPM))
    one = runs.set_index(["loss", "seed"])["accuracy"]
    expected = one["capm-no-tail", 2] - one["capm", 2]
    assert gains.loc[2, "capm-no-tail"] == pytest.approx(expected)


def test_the_coefficient_of_the_protocol_is_marked(drawn):
    ticks = [tick.get_text() for tick in drawn("ablations").axes[-1].get_xticklabels()]
    assert ticks == ["0", "0.05", "0.1", "0.2\n(protocol)", "0.5"]


def test_classes_have_their_counts(drawn, every_loss):
    left = drawn("supp-longtail-details").axes[0]
    ticks = [tick.get_text() for tick in left.get_xticklabels()]
    assert ticks == [f"{k}\n{n}" for k, n in enumerate(every_loss.tail_counts)]


def test_the_axis_of_selections_ends_at_all_of_them(drawn, every_loss):
    axis = drawn("lr-sensitivity").axes[0]
    assert axis.get_xticks()[-1] == every_loss.rate_counts.sum(axis=1).max()
    labels = [text.get_text() for text in axis.get_legend().get_texts()]
    assert labels == ["3×10⁻⁴", "10⁻³", "3×10⁻³"]


def test_runtime_names_its_hardware(drawn, every_loss):
    assert hardware(every_loss.runtime) == "x86_64, 1 CPU device"
    assert hardware(every_loss.runtime) in drawn("supp-optimization").axes[1].get_title()


def test_ranks_leave_out_the_long_tail(drawn):
    assert drawn("supp-clean-ranks").axes[1].get_title() == (
        "ranks in 12 cells × metrics: mean, middle half\nno long tail"
    )


def test_the_last_epoch_is_a_way_to_stop(every_loss):
    ways = ways_to_stop(every_loss.longtail)
    assert [way.field for way in ways.values()] == [
        *("balanced_accuracy", "balanced_accuracy", "last_balanced_accuracy"),
    ]
    assert all("checkpoint" in name or "last epoch" in name for name in ways)


@pytest.mark.parametrize("seeds", [5, 20, 100])
@pytest.mark.parametrize("sds", [1, 2])
def test_the_yardstick_is_a_student_distribution(sds, seeds):
    """Its variable: the difference of two means over the sd of five, of four degrees of freedom."""
    bound = sds / np.sqrt(1 / 5 + 1 / seeds)
    expected = stats.t.cdf(bound, 4) - stats.t.cdf(-bound, 4)
    assert published.expected_share(sds, seeds) == pytest.approx(expected, rel=1e-12)


def test_published_values_are_put_behind_their_columns():
    grid = Grid("t", ["Loss", "A", "B"], [["x", "1", "2"], ["y", "3", "4"]], {(0, 2)}, [])
    wide = published.put_beside(grid, {(1, 1): "9"})
    assert wide.header == ["Loss", "A", "paper", "B"]
    assert wide.rows == [["x", "1", "–", "2"], ["y", "3", "9", "4"]]
    assert wide.best == {(0, 3)}
