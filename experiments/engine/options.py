"""The options that every experiment shares, and the study that they ask for."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import tyro

from experiments.engine.study import Study
from experiments.shell.errors import UsageError, refusals
from experiments.shell.names import choose_all
from pgeom.data import sources
from pgeom.data.dataset import Dataset
from pgeom.data.regimes import KINDS, Regime
from pgeom.data.splits import split_rows
from pgeom.losses import catalogue
from pgeom.losses.spec import Link, LossSpec
from pgeom.messages import count, known_name, separated
from pgeom.training.settings import PROTOCOL, StopOn, Training, fit_to_size

ARGUMENTS = {"target=": "--target", "impute=True": "--impute", "noise_map=": "--noise-map FROM:TO"}


def require_separate(option: str, words: Iterable[str]) -> None:
    """Refuse several words given as one, as in "clean,symmetric-40"."""
    for word in words:
        if (hint := separated(word)) is not None:
            raise UsageError(f"{option}: unknown {word!r}; {hint}")


def parse_regimes(
    words: tuple[str, ...], dataset: Dataset, seed: int, *, option: str = "--regimes"
) -> tuple[Regime, ...]:
    """The regimes asked for, each of which the dataset must allow; its own ones if none are."""
    regimes = parse_kinds(words, option=option)
    with refusals(f"{option}: ", ARGUMENTS):
        for regime in regimes:
            split_rows(dataset, seed, regime)
    order = {regime: place for place, regime in enumerate(dataset.regimes)}
    return tuple(sorted(regimes, key=lambda one: order.get(one, len(order)))) or dataset.regimes


def parse_kinds(words: tuple[str, ...], *, option: str = "--regimes") -> tuple[Regime, ...]:
    """The regimes of these words, each once, whether a dataset allows them or not."""
    require_separate(option, words)
    with refusals(f"{option}: "):
        return tuple(dict.fromkeys(map(Regime.parse, words)))


def parse_noise_map(pairs: Sequence[str], classes: Sequence[str]) -> tuple[int, ...]:
    """The class map of pairs `FROM:TO` of class names; a class that begins no pair stays.

    >>> parse_noise_map(["cat:dog", "rat:dog"], ("cat", "dog", "rat"))
    (1, 1, 1)

    Raises:
      UsageError: for a text that is no such pair, or a class with two targets.
    """
    require_separate("--noise-map", (pair for pair in pairs if pair.count(":") > 1))
    moved: dict[str, str] = {}
    for pair in pairs:
        origin, colon, target = pair.partition(":")
        if not colon or origin == target or origin in moved:
            raise UsageError(
                f"--noise-map must be pairs FROM:TO of classes, each with one target, got {pair!r}"
            )
        with refusals():
            for name in (origin, target):
                known_name("class in --noise-map:", name, classes)
        moved[origin] = target
    return tuple(classes.index(moved.get(name, name)) for name in classes)


SEEDS = 5
LARGEST_SEED = 2**32 - 1  # that NumPy and scikit-learn take
MOST_SEEDS = 100_000  # of one command


@dataclass(frozen=True)
class Options:
    """Options of every command."""

    seeds: tuple[str, ...] = (str(SEEDS),)
    """How many, as in 5 for the seeds 0 to 4, or a list, as in 0 3 7."""
    epochs: int | None = None
    """Maximum epochs per run: by default 45 on the paper's datasets, as in the paper, and on others
    as many as make 20,000 steps, at most 1,000."""
    batch_size: int | None = None
    """Examples per optimiser step; the last batch of an epoch has what is left. By default 512 on
    the paper's datasets, and on others 64 to 512, by the number of training examples."""
    learning_rate: float = Training.learning_rate
    """Of AdamW."""
    stop_on: StopOn = Training.stop_on
    """What makes a validation epoch the best one, by which runs stop early and are kept: the NLL,
    the NLL at its best temperature, or the accuracy; none trains to the end and keeps that."""
    generators: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SOURCE:NAME…")] = ()
    """Convex functions F(p) of your own to train the scores of, as in my.py:cubic or
    package.module:cubic. The file is run."""
    own_losses: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SOURCE:NAME…")] = ()
    """Functions loss(logits, labels) of your own, named in the same way. The file is run."""
    no_match: tyro.conf.FlagCreatePairsOff[bool] = False
    """Leave --generators as they are, instead of rescaling each to the curvature of the Brier score
    at uniform probabilities, or at the vertices if it is less there."""
    link: Link = "softmax"
    """From logits to probabilities, in training and in prediction: softmax, or for every loss of a
    generator (brier, capm, hpg, --generators) the canonical link of that generator."""
    target: Annotated[str | None, tyro.conf.arg(metavar="COLUMN")] = None
    """The column of the labels, where the dataset is a .csv or .parquet file."""
    impute: tyro.conf.FlagCreatePairsOff[bool] = False
    """Fill missing values of a dataset from a file: numbers by the mean of the training part,
    others by a category of their own."""
    noise_map: Annotated[tuple[str, ...], tyro.conf.arg(metavar="FROM:TO…")] = ()
    """The classes that asymmetric noise mistakes for others, as in 2:7 3:8; by default the
    dataset's own."""
    validation: Literal["clean", "noisy"] = "clean"
    """Whether the labels for early stopping and temperature scaling are noisy like those for
    training."""
    model: str = "mlp"
    """The model to train: mlp, linear, cnn, which is for images, or a Flax module of your own,
    as in my.py:Net or package.module:Net. The file is run."""
    devices: int | None = None
    """How many devices to train on; all there are if not given."""
    memory: float | None = None
    """GiB that the cells trained at once may take; a larger job is cut in pieces."""
    distributed: tyro.conf.FlagCreatePairsOff[bool] = False
    """Be one of the processes of a job that Slurm, Open MPI, Kubernetes or Cloud TPU started."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print the aggregated table as JSON, and nothing else, on stdout."""
    formats: tuple[Literal["png", "pdf", "svg", "tex", "csv", "md"], ...] = ()
    """In which forms to write figures and tables besides the usual one."""

    def require_softmax(self, name: str) -> None:
        """For commands that compare forecasts made by softmax."""
        if self.link != "softmax":
            raise UsageError(f"--link must be softmax for {name}, got {self.link!r}")

    def check(self) -> None:
        """Refuse values that no command can work with."""
        for option, value in (("--epochs", self.epochs), ("--batch-size", self.batch_size)):
            if value is not None and value < 1:
                raise UsageError(f"{option} must be at least 1, got {value}")
        for option, value in (("--learning-rate", self.learning_rate), ("--memory", self.memory)):
            if value is not None and not 0 < value < math.inf:
                raise UsageError(f"{option} must be positive, got {value:g}")
        if self.link == "canonical" and self.stop_on in ("calibrated-nll", "accuracy"):
            raise UsageError(
                f"--stop-on must be nll or none with --link canonical, got {self.stop_on!r}"
            )
        parse_seeds(self.seeds)

    def check_words(
        self,
        dataset: str | None = None,
        *,
        regimes: tuple[str, ...] = (),
        losses: tuple[str, ...] = (),
        known: Mapping[str, LossSpec] = catalogue.GENERAL,
    ) -> None:
        """Refuse what is misspelt, before a `Command` imports JAX; the rest is for `make_study`.

        Args:
          dataset: a name or a path, if the command takes one.
          regimes: as they print.
          losses: names of `known`.
          known: the losses to choose from.
        """
        self.check()
        choose_all("loss", losses, known, catalogue.SYNONYMS)
        if dataset is not None:
            with refusals():
                sources.require_known(dataset)
        parse_kinds(regimes)


