"""The records of a study as a frame, and the logits of its runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from experiments.engine.identity import identify
from experiments.engine.store import LABELS, Store
from experiments.engine.study import Cell, Study
from pgeom.data.regimes import Regime


class TestLogits(NamedTuple):
    """Test labels, and test logits by loss, of S seeds."""

    __test__ = False  # pytest takes the name for that of a test

    dataset: str
    regime: str
    labels: Int[np.ndarray, "S n"]
    logits: dict[str, Float[np.ndarray, "S n K"]]


def read_frame(study: Study, folder: Path, store: Store | None = None) -> pd.DataFrame:
    """The recorded runs of a study, one row per run, in the order of regimes, losses, seeds.

    Whatever name a run was recorded under, it has the name and label of the study's loss; `uneven`
    says whether the classes of its dataset are, by which tables choose their metric, and `stop_on`
    what made an epoch the best one. A `store` of the folder that is at hand saves reading it again.
    """
    store, identity, rows = store or Store(folder), identify(study), []
    shared = {"uneven": study.dataset.is_uneven, "stop_on": study.training.stop_on}
    records = store.records
    for cell in study.cells:
        for loss, key in zip(study.losses, identity.runs(cell), strict=True):
            if key in records:
                names = {"loss": loss.name, "label": loss.label, "study": study.name}
                rows.append({**records[key], **names, **shared})
    frame = pd.DataFrame(rows)
    for column, order in (("regime", study.regimes), ("loss", [x.name for x in study.losses])):
        frame[column] = pd.Categorical(frame[column], list(map(str, order)), ordered=True)
    return frame.sort_values(["regime", "loss", "seed"]).reset_index(drop=True)


def read_frames(studies: Sequence[Study], folder: Path) -> pd.DataFrame:
    """The runs of several studies; `study` tells them apart."""
    store = Store(folder)
    frames = [read_frame(study, folder, store) for study in studies]
    return pd.concat([frame.astype({"regime": str, "loss": str}) for frame in frames]).reset_index(
        drop=True
    )


def read_logits(study: Study, regime: Regime, folder: Path) -> TestLogits:
    """The test logits of every run of a study in one regime."""
    store, identity = Store(folder), identify(study)
    cells = [Cell(regime, seed) for seed in study.seeds]
    arrays = [store.logits(identity.cell_hash(cell)) for cell in cells]
    runs = [identity.runs(cell) for cell in cells]
    logits = {
        loss.name: np.stack([one[keys[k]] for one, keys in zip(arrays, runs, strict=True)])
        for k, loss in enumerate(study.losses)
    }
    labels = np.stack([one[LABELS] for one in arrays])
    return TestLogits(study.dataset.name, str(regime), labels, logits)
