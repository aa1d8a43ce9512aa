"""From a convex generator to its divergence and its strictly proper score, Eqs. (1)–(4).

    D_F(q, p) = F(q) − F(p) − ⟨∇F(p), q − p⟩,    ℓ_F(p, y) = D_F(e_y, p)

>>> import jax.numpy as jnp
>>> score = bregman_score(lambda p: jnp.sum(p**2))      # Brier
>>> score(jnp.array([0.7, 0.2, 0.1]), jnp.array(0))
Array(0.14000, dtype=float32)
>>> score(jnp.array([0.7, 0.2, 0.1]), jnp.array([0.5, 0.5, 0.0]))    # its mean over two labels
Array(0.64, dtype=float32)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pgeom import edge
from pgeom.geometry import simplex
from pgeom.geometry.any_generator import (
    any_divergence,
    scalar_function,
    slopes,
    values_at,
    vertex_values,
)
from pgeom.geometry.closed_forms import closed_forms, sum_over_parts
from pgeom.geometry.softmax import softmax
from pgeom.types import Generator, Labels, Score, Vectors

NEXT_TO_A_VERTEX = 31 / 32  # where a difference to F at the vertex has lost five bits

PairFunction: TypeAlias = Callable[[Vectors, Vectors], Float[Array, "..."]]


def bregman_divergence(F: Generator) -> PairFunction:
    """The Bregman divergence of a generator.

    Args:
      F: `F(p[K]) -> scalar`, convex.

    Returns:
      `divergence(q[..., K], p[..., K]) -> [...]`, Eq. (bregman). With a conditional distribution
      η as q it is the conditional regret, Lemma (regret).
    """
    return edge.lift_pairs(jax.jit(lambda q, p: _divergence(F, _from_point, q, p), inline=True))


def bregman_score(F: Generator) -> "BregmanScore":
    """The score of a generator, strictly proper where F is strictly convex.

    Its gradient in p is one Hessian-vector product, H_F(p)(p − e_y), Eq. (prob-gradient).

    Args:
      F: `F(p[K]) -> scalar`, convex.

    Returns:
      `score(p[..., K], labels) -> [...]`, Eq. (score). Labels are integers `[...]`, or soft
      targets `[..., K]`, for which the value is the expected score.
    """
    return BregmanScore(F)


@dataclass(frozen=True, eq=False)
class BregmanScore:
    """The score of a generator: ℓ_F(p, y) = D_F(e_y, p), and its mean under a soft target.

    Calling it checks the arguments and accepts any leading dimensions; the methods take a batch.
    """

    generator: Generator

    def __call__(self, p: Vectors, labels: Labels) -> Float[Array, "*batch"]:
        return self._lifted(edge.probabilities("p", p), labels)

    @cached_property
    def _lifted(self) -> Callable:
        return edge.lift_targets(self.score_labels, self.score_targets, name="p")

    def __getstate__(self) -> dict[str, Generator]:
        """What a pickle or a copy holds: not the compiled function, which cannot be pickled."""
        return {"generator": self.generator}

    def score_labels(self, p: Float[Array, "n K"], labels: Int[Array, " n"]) -> Float[Array, " n"]:
        """D_F(e_y, p)."""

        def part_value(F):
            if (form := closed_forms(F).vertex_divergence) is None:
                return _divergence(F, _from_vertex, labels, p)
            return jax.vmap(form)(labels, p, _from_vertex(labels, p)[1])

        return sum_over_parts(part_value, self.generator, p.dtype)

    def score_targets(
        self, p: Float[Array, "n K"], targets: Float[Array, "n K"]
    ) -> Float[Array, " n"]:
        """E_{Y∼η} D_F(e_Y, p) = D_F(η, p) + E F(e_Y) − F(η)."""
        divergence = _divergence(self.generator, _from_target, targets, p)
        return divergence + _jensen_gap(self.generator, targets)

    def score_labels_on_logits(
        self, logits: Float[Array, "n K"], labels: Int[Array, " n"]
    ) -> Float[Array, " n"]:
        """D_F(e_y, softmax(z))."""

        def part_value(F):
            if (form := closed_forms(F).score_on_logits) is not None:
                return jax.vmap(form)(logits, labels)
            return BregmanScore(F).score_labels(_softmax(F, logits), labels)

        return sum_over_parts(part_value, self.generator, logits.dtype)

    def score_targets_on_logits(
        self, logits: Float[Array, "n K"], targets: Float[Array, "n K"]
    ) -> Float[Array, " n"]:
        """E_{Y∼η} D_F(e_Y, softmax(z))."""

        def part_value(F):
            if (form := closed_forms(F).divergence_on_logits) is not None:
                return jax.vmap(form)(targets, logits) + _jensen_gap(F, targets)
            return BregmanScore(F).score_targets(_softmax(F, logits), targets)

        return sum_over_parts(part_value, self.generator, logits.dtype)


def conditional_risk(score: Score) -> PairFunction:
    """R(η, p) = E_{Y∼η} score(p, Y), for pairs `(eta[..., K], p[..., K])`."""
    if isinstance(score, BregmanScore):
        return lambda eta, p: score(p, eta)

    def risk(eta, p):
        (n, K), labels = p.shape, jnp.arange(p.shape[-1])
        every = score(jnp.repeat(p, K, axis=0), jnp.tile(labels, n))
        return jnp.sum(eta * every.reshape(n, K), axis=1)

    return edge.lift_pairs(risk, ("eta", "p"))


def regret(score: Score) -> PairFunction:
    """R(η, p) − R(η, η), for pairs `(eta[..., K], p[..., K])`; of a Bregman score, D_F(η, p)."""
    if isinstance(score, BregmanScore):
        return bregman_divergence(score.generator)
    risk = conditional_risk(score)
    return lambda eta, p: risk(eta, p) - risk(eta, eta)


def _divergence(F: Generator, displace: Callable, target, p):
    """D_F(q, p) of a batch, where `displace(target, p)` gives q and d = q − p."""

    def part_value(F):
        if (form := closed_forms(F).divergence) is None:
            return any_divergence(F, displace)(target, p)
        q, d = displace(target, p)
        return jax.vmap(form)(q, p, d)

    return sum_over_parts(part_value, F, p.dtype)


def _softmax(F: Generator, logits):
    """softmax of a batch."""
    # Without a closed form the score's gradient is that of autodiff next to p, where p_j itself may
    # have underflowed to zero: the tangent of softmax is then replaced by the one at that point, or
    # their product would be 0·∞.
    floored = closed_forms(F).divergence is None
    return jax.vmap(lambda z: softmax(z, floored))(logits)


def _from_point(q, p):
    return q, q - p


def _from_vertex(labels, p):
    return jax.vmap(simplex.towards_vertex)(p, labels)


def _from_target(targets, p):
    return targets, jax.vmap(simplex.displacement)(targets, p)


def _jensen_gap(F: Generator, eta):
    """E_{Y∼η} F(e_Y) − F(η) ≥ 0, the expected score of η itself; exactly zero at a vertex."""

    def part_value(F):
        function = scalar_function(F)
        at_vertices = vertex_values(F, eta.shape[-1], eta.dtype)[None]
        weighted = jnp.where(eta > 0, eta * at_vertices, 0.0)  # 0 · ∞ counts as 0
        at_eta = values_at(function, eta)
        gap = jnp.sum(weighted, axis=1) - at_eta
        size = jnp.sum(jnp.abs(weighted), axis=1) + jnp.abs(at_eta)

        one_hot = jnp.sum(eta > 0, axis=1) == 1  # η_m may have been rounded to one
        close = (jnp.max(eta, axis=1) > NEXT_TO_A_VERTEX) & ~one_hot
        gap = jax.lax.cond(
            jnp.any(close),
            lambda: jnp.where(close, _gap_next_to_vertex(F, eta, at_vertices, gap, size), gap),
            lambda: gap,
        )
        # what is left is rounding, which no convex F may make a negative score; whether a function
        # without closed forms is convex, only its gap can tell
        convex = closed_forms(F).divergence is not None
        gap = jnp.maximum(gap, 0.0) if convex else gap
        return jnp.where(one_hot, 0.0, gap)

    return sum_over_parts(part_value, F, eta.dtype)


def _gap_next_to_vertex(F: Generator, eta, at_vertices, gap, size):
    """The same where the largest η_m is close to one, and F(η) to F(e_m).

    E F(e_Y) − F(η) = Σ_{y≠m} η_y D_F(e_y, e_m) − D_F(η, e_m), in terms that are as small as the
    other η_y. Where the slopes at the vertex are too steep for it, as those of entropies, which are
    zero at the vertices and do not cancel, only the rounding of η_m is made good.

    Args:
      F: the generator.
      eta: η, `[n, K]`.
      at_vertices: F(e_1), …, `[1, K]`.
      gap: the gap as a difference, `[n]`.
      size: the sum of the absolute values of its terms, `[n]`.
    """
    m = jax.vmap(simplex.argmax_mask)(eta)
    e_m = m.astype(eta.dtype)
    slope = slopes(scalar_function(F), e_m)

    def mine(values):
        return jnp.sum(jnp.where(m, values, 0.0), axis=1, keepdims=True)

    others = jnp.where(m, 0.0, eta)
    rise, run = at_vertices - mine(at_vertices), slope - mine(slope)
    steps = jnp.sum(jnp.where(others > 0, others * (rise - run), 0.0), axis=1)
    reach = (
        jnp.abs(at_vertices) + jnp.abs(mine(at_vertices)) + jnp.abs(slope) + jnp.abs(mine(slope))
    )
    careful = steps - _divergence(F, _from_target, eta, e_m)
    better = jnp.isfinite(careful) & (jnp.sum(others * reach, axis=1) < size)
    rounded = 1 - mine(eta)[:, 0] - jnp.sum(others, axis=1)  # η_m is that much too small
    corrected = gap + rounded * (mine(at_vertices) - mine(slope))[:, 0]
    return jnp.where(better, careful, jnp.where(jnp.isfinite(corrected), corrected, gap))
