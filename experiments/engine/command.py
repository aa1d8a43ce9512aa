"""One call of a command, from checked options to the line that says what was done."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from experiments.engine.options import Options
from experiments.engine.study import Study
from experiments.shell import command_line
from experiments.shell.files import require_writable
from pgeom.messages import count


class Command:
    """What a command works with: the machine, its folder, and how much it has trained so far."""

    def __init__(self, options: Options, out: Path) -> None:
        """Check the common options and set up JAX; nothing is written yet."""
        self._begun = time.perf_counter()
        options.check()
        import jax

        from experiments.engine import devices

        if options.distributed:
            devices.join_processes(options.devices)
        self.devices = devices.prepare_devices(options.devices)
        self.is_primary = jax.process_index() == 0
        # where stdout is for JSON, print on stderr; and of several processes only one prints
        self.console = command_line.make_console(stderr=options.json, quiet=not self.is_primary)
        if self.is_primary:
            require_writable(out, option="--out")
        self.json, self.formats, self.out = options.json, options.formats, out
        self._memory = options.memory
        self.requested = self.trained = 0
        self._compiling = self._training = 0.0  # seconds
        self._notes: set[str] = set()

    def train(self, *studies: Study) -> None:
        """Train what is missing of each study in the folder of the command."""
        self.train_in({self.out: studies})

    def train_in(self, folders: Mapping[Path, Sequence[Study]]) -> None:
        """Train what is missing of the studies of each folder.

        A damaged database is moved aside before anything is trained. Other commands may write to
        the same folders meanwhile.
        """
        from experiments.engine.store import Store, mend
        from experiments.engine.training import train_missing

        if self.is_primary:
            for damage in filter(None, map(mend, folders)):
                print(damage, file=sys.stderr)
        stores = {folder: Store(folder) for folder in folders}
        jobs = [(study, stores[folder]) for folder, those in folders.items() for study in those]
        for number, (study, store) in enumerate(jobs, start=1):
            self._print_notes(study)
            place = f" ({number} of {len(jobs)})" if len(jobs) > 1 else ""
            title = f"{study.name or 'study'}{place}, {study.dataset.name}"
            runs, compiling, training = train_missing(
                study, store, self.devices, self.console, memory=self._memory, title=title
            )
            self.requested += study.runs
            self.trained += runs
            self._compiling += compiling
            self._training += training

    def _print_notes(self, study: Study) -> None:
        """Print what is to be known about the parts of a study, once."""
        losses = (loss.note for loss in study.losses)
        for note in (*study.dataset.notes, *losses, *study.notes):
            if note and note not in self._notes:
                self._notes.add(note)
                self.console.print(note, soft_wrap=True)

    def finish(self, show: Callable[[], Sequence[Path]]) -> None:
        """Show the results, in the process that writes, and say where everything is."""
        if not self.is_primary:
            return
        files = ", ".join(path.name if path.parent == self.out else str(path) for path in show())
        seconds = time.perf_counter() - self._begun
        self.console.print(
            f"{self.took}, {seconds:.1f} s in total; written to {self.out}: {files}",
            soft_wrap=True,
        )

    @property
    def took(self) -> str:
        """How many runs were trained, and how long that took."""
        return (
            f"{count(self.trained, 'run')} trained, {self.requested - self.trained} reused; "
            f"compiled in {self._compiling:.1f} s, trained in {self._training:.1f} s"
        )