Common = Annotated[Options, tyro.conf.OmitArgPrefixes]
DEFAULTS = Options()


def make_study(
    name: str,
    options: Options,
    dataset: str,
    *,
    regimes: tuple[str, ...] = (),
    losses: tuple[str, ...] = (),
    known: Mapping[str, LossSpec] = catalogue.GENERAL,
) -> Study:
    """The study that a command line asks for, or a UsageError; nothing is trained yet.

    Losses of the user's own are added to those chosen; to check them computes something, so that a
    `Command` must have set up JAX before.

    Args:
      name: of the study.
      options: common to every command.
      dataset: a name of `sources.BUILT_IN`, or the path of a file.
      regimes: as they print; the dataset's own if none are given.
      losses: names of `known`; all of them if none are given.
      known: the losses to choose from, by default the general ones of the catalogue.
    """
    # here and not above: a mistake in the command line should not wait for JAX
    from experiments.engine import user_files

    chosen = choose_all("loss", losses, known, catalogue.SYNONYMS)
    source = {"name": dataset, "target": options.target, "impute": options.impute}
    with refusals("", ARGUMENTS):
        data = sources.load(**source)
    if options.noise_map:
        if not any("class_map" in KINDS[one.kind].reads for one in parse_kinds(regimes)):
            raise UsageError("--noise-map is for asymmetric noise, as in --regimes asymmetric-40")
        data = replace(data, noise_map=parse_noise_map(options.noise_map, data.classes))
    own = user_files.load_own(
        options.generators, options.own_losses, data.num_classes, match=not options.no_match
    )
    chosen_losses = [*(known[loss] for loss in chosen), *own]
    if options.link == "canonical":
        chosen_losses = [x.with_canonical_link() if x.generator else x for x in chosen_losses]
    seeds = parse_seeds(options.seeds)
    study = Study(
        name=name,
        dataset=data,
        regimes=parse_regimes(regimes, data, seeds[0]),
        seeds=seeds,
        losses=tuple(chosen_losses),
        model=user_files.make_model(options.model, data),
        noisy_validation=options.validation == "noisy",
        sources={
            "dataset": source,
            "model": options.model,
            "losses": user_files.name_sources(options.generators, options.own_losses),
        },
    )
    return choose_training(study, options)


