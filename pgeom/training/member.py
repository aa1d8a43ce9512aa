"""A member: one (regime, seed, learning rate), with its partitions, statistics and random streams.

The features of a dataset are held once, for all members; a member has the numbers of its rows, and
the moments that standardise them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from pgeom.models.model import Model
from pgeom.training import early_stopping
from pgeom.types import AnyArray, ClassStats

AT_ONCE = 2**21  # activations of a prediction: more are slower, and take memory


class Weights(NamedTuple):
    """How much each example counts; zero for one that is only there to fill up a batch."""

    train: Float[AnyArray, " n"]
    validation: Float[AnyArray, " v"]


class Member(NamedTuple):
    """What the runs of a member have in common; all of it is data, none of it is compiled in."""

    rows: Int[AnyArray, " n"]  # of the features, for training
    y: Int[AnyArray, " n"]  # their observed labels
    validation_rows: Int[AnyArray, " v"]
    validation_y: Int[AnyArray, " v"]
    mean: Float[AnyArray, " d"]  # of the training rows
    scale: Float[AnyArray, " d"]
    stats: ClassStats
    learning_rate: Float[AnyArray, ""]
    beta0: Float[AnyArray, ""]  # of APMS
    horizon: Float[AnyArray, ""]  # of APMS, in steps
    stopping: early_stopping.Rule
    dropout: UInt32[AnyArray, "2"]  # key data of the stream of masks
    weights: Weights | None = None  # of the examples; None where all weigh the same


def standardise(
    features: Float[Array, "N d"], member: Member, rows: Int[Array, " n"]
) -> Float[Array, "n d"]:
    """Some rows of the features as the member's model sees them; a missing value is the mean."""
    values = features.at[rows].get(mode="promise_in_bounds")
    mean, scale = jnp.asarray(member.mean)[None], jnp.asarray(member.scale)[None]
    return jnp.where(jnp.isnan(values), 0, (values - mean) / scale)


def predicted_at_once(model: Model) -> int:
    """How many examples are predicted at once."""
    return max(1, AT_ONCE // model.activations)


def predict(
    model: Model,
    parameters: Float[Array, " P"],
    features: Float[Array, "N d"],
    member: Member,
    rows: Int[Array, " n"],
) -> Float[Array, "n K"]:
    """Logits of some rows, without dropout, as many at once as `predicted_at_once` says."""

    def logits(part):
        return model.logits(parameters, standardise(features, member, part))

    n = rows.shape[0]
    if n == 0:  # which not every module can reshape
        return jnp.zeros((0, model.classes), parameters.dtype)
    if n <= (part := predicted_at_once(model)):
        return logits(rows)
    parts = jnp.pad(rows, (0, -n % part)).reshape(-1, part)
    return jax.lax.map(logits, parts).reshape(-1, model.classes)[:n]
