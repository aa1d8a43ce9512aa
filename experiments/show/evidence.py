"""Everything that the records say about the losses, as frames: the answer to "which loss?".

`weigh` takes frames of runs, as `read_frames` gives them, of any number of seeds, and returns an
`Evidence`, from which other modules make sentences, grids and figures:

    evidence = weigh(runs)  # the protocol's runs, of all datasets
    answer_page.headlines(evidence)
    decisions.decision_table(evidence.decisions)
    claims.claims_table(evidence.claims)
    effects.ranks_table(evidence.ranked)
    effects.effects_table(evidence.effects, "ce", "nll")
    figures.forest(evidence.samples, evidence.effects, path, reference="ce", metric="nll")
    figures.critical_difference(evidence.ranked, path)

The frames beside the grids (`decisions`, `claims`, `effects`, `controls`) have the numbers.
"""

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from experiments.show.claims import PROTOCOL, check_claims
from experiments.show.contrasts import RankedLosses, compare_losses, rank_losses
from experiments.show.controls import compare_controls
from experiments.show.decisions import decide
from experiments.show.metrics import Samples


class Evidence(NamedTuple):
    """What the records say.

    Attributes:
      samples: the protocol's runs.
      effects: every loss against the references, one row per comparison.
      ranked: mean ranks, one entry per metric.
      decisions: one row per situation.
      claims: one row per claim of the paper.
      control_runs: the runs of each control by its name.
      controls: `effects` under the protocol and every control, in the metrics of `controlled`;
        empty without controls.
    """

    samples: Samples
    effects: pd.DataFrame
    ranked: list[RankedLosses]
    decisions: pd.DataFrame
    claims: pd.DataFrame
    control_runs: dict[str, pd.DataFrame]
    controls: pd.DataFrame

    @property
    def controlled(self) -> tuple[str, ...]:
        """The metrics in which the controls are compared."""
        return controlled(self.samples)


def controlled(samples: Samples) -> tuple[str, ...]:
    """Those that a control may change most: the headline, and NLL before and after calibration."""
    return samples.headline.name, "nll", "calibrated_nll"


def weigh(
    runs: pd.DataFrame,
    control_runs: Mapping[str, pd.DataFrame] | None = None,
    others: Mapping[str, pd.DataFrame] | None = None,
) -> Evidence:
    """Compare, rank, decide, and check the paper's claims.

    Args:
      runs: of the protocol, with cross-entropy among the losses.
      control_runs: by the name of the control.
      others: the runs of the studies `ablation` and `robustness`, where some claims are decided.
    """
    samples, controls = Samples(runs), dict(control_runs or {})
    effects, metrics = compare_losses(samples), controlled(samples)
    sources = {PROTOCOL: samples} | {name: Samples(one) for name, one in (others or {}).items()}
    return Evidence(
        samples=samples,
        effects=effects,
        ranked=rank_losses(samples),
        decisions=decide(samples, effects=effects),
        claims=check_claims(sources),
        control_runs=controls,
        controls=compare_controls(effects, controls, metrics) if controls else effects.iloc[:0],
    )
