"""The metrics that losses are compared in, and the largest difference in each that does not matter.

The margins are stated before any comparison is made. A test prediction that turns from confidently
wrong to confidently right changes the Brier score by 2, so the margin of accuracy, .005, is worth
.01 of it.

>>> METRICS["nll"].margin, METRICS["nll"].gain(-0.3)
(0.02, 0.3)
"""

from typing import NamedTuple


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

    def gain(self, difference: float) -> float:
        """The difference, positive where it is an improvement."""
        return difference if self.higher_is_better else -difference


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "Accuracy ↑", True, 0.005),
        Metric("nll", "NLL ↓", False, 0.02),
        Metric("calibrated_nll", "Calibrated NLL ↓", False, 0.02),
        Metric("brier", "Brier ↓", False, 0.01),
        Metric("ece", "ECE ↓", False, 0.01),
    )
}
