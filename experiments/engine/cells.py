"""A cell of a study: its data for the trainer, and the records of its trained runs.

>>> from pgeom.data import sources
>>> from pgeom.data.regimes import Regime
>>> from pgeom.losses import catalogue
>>> from pgeom.models.model import MLP
>>> cancer = sources.load("breast-cancer")
>>> study = Study("noise", cancer, (), (0,), (catalogue.LOSSES["ce"],), MLP(30, 2))
>>> prepared = prepare(study, Cell(Regime.parse("symmetric-20"), seed=0))
>>> prepared.data.arrays.rows.shape, 0.1 < prepared.noise.realised_rate < 0.3
((341,), True)

A record has every metric of a run, raw and after temperature scaling. Calibrated means the softmax
of the logits at the temperature fitted on the validation set, with the prior of
`pgeom.calibration`; `plain_` is the fit without it, as in the paper. `last_` is the last epoch, all
else the epoch that was kept.

The logits by which a run with a canonical link is scored and stored are log p(z), whose softmax is
p(z), so that tables and figures need not know the link. A sparse link may give a test label the
probability zero: the NLL is then infinite, and null in the record; `zero_rate` says how often.
Calibrated then means p(z/T).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from experiments.engine.identity import identify
from experiments.engine.measures import TestPart, measure_run
from experiments.engine.store import LABELS, Record, json_float
from experiments.engine.study import Cell, Study
from pgeom.data import splits
from pgeom.data.regimes import NoisyLabels
from pgeom.data.splits import Split
from pgeom.evaluation import calibration, metrics
from pgeom.evaluation.calibration import Temperature
from pgeom.losses.spec import LossSpec
from pgeom.paper.class_structure import class_stats
from pgeom.training.program import CellArrays
from pgeom.training.settings import Rule
from pgeom.training.trainer import CellData, Trained
from pgeom.types import ClassStats, Forecast


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


PRIOR = 1.0  # pseudo-examples of a uniform label, beside the validation set
Scores = dict[str, Float[Array, ""] | Bool[Array, ""]]


class Predictions(NamedTuple):
    """The logits of a run, and the labels, of its validation and test examples."""

    validation: Float[Array, "v K"]
    validation_labels: Int[Array, " v"]
    test: Float[Array, "n K"]
    labels: Int[Array, " n"]


def make_records(
    study: Study, prepared: PreparedCell, trained: Trained
) -> tuple[list[Record], dict[str, np.ndarray]]:
    """The records of a cell's wanted runs, and its arrays: logits by identity, test labels.

    Each run is scored by itself: computed together, the last digits of one could depend on how many
    others there are, and a run that is replayed alone would differ from its record.
    """
    identity, cell, split = identify(study), prepared.cell, prepared.split
    identities, stats = identity.runs(cell), prepared.data.arrays.stats
    shared = {
        "dataset": study.dataset.name,
        "regime": str(cell.regime),
        "seed": cell.seed,
        "realised_noise_rate": round(float(prepared.noise.realised_rate), 6),
        "noise_transition": np.round(prepared.noise.transition, 6).tolist(),
        "realised_validation_noise_rate": round(float(prepared.validation_noise), 6),
    }
    cut = len(split.validation.labels)
    moments = (moment.astype(np.float32) for moment in split.moments)
    test = TestPart(split.test.features, split.test.labels, *moments)
    key = jax.random.key(int(cell_stream("perturbation", study, cell).integers(2**31)))

    def predictions(logits: Float[np.ndarray, "m K"]) -> Predictions:
        held_out = (logits[:cut], split.validation.labels, logits[cut:], split.test.labels)
        return Predictions(*map(jnp.asarray, held_out))

    records, arrays = [], {LABELS: split.test.labels}
    for place in np.flatnonzero(prepared.data.wanted):
        loss, stopped = study.losses[place], int(trained.stopped_epoch[place])
        linked = loss if loss.link == "canonical" else None
        best, last = predictions(trained.logits[place]), predictions(trained.last_logits[place])
        scores, logits = score(linked, stats, best, last)
        if study.measure is not None:
            parameters = trained.parameters[place]
            scores |= measure_run(study.measure, study.model, linked, parameters, test, key, stats)
        curve = [json_float(value) for value in trained.validation_loss[place][:stopped]]
        criterion = {"validation_nll": curve}
        if linked:
            criterion = {"validation_loss": curve, "link": loss.link}
        records.append(
            {
                "identity": identities[place],
                "made_from": {**identity.cell_parts(cell), "loss": identity.losses[place]},
                **shared,
                "loss": loss.name,
                "label": loss.label,
                **{
                    name: bool(value) if value.dtype == bool else json_float(value)
                    for name, value in jax.device_get(scores).items()
                },
                "best_epoch": int(trained.best_epoch[place]),
                "best_step": int(trained.best_step[place]),
                "stopped_epoch": stopped,
                "diverged_epoch": int(trained.diverged_epoch[place]),
                **criterion,
            }
        )
        arrays[identities[place]] = np.asarray(logits)
    return records, arrays


@partial(jax.jit, static_argnums=0)
def score(
    loss: LossSpec | None, stats: ClassStats, best: Predictions, last: Predictions
) -> tuple[Scores, Float[Array, "n K"]]:
    """The scores of a run, and the logits of its test examples as they are stored.

    Args:
      loss: one with a canonical link; None is softmax, which has one program for all losses.
      stats: of the training part, for a loss that needs them.
      best: from the epoch that was kept.
      last: from the last epoch.
    """
    if loss is None:
        rescale, fit_temperature = calibration.rescale, calibration.fit_temperature
    else:
        link = loss.forecast(stats)
        fit_temperature = partial(fit_link_temperature, link)

        def rescale(logits, temperature):
            return jnp.log(link(logits / temperature))

    def fit(given: Predictions, prior: float) -> Temperature:
        return fit_temperature(given.validation, given.validation_labels, prior=prior)

    def calibrated(given: Predictions, fitted: Temperature) -> Scores:
        scaled = rescale(given.test, fitted.temperature)
        return {
            "calibrated_nll": metrics.nll(scaled, given.labels),
            "calibrated_ece": metrics.ece(jax.nn.softmax(scaled), given.labels),
        }

    fitted, plain, last_fit = fit(best, PRIOR), fit(best, 0.0), fit(last, PRIOR)
    kept, ended = rescale(best.test, 1.0), rescale(last.test, 1.0)
    probabilities, labels = jax.nn.softmax(kept), best.labels
    scores = {
        **_raw(kept, labels),
        "classwise_ece": metrics.classwise_ece(probabilities, labels),
        "smooth_ece": metrics.smooth_ece(probabilities, labels),
        "debiased_ece": metrics.debiased_ece(probabilities, labels),
        "temperature": fitted.temperature,
        "temperature_at_bound": fitted.at_bound,
        **calibrated(best, fitted),
        "plain_temperature": plain.temperature,
        **{f"plain_{name}": value for name, value in calibrated(best, plain).items()},
        **{f"last_{name}": value for name, value in _raw(ended, labels).items()},
        "last_calibrated_nll": calibrated(last, last_fit)["calibrated_nll"],
    }
    if loss is not None:
        ruled_out = jnp.take_along_axis(kept, labels[:, None], axis=1) == -jnp.inf
        scores["zero_rate"] = jnp.mean(ruled_out.astype(kept.dtype))
    return scores, kept


def _raw(logits: Float[Array, "n K"], labels: Int[Array, " n"]) -> Scores:
    probabilities = jax.nn.softmax(logits)
    return {
        "accuracy": metrics.accuracy(probabilities, labels),
        "balanced_accuracy": metrics.balanced_accuracy(probabilities, labels),
        "nll": metrics.nll(logits, labels),
        "brier": metrics.brier(probabilities, labels),
        "ece": metrics.ece(probabilities, labels),
    }


WIDEST = 8.0  # of |log T|, once the mean range of the logits is 1
INTERVALS = 32  # of a grid
ROUNDS = 4  # each on a grid that is as wide as two intervals of the one before


def link_nll(
    link: Forecast, logits: Float[Array, "n K"], labels: Int[Array, " n"]
) -> Float[Array, " n"]:
    """−log p(z)_y of each example, infinite where that probability is zero."""
    return -jnp.log(jnp.take_along_axis(link(logits), labels[:, None], axis=1)[:, 0])


def fit_link_temperature(
    link: Forecast, logits: Float[Array, "n K"], labels: Int[Array, " n"], *, prior: float
) -> Temperature:
    """The temperature with the lowest NLL of any link, p(z/T).

    argmin_T −Σ_i log p(z_i/T)_{y_i} − prior · (1/K) Σ_k log p(m e_1/T)_k, with the pseudo-example
    of `fit_temperature`. A sparse link gives some classes the probability zero: the NLL of an
    example with such a label is infinite, and so is that of every temperature at which there is
    one. Hotter forecasts have fewer zeros. The NLL need not have one minimum only, so a grid is
    searched before the best of it is refined.

    >>> logits = 6.0 * jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> fit = fit_link_temperature(jax.nn.softmax, logits, jnp.array([0, 0, 1, 0]), prior=0.0)
    >>> round(float(fit.temperature * jnp.log(3.0)), 2)
    6.0

    Args:
      link: `link(logits[n, K]) -> p[n, K]`.
      logits: those of the validation set.
      labels: theirs.
      prior: how many examples the pseudo-example counts for.
    """
    ranges = jnp.ptp(logits, axis=1)
    spread = jnp.mean(ranges)
    unit = jnp.where(spread > 0, spread, 1.0)
    pseudo = jnp.median(ranges) * jnp.eye(1, logits.shape[1], dtype=logits.dtype)

    def nll(log_t):
        T = unit * jnp.exp(log_t)
        data = jnp.sum(link_nll(link, logits / T, labels))
        return data - prior * jnp.mean(jnp.log(link(pseudo / T))) if prior else data

    def search(_, state):
        centre, reach = state
        grid = centre + reach * jnp.linspace(-1, 1, INTERVALS + 1)
        values = jax.lax.map(nll, grid)
        best = jnp.argmin(jnp.where(jnp.isnan(values), jnp.inf, values))
        return grid[best], reach * 2 / INTERVALS

    start = jnp.zeros_like(unit), jnp.full_like(unit, WIDEST)
    log_t, _ = jax.lax.fori_loop(0, ROUNDS, search, start)
    at_bound = jnp.abs(log_t) > WIDEST * (1 - 2 / INTERVALS)
    finite = jnp.isfinite(spread)
    return Temperature(jnp.where(finite, unit * jnp.exp(log_t), jnp.nan), at_bound & finite)
