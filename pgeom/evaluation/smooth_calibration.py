"""Smooth calibration error: no bins, and no bandwidth to choose.

The errors y − f of forecasts f ∈ [0, 1] are smoothed along f by a Gaussian of width σ, reflected at
0 and 1, and the absolute value is integrated:

smECE_σ = ∫ |(1/n) Σ_i K_σ(t, f_i) (y_i − f_i)| dt,    smECE = the σ at which smECE_σ = σ

(Błasiok and Nakkiran, 2023). smECE_σ falls as σ grows, so there is one such σ. It is computed on a
grid, where the reflected Gaussian is a product in the cosine basis.

>>> import jax.numpy as jnp
>>> confident = jnp.array([[0.9, 0.1]] * 10)
>>> round(float(smooth_ece(confident, jnp.array([0] * 6 + [1] * 4))), 4)  # right 6 times of 10
0.3
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pgeom.evaluation.batch import Values, align_probabilities, hits

GRID = 1024  # cells of [0, 1]
PARTS = 256  # of the examples
HALVINGS = 22  # of the interval of σ: far below what a cell can tell


def smooth_ece(probabilities: Values, labels: Values) -> Float[Array, "*runs"]:
    """The smooth calibration error of the top label.

    Args:
      probabilities: `[..., n, K]`.
      labels: integers, `[..., n]`.

    Returns:
      `[...]`, in [0, 1].
    """
    scores, labels, dtype = align_probabilities(probabilities, labels)
    confidence, correct = jnp.max(scores, axis=-1), hits(scores, labels)
    one_run = jnp.vectorize(_fixed_point, signature="(n),(n)->()")
    return one_run(confidence, correct - confidence).astype(dtype)


@partial(jax.jit, inline=True)  # or the loop would be compiled at every call
def _fixed_point(forecast: Float[Array, " n"], error: Float[Array, " n"]) -> Float[Array, ""]:
    """The σ at which smECE_σ = σ, by bisection."""
    masses = _on_grid(forecast, error / forecast.shape[0])
    cosines = jax.scipy.fft.dct(masses, norm="ortho")
    frequencies = jnp.pi * jnp.arange(GRID, dtype=masses.dtype)

    def smoothed(sigma):
        damping = jnp.exp(-jnp.square(frequencies * sigma) / 2)
        return jnp.sum(jnp.abs(jax.scipy.fft.idct(cosines * damping, norm="ortho")))

    def halve(_, bracket):
        low, high = bracket
        middle = (low + high) / 2
        below = smoothed(middle) > middle
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    ends = jnp.zeros_like(masses[0]), jnp.ones_like(masses[0])
    sigma, _ = jax.lax.fori_loop(0, HALVINGS, halve, ends)
    return jnp.where(jnp.any(jnp.isnan(error)), jnp.nan, sigma)


def _on_grid(place: Float[Array, " n"], mass: Float[Array, " n"]) -> Float[Array, " cells"]:
    """Masses at places of [0, 1], each shared by the two cells whose centres are nearest."""
    position = place * GRID - 0.5
    lower = jnp.floor(position)
    share = position - lower
    cell = lower.astype(jnp.int32)
    # added up in parts: where many examples share a cell, one sum would lose digits with each
    part = jnp.arange(place.shape[0]) % PARTS
    empty = jnp.zeros((PARTS, GRID), mass.dtype)
    halved = empty.at[part, jnp.clip(cell, 0, GRID - 1)].add(mass * (1 - share))
    both = halved.at[part, jnp.clip(cell + 1, 0, GRID - 1)].add(mass * share)
    return jnp.sum(both, axis=0)
