"""Figures in the house style, as PNG and as PDF, without a display."""

import subprocess
import sys

import matplotlib

from pgeom.frontend import figure_style


def test_a_figure_has_a_grid_of_axes_in_the_house_style():
    before = {name: matplotlib.rcParams[name] for name in figure_style.STYLE}
    with figure_style.figure(2, 3, (6, 4), sharex=True, layout="constrained") as (drawing, axes):
        assert axes.shape == (2, 3)
        assert tuple(drawing.get_size_inches()) == (6, 4)
        assert not axes[0][0].spines["top"].get_visible()
        assert matplotlib.rcParams["pdf.fonttype"] == 42
    assert {name: matplotlib.rcParams[name] for name in before} == before


def test_every_file_is_cropped_to_what_is_drawn(tmp_path):
    with figure_style.figure(1, 1, (3, 2)) as (drawing, axes):
        axes[0][0].plot([0, 1], label="a line")
        axes[0][0].legend(loc="center left", bbox_to_anchor=(1.5, 0.5))  # outside the figure
        paths = figure_style.save(drawing, tmp_path / "new" / "example.one")
    assert [path.name for path in paths] == [
        f"example.one.{form}" for form in ("png", "pdf", "svg")
    ]
    assert paths[1].read_bytes().startswith(b"%PDF") and "<svg" in paths[2].read_text("utf-8")
    width = int.from_bytes(paths[0].read_bytes()[16:20], "big")  # of a PNG's header
    assert width > 3 * figure_style.STYLE["savefig.dpi"]


def test_no_pyplot_is_imported():
    code = "import sys, pgeom.frontend.figure_style; sys.exit('matplotlib.pyplot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