def choose_training(study: Study, options: Options) -> Study:
    """The study with the training that its options ask for, and a note of what was chosen.

    The paper's datasets have the paper's protocol. On others it would end long before the runs
    converge, so that what is not asked for is chosen by the number of training examples: of the
    smallest regime, because all regimes of a study are trained alike.
    """
    epochs, batch_size = options.epochs, options.batch_size
    base = replace(PROTOCOL, learning_rate=options.learning_rate, stop_on=options.stop_on)
    if study.sources is not None and study.sources["dataset"]["name"] in sources.PAPER:
        epochs, batch_size = epochs or base.epochs, batch_size or base.batch_size
        return replace(study, training=replace(base, epochs=epochs, batch_size=batch_size))
    examples = min(
        len(split_rows(study.dataset, study.seeds[0], regime)[0]) for regime in study.regimes
    )
    training = fit_to_size(examples, base, epochs=epochs, batch_size=batch_size)
    sizes = {"--epochs": epochs, "--batch-size": batch_size}
    chosen = [option for option, size in sizes.items() if size is None]
    steps = count(-(-examples // training.batch_size), "step")
    note = (
        f"{examples:,} training examples: batches of {training.batch_size}, at most "
        f"{count(training.epochs, 'epoch')} of {steps}"
    )
    if training.stop_on != "none" and training.stopping.patience < training.epochs:
        note += f", stopped after {training.stopping.patience} without a better one"
    note += f" (to change it: {', '.join(chosen)})"
    return replace(study, training=training, notes=(note,) if chosen else ())


def parse_seeds(words: tuple[str, ...]) -> tuple[int, ...]:
    """`("5",)` is the seeds 0 … 4; `("0", "7")` or `("7,",)` are the seeds themselves."""
    text = " ".join(words)
    try:
        numbers = [int(word) for word in text.replace(",", " ").split()]
    except ValueError:
        numbers = []
    if not numbers:
        raise UsageError(f"--seeds must be a number or a list of numbers, got {text!r}")
    counted = len(numbers) == 1 and "," not in text
    least, most = (1, MOST_SEEDS) if counted else (0, LARGEST_SEED)
    if not least <= min(numbers) <= max(numbers) <= most:
        bound = f"at least {least}" if min(numbers) < least else f"at most {most}"
        raise UsageError(f"--seeds must be {bound}, got {text!r}")
    return tuple(range(numbers[0])) if counted else tuple(dict.fromkeys(numbers))
