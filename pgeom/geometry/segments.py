"""Scans of segments for what isolated points miss: kinks, and very narrow ridges.

If the slope along a segment changes by more than the curvature accounts for, there is one or the
other. Bisection tells which, because only a kink remains unexplained on every scale.

>>> import jax, jax.numpy as jnp, numpy as np
>>> with jax.enable_x64(True):
...     suspects = scan(lambda p: jnp.sum(p**2) + jnp.maximum(p[0] - 0.7, 0), 3)
>>> bool(np.all(np.abs(suspects.left[suspects.jump > 0.1, 0] - 0.7) < 1e-6))
True
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pgeom.compilation import quick_jit
from pgeom.geometry.closed_forms import as_pytree
from pgeom.geometry.sampling import inward
from pgeom.types import Generator

LINES, STATIONS = 192, 129
SUSPECTS = 96  # intervals to bisect
HALVINGS = 30
KINK = 1e-6  # the smallest jump of a slope, relative to the slope, that counts as a kink


class Suspects(NamedTuple):
    """The intervals in which bisection ended.

    Attributes:
      left, right: the two ends.
      jump: the change of the unit-speed slope from left to right that the curvature does not
        account for: zero where F is smooth.
      slope: the size of the slope there.
      step: the change of F itself that the slope does not account for.
    """

    left: Float[np.ndarray, "s K"]
    right: Float[np.ndarray, "s K"]
    jump: Float[np.ndarray, " s"]
    slope: Float[np.ndarray, " s"]
    step: Float[np.ndarray, " s"]

    @property
    def middle(self) -> Float[np.ndarray, "s K"]:
        return (self.left + self.right) / 2

    def smallest_kink(self, precision: float) -> Float[np.ndarray, " s"]:
        """The jump above which each counts as a kink, if F has this relative precision."""
        return KINK * self.slope + 256 * precision * np.nanmax(self.slope, initial=0.0)


def no_suspects(K: int) -> Suspects:
    """Those of a function that was not scanned."""
    nowhere, nothing = np.zeros((0, K)), np.zeros(0)
    return Suspects(nowhere, nowhere, nothing, nothing, nothing)


def derivatives_along(
    F: Generator, x: Float[Array, " K"], direction: Float[Array, " K"]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """F, its slope and its curvature along a direction."""
    (value, slope), (_, curvature) = jax.jvp(
        lambda x: jax.jvp(F, (x,), (direction,)), (x,), (direction,)
    )
    return value, slope, curvature


def scan(F: Generator, K: int) -> Suspects:
    """The most suspicious intervals of random segments through the simplex of K classes."""
    F, rng = as_pytree(F), np.random.default_rng(5)
    starts, ends = rng.dirichlet(np.full(K, max(0.3, 2 / K)), (2, LINES))
    corners = np.arange(LINES // 2)
    starts[corners] = np.eye(K)[corners % K]  # random ends do not reach them if K is large
    starts, ends = inward(starts), inward(ends)
    stations = [np.asarray(x) for x in _stations(F, starts, ends - starts)]
    a, middle, b = ([x[:, i : STATIONS - 2 + i : 2].ravel() for x in stations] for i in range(3))
    # An interval is suspicious if halving it does not shrink the unexplained change, which for a
    # smooth function shrinks eightfold.
    whole = _unexplained(a, b)[1]
    half = np.maximum(_unexplained(a, middle)[1], _unexplained(middle, b)[1])
    relevant = (half > 1e-9 * (np.abs(a[2]) + np.abs(b[2]))) & (whole > 0)
    suspicion = np.where(relevant, half / np.where(relevant, whole, 1.0), 0.0)
    chosen = np.argsort(-np.nan_to_num(suspicion), kind="stable")[:SUSPECTS]
    lines = np.repeat(np.arange(LINES), STATIONS // 2)[chosen]
    a, b = ([x[chosen] for x in end] for end in (a, b))
    return Suspects(*map(np.asarray, _bisect(F, starts[lines], (ends - starts)[lines], a, b)))


@quick_jit
def _stations(F, starts, directions):
    """t, F, its slope and its curvature at the stations of every line, `[LINES, STATIONS]` each."""

    def along_line(line):
        start, direction = line
        return jax.vmap(lambda t: (t, *derivatives_along(F, start + t * direction, direction)))(t)

    t = jnp.linspace(0, 1, STATIONS)
    return jax.lax.map(along_line, (starts, directions), batch_size=32)


@quick_jit
def _bisect(F, starts, directions, a, b):
    """Halve intervals, given by the values at their ends, and keep the worse half."""

    def worse_half(start, direction, a, b):
        t = (a[0] + b[0]) / 2
        middle = [t, *derivatives_along(F, start + t * direction, direction)]
        first = _unexplained(a, middle)[1] > _unexplained(middle, b)[1]
        return jax.tree.map(lambda x, y: jnp.where(first, x, y), (a, middle), (middle, b))

    def halve(_, ab):
        return jax.vmap(worse_half)(starts, directions, *ab)

    a, b = jax.lax.fori_loop(0, HALVINGS, halve, (a, b))
    left, right = (starts + x[0][:, None] * directions for x in (a, b))
    jump, slope = _unexplained(a, b)[0], jnp.maximum(jnp.abs(a[2]), jnp.abs(b[2]))
    speed = jnp.linalg.norm(directions, axis=1)
    step = b[1] - a[1] - (b[0] - a[0]) * (a[2] + b[2]) / 2
    return left, right, jump / speed, slope / speed, step


def _unexplained(a, b):
    """The change of slope that the curvature does not explain; its size plus that of the value.

    a and b are t, F, its slope and its curvature at two points of a line.
    """
    (t, value, slope, curvature), (t_b, value_b, slope_b, curvature_b) = a, b
    by_slope = slope_b - slope - (t_b - t) * (curvature + curvature_b) / 2
    by_value = (value_b - value) / (t_b - t) - (slope + slope_b) / 2
    return by_slope, abs(by_slope) + abs(by_value)
