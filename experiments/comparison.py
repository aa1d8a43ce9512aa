"""What was published, set beside what was measured: `python -m experiments.comparison --seeds 50`.

The constants that the paper leaves open were fitted to these very numbers: that they agree is
calibration, not independent evidence. With more seeds than the paper's five there is a better
question: is the published mean of five a plausible draw from our protocol?
"""

from pathlib import Path

from experiments import longtail
from experiments.engine.command import Command
from experiments.engine.options import DEFAULTS, Common, Options, make_study
from experiments.engine.study import Study
from experiments.shell import command_line

NOISE_DATASETS = ("digits", "breast-cancer", "confusion")


def main(
    records: Path = Path("results"),
    out: Path = Path("results/comparison"),
    common: Common = DEFAULTS,
) -> None:
    """Train what the published tables need, and set the published values beside ours.

    Args:
        records: The folder in which noise and longtail keep their records.
        out: The folder for the tables.
        common: Options of every command.
    """
    command = Command(common, out)
    studies = make_studies(common)
    folders: dict[Path, list[Study]] = {}
    for study, folder in studies:
        folders.setdefault(records / folder, []).append(study)
    command.train_in(folders)
    command.finish(lambda: show(studies, records, command))


def make_studies(options: Options) -> list[tuple[Study, str]]:
    """The studies of the published tables, each with the folder of its records."""
    options.refuse_own_losses("experiments.comparison")
    noise = [(make_study("noise", options, name), "noise") for name in NOISE_DATASETS]
    return [*noise, (longtail.make_studies(options, ())[0], "longtail")]


def show(studies: list[tuple[Study, str]], records: Path, command: Command) -> list[Path]:
    """Write the tables and print them, from records."""
    import pandas as pd

    from experiments.engine.results import read_frames
    from experiments.show.published import cells_table, compare, counts_table, load_published
    from experiments.show.summary import convergence_notes, version_notes
    from experiments.show.tables import publish

    frame = pd.concat([read_frames([study], records / folder) for study, folder in studies])
    notes = convergence_notes(frame) + version_notes(frame)
    compared, page = compare(load_published(), frame), command.out / "comparison.md"
    grids = [one.with_notes(notes) for one in (counts_table(compared), cells_table(compared))]
    publish(grids, compared, page, command.console, command.json)
    return [page]


if __name__ == "__main__":
    command_line.run(main, "experiments.comparison", example="--seeds 50")
