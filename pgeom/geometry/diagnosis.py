"""Everything known about a generator, in one search and one answer: `pgeom.diagnose(F, K)`.

>>> import jax.numpy as jnp
>>> report = diagnose(lambda p: jnp.sum(p**3), 3)
>>> report
<F on 3 classes: strictly convex, smooth; 0 ≤ m_T, M_T ≤ 4>
>>> check_generator(lambda p: -jnp.sum(p**2), K=3).convex
False
"""

import time
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.geometry import bounds
from pgeom.geometry.bounds import Bound
from pgeom.geometry.bregman import BregmanScore
from pgeom.geometry.closed_forms import as_pytree
from pgeom.geometry.convexity import Witness
from pgeom.geometry.diagnosis_table import table
from pgeom.geometry.envelopes import Envelope
from pgeom.geometry.findings import Findings, Kink, find
from pgeom.types import Generator

# 1 − p_y at which the score is compared in both precisions; no round numbers, where kinks may be
DISTANCES = 1.07 * 10.0 ** -np.arange(1, 8)
DRAWS = 24  # random logits beside those


class GeneratorReport(NamedTuple):
    """Whether a function F is a generator on K classes: True, False, or None if rounding decides.

    `witness` is a pair with D_F(η, p) < 0 where F is not convex, one with D_F(η, p) = 0 up to
    rounding and η ≠ p where it is not strictly convex or not known to be, and None otherwise.
    `how` says how far to trust it.
    """

    finite_at_vertices: bool
    convex: bool | None
    strictly_convex: bool | None
    witness: Witness | None
    how: str


class Float32Error(NamedTuple):
    """The largest error of the float32 score against float64, over logits of every kind.

    Attributes:
      relative: to the value itself.
      in_units: of the rounding that its terms have, ε·size: a few units are as good as it gets.
    """

    relative: float
    in_units: float


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """All that is known about F on K classes; printed, a table.

    Attributes:
      K: the number of classes.
      finite_at_vertices: whether F is finite there. If not, so is no score.
      finite_inside: whether F is finite wherever it was looked at.
      kinks: where the slope of F jumps, the sharpest first.
      convex, strictly_convex: True, False, or None where rounding decides.
      witness: see `GeneratorReport`.
      rounding: a bound on the rounding error of the witness's divergence.
      envelope: of the curvature.
      loss_range, logit_gradient: bounds; None where F is not convex.
      float32: the error of the float32 score, None where there is no score to compare.
      resolution: dents and ridges narrower than this may have been missed; None if nothing can.
      how: how it is known.
      seconds: the time that it took, the first time.
    """

    K: int
    finite_at_vertices: bool
    finite_inside: bool
    kinks: tuple[Kink, ...]
    convex: bool | None
    strictly_convex: bool | None
    witness: Witness | None
    rounding: float | None
    envelope: Envelope
    loss_range: Bound | None
    logit_gradient: Bound | None
    float32: Float32Error | None
    resolution: float | None
    how: str
    seconds: float

    @property
    def smooth(self) -> bool:
        """Whether no kink was found."""
        return not self.kinks

    def __repr__(self) -> str:
        strictly = {True: "strictly convex", None: "convex, flat to rounding", False: "convex"}
        convex = {True: strictly[self.strictly_convex], None: "convexity unknown"}
        words = convex.get(self.convex, "NOT convex")
        found = self.envelope
        limits = f"{found.m_tangent:.4g} ≤ m_T, M_T ≤ {found.M_tangent:.4g}"
        kinks = "smooth" if self.smooth else "with kinks"
        return f"<F on {self.K} classes: {words}, {kinks}; {limits}>"

    def __str__(self) -> str:
        return table(self)


def diagnose(F: Generator, K: int) -> Diagnosis:
    """Look for whatever would keep D_F from being a strictly proper score, and measure the rest.

    Args:
      F: any function `F(p[K]) -> scalar` of JAX operations.
      K: the number of classes.

    Returns:
      A `Diagnosis`: by formula for `quadratic`, `hyperbolic` and their sums, and for any other F
      by a search in float64, which proves nothing but shows what it finds.
    """
    found = find(F, K)
    begun = time.perf_counter()
    verdict = found.verdict
    range_, gradient = (
        (bounds.loss_range(F, K), bounds.logit_gradient(F, K)) if verdict.convex else (None, None)
    )
    return Diagnosis(
        K=int(K),
        finite_at_vertices=found.finite_at_vertices,
        finite_inside=verdict.finite_inside,
        kinks=found.kinks,
        convex=verdict.convex,
        strictly_convex=verdict.strictly_convex,
        witness=verdict.witness,
        rounding=verdict.rounding,
        envelope=found.envelope,
        loss_range=range_,
        logit_gradient=gradient,
        float32=_float32_error(F, K, found),
        resolution=found.spacing,
        how=found.how,
        seconds=found.seconds + time.perf_counter() - begun,
    )


def check_generator(F: Generator, K: int) -> GeneratorReport:
    """Whether F is a generator on K classes: the verdict of `diagnose`, without the rest."""
    found = find(F, K)
    how = found.how if found.verdict.finite_inside else found.how + "; F is not finite inside"
    verdict = found.verdict
    convex, strict = verdict.convex, verdict.strictly_convex
    return GeneratorReport(found.finite_at_vertices, convex, strict, verdict.witness, how)


def _float32_error(F: Generator, K: int, found: Findings) -> Float32Error | None:
    """The score in both precisions, near vertices and far from them, for every label."""
    if not (found.finite_at_vertices and found.verdict.finite_inside):
        return None
    rng = np.random.default_rng(4)
    labels = np.arange(len(DISTANCES) + DRAWS) % K
    shares = np.log(rng.dirichlet(np.ones(K - 1), len(DISTANCES)))
    ahead = np.log1p(-DISTANCES) - np.log(DISTANCES)
    near = np.stack([np.insert(s, y, a) for s, y, a in zip(shares, labels, ahead, strict=False)])
    logits = np.concatenate([near, 3 * rng.standard_normal((DRAWS, K))]).astype(np.float32)
    with jax.enable_x64(True):
        F, labels = as_pytree(F), jnp.asarray(labels)
        narrow, _ = _scores_and_sizes(F, jnp.asarray(logits), labels)
        wide, size = map(np.asarray, _scores_and_sizes(F, jnp.asarray(logits, float), labels))
    error = np.abs(np.asarray(narrow, float) - wide)
    rounding = float(np.finfo(np.float32).eps) * np.maximum(size, np.finfo(float).tiny)
    relative = error / np.maximum(np.abs(wide), np.finfo(np.float32).tiny)
    return Float32Error(float(np.max(relative)), float(np.max(error / rounding)))


@quick_jit
def _scores_and_sizes(F, logits, labels):
    """The scores `[n]`, and the size of the terms that their definition is made of."""
    p = jax.nn.softmax(logits)
    vertices = jax.nn.one_hot(labels, logits.shape[1], dtype=logits.dtype)
    values, slopes = jax.vmap(jax.value_and_grad(F))(p)
    size = jnp.abs(jax.vmap(F)(vertices)) + jnp.abs(values)
    size = size + jnp.sum(jnp.abs(slopes) * (p + vertices), axis=1)
    return BregmanScore(F).score_labels_on_logits(logits, labels), size
