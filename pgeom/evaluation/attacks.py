"""Perturbations of inputs in [0, 1]: random corruption, and first-order white-box attacks.

All act on raw intensities and stay in [0, 1]; the model that is attacked includes its own
standardisation. FGSM and PGD maximise cross-entropy; APGD maximises a ratio of logit differences,
which does not saturate. All probe local sensitivity and certify nothing.

>>> import jax, jax.numpy as jnp
>>> x = jnp.array([[0.0, 0.5, 1.0]])
>>> moved = fgsm(lambda x: x[..., :2], x, jnp.array([1]), epsilon=0.1)
>>> [round(float(v), 2) for v in moved[0]]
[0.1, 0.4, 1.0]
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PRNGKeyArray, ScalarLike

from pgeom.types import Entries, Rows, Scalar

Points = Float[Array, "n d"]
Labels = Integer[Array, " n"]
Classifier = Callable[[Points], Rows]
"""`model(x[n, d]) -> logits[n, K]`, from raw intensities."""


def gaussian(key: PRNGKeyArray, x: Entries, *, sigma: ScalarLike) -> Entries:
    """x + σ·N(0, 1), clipped to [0, 1]."""
    return jnp.clip(x + sigma * jax.random.normal(key, x.shape, x.dtype), 0, 1)


def salt_and_pepper(key: PRNGKeyArray, x: Entries, *, fraction: ScalarLike) -> Entries:
    """x with each entry set to 0 or 1, with probability fraction/2 each."""
    u = jax.random.uniform(key, x.shape, x.dtype)
    return jnp.where(u < fraction / 2, 0.0, jnp.where(u < fraction, 1.0, x))


def fgsm(model: Classifier, x: Points, labels: Labels, *, epsilon: ScalarLike) -> Points:
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
    return _project(x + epsilon * _direction(model, x, labels), x, epsilon)


PGD_STEPS = 20  # with steps of ε/8 and a random start: the paper states neither


def pgd(
    key: PRNGKeyArray, model: Classifier, x: Points, labels: Labels, *, epsilon: ScalarLike
) -> Points:
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

    def step(_, moved):
        return _project(moved + epsilon / 8 * _direction(model, moved, labels), x, epsilon)

    return jax.lax.fori_loop(0, PGD_STEPS, step, _random_start(key, x, epsilon))


def attack_loss(model: Classifier, x: Points, labels: Labels) -> Scalar:
    """The loss that FGSM and PGD maximise: the mean cross-entropy of the model's softmax."""
    log_p = jax.nn.log_softmax(model(x))
    return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=-1))


def _direction(model, x, labels):
    """The sign of the gradient of cross-entropy.

    It is that of u with CE = log(1 + eᵘ), whose gradient never underflows to zero.
    """

    def log_odds_against(x):
        own, others = _split(model(x), labels)
        return jnp.sum(jax.nn.logsumexp(others, axis=-1) - own)

    return jnp.sign(jax.grad(log_odds_against)(x))


def _split(logits, labels):
    """The logits of the labels `[n]`, and all logits with −∞ in the place of those."""
    own = jnp.arange(logits.shape[-1])[None] == labels[:, None]
    return jnp.sum(jnp.where(own, logits, 0.0), axis=-1), jnp.where(own, -jnp.inf, logits)


def _project(moved, x, epsilon):
    """Into the ball around x and into [0, 1]."""
    return jnp.clip(jnp.clip(moved, x - epsilon, x + epsilon), 0, 1)


def _random_start(key, x, epsilon):
    return jnp.clip(x + jax.random.uniform(key, x.shape, x.dtype, -1.0, 1.0) * epsilon, 0, 1)


# p₀ = 0, p₁ = .22, pⱼ₊₁ = pⱼ + max(pⱼ − pⱼ₋₁ − .03, .06), times the hundred steps, and their end
CHECKPOINTS = (0, 22, 41, 57, 70, 80, 87, 93, 99, 100)
MOMENTUM = 0.75  # the share of the new step, beside the previous displacement
RHO = 0.75  # the share of steps that must raise the loss, or else the step is halved


