"""A cell of a study with its data, for the trainer.

>>> from pgeom.data import sources
>>> from pgeom.data.regimes import Regime
>>> from pgeom.losses import catalogue
>>> from pgeom.models.model import MLP
>>> cancer = sources.load("breast-cancer")
>>> study = Study("noise", cancer, (), (0,), (catalogue.LOSSES["ce"],), MLP(30, 2))
>>> prepared = prepare(study, Cell(Regime.parse("symmetric-20"), seed=0))
>>> prepared.data.arrays.rows.shape, 0.1 < prepared.noise.realised_rate < 0.3
((341,), True)
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from experiments.engine.study import Cell, Study
from pgeom.data import splits
from pgeom.data.regimes import NoisyLabels
from pgeom.data.splits import Split
from pgeom.paper.class_structure import class_stats
from pgeom.training.program import CellArrays
from pgeom.training.settings import Rule
from pgeom.training.trainer import CellData


class PreparedCell(NamedTuple):
    """A cell with its data; the inputs of its arrays are validation examples, then test examples.

    Attributes:
      cell: a regime and a seed.
      split: its validation labels as observed, and all others clean.
      noise: the training labels as observed.
      data: for the trainer.
      validation_noise: the share of validation labels that the regime changed.
    """

    cell: Cell
    split: Split
    noise: NoisyLabels
    data: CellData
    validation_noise: float = 0.0


def cell_stream(name: str, study: Study, cell: Cell, *more: int) -> np.random.Generator:
    """The random stream of that name for a cell, which no loss and no setting changes."""
    return splits.stream(name, study.dataset.name, str(cell.regime), cell.seed, *more)


def prepare(study: Study, cell: Cell, wanted: Bool[np.ndarray, " L"] | None = None) -> PreparedCell:
    """Split, thin or corrupt, standardise, and draw the random streams of a cell.

    Args:
      study: to which the cell belongs.
      cell: a regime and a seed.
      wanted: which losses to train; all of them by default.
    """
    split, noise = splits.partition(study.dataset, cell.regime, cell.seed)
    validation_noise = 0.0
    if study.noisy_validation:
        observed = splits.corrupt_validation(split.validation, study.dataset, *cell)
        split = split._replace(validation=split.validation._replace(labels=observed.labels))
        validation_noise = observed.realised_rate
    training, n = study.training, len(noise.labels)
    steps = -(-n // training.batch_size)
    moments = split.moments.relative_to(study.dataset.moments)
    arrays = CellArrays(
        rows=split.train.rows.astype(np.int32),
        y=noise.labels,
        validation_rows=split.validation.rows.astype(np.int32),
        validation_y=split.validation.labels,
        inputs=np.concatenate([split.validation.rows, split.test.rows]).astype(np.int32),
        mean=moments.mean.astype(np.float32),
        scale=moments.scale.astype(np.float32),
        stats=class_stats(split.train.features, noise.labels, study.dataset.num_classes),
        learning_rate=np.array(training.learning_rate, np.float32),
        planned_steps=np.array(training.epochs * steps, np.float32),
        stopping=Rule(*(np.array(count, np.int32) for count in training.stopping)),
        dropout=cell_stream("dropout", study, cell).integers(2**32, size=2, dtype=np.uint32),
        weights=np.ones(n, np.float32),
        validation_weights=np.ones(len(split.validation.labels), np.float32),
    )

    def order(epoch: int) -> np.ndarray:
        return cell_stream("order", study, cell, epoch).permutation(n).astype(np.int32)

    initial = study.model.initial(cell_stream("init", study, cell))
    wanted = np.ones(len(study.losses), bool) if wanted is None else wanted
    data = CellData(arrays=arrays, initial=initial, order=order, wanted=wanted)
    return PreparedCell(cell, split, noise, data, validation_noise)
