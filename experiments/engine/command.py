"""One call of a command, from checked options to the line that says what was done."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import jax

from experiments.engine import devices
from experiments.engine.jobs import JobStats, Machine, train_missing
from experiments.engine.options import Options
from experiments.engine.records import Store
from experiments.engine.study import Study
from pgeom.frontend import command_line
from pgeom.frontend.numbers import count


class Command:
    """What a command works with: the machine, its folder, and how much it has trained so far."""

    def __init__(self, options: Options, out: Path) -> None:
        """Check the common options and set up JAX; nothing is written yet."""
        self._begun = time.perf_counter()
        options.check(out)
        if options.distributed:
            devices.join_processes(options.devices)
        available = devices.prepare_devices(options.devices)
        # where stdout is for JSON, print on stderr; and of several processes only one prints
        quiet = jax.process_index() > 0
        self.console = command_line.make_console(stderr=options.json, quiet=quiet)
        self.machine = Machine(available, self.console, options.memory)
        self.json, self.out = options.json, out
        self.stats, self.requested = JobStats(), 0
        self._said: set[str] = set()

    def train(self, *studies: Study, folder: Path | None = None) -> None:
        """Train what is missing of each study in a folder, by default that of the command."""
        for number, study in enumerate(studies, start=1):
            self._say_notes(study)
            self.requested += study.runs
            place = f" ({number} of {len(studies)})" if len(studies) > 1 else ""
            title = f"{study.name or 'study'}{place}, {study.dataset.name}"
            self.stats += train_missing(study, Store(folder or self.out), self.machine, title)

    def _say_notes(self, study: Study) -> None:
        """Print what is to be known about the dataset and the losses of a study, once."""
        for note in (*study.dataset.notes, *(loss.note for loss in study.losses)):
            if note and note not in self._said:
                self._said.add(note)
                self.console.print(note, soft_wrap=True)

    def finish(self, show: Callable[[], Sequence[Path]]) -> None:
        """Show the results, in the process that writes, and say where everything is."""
        if not self.machine.is_primary:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        files = ", ".join(path.name for path in show())
        reused = self.requested - self.stats.runs
        self.console.print(
            f"{count(self.stats.runs, 'run')} trained, {reused} reused; compiled in "
            f"{self.stats.compiling:.1f} s, trained in {self.stats.training:.1f} s, "
            f"{time.perf_counter() - self._begun:.1f} s in total; written to {self.out}: {files}",
            soft_wrap=True,
        )
