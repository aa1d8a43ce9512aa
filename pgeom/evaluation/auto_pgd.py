"""Auto-PGD (Croce and Hein, 2020): signed ascent of many examples at once, with no step to choose.

Every example moves by a full step along the sign of its gradient, with momentum. At checkpoints,
one whose objective rose too rarely, or whose best did not change, goes back to its best point and
on with half the step.

>>> import jax.numpy as jnp
>>> peak = jnp.array([[0.3, 0.9]])
>>> height = lambda x: -jnp.sum((x - peak) ** 2, axis=1)
>>> best = maximise(height, lambda x: jnp.clip(x, 0, 1), jnp.zeros((1, 2)), 1.0)
>>> [round(float(v), 2) for v in best[0]]
[0.3, 0.9]
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, ScalarLike

STEPS = 100
MOMENTUM = 0.75  # the share of the new step, beside the previous displacement
RHO = 0.75  # the share of steps that must raise the objective, or else the step is halved

Objective = Callable[[Float[Array, "n d"]], Float[Array, " n"]]


class Points(NamedTuple):
    """Where each example is, its objective there, and the gradient of it."""

    x: Float[Array, "n d"]
    value: Float[Array, " n"]
    slope: Float[Array, "n d"]


class State(NamedTuple):
    """The search for n examples, and what its next checkpoint compares."""

    here: Points
    previous: Float[Array, "n d"]
    best: Points
    step: Float[Array, " n"]
    rises: Int[Array, " n"]  # steps since the checkpoint that raised the objective
    best_value: Float[Array, " n"]  # at the checkpoint
    halved: Bool[Array, " n"]  # by the checkpoint


def maximise(
    objective: Objective,
    project: Callable[[Float[Array, "n d"]], Float[Array, "n d"]],
    start: Float[Array, "n d"],
    step: ScalarLike,
) -> Float[Array, "n d"]:
    """The best of `STEPS` points for each example.

    Args:
      objective: `objective(x[n, d]) -> [n]`, of each example by itself.
      project: onto the feasible set, which is a box.
      start: `[n, d]`, feasible.
      step: of the beginning, such as the width of the box.

    Returns:
      `[n, d]`, at least as good as `start`.
    """

    def evaluate(x):
        values, pull_back = jax.vjp(objective, x)
        return Points(x, values, *pull_back(jnp.ones_like(values)))

    def advance(k, state):
        z = project(state.here.x + state.step[:, None] * jnp.sign(state.here.slope))
        share = jnp.where(k == 0, 1.0, MOMENTUM).astype(start.dtype)
        drift = state.here.x - state.previous
        x = project(state.here.x + share * (z - state.here.x) + (1 - share) * drift)
        state = _move(state, evaluate(x))
        return jax.lax.cond(gaps[k] > 0, lambda: _look_back(state, gaps[k]), lambda: state)

    gaps = jnp.asarray(_gaps(STEPS))
    first, n = evaluate(start), start.shape[0]
    steps = jnp.full(n, step, start.dtype)
    fresh = (jnp.zeros(n, jnp.int32), first.value, jnp.zeros(n, bool))
    state = State(first, start, first, steps, *fresh)
    return jax.lax.fori_loop(0, STEPS, advance, state).best.x


def checkpoints(steps: int) -> tuple[int, ...]:
    """The steps at which the search looks back.

    p₀ = 0, p₁ = .22, pⱼ₊₁ = pⱼ + max(pⱼ − pⱼ₋₁ − .03, .06), times the number of steps.

    >>> checkpoints(100)
    (22, 41, 57, 70, 80, 87, 93, 99)
    """
    percent = [0, 22]
    while percent[-1] < 100:
        percent.append(percent[-1] + max(percent[-1] - percent[-2] - 3, 6))
    return tuple(-(-place * steps // 100) for place in percent[1:] if place <= 100)


def _gaps(steps: int) -> list[int]:
    """After each step, the number of steps since the last checkpoint if it is one, else 0."""
    ends = checkpoints(steps)
    lengths = dict(zip(ends, (b - a for a, b in zip((0, *ends), ends, strict=False)), strict=True))
    return [lengths.get(step, 0) for step in range(1, steps + 1)]


def _move(state: State, to: Points) -> State:
    """The state after a step."""
    return state._replace(
        here=to,
        previous=state.here.x,
        best=_choose(to.value > state.best.value, to, state.best),
        rises=state.rises + (to.value > state.here.value).astype(state.rises.dtype),
    )


def _look_back(state: State, gap: Int[Array, ""]) -> State:
    """At a checkpoint: back to the best point with half the step, where progress was too little."""
    rare = state.rises.astype(float) < RHO * gap.astype(float)
    stuck = ~state.halved & (state.best.value <= state.best_value)
    halve = rare | stuck
    return state._replace(
        here=_choose(halve, state.best, state.here),
        step=jnp.where(halve, state.step / 2, state.step),
        rises=jnp.zeros_like(state.rises),
        best_value=state.best.value,
        halved=halve,
    )


def _choose(mask: Bool[Array, " n"], yes: Points, no: Points) -> Points:
    rows = mask[:, None]
    return Points(
        jnp.where(rows, yes.x, no.x),
        jnp.where(mask, yes.value, no.value),
        jnp.where(rows, yes.slope, no.slope),
    )
