"""Every loss under label noise: `python -m experiments.noise --dataset digits`."""

from pathlib import Path

from experiments.engine.command import Command
from experiments.engine.options import DEFAULTS, Common, make_study
from experiments.engine.study import Study
from experiments.shell import command_line
from pgeom.data.regimes import Regime

PAPER_DATASETS = ("digits", "breast-cancer", "confusion")


def main(
    dataset: str = "digits",
    regimes: tuple[str, ...] = (),
    losses: tuple[str, ...] = (),
    out: Path = Path("results/noise"),
    common: Common = DEFAULTS,
) -> None:
    """Train all losses on a dataset under label noise, and compare them with cross-entropy.

    Finished runs are kept in --out and reused by the next call.

    Args:
        dataset: digits, breast-cancer, confusion, long-tail, wine, mnist1d or fashion-mnist, or
            the path of a .npz file with arrays X and y, of a .csv or .parquet file, or of a folder
            with IDX files.
        regimes: Such as clean, symmetric-40, pair-flip-40, asymmetric-40, instance-40 or
            long-tail-30; the dataset's own by default.
        losses: Names such as ce or hpg; the paper's general losses by default.
        out: The folder for records, tables and figures.
        common: Options of every command.
    """
    common.check_words(dataset, regimes=regimes, losses=losses)
    command = Command(common, out)
    study = make_study("noise", common, dataset, regimes=regimes, losses=losses)
    command.train(study)
    command.finish(lambda: show(study, command))


def show(study: Study, command: Command) -> list[Path]:
    """Write the figures and the tables and print the latter, all from records."""
    # here and not above: a mistake in the command line should not wait for them
    from experiments.engine.results import read_frame, read_logits
    from experiments.show.contrasts import against_reference
    from experiments.show.figures import panels, studies
    from experiments.show.metrics import headline
    from experiments.show.page import publish
    from experiments.show.summary import performance, summarise

    frame, name = read_frame(study, command.out), study.dataset.name
    titles = {str(regime): f"{name}, {regime}" for regime in study.regimes}
    grids: list = [performance(frame, title, regime) for regime, title in titles.items()]
    grids += [
        against_reference(frame[frame["regime"] == one], text) for one, text in titles.items()
    ]
    legend, noisiest = panels.legend(study.losses), noisiest_regime(study.regimes)
    logits = read_logits(study, noisiest, command.out)
    figures = {
        f"noise-accuracy-{name}": studies.noise_curves(frame, legend, headline(frame)),
        f"reliability-{name}-{noisiest}": studies.reliability(logits, legend),
    }
    summary = summarise(frame).assign(dataset=name)
    return publish(command, name, grids, summary, figures)


def noisiest_regime(regimes: tuple[Regime, ...]) -> Regime:
    """The last symmetric regime, or else the last there is."""
    symmetric = [regime for regime in regimes if regime.kind == "symmetric"]
    return (symmetric or list(regimes))[-1]


if __name__ == "__main__":
    command_line.run(
        main, "experiments.noise", example="--dataset digits --losses ce gce hpg --seeds 10"
    )
