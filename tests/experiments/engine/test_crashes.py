"""A process that dies at any write of a store loses nothing that was finished."""

import os
import shutil
from itertools import count

import pytest

from experiments.engine.damage import set_damage_aside
from experiments.engine.records import Store
from tests.experiments.engine.test_damage import exchange_logits, fill, state, tear_line

WRITES = ("fsync", "replace", "rename", "unlink")


class Crash(BaseException):
    """The end of the process."""


def crash_at(number, patch):
    """Let the write of that number, counted from zero, be the last thing that is attempted."""
    counter = count()

    def watch(write):
        def watched(*arguments, **options):
            if next(counter) >= number:
                raise Crash
            return write(*arguments, **options)

        return watched

    for name in WRITES:
        patch.setattr(os, name, watch(getattr(os, name)))


def survives(folder, work, number):
    """Whether the work ends before that write; if not, what was finished is kept ."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            crash_at(number, patch)
            work(folder)
    except Crash:
        finished = Store(folder).records
        set_damage_aside(folder)
        kept = Store(folder).records
        assert kept.items() <= finished.items()
        fill(folder, present=kept)
        return False
    return True


def mend(folder):
    """What a command does with a damaged folder."""
    set_damage_aside(folder)
    fill(folder, present=Store(folder).records)


@pytest.mark.parametrize(
    "damages", [(), (tear_line,), (exchange_logits,), (tear_line, exchange_logits)]
)
def test_every_write_may_be_the_last(damages, tmp_path):
    good = tmp_path / "good"
    fill(good)
    for number in count():
        folder = tmp_path / f"{number}"
        if damages:
            shutil.copytree(good, folder)
        for damage in damages:
            damage(folder)
        done = survives(folder, mend, number)
        assert state(folder) == state(good)
        if done:
            break
    assert number > 5
