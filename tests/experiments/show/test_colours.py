"""Colours that share a panel can be told apart, in the light, in the dark, and by every reader."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex

from experiments import show
from experiments.show import page, style as figure_style, theory
from pgeom.losses.catalogue import LOSSES
from tests.experiments.show import colour_vision

APART = 10.0
OTHERS = ("forest", "critical", "situations", *theory.CHECKED)  # of verdicts, not of losses
NAMES = [name.partition(":") for name in page.outline()["items"]]
DRAWN = [label for kind, _, label in NAMES if kind == "fig" and not label.startswith(OTHERS)]


def dark_amount():
    """By how much the page inverts its figures in the dark."""
    style = (Path(show.__file__).parent / "page.css").read_text()
    (amount,) = re.findall(r"--figure: invert\(([.\d]+)\) hue-rotate\(180deg\)", style)
    return float(amount)


def least_difference(one, other):
    """The smallest distance of two colours over visions and schemes, and where it is."""
    found = []
    for scheme, change in (("light", lambda rgb: rgb), ("dark", _dark)):
        for vision in colour_vision.VISIONS:
            seen = [colour_vision.lab(change(colour_vision.parse(c)), vision) for c in (one, other)]
            found.append((float(colour_vision.difference(*seen)), scheme, vision))
    return min(found)


def _dark(rgb):
    return colour_vision.invert(rgb, dark_amount())


def panel_colours(axis):
    """Every colour of lines, markers and bars in a panel, but for grey lines of reference."""
    colours = {to_hex(line.get_color()).upper() for line in axis.lines}
    colours |= {to_hex(patch.get_facecolor()).upper() for patch in axis.patches}
    return sorted(c for c in colours if c == "#000000" or len({c[1:3], c[3:5], c[5:7]}) > 1)


@pytest.fixture
def panels(drawn):
    """`panels(label)`: the colours of each panel of a figure that has several."""
    return lambda label: [
        colours for axis in drawn(label).axes if len(colours := panel_colours(axis)) > 1
    ]


@pytest.mark.parametrize("label", DRAWN)
def test_every_pair_in_a_panel_is_apart(label, panels):
    for colours in panels(label):
        for one, other in combinations(colours, 2):
            distance, *where = least_difference(one, other)
            assert distance >= APART, (one, other, distance, where)


def test_all_losses_share_a_panel(panels):
    assert max(map(len, panels("longtail"))) == len(LOSSES)


def test_every_loss_has_a_look_of_its_own():
    assert set(figure_style.LOOKS) == set(LOSSES)
    looks = [*figure_style.LOOKS.values(), *figure_style.SPARE]
    assert len({look.colour for look in looks}) == len({*looks}) == len(looks)
    for family in {spec.family for spec in LOSSES.values()}:  # distinct without colour too
        shown = [name for name, spec in LOSSES.items() if spec.family == family]
        assert len({figure_style.LOOKS[name].marker for name in shown}) == len(shown)


def test_house_colours_are_apart():
    house = (figure_style.BLUE, figure_style.RED, figure_style.GREEN, figure_style.ORANGE)
    for one, other in combinations((*house, figure_style.BLACK), 2):
        assert least_difference(one, other)[0] >= APART, (one, other)


def test_red_and_green_are_not():
    """The measure sees what is hard to see."""
    distance, _, vision = least_difference("#C02020", "#607000")
    assert distance < APART and vision in ("protanopia", "deuteranopia")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [  # the reference pairs of Sharma, Wu and Dalal
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, 2.5, 0), (58, 24, 15), 19.4535),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((90.8027, -2.0831, 1.4410), (91.1528, -1.6435, 0.0447), 1.4441),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
        ((50, -1, 2), (50, 0, 0), 2.3669),
        ((50, 2.49, -0.001), (50, -2.49, 0.0011), 7.2195),
    ],
)
def test_the_distance_is_the_published_one(one, other, expected):
    distance = colour_vision.difference(np.array(one, float), np.array(other, float))
    assert distance == pytest.approx(expected, abs=5e-5)
