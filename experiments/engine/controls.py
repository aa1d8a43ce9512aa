"""Controls: a study varied, to tell differences between losses from effects of the protocol.

>>> [control.name for control in CONTROLS][:2]
['chosen learning rate', 'long training']
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

from experiments.engine.study import Study
from pgeom.training import settings
from pgeom.training.settings import Rule

RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
LONGER = 9  # times as many epochs: 405 of the protocol's 45
MORE_PATIENT = 5  # times as many of them without a new best: 40 of the protocol's 8


class Control(NamedTuple):
    """One way to look at the same comparison.

    Attributes:
      name: of the control.
      reason: what it separates from the loss.
      vary: the studies that it needs, made of one of the protocol.
      keep: the runs and numbers to compare: those of the kept epoch, those of the last epoch, or of
        each loss and seed the run at the learning rate of least validation NLL.
    """

    name: str
    reason: str
    vary: Callable[[Study], tuple[Study, ...]]
    keep: Literal["kept epoch", "last epoch", "chosen rate"] = "kept epoch"


def vary_rates(study: Study) -> tuple[Study, ...]:
    """The study at every learning rate of a wide grid."""
    trainings = [replace(study.training, learning_rate=rate) for rate in RATES]
    return tuple(
        replace(study, name=f"learning rate {one.learning_rate:g}", training=one)
        for one in trainings
    )


def train_longer(study: Study) -> tuple[Study, ...]:
    """Many more epochs, with the patience for validation to turn."""
    training = study.training
    rule = Rule(training.stopping.minimum, MORE_PATIENT * training.stopping.patience)
    longer = replace(training, epochs=LONGER * training.epochs, stopping=rule)
    return (replace(study, name="long training", training=longer),)


def never_stop(study: Study) -> tuple[Study, ...]:
    """All epochs."""
    training = replace(study.training, stopping=settings.NEVER)
    return (replace(study, name="no early stopping", training=training),)


def stop_on_calibrated(study: Study) -> tuple[Study, ...]:
    """Stopped and kept by the validation NLL at its best temperature."""
    training = replace(study.training, stop_on="calibrated-nll")
    return (replace(study, name="calibrated stopping", training=training),)


def corrupt_validation(study: Study) -> tuple[Study, ...]:
    """Validation labels as noisy as those for training, in the regimes that have noise."""
    noisy = tuple(regime for regime in study.regimes if regime.noise_rate > 0)
    changed = replace(study, name="noisy validation", regimes=noisy, noisy_validation=True)
    return (changed,) if noisy else ()


CONTROLS = (
    Control(
        "chosen learning rate",
        "a common learning rate favours the losses that it suits",
        vary_rates,
        "chosen rate",
    ),
    Control(
        "long training",
        "training may end before validation NLL has turned, which favours fast losses",
        train_longer,
    ),
    Control(
        "no early stopping",
        "patience ends some runs before they have learned anything",
        never_stop,
    ),
    Control(
        "last epoch",
        "the epoch of least validation NLL is kept, which is not least for every loss's own aim",
        never_stop,
        "last epoch",
    ),
    Control(
        "calibrated stopping",
        "NLL stops a loss for its confidence, which one temperature puts right",
        stop_on_calibrated,
    ),
    Control(
        "noisy validation",
        "clean validation labels protect losses that fit noise",
        corrupt_validation,
    ),
)
