"""One style for every figure: fonts, colours, and the files it is saved to.

Figures are made without pyplot, so that no display is opened and no state is shared:

>>> with figure(1, 2, (6.0, 3.0), sharey=True) as (drawing, axes):
...     line = axes[0][0].plot([0, 1], [0, 1], color=BLUE)
>>> axes.shape
(1, 2)
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from experiments.shell.files import write_file

# Okabe and Ito's colours, which remain distinct for colour-blind readers, and a grey
BLACK, BLUE, GREEN = "#000000", "#0072B2", "#009E73"
ORANGE, RED, GREY = "#E69F00", "#D55E00", "#555555"


class Look(NamedTuple):
    """The colour and the marker of a loss, the same in every figure."""

    colour: str
    marker: str


# The losses by name: each has a marker of its own, and a colour that readers with deuteranopia or
# protanopia can tell from every other; tests/experiments/show/test_colours.py computes by how
# much.
LOOKS = {
    "ce": Look("#000000", "o"),
    "label_smoothing": Look("#373FC0", "s"),
    "brier": Look("#0AAA97", "h"),
    "mae": Look("#E6AA85", "v"),
    "focal": Look("#66B6F9", "^"),
    "gce": Look("#0D634A", "P"),
    "sce": Look("#7A9256", "X"),
    "apl": Look("#77790B", "<"),
    "poly1": Look("#7767F3", "D"),
    "btl": Look("#743D6C", ">"),
    "capm": Look("#2C0958", "p"),
    "hpg": Look("#F597BC", "*"),
    "apms": Look("#E19D05", "d"),
    "cb_ce": Look("#003200", "s"),
    "balanced_softmax": Look("#886BA8", "^"),
    "logit_adjustment": Look("#DD6C8A", "v"),
    "ldam": Look("#464F00", "D"),
}
# of losses that have none, in turn: Tol's muted colours, with markers few others use
SPARE = (
    Look("#EE7733", "8"),
    Look("#0077BB", "H"),
    Look("#CC3311", "1"),
    Look("#33BBEE", "2"),
    Look("#EE3377", "3"),
    Look("#009988", "4"),
)

UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same figure is the same file
STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # text that can be searched and edited
    "svg.fonttype": "none",
    "svg.hashsalt": "pgeom",  # the same names in the same figure, run after run
}


@contextmanager
def figure(
    rows: int,
    columns: int,
    size: tuple[float, float],
    *,
    layout: Literal["constrained", "compressed", "tight"] | None = None,
    math: bool = False,
    **subplots: Any,
) -> Generator[tuple[Figure, np.ndarray], None, None]:
    """A figure and its axes `[rows, columns]`, to be drawn and saved in the house style.

    Args:
      rows: of axes.
      columns: of axes.
      size: width and height in inches.
      layout: what arranges the axes, if anything does.
      math: whether $…$ in a text is mathematics; not where a user's names are drawn.
      **subplots: further arguments of `Figure.subplots`, such as `sharey` or `gridspec_kw`.
    """
    with _house_style(math):
        made = Figure(figsize=size, layout=layout)
        yield made, made.subplots(rows, columns, squeeze=False, **subplots)


@contextmanager
def _house_style(math: bool = False) -> Generator[None, None, None]:
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the matplotlibrc of a user says
        matplotlib.rcParams.update({**STYLE, "text.parse_math": math})
        yield


def render(figure: Figure, form: str) -> bytes:
    """A figure as `png`, `pdf` or `svg`, cropped to what is drawn."""
    file = BytesIO()
    with _house_style():
        metadata = UNDATED.get(form)
        figure.savefig(file, format=form, bbox_inches="tight", metadata=metadata)
    return file.getvalue()


def save(figure: Figure, path: Path, forms: Sequence[str] = ("png",)) -> list[Path]:
    """Write a figure in some forms.

    Args:
      figure: as `figure` gives it.
      path: without a suffix; missing folders are made.
      forms: of `png`, `pdf` and `svg`.

    Returns:
      The paths of the files.
    """
    return [
        write_file(
            path.with_name(f"{path.name}.{form}"),
            lambda file, form=form: file.write(render(figure, form)),
        )
        for form in forms
    ]
