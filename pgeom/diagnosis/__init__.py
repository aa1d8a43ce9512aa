"""Everything known about a generator, in one search and one answer: `pgeom.diagnose(F, K)`.

May import scores and what is read before them; a proof comes from `certificates`, where one is
asked for. Read this file first, then `search` (the one search and its verdict), `envelopes`,
`curvature`, `bounds` and `table`.

>>> import jax.numpy as jnp
>>> report = diagnose(lambda p: jnp.sum(p**3), 3)
>>> report
<F on 3 classes: strictly convex, smooth; 0 ≤ m_T, M_T ≤ 4>
>>> check_generator(lambda p: -jnp.sum(p**2), K=3).convex
False
"""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.diagnosis import bounds
from pgeom.diagnosis.bounds import Bound
from pgeom.diagnosis.envelopes import Envelope
from pgeom.diagnosis.search import Findings, Kink, Witness, find
from pgeom.diagnosis.table import table
from pgeom.generators import as_pytree
from pgeom.scores import BregmanScore
from pgeom.types import Generator

if TYPE_CHECKING:
    from pgeom.certificates import Certificate

# 1 − p_y at which the score is compared in both precisions; a user's kinks are at round numbers
DISTANCES = 1.07 * 10.0 ** -np.arange(1, 8)
DRAWS = 24  # random logits in addition to those


class GeneratorReport(NamedTuple):
    """Whether F is a generator on K classes: True, False, or None if rounding hides the answer.

    `witness` is a pair with D_F(η, p) < 0 if F is not convex, one with η ≠ p and D_F(η, p) = 0 up
    to rounding if F is not known to be strictly convex, and None otherwise. `how` says how the
    answer was obtained.
    """

    finite_at_vertices: bool
    convex: bool | None
    strictly_convex: bool | None
    witness: Witness | None
    how: str


class Float32Error(NamedTuple):
    """The largest error of the float32 score against float64, over logits near and far.

    Attributes:
      relative: relative to the value.
      in_units: in units of the rounding error of its terms, ε·size; a few units are unavoidable.
    """

    relative: float
    in_units: float


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Everything known about F on K classes; `print` shows it as a table.

    Attributes:
      K: the number of classes.
      finite_at_vertices: whether F is finite there; if not, no score is finite.
      finite_inside: whether F is finite wherever it was evaluated.
      kinks: where the slope of F jumps, the sharpest first.
      convex, strictly_convex: True, False, or None if rounding hides the answer.
      witness: see `GeneratorReport`.
      rounding: a bound on the rounding error of the witness's divergence.
      envelope: the curvature envelope.
      loss_range, logit_gradient: the largest loss and norm of a logit gradient, or bounds on them:
        see `Bound`; None if F is not known to be convex.
      float32: the error of the float32 score, None if there is no score to compare.
      resolution: dents and ridges narrower than this may have been missed; None if none can be.
      how: how the answers were obtained.
      seconds: the time taken by the first call.
      certificate: what is proved, if that was asked for.
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
    certificate: "Certificate | None" = None

    @property
    def smooth(self) -> bool:
        """Whether no kink was found."""
        return not self.kinks

    def __repr__(self) -> str:
        strictly = {True: "strictly convex", None: "convex, flat to rounding", False: "convex"}
        convex = {True: strictly[self.strictly_convex], None: "convexity unknown"}
        words = convex.get(self.convex, "NOT convex")
        limits = f"{self.envelope.m_tangent:.4g} ≤ m_T, M_T ≤ {self.envelope.M_tangent:.4g}"
        kinks = "smooth" if self.smooth else "with kinks"
        return f"<F on {self.K} classes: {words}, {kinks}; {limits}>"

    def __str__(self) -> str:
        proof = "" if self.certificate is None else f"\nproved: {self.certificate}"
        return table(self) + proof


def diagnose(F: Generator, K: int, *, certify: bool = False) -> Diagnosis:
    """Report whether D_F is a strictly proper score on K classes, and its guarantees.

    Args:
      F: any function `F(p[K]) -> scalar` of JAX operations.
      K: the number of classes.
      certify: whether to prove what can be proved, too: see `pgeom.certify`.

    Returns:
      A `Diagnosis`: by formula for `quadratic`, `hyperbolic` and their sums, and for any other F
      by a search in float64, which gives evidence but no proof.
    """
    findings = find(F, K)
    start = time.perf_counter()
    verdict = findings.verdict
    range_, gradient = (
        (bounds.loss_range(F, K), bounds.logit_gradient(F, K)) if verdict.convex else (None, None)
    )
    return Diagnosis(
        K=int(K),
        finite_at_vertices=findings.finite_at_vertices,
        finite_inside=verdict.finite_inside,
        kinks=findings.kinks,
        convex=verdict.convex,
        strictly_convex=verdict.strictly_convex,
        witness=verdict.witness,
        rounding=verdict.rounding,
        envelope=findings.envelope,
        loss_range=range_,
        logit_gradient=gradient,
        float32=_float32_error(F, K, findings),
        resolution=findings.spacing,
        how=findings.how,
        seconds=findings.seconds + time.perf_counter() - start,
        certificate=_prove(F, K) if certify else None,
    )


def _prove(F: Generator, K: int) -> "Certificate":
    from pgeom.certificates import certify  # whose proofs name the witnesses of a search

    return certify(F, K)


def check_generator(F: Generator, K: int) -> GeneratorReport:
    """Whether F is a generator on K classes: the verdict of `diagnose`, without the rest."""
    findings = find(F, K)
    verdict, how = findings.verdict, findings.how
    if not verdict.finite_inside:
        how += "; F is not finite inside"
    return GeneratorReport(
        finite_at_vertices=findings.finite_at_vertices,
        convex=verdict.convex,
        strictly_convex=verdict.strictly_convex,
        witness=verdict.witness,
        how=how,
    )


def _float32_error(F: Generator, K: int, findings: Findings) -> Float32Error | None:
    """The score in both precisions, near vertices and far from them, for every label."""
    if not (findings.finite_at_vertices and findings.verdict.finite_inside):
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
    return BregmanScore(F).values_on_logits(logits, labels), size
