"""Temperature scaling of any link, p(z/T): the T with the lowest NLL on validation examples.

A sparse link gives some classes the probability zero: the NLL of an example with such a label is
infinite, and so is that of every temperature at which there is one. Hotter forecasts have fewer
zeros. The NLL need not have one minimum only, so a grid is searched before the best of it is
refined.

>>> import jax.numpy as jnp
>>> logits = 6.0 * jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
>>> fit = fit_link_temperature(jax.nn.softmax, logits, jnp.array([0, 0, 1, 0]))
>>> round(float(fit.temperature * jnp.log(3.0)), 2)
6.0
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pgeom.geometry.scaling import Temperature

COLDEST, HOTTEST = -8.0, 8.0  # of log T, once the mean range of the logits is 1
POINTS, ROUNDS = 33, 6  # of the grid, and how often its best interval is searched again
FINER = 9  # points of each such search

Link = Callable[[Float[Array, "n K"]], Float[Array, "n K"]]


def link_nll(
    link: Link, logits: Float[Array, "n K"], labels: Int[Array, " n"]
) -> Float[Array, " n"]:
    """−log p(z)_y of each example, infinite where that probability is zero."""
    return -jnp.log(jnp.take_along_axis(link(logits), labels[:, None], axis=1)[:, 0])


def fit_link_temperature(
    link: Link, logits: Float[Array, "n K"], labels: Int[Array, " n"], *, prior: float = 0.0
) -> Temperature:
    """argmin_T −Σ_i log p(z_i/T)_{y_i} − prior · (1/K) Σ_k log p(m e_1/T)_k

    The pseudo-example is that of `calibration.fit_temperature`, with m the median range of the
    logits of an example.

    Args:
      link: `link(logits[n, K]) -> p[n, K]`.
      logits: those of the validation set.
      labels: theirs.
      prior: how many examples the pseudo-example counts for.
    """
    K = logits.shape[1]
    ranges = jnp.max(logits, axis=1) - jnp.min(logits, axis=1)
    unit = jnp.mean(ranges)
    unit = jnp.where(unit > 0, unit, 1.0)
    pseudo = jnp.median(ranges) * jnp.eye(1, K, dtype=logits.dtype)

    def objective(log_t):
        T = unit * jnp.exp(log_t)
        data = jnp.sum(link_nll(link, logits / T, labels))
        return data - prior * jnp.mean(jnp.log(link(pseudo / T))) if prior else data

    def search(low, high, points):
        grid = jnp.linspace(low, high, points)
        values = jax.lax.map(objective, grid)
        best = jnp.argmin(jnp.where(jnp.isnan(values), jnp.inf, values))
        width = (high - low) / (points - 1)
        return grid[best], grid[best] - width, grid[best] + width

    def refine(_, found):
        _, low, high = found
        return search(low, high, FINER)

    first = search(jnp.asarray(COLDEST), jnp.asarray(HOTTEST), POINTS)
    log_t, _, _ = jax.lax.fori_loop(0, ROUNDS, refine, first)
    at_bound = (first[0] <= COLDEST) | (first[0] >= HOTTEST)
    finite = jnp.all(jnp.isfinite(logits))
    return Temperature(jnp.where(finite, unit * jnp.exp(log_t), jnp.nan), at_bound & finite)
