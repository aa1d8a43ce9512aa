"""Contrasts: sums of weighted means over matched seeds, which the paper's claims are about.

>>> [contrast] = differences([TAIL], ["hpg"], ["ce"])
>>> [(part.weight, part.column.loss) for part in contrast.parts]
[(1, 'hpg'), (-1, 'ce')]
"""

from collections.abc import Iterable
from typing import NamedTuple

from experiments.tables.samples import Column, Place
from pgeom.losses.catalogue import GENERAL, LOSSES, PRIOR

CANDIDATES = tuple(name for name, loss in GENERAL.items() if loss.studied)
PLAIN = ("ce", *CANDIDATES)
ROBUST = ("sce", "gce", "apl", "mae")
ADJUSTED = tuple(name for name, loss in LOSSES.items() if loss.family == PRIOR)
CLEAN = tuple(Place(name, "clean") for name in ("breast-cancer", "digits", "confusion"))
DIGITS = Place("digits", "symmetric-40")
PAIRS = Place("digits", "pair-flip-40")
TAIL = Place("long-tail", "long-tail-30")
NOISY = tuple(
    Place(name, regime)
    for name, regimes in {
        "breast-cancer": ("symmetric-20", "symmetric-40"),
        "digits": ("symmetric-20", "symmetric-40", "pair-flip-40"),
        "confusion": ("symmetric-20", "pair-flip-40"),
    }.items()
    for regime in regimes
)
ABLATED = (DIGITS, Place("confusion", "clean"), Place("confusion", "pair-flip-40"))
EVERYWHERE = (*CLEAN, *NOISY, TAIL)


class Part(NamedTuple):
    """One weighted mean of a contrast; with `spread`, of the distance from the mean instead."""

    weight: float
    column: Column
    spread: bool = False


class Contrast(NamedTuple):
    """A sum of parts less a constant, zero if the two sides of a comparison are equal."""

    parts: tuple[Part, ...]
    constant: float = 0.0


def differences(
    places: Iterable[Place], losses: Iterable[str], others: Iterable[str], metric: str = "accuracy"
) -> tuple[Contrast, ...]:
    """Every loss less every other, in every place."""
    others = tuple(others)
    return tuple(
        _difference(Column(place, loss, metric), Column(place, other, metric))
        for place in places
        for loss in losses
        for other in others
    )


def levels(losses: Iterable[str], metric: str, constant: float) -> tuple[Contrast, ...]:
    """The long tail's means less a constant."""
    return tuple(Contrast((Part(1, Column(TAIL, loss, metric)),), constant) for loss in losses)


def changes(before: str, after: str) -> tuple[Contrast, ...]:
    """What temperature scaling adds to a metric on clean digits."""
    clean = Place("digits", "clean")
    return tuple(
        _difference(Column(clean, loss, after), Column(clean, loss, before))
        for loss in (*PLAIN, "brier")
    )


def larger_than_elsewhere(here: Place) -> tuple[Contrast, ...]:
    """The candidates' gains in accuracy over CE in a place, less those in every other."""
    return tuple(
        Contrast((*_gain(1, here, loss), *_gain(-1, other, loss)))
        for loss in CANDIDATES
        for other in EVERYWHERE
        if other != here
    )


def _gain(weight: int, place: Place, loss: str) -> tuple[Part, Part]:
    ours, theirs = (Column(place, name, "accuracy") for name in (loss, "ce"))
    return Part(weight, ours), Part(-weight, theirs)


def more_variable(here: Place) -> tuple[Contrast, ...]:
    """Distances from the mean accuracy in a place, less those in others of its dataset."""
    return tuple(
        _difference(Column(here, loss, "accuracy"), Column(other, loss, "accuracy"), spread=True)
        for loss in PLAIN
        for other in EVERYWHERE
        if other.dataset == here.dataset and other != here
    )


def _difference(left: Column, right: Column, *, spread: bool = False) -> Contrast:
    return Contrast((Part(1, left, spread), Part(-1, right, spread)))
