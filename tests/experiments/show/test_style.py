"""Figures in the house style, in files that are always the same, without a display."""

import subprocess
import sys

import matplotlib

from experiments.show import style as figure_style

FORMS = ("png", "pdf", "svg")


def test_every_file_is_cropped_to_what_is_drawn(tmp_path):
    with figure_style.figure(1, 1, (3, 2)) as (drawing, axes):
        axes[0][0].plot([0, 1], label="a line")
        axes[0][0].legend(loc="center left", bbox_to_anchor=(1.5, 0.5))  # outside the figure
        paths = figure_style.save(drawing, tmp_path / "new" / "example.one", FORMS)
    assert [path.name for path in paths] == [f"example.one.{form}" for form in FORMS]
    assert paths[1].read_bytes().startswith(b"%PDF") and "<svg" in paths[2].read_text("utf-8")
    width = int.from_bytes(paths[0].read_bytes()[16:20], "big")  # of a PNG's header
    assert width > 3 * figure_style.STYLE["savefig.dpi"]


def test_no_pyplot_is_imported():
    code = "import sys, experiments.show.style; sys.exit('matplotlib.pyplot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def saved(folder):
    """The contents of the files of a small figure."""
    with figure_style.figure(1, 1, (3, 2)) as (drawing, axes):
        axes[0][0].plot([0, 1], label="a line")
        axes[0][0].set_title("title")
        axes[0][0].legend()
        return [path.read_bytes() for path in figure_style.save(drawing, folder / "example", FORMS)]


def test_the_settings_of_a_user_change_no_figure(tmp_path):
    expected = saved(tmp_path)
    settings = {"text.usetex": True, "lines.linewidth": 9, "savefig.pad_inches": 2, "font.size": 3}
    with matplotlib.rc_context(settings):
        assert saved(tmp_path) == expected
        assert {name: matplotlib.rcParams[name] for name in settings} == settings


def test_no_file_has_a_date(tmp_path):
    png, pdf, svg = saved(tmp_path)
    assert b"CreationDate" not in pdf and b"dc:date" not in svg and b"tIME" not in png
