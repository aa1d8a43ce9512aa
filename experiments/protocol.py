"""The protocol: which datasets, regimes and losses, and every constant of training.

The paper leaves many constants open. Those marked ◇ it does not state; they were fitted to its
published tables, so that agreement with them is calibration and not independent evidence.

>>> Training().batch_size
512
"""

import difflib
from dataclasses import asdict, dataclass

from pgeom.losses import catalogue
from pgeom.training import early_stopping

REGIMES = {
    "breast-cancer": ("clean", "symmetric-20", "symmetric-40"),
    "digits": ("clean", "symmetric-20", "symmetric-40", "pair-flip-40"),
    "confusion": ("clean", "symmetric-20", "pair-flip-40"),
    "long-tail": ("long-tail-30",),
}
NOISE_DATASETS = ("digits", "breast-cancer", "confusion")
SEEDS = tuple(range(5))

LABELS = {
    "ce": "CE",
    "label_smoothing": "Label smoothing",
    "brier": "Brier",
    "mae": "MAE",
    "focal": "Focal",
    "gce": "GCE",
    "sce": "SCE",
    "apl": "APL",
    "poly1": "Poly-1",
    "btl": "BTL",
    "capm": "CAPM",
    "hpg": "HPG",
    "apms": "APMS",
    "cb_ce": "CB-CE",
    "balanced_softmax": "Balanced Softmax",
    "logit_adjustment": "Logit adjustment",
    "ldam": "LDAM",
}


class UsageError(ValueError):
    """A mistake in what was asked for; its message is the one line that the user sees."""


@dataclass(frozen=True)
class Training:
    """How every run is trained. Part of the configuration that a record belongs to."""

    epochs: int = 45
    batch_size: int = 512  # ◇
    learning_rate: float = 1e-3
    beta0: float = catalogue.BETA0
    minimum_epochs: int = early_stopping.RULE.minimum
    patience: int = early_stopping.RULE.patience

    def configuration(self) -> dict:
        return asdict(self)


def one_of(kind: str, value: str, known) -> str:
    """`value`, or a UsageError that names the nearest of the known ones."""
    if value in known:
        return value
    near = difflib.get_close_matches(value, known, n=1, cutoff=0.3)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UsageError(f"unknown {kind} {value!r}; {hint}known: {', '.join(known)}")


def chosen(kind: str, values, known) -> tuple[str, ...]:
    """The values asked for, in the order of the known ones; all of them if none were."""
    asked = {one_of(kind, value, known) for value in values}
    return tuple(name for name in known if not asked or name in asked)


def parse_seeds(words: tuple[str, ...]) -> tuple[int, ...]:
    """`("5",)` is the seeds 0 … 4; `("0", "7")` or `("7,",)` are the seeds themselves."""
    text = " ".join(words)
    try:
        numbers = [int(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise UsageError(f"seeds must be a number or a list of numbers, got {text!r}") from None
    counted = len(numbers) == 1 and "," not in text
    if not numbers or min(numbers) < counted:
        raise UsageError(f"seeds must be at least {int(counted)}, got {text!r}")
    return tuple(range(numbers[0])) if counted else tuple(dict.fromkeys(numbers))
