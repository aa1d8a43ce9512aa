"""How a run is trained: every constant, as one value.

The paper states none of the constants marked ◇; they were fitted to its published tables.

>>> Training().batch_size, Training().stopping
(512, Rule(minimum=12, patience=8))

They suit the paper's datasets. For other data the sizes are chosen by the number of examples:

>>> fitted = fit_to_size(594)
>>> fitted.epochs, fitted.batch_size, fitted.stopping
(1000, 64, Rule(minimum=12, patience=100))
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:  # settings are defaults of command lines, which are parsed without JAX
    import optax

StopOn = Literal["nll", "calibrated-nll", "accuracy", "none"]
"""What makes an epoch the best one.

- `nll`: the lowest validation NLL, as in the paper; of a run with a canonical link, which may give
  a label the probability zero, the lowest validation loss.
- `calibrated-nll`: the validation NLL at the temperature fitted to it. A network may become
  overconfident long before it has learnt to tell the classes apart; that alone then does not end
  its training (Berta et al., 2025, "Rethinking early stopping: refine, then calibrate").
- `accuracy`: the highest validation accuracy; of several equal epochs the first is kept.
- `none`: the latest epoch is the best one, so that nothing is selected and nothing stops.
"""
STOP_ON: tuple[StopOn, ...] = get_args(StopOn)


class Rule(NamedTuple):
    """When to stop: neither before `minimum` nor before `patience` epochs without a new best.

    Both are numbers, or arrays of them where they are data of a program.
    """

    minimum: Any
    patience: Any


PAPER = Rule(minimum=12, patience=8)  # that both count from epoch one it does not state
NEVER = Rule(minimum=2**31 - 1, patience=2**31 - 1)


@dataclass(frozen=True)
class Optimiser:
    """AdamW with clipping; the learning rate is apart, because it is data of a cell."""

    clip: float = 5.0  # the global norm of a run's gradient
    b1: float = 0.9
    b2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 1e-4  # ◇ on all parameters

    def transformation(self) -> "optax.GradientTransformation":
        """The direction of a step, before it is multiplied by minus the learning rate."""
        import optax

        return optax.chain(
            optax.clip_by_global_norm(self.clip),
            optax.scale_by_adam(b1=self.b1, b2=self.b2, eps=self.eps),
            optax.add_decayed_weights(self.weight_decay),
        )


@dataclass(frozen=True)
class Training:
    """The settings of a run, part of its identity.

    Attributes:
      epochs: maximum epochs per run.
      batch_size: the last batch of an epoch has what is left.
      learning_rate: of AdamW.
      stopping: when to stop early.
      optimiser: everything of AdamW but the learning rate.
      stop_on: what makes an epoch the best one. With `stopping=NEVER` it chooses among all epochs;
        "none" chooses nothing, and keeps the last one.
    """

    epochs: int = 45
    batch_size: int = 512  # ◇
    learning_rate: float = 1e-3
    stopping: Rule = PAPER
    optimiser: Optimiser = Optimiser()
    stop_on: StopOn = "nll"


PROTOCOL = Training()

# On tables of 124 to 34,800 training examples, validation NLL of cross-entropy turned after 70 to
# 19,000 steps, and 500 steps without a new best were too few to tell.
STEPS = 20_000  # at most
PATIENT_STEPS = 1_000  # without a new best
LEAST_PATIENCE = 10  # epochs, however many steps one has
MAX_EPOCHS = 1_000  # which cost time by themselves, and each a number in the record
BATCH_SIZES = (64, 512)
BATCHES = 60  # per epoch, at least, unless the smallest batches are fewer


def fit_to_size(
    examples: int,
    base: Training = PROTOCOL,
    *,
    epochs: int | None = None,
    batch_size: int | None = None,
) -> Training:
    """Settings with which runs converge, by the number of training examples.

    The protocol's 45 epochs in batches of 512 are 90 steps on 594 examples, which teach little. A
    batch is the largest power of two of which an epoch has 60, within 64 … 512. Epochs are as many
    as make 20,000 steps, but at least the protocol's 45 and at most 1,000. Runs stop after 1,000
    steps without a new best, or ten epochs, whichever is longer.

    Args:
      examples: for training.
      base: all other settings.
      epochs: if given, is not chosen.
      batch_size: likewise.
    """
    if batch_size is None:
        smallest, largest = BATCH_SIZES
        power = 2 ** (max(examples // BATCHES, 1).bit_length() - 1)
        batch_size = min(max(power, smallest), largest)
    steps = -(-examples // batch_size)
    if epochs is None:
        epochs = min(max(-(-STEPS // steps), PROTOCOL.epochs), MAX_EPOCHS)
    patience = max(-(-PATIENT_STEPS // steps), LEAST_PATIENCE)
    rule = Rule(PAPER.minimum, patience)
    return replace(base, epochs=epochs, batch_size=batch_size, stopping=rule)
