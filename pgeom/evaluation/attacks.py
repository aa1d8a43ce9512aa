"""Perturbed inputs: random corruption and first-order attacks.

Perturbations of inputs in [0, 1]: random corruption, and first-order white-box attacks.

All act on raw intensities and stay in [0, 1]; the model that is attacked includes its own
standardisation. FGSM and PGD maximise cross-entropy; APGD maximises a ratio of logit differences,
which does not saturate. All probe local sensitivity and certify nothing.

>>> import jax, jax.numpy as jnp
>>> x = jnp.array([[0.0, 0.5, 1.0]])
>>> moved = fgsm(lambda x: x[..., :2], x, jnp.array([1]), epsilon=0.1)
>>> [round(float(v), 2) for v in moved[0]]
[0.1, 0.4, 1.0]

Auto-PGD (Croce and Hein, 2020): signed ascent of many examples at once, with no step to choose.

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
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray, ScalarLike

PGD_STEPS = 20  # with steps of ε/8 and a random start: the paper states neither

Classifier = Callable[[Float[Array, "n d"]], Float[Array, "n K"]]
"""`model(x[n, d]) -> logits[n, K]`, from raw intensities."""


def gaussian(
    key: PRNGKeyArray, x: Float[Array, "*shape"], *, sigma: ScalarLike
) -> Float[Array, "*shape"]:
    """x + σ·N(0, 1), clipped to [0, 1]."""
    return jnp.clip(x + sigma * jax.random.normal(key, x.shape, x.dtype), 0, 1)


def salt_and_pepper(
    key: PRNGKeyArray, x: Float[Array, "*shape"], *, fraction: ScalarLike
) -> Float[Array, "*shape"]:
    """x with each entry set to 0 or 1, with probability fraction/2 each."""
    u = jax.random.uniform(key, x.shape, x.dtype)
    return jnp.where(u < fraction / 2, 0.0, jnp.where(u < fraction, 1.0, x))


def fgsm(
    model: Classifier,
    x: Float[Array, "n d"],
    labels: Integer[Array, " n"],
    *,
    epsilon: ScalarLike,
) -> Float[Array, "n d"]:
    """One step of ε along the sign of the gradient.

    clip(x + ε sign ∇ₓ CE(model(x), y), 0, 1)

    Args:
      model: `model(x[n, d]) -> logits[n, K]`, from raw intensities.
      x: in [0, 1], `[n, d]`.
      labels: `[n]`.
      epsilon: the radius in the maximum norm.

    Returns:
      `[n, d]`.
    """
    return _ascend(model, x, labels, x, epsilon, epsilon)


def pgd(
    key: PRNGKeyArray,
    model: Classifier,
    x: Float[Array, "n d"],
    labels: Integer[Array, " n"],
    *,
    epsilon: ScalarLike,
) -> Float[Array, "n d"]:
    """Twenty steps of ε/8 along the sign of the gradient, from a random start in the ball.

    Args:
      key: for the random start.
      model: `model(x[n, d]) -> logits[n, K]`, from raw intensities.
      x: in [0, 1], `[n, d]`.
      labels: `[n]`.
      epsilon: the radius in the maximum norm.

    Returns:
      `[n, d]`, within ε of x and in [0, 1].
    """
    return jax.lax.fori_loop(
        0,
        PGD_STEPS,
        lambda _, moved: _ascend(model, x, labels, moved, epsilon / 8, epsilon),
        _random_start(key, x, epsilon),
    )


def apgd(
    key: PRNGKeyArray,
    model: Classifier,
    x: Float[Array, "n d"],
    labels: Integer[Array, " n"],
    *,
    epsilon: ScalarLike,
) -> Float[Array, "n d"]:
    """Auto-PGD on the DLR loss: a hundred steps, 2ε at first, from a random start in the ball.

    Args:
      key: for the random start.
      model: `model(x[n, d]) -> logits[n, K]`, from raw intensities.
      x: in [0, 1], `[n, d]`.
      labels: `[n]`.
      epsilon: the radius in the maximum norm.

    Returns:
      `[n, d]`, within ε of x and in [0, 1]: of all points tried, x among them, that of the highest
      DLR loss.
    """

    def objective(points):
        return dlr(model(points), labels)

    def project(points):
        return jnp.clip(jnp.clip(points, x - epsilon, x + epsilon), 0, 1)

    start = _random_start(key, x, epsilon)
    found = maximise(objective, project, start, 2 * epsilon)
    return jnp.where((objective(found) > objective(x))[:, None], found, x)


def dlr(logits: Float[Array, "n K"], labels: Integer[Array, " n"]) -> Float[Array, " n"]:
    """The difference-of-logits ratio: positive where another class than the label is predicted.

    (max_{j≠y} z_j − z_y)/(z₍₁₎ − z₍₃₎), with the largest and the third largest logit

    Neither a shift nor a scale of the logits changes it, so confidence does not make it flat. Two
    classes have no third: for them it is the difference alone.
    """
    mine = _is_label(logits, labels)
    others = jnp.max(jnp.where(mine, -jnp.inf, logits), axis=-1)
    gap = others - jnp.sum(jnp.where(mine, logits, 0.0), axis=-1)
    if logits.shape[-1] == 2:
        return gap
    largest = jax.lax.top_k(logits, 3)[0]
    spread = largest[:, 0] - largest[:, 2]
    return gap / jnp.where(spread > 0, spread, 1.0)  # the gap of three equal logits is not positive


def attack_loss(
    model: Classifier, x: Float[Array, "n d"], labels: Integer[Array, " n"]
) -> Float[Array, ""]:
    """The loss that the attacks maximise: the mean cross-entropy of the model's softmax."""
    log_p = jax.nn.log_softmax(model(x))
    return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=-1))


def _ascend(
    model: Classifier,
    x: Float[Array, "n d"],
    labels: Integer[Array, " n"],
    moved: Float[Array, "n d"],
    step: ScalarLike,
    epsilon: ScalarLike,
) -> Float[Array, "n d"]:
    """A signed step from `moved`, back into the ball around x and into [0, 1]."""
    slope = jax.grad(lambda x: jnp.sum(_log_odds_against(model(x), labels)))(moved)
    inside = jnp.clip(moved + step * jnp.sign(slope), x - epsilon, x + epsilon)
    return jnp.clip(inside, 0, 1)


def _log_odds_against(
    logits: Float[Array, "n K"], labels: Integer[Array, " n"]
) -> Float[Array, " n"]:
    """The u with CE = log(1 + eᵘ): its slope has the same sign and never underflows to zero."""
    mine = _is_label(logits, labels)
    others = jax.nn.logsumexp(jnp.where(mine, -jnp.inf, logits), axis=-1)
    return others - jnp.sum(jnp.where(mine, logits, 0.0), axis=-1)


def _is_label(logits, labels):
    return jnp.arange(logits.shape[-1])[None] == labels[:, None]


def _random_start(key, x, epsilon):
    return jnp.clip(x + jax.random.uniform(key, x.shape, x.dtype, -1.0, 1.0) * epsilon, 0, 1)


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
