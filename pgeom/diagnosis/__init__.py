"""Everything known about a generator, in one search and one answer: `pgeom.diagnose(F, K)`.

May import scores and what is read before them; a proof comes from `certificates`, where one is
asked for. Read this file first, then `search` (the one search and its verdict), `formulas` (what
needs none), and the other views of what they find, `bounds` and `curvature`.

>>> import jax.numpy as jnp
>>> report = diagnose(lambda p: jnp.sum(p**3), 3)
>>> report
<F on 3 classes: strictly convex, smooth; 0 ≤ m_T, M_T ≤ 4>
>>> check_generator(lambda p: -jnp.sum(p**2), K=3).convex
False
"""

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.compilation import quick_jit
from pgeom.diagnosis import bounds, search
from pgeom.diagnosis.bounds import Bound
from pgeom.diagnosis.search import Findings, Kink, Witness, describe_pair, describe_point
from pgeom.generators import as_pytree
from pgeom.scores import BregmanScore
from pgeom.types import Generator

if TYPE_CHECKING:
    from pgeom.certificates import Certificate

# random logits by which the score is compared in both precisions, and by how much the label's are
# raised at most: its probability is then some 1e-7 less than one
DRAWS, LEAD = 32, 16.0
XLOGY = (
    "NO: write 0·log 0 as jax.scipy.special.xlogy(p, p); if F is truly infinite there, so is its "
    "score"
)


class GeneratorReport(NamedTuple):
    """Whether F is a generator on K classes: the fields of `Diagnosis` that say so."""

    finite_at_vertices: bool
    convex: bool | None
    strictly_convex: bool | None
    witness: Witness | None
    how: str


class Float32Error(NamedTuple):
    """The largest error of the float32 score against float64, near vertices and far from them.

    Attributes:
      relative: relative to the value.
      in_units: in units of the rounding error of its terms, ε·size; a few units are unavoidable.
    """

    relative: float
    in_units: float


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Diagnosis(Findings):
    """Everything known about F on K classes: `Findings`, and more. `print` shows it as a table.

    Attributes:
      loss_range, logit_gradient: the largest loss and norm of a logit gradient, or bounds on them:
        see `Bound`; None if F is not known to be convex.
      float32: the error of the float32 score, None if there is no score to compare.
      seconds: the time taken.
      certificate: what is proved, if that was asked for.
    """

    loss_range: Bound | None
    logit_gradient: Bound | None
    float32: Float32Error | None
    seconds: float
    certificate: "Certificate | None"

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
        table = "\n".join(f"{name:24}{text}" for name, text in _rows(self).items())
        return table if self.certificate is None else f"{table}\nproved: {self.certificate}"


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
    start, findings, certificate = time.perf_counter(), search.find(F, K), None
    if certify:
        from pgeom.certificates import certify as prove  # whose proofs name a search's witnesses

        certificate = prove(F, K)
    return Diagnosis(
        **vars(findings),
        loss_range=bounds.loss_range(F, K) if findings.convex else None,
        logit_gradient=bounds.logit_gradient(F, K) if findings.convex else None,
        float32=_float32_error(F, findings),
        certificate=certificate,
        seconds=time.perf_counter() - start,
    )


def check_generator(F: Generator, K: int) -> GeneratorReport:
    """Whether F is a generator on K classes: the verdict of `diagnose`, without the rest."""
    found = search.find(F, K)
    how = found.how if found.finite_inside else f"{found.how}; F is not finite inside"
    return GeneratorReport(
        found.finite_at_vertices, found.convex, found.strictly_convex, found.witness, how
    )