def apgd(
    key: PRNGKeyArray, model: Classifier, x: Points, labels: Labels, *, epsilon: ScalarLike
) -> Points:
    """Auto-PGD (Croce and Hein, 2020) on the DLR loss: a hundred steps, with no step to choose.

    Every example moves by a full step along the sign of its gradient, with momentum, from a random
    start in the ball; steps are 2ε at first. At checkpoints, an example whose loss rose too
    rarely, or whose best did not change, goes back to its best point and on with half the step.

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

    def advance(k, state):
        here = state.here
        z = _project(here.x + state.step[:, None] * jnp.sign(here.slope), x, epsilon)
        share = jnp.where(k == 0, 1.0, MOMENTUM).astype(x.dtype)
        drift = here.x - state.previous
        moved = here.x + share * (z - here.x) + (1 - share) * drift
        there = _try(model, _project(moved, x, epsilon), labels)
        return state._replace(
            here=there,
            previous=here.x,
            best=_choose(there.value > state.best.value, there, state.best),
            rises=state.rises + jnp.where(there.value > here.value, 1.0, 0.0),
        )

    ends = jnp.array(CHECKPOINTS)

    def period(number, state):
        state = jax.lax.fori_loop(ends[number], ends[number + 1], advance, state)
        return _look_back(state, ends[number + 1] - ends[number])

    first = _try(model, _random_start(key, x, epsilon), labels)
    steps, none = jnp.full_like(first.value, 2 * epsilon), jnp.zeros_like(first.value)
    state = _Search(first, first.x, first, steps, none, first.value, none > 0)
    best = jax.lax.fori_loop(0, len(ends) - 1, period, state).best
    return jnp.where((best.value > dlr(model(x), labels))[:, None], best.x, x)


def dlr(logits: Rows, labels: Labels) -> Float[Array, " n"]:
    """The difference-of-logits ratio: positive where another class than the label is predicted.

    (max_{j≠y} z_j − z_y)/(z₍₁₎ − z₍₃₎), with the largest and the third largest logit

    Neither a shift nor a scale of the logits changes it, so confidence does not make it flat. Two
    classes have no third: for them it is the difference alone.
    """
    own, others = _split(logits, labels)
    gap = jnp.max(others, axis=-1) - own
    if logits.shape[-1] == 2:
        return gap
    largest = jax.lax.top_k(logits, 3)[0]
    spread = largest[:, 0] - largest[:, 2]
    return gap / jnp.where(spread > 0, spread, 1.0)  # the gap of three equal logits is not positive


class _Tried(NamedTuple):
    """A point per example, the DLR loss there, and the gradient of it."""

    x: Array
    value: Array
    slope: Array


class _Search(NamedTuple):
    """Where the search for n examples is, and what its next checkpoint compares."""

    here: _Tried
    previous: Array
    best: _Tried
    step: Array
    rises: Array  # steps since the checkpoint that raised the loss
    best_value: Array  # at the checkpoint
    halved: Array  # by the checkpoint


def _try(model, points, labels):
    values, pull_back = jax.vjp(lambda points: dlr(model(points), labels), points)
    return _Tried(points, values, *pull_back(jnp.ones_like(values)))


def _look_back(state, steps):
    """At a checkpoint: back to the best point with half the step, where progress was too little."""
    stuck = ~state.halved & (state.best.value <= state.best_value)
    halve = (state.rises < RHO * steps.astype(state.rises.dtype)) | stuck
    return state._replace(
        here=_choose(halve, state.best, state.here),
        step=jnp.where(halve, state.step / 2, state.step),
        rises=jnp.zeros_like(state.rises),
        best_value=state.best.value,
        halved=halve,
    )


def _choose(mask, yes, no):
    """The points of `yes` where the mask `[n]` is true, else those of `no`."""
    return jax.tree.map(partial(jax.vmap(jnp.where), mask), yes, no)
