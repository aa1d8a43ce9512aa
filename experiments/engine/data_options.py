"""The dataset and the regimes that a command line asks for, checked before anything is trained."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from experiments.shell.errors import UsageError, refusals
from pgeom.data import sources
from pgeom.data.dataset import Dataset
from pgeom.data.regimes import KINDS, Regime
from pgeom.data.splits import split_rows
from pgeom.messages import known_name, separated

ARGUMENTS = {"target=": "--target", "impute=True": "--impute", "noise_map=": "--noise-map FROM:TO"}


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
    for word in words:
        if (hint := separated(word)) is not None:
            raise UsageError(f"{option}: unknown regime {word!r}; {hint}")
    with refusals(f"{option}: "):
        return tuple(dict.fromkeys(map(Regime.parse, words)))


def load_dataset(
    name: str,
    regimes: tuple[str, ...],
    *,
    target: str | None,
    impute: bool,
    noise_map: Sequence[str],
) -> Dataset:
    """A dataset by its name or path, with the user's class map where one is given.

    Args:
      name: as on the command line.
      regimes: to which a class map must be of use.
      target: the column of the labels.
      impute: whether values may be missing.
      noise_map: pairs `FROM:TO` of class names.
    """
    with refusals("", ARGUMENTS):
        dataset = sources.load(name, target=target, impute=impute)
    if not noise_map:
        return dataset
    wanted = [word.rpartition("-")[0] for word in regimes] or [r.kind for r in dataset.regimes]
    if not any("class_map" in KINDS[kind].reads for kind in wanted if kind in KINDS):
        raise UsageError("--noise-map is for asymmetric noise, as in --regimes asymmetric-40")
    return replace(dataset, noise_map=parse_noise_map(noise_map, dataset.classes))


def parse_noise_map(pairs: Iterable[str], classes: Sequence[str]) -> tuple[int, ...]:
    """The class map of pairs `FROM:TO` of class names; a class that begins no pair stays.

    >>> parse_noise_map(["cat:dog", "rat:dog"], ("cat", "dog", "rat"))
    (1, 1, 1)

    Raises:
      UsageError: for a text that is no such pair, or a class with two targets.
    """
    numbers = {name: number for number, name in enumerate(classes)}
    moved: dict[int, int] = {}
    for pair in pairs:
        origin, target = (numbers[name] for name in _split_pair(pair, numbers))
        if origin == target:
            raise UsageError(f"--noise-map: must change the class, got {pair!r}")
        if origin in moved:
            raise UsageError(f"--noise-map: {classes[origin]!r} must have one target, got two")
        moved[origin] = target
    return tuple(moved.get(number, number) for number in range(len(classes)))


def _split_pair(pair: str, known: dict[str, int]) -> tuple[str, str]:
    """The two class names of `FROM:TO`, each of which may have a colon itself."""
    cuts = [place for place, letter in enumerate(pair) if letter == ":"]
    halves = [(pair[:cut], pair[cut + 1 :]) for cut in cuts]
    if not halves:
        raise UsageError(f"--noise-map: must be pairs FROM:TO of classes, got {pair!r}")
    for origin, target in halves:
        if origin in known and target in known:
            return origin, target
    if len(halves) > 1 and (hint := separated(pair)) is not None:
        raise UsageError(f"--noise-map: must be pairs FROM:TO of classes, got {pair!r}; {hint}")
    origin, target = halves[0]
    kind = "class in --noise-map:"
    with refusals():
        return known_name(kind, origin, known), known_name(kind, target, known)