def _float32_error(F: Generator, findings: Findings) -> Float32Error | None:
    """The score in both precisions, from the middle of the simplex to next to its vertices."""
    if not (findings.finite_at_vertices and findings.finite_inside):
        return None
    rng, K = np.random.default_rng(4), findings.K
    labels = np.arange(DRAWS) % K
    logits = 3 * rng.standard_normal((DRAWS, K)).astype(np.float32)
    logits[np.arange(DRAWS), labels] += np.linspace(0, LEAD, DRAWS)
    with jax.enable_x64(True):
        F, labels = as_pytree(F), jnp.asarray(labels)
        narrow, _ = _scores_and_sizes(F, jnp.asarray(logits), labels)
        wide, size = map(np.asarray, _scores_and_sizes(F, jnp.asarray(logits, float), labels))
    error = np.abs(np.asarray(narrow, float) - wide)
    smallest, eps = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).eps)
    relative = error / np.maximum(np.abs(wide), smallest)
    return Float32Error(float(np.max(relative)), float(np.max(error / (eps * size))))


@quick_jit
def _scores_and_sizes(F, logits, labels):
    """The scores `[n]`, and the size of the terms that their definition is made of."""
    vertices = jax.nn.one_hot(labels, logits.shape[1], dtype=logits.dtype)
    definitions = jax.vmap(lambda q, p: search.definition(F, q, p))
    _, size = definitions(vertices, jax.nn.softmax(logits))
    return BregmanScore(F).values_on_logits(logits, labels), size


def _rows(found: Diagnosis) -> dict[str, str]:
    """The lines of a table."""
    sure = "yes" if found.resolution is None else "yes, as far as was seen"
    answers = {True: sure, False: "NO", None: "unknown"}
    limits, why, error = found.envelope, explain_convexity(found), found.float32
    return {
        "generator": f"F on {found.K} classes",
        "finite": answers[found.finite_inside],
        "  at the vertices": "yes" if found.finite_at_vertices else XLOGY,
        "smooth": sure if found.smooth else _describe_kink(found.kinks[0]),
        "convex": answers[found.convex],
        "strictly convex": answers[found.strictly_convex],
        **({"  why": why} if why else {}),
        "curvature": f"{limits.m:.6g} ≤ λ(H) ≤ {limits.M:.6g}",
        "  on the simplex": f"{limits.m_tangent:.6g} ≤ λ(H) ≤ {limits.M_tangent:.6g}",
        "largest loss": _describe_bound(found.loss_range),
        "largest logit gradient": _describe_bound(found.logit_gradient),
        "float32 score": "not compared: F is not finite everywhere"
        if error is None
        else f"relative error up to {error.relative:.1g} against float64, 1 − p_y down to 1e-7; "
        f"{error.in_units:.2g} ε of its terms",
        "known how": found.how,
        "may have missed": "nothing"
        if found.resolution is None
        else f"dents and ridges narrower than about {found.resolution:.2g}",
        "time": f"{found.seconds:.2f} s",
    }


def _describe_kink(kink: Kink) -> str:
    return (
        f"NO: the slope jumps by {kink.jump:.3g} at p = {describe_point(kink.point)}; there the "
        "loss jumps too, and its gradient does not see it"
    )


def _describe_bound(bound: Bound | None) -> str:
    if bound is None:
        return "no bound: F is not known to be convex"
    return f"{bound.sharp:.6g} ({bound.how}); by the paper's bound {bound.paper:.6g}"


def explain_convexity(report: GeneratorReport | Findings) -> str:
    """Which property F lacks, with the pair that shows it; nothing if it lacks none."""
    if report.witness is None:
        return (
            "" if report.convex else "negative curvature was seen that rounding hides from D(η,p)"
        )
    eta, p, divergence = report.witness
    at = f"D(η,p) = {divergence:.6g} at {describe_pair(eta, p)}"
    if not math.isfinite(divergence):
        return f"F or its gradient is not finite: {at}"
    if report.convex is False:
        return f"F is not convex, so its score is not proper: R(η,p) < R(η,η), with {at}"
    if report.strictly_convex is None:
        return f"F is flat to rounding: {at} cannot be told from zero"
    return (
        f"F is not strictly convex, so its score is not strictly proper: R(η,p) = R(η,η), with {at}"
    )
