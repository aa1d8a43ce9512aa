"""The metrics that losses are compared in, and the largest difference in each that does not matter.

The margins are stated before any comparison is made. A test prediction that turns from confidently
wrong to confidently right changes the Brier score by 2, so the margin of accuracy, .005, is worth
.01 of it.

Where classes are uneven, accuracy is that of the large ones: losses are then compared by balanced
accuracy, in every table, test, figure and sentence about the same runs.

>>> METRICS["nll"].margin, METRICS["nll"].gain(-0.3), METRICS["calibrated_nll"].words
(0.02, 0.3, 'calibrated NLL')
>>> runs = pd.DataFrame({"regime": ["clean"], "uneven": [True]})
>>> headline(runs).name, [metric.name for metric in compared(runs)][:3]
('balanced_accuracy', ['balanced_accuracy', 'accuracy', 'nll'])
"""

from typing import NamedTuple

import pandas as pd

from pgeom.data.regimes import KINDS, Regime


class Metric(NamedTuple):
    """A metric of the records.

    Attributes:
      name: its field.
      label: in words, with an arrow towards the better end.
      higher_is_better: whether that is the larger one.
      margin: of equivalence.
    """

    name: str
    label: str
    higher_is_better: bool
    margin: float

    @property
    def words(self) -> str:
        """What it is called within a sentence."""
        text = self.label[:-2]
        return text if text[:2].isupper() or self is BRIER else f"{text[0].lower()}{text[1:]}"

    def gain(self, difference: float) -> float:
        """The difference, positive where it is an improvement."""
        return difference if self.higher_is_better else -difference


ACCURACY = Metric("accuracy", "Accuracy ↑", True, 0.005)
BALANCED = Metric("balanced_accuracy", "Balanced accuracy ↑", True, 0.005)
BRIER = Metric("brier", "Brier ↓", False, 0.01)
OTHERS = (
    Metric("nll", "NLL ↓", False, 0.02),
    Metric("calibrated_nll", "Calibrated NLL ↓", False, 0.02),
    BRIER,
    Metric("ece", "ECE ↓", False, 0.01),
)
METRICS = {metric.name: metric for metric in (ACCURACY, BALANCED, *OTHERS)}


def headline(runs: pd.DataFrame) -> Metric:
    """Accuracy, or balanced accuracy if classes are uneven by themselves or by every regime.

    A test part is as uneven as its dataset. Where only some regimes thin the classes of an even
    one, accuracy is balanced already.
    """
    return BALANCED if _has_uneven_classes(runs) or _is_thinned(runs) else ACCURACY


def compared(runs: pd.DataFrame) -> tuple[Metric, ...]:
    """The headline metric and the others, with accuracy beside a balanced one that differs."""
    plain = (ACCURACY,) if _has_uneven_classes(runs) else ()
    return tuple(dict.fromkeys((headline(runs), *plain, *OTHERS)))


def _has_uneven_classes(runs: pd.DataFrame) -> bool:
    return "uneven" in runs and bool(runs["uneven"].any())


def _is_thinned(runs: pd.DataFrame) -> bool:
    regimes = runs["regime"].astype(str).unique()
    return all(KINDS[Regime.parse(regime).kind].thin is not None for regime in regimes)
