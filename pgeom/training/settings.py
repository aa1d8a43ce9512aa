"""How a run is trained: every constant, as one value.

The paper states none of the constants marked ◇; they were fitted to its published tables.

>>> Training().batch_size, Training().stopping
(512, Rule(minimum=12, patience=8))
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:  # settings are defaults of command lines, which are parsed without JAX
    import optax

StopOn = Literal["nll", "calibrated-nll", "accuracy", "none"]
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
    """AdamW with clipping; the learning rate is apart, because it is data of a member."""

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
      beta0: the initial coefficient of APMS, which falls to zero over the planned steps.
      stopping: when to stop early.
      optimiser: everything of AdamW but the learning rate.
      stop_on: what makes an epoch the best one. With `stopping=NEVER` it chooses among all epochs;
        "none" chooses nothing, and keeps the last one.
    """

    epochs: int = 45
    batch_size: int = 512  # ◇
    learning_rate: float = 1e-3
    beta0: float = 0.2  # ◇
    stopping: Rule = PAPER
    optimiser: Optimiser = Optimiser()
    stop_on: StopOn = "nll"


PROTOCOL = Training()
