"""One call of a command, from checked options to the line that says what was done."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.engine.options import Options
from experiments.engine.study import Study
from experiments.shell import command_line
from experiments.shell.files import make_folder, require_writable
from pgeom.messages import count

if TYPE_CHECKING:  # what needs JAX is imported when a command begins
    from experiments.engine.store import Store


class Command:
    """What a command works with: the machine, its folder, and how much it has trained so far."""

    def __init__(self, options: Options, out: Path) -> None:
        """Check the common options and set up JAX; nothing is written yet."""
        self._begun = time.perf_counter()
        options.check()
        import jax

        from experiments.engine import devices
        from experiments.engine.jobs import JobStats, Machine

        if options.distributed:
            devices.join_processes(options.devices)
        available = devices.prepare_devices(options.devices)
        # where stdout is for JSON, print on stderr; and of several processes only one prints
        quiet = jax.process_index() > 0
        self.console = command_line.make_console(stderr=options.json, quiet=quiet)
        self.machine = Machine(available, self.console, options.memory)
        if self.machine.is_primary:
            require_writable(out, option="--out")
        self.json, self.out = options.json, out
        self.stats, self.requested = JobStats(), 0
        self._said: set[str] = set()

    def train(self, *studies: Study) -> None:
        """Train what is missing of each study in the folder of the command."""
        self.train_in({self.out: studies})

    def train_in(self, folders: Mapping[Path, Sequence[Study]]) -> None:
        """Train what is missing of the studies of each folder.

        A damaged database is moved aside before anything is trained. Other commands may write to
        the same folders meanwhile.
        """
        from experiments.engine.jobs import train_missing

        stores = {folder: self._open(folder) for folder in folders}
        jobs = [(study, stores[folder]) for folder, those in folders.items() for study in those]
        for number, (study, store) in enumerate(jobs, start=1):
            self._say_notes(study)
            self.requested += study.runs
            place = f" ({number} of {len(jobs)})" if len(jobs) > 1 else ""
            title = f"{study.name or 'study'}{place}, {study.dataset.name}"
            self.stats += train_missing(study, store, self.machine, title)

    def _open(self, folder: Path) -> "Store":
        """The records of a folder, whose database is ready to be written to."""
        from experiments.engine.store import Store, mend

        if self.machine.is_primary:
            for damage in mend(folder):
                print(damage, file=sys.stderr)
        return Store(folder)

    def _say_notes(self, study: Study) -> None:
        """Print what is to be known about the parts of a study, once."""
        losses = (loss.note for loss in study.losses)
        for note in (*study.dataset.notes, *losses, *study.notes):
            if note and note not in self._said:
                self._said.add(note)
                self.console.print(note, soft_wrap=True)

    def finish(self, show: Callable[[], Sequence[Path]]) -> None:
        """Show the results, in the process that writes, and say where everything is."""
        if not self.machine.is_primary:
            return
        make_folder(self.out, option="--out")
        files = ", ".join(path.name for path in show())
        reused = self.requested - self.stats.runs
        self.console.print(
            f"{count(self.stats.runs, 'run')} trained, {reused} reused; compiled in "
            f"{self.stats.compiling:.1f} s, trained in {self.stats.training:.1f} s, "
            f"{time.perf_counter() - self._begun:.1f} s in total; written to {self.out}: {files}",
            soft_wrap=True,
        )
