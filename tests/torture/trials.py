"""The trials: each does one thing to a command and says what went wrong.

A trial ends with the same command once more, whole and undisturbed: its records must be those of a
folder to which nothing happened.
"""

import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tests.torture import commands, exits
from tests.torture.damages import DAMAGES

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ENDS = {signal.SIGKILL: commands.KILLED, signal.SIGTERM: 143, signal.SIGINT: 130}
WRITERS = {  # what the processes of a race add to the command
    "same": ((), (), ()),
    "other losses": (("--losses", "ce"), ("--losses", "gce"), ("--losses", "brier")),
    "other seeds": (("--seeds", "0,"), ("--seeds", "1,"), ("--seeds", "2,")),
}


class Bench(NamedTuple):
    """Where trials happen: a scratch folder, and a cache of compiled programs that they share."""

    folder: Path
    rng: random.Random

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def fresh(self) -> Path:
        """A folder that is not there yet."""
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        return out

    def reference(self, name: str, *runs: tuple[str, ...]) -> Path:
        """The folder of commands that ran one after another, undisturbed."""
        out = self.folder / "reference" / name
        if not out.exists():
            for words in runs:
                code, said = commands.run(words, out, self.cache)
                if code:
                    raise RuntimeError(f"the undisturbed command fails: {said}")
        return out

    def same(self, out: Path, reference: Path) -> list[str]:
        found, wanted = commands.records(out), commands.records(reference)
        names = [name for name in sorted({*found, *wanted}) if found.get(name) != wanted.get(name)]
        told = "the records are not those of an undisturbed run"
        return [f"{told}: {', '.join(names)}"] if names else []


Trial = Callable[[Bench], list[str]]


def kill(words: tuple[str, ...], name: str, bench: Bench) -> list[str]:
    """A signal at a random moment, twice, and then the whole command."""
    reference, out = bench.reference(name, words), bench.fresh()
    whole, found = _seconds(words, name, bench), []
    for _ in range(2):
        sent, process = bench.rng.choice(SIGNALS), commands.start(words, out, bench.cache)
        time.sleep(bench.rng.uniform(0.02, 1.1) * whole)
        process.send_signal(sent)
        found += commands.faults(*commands.finish(process), allowed={0, ENDS[sent]})
    found += commands.faults(*commands.run(words, out, bench.cache), allowed={0})
    return found + bench.same(out, reference)


def end_at_write(number: int, codes: list[int], bench: Bench) -> list[str]:
    """A process that is gone at one of its writes, and then the whole command.

    Its exit code is added to `codes`; it is 0 where the process has fewer writes.
    """
    words = commands.COMMANDS["noise"]
    reference, out = bench.reference("noise", words), bench.fresh()
    ending = ("tests.torture.exits", str(number), *words)
    code, said = commands.run(ending, out, bench.cache)
    codes.append(code)
    found = commands.faults(code, said, allowed={0, exits.CODE})
    found += commands.faults(*commands.run(words, out, bench.cache), allowed={0})
    return found + bench.same(out, reference)


def race(kind: str, writers: int, bench: Bench) -> list[str]:
    """Several writers at once: whoever is refused comes again."""
    jobs = [(*commands.COMMANDS["noise"], *more) for more in WRITERS[kind][:writers]]
    reference, out = bench.reference(f"{kind} {writers}", *jobs), bench.fresh()
    processes, found = [commands.start(words, out, bench.cache) for words in jobs], []
    for process in processes:
        code, said = commands.finish(process)
        refused = code == 2 and commands.IN_USE in said and said.count("\n") == 1
        found += [] if refused else commands.faults(code, said, allowed={0})
    for words in jobs:
        found += commands.faults(*commands.run(words, out, bench.cache), allowed={0})
    return found + bench.same(out, reference)


def damage(name: str, bench: Bench) -> list[str]:
    """A finished folder, damaged, and the command again."""
    words = commands.COMMANDS["noise"]
    reference, out = bench.reference("noise", words), bench.fresh()
    shutil.copytree(reference, out)
    DAMAGES[name](out, bench.rng)
    code, said = commands.run(words, out, bench.cache)
    unsaid = [] if str(out) in said else ["the damage was not named"]
    return commands.faults(code, said, allowed={0}) + unsaid + bench.same(out, reference)


def _seconds(words: tuple[str, ...], name: str, bench: Bench) -> float:
    """How long a command takes from nothing, with its programs in the cache."""
    path = bench.folder / f"seconds {name}"
    if not path.exists():
        begun = time.perf_counter()
        commands.run(words, bench.fresh(), bench.cache)
        path.write_text(str(time.perf_counter() - begun))
        bench.fresh()
    return float(path.read_text())


def kinds() -> dict[str, Iterator[Trial]]:
    """Trials of each kind, in turn, without end but for those of which there are only so many."""
    noise, report = commands.COMMANDS["noise"], commands.COMMANDS["report"]
    races = [(kind, writers) for kind in WRITERS for writers in (2, 3)]
    return {
        "kills of noise, two each": _repeat([partial(kill, noise, "noise")]),
        "kills of report, two each": _repeat([partial(kill, report, "report")]),
        "ends at a write": _at_every_write(),
        "writer races": _repeat([partial(race, *one) for one in races]),
        "damages": _repeat([partial(damage, name) for name in DAMAGES]),
    }


def _at_every_write() -> Iterator[Trial]:
    """A trial for every write of the command, until it has come to its own end."""
    codes: list[int] = []
    for number in count():
        if 0 in codes:
            return
        yield partial(end_at_write, number, codes)


def _repeat(trials: list[Trial]) -> Iterator[Trial]:
    while True:
        yield from trials


def attempt(trial: Trial, bench: Bench) -> list[str]:
    """What went wrong in a trial; a trial that cannot be made is something."""
    try:
        return trial(bench)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        return [f"{type(error).__name__}: {error}"]
