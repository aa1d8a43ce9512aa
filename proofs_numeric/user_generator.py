"""The same diagnostics for a generator of your own: `--generator path/to/file.py:function`.

Each row that fails is explained by a note, which says what failed and what that means: it is about
the function, a bound that was searched for, or the arithmetic, and never about the lemma that the
row is named after. In the order of the file: properties of F, its scores, those in float32.

>>> import jax.numpy as jnp
>>> [one.check.holds for one in check_convexity(lambda p: jnp.sum(p**2), 3)]
[True, True, True]
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.numpy.linalg import norm

from experiments.shell.errors import UsageError, refusals
from pgeom import simplex
from pgeom.compilation import quick_jit
from pgeom.diagnosis import bounds, check_generator, curvature, describe_pair, explain_convexity
from pgeom.losses.own import require_generator
from pgeom.messages import describe_error
from pgeom.scores import bregman_divergence, bregman_score, conditional_risk, on_logits, values_at
from pgeom.types import Generator
from proofs_numeric import numerics
from proofs_numeric.claims import Check, Claim
from proofs_numeric.numerics import FLOAT32
from proofs_numeric.search import maximise, points

# what a row is about, where it is no claim of the paper
PROPERTY, ARITHMETIC = "property of F", "arithmetic"
SEARCHED = 1e-3  # an envelope that was searched for may fall short of the true one by this much
ROUNDING = 16  # units in the last place of the terms by which a score may be off
RELATIVE = 1e-5  # the relative error allowed in float32, besides
QUADRATIC = "Eq. (bregman-quadratic)"


class Diagnostic(NamedTuple):
    """A check, and what it would mean that it failed."""

    check: Check
    failure: str


def checks(F: Generator, K: int, name: str = "F") -> tuple[list[Check], list[str]]:
    """Everything about F on K classes, and a note for each failure; `name` is for messages."""
    with refusals("--generator: "):
        require_generator(F, K, name)
    try:
        diagnostics = check_convexity(F, K)
        if check_generator(F, K).convex and diagnostics[0].check.holds:  # else there is no score
            limits = curvature.envelope(F, K)
            diagnostics += [*check_scores(F, limits, K), *check_float32(F, K, limits.M)]
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of F or of the library, but no failed check
        raise UsageError(
            f"--generator: checking {name} failed with {describe_error(error)} (K={K})"
        ) from error
    notes = [f"K={K}: {one.failure}" for one in diagnostics if not one.check.holds]
    return [one.check for one in diagnostics], list(dict.fromkeys(notes))


def check_convexity(F: Generator, K: int) -> list[Diagnostic]:
    """Finite at the vertices, convex, strictly convex; what rounding hides is no failure.

    A function that is no number at a vertex, as 0·log 0 is none, is judged by its limit.
    """
    report = check_generator(F, K)
    finite = at_vertices = report.finite_at_vertices
    if not at_vertices:
        finite = bool(np.all(np.isfinite(quick_jit(lambda p: values_at(F, p))(np.eye(K)))))
    claim = "F is finite at the vertices"
    if finite and not at_vertices:
        claim = "F is finite next to the vertices, and no number at them: see xlogy"
    least = math.nan if report.witness is None else report.witness.divergence
    infinite, witness = "F is infinite at a vertex, and so is its score", explain_convexity(report)

    def row(claim, holds, observed, failure):
        how = f"K={K}, {report.how}" if holds is not None else f"K={K}, unknown: {failure}"
        known = None, None, observed, None, None, holds is not False, how
        return Diagnostic(Check(claim, PROPERTY, *known), failure)

    strictly = "F is strictly convex on the tangent space"
    return [
        row(claim, finite, math.nan, infinite),
        row("F is convex", report.convex, least, witness),
        row(strictly, report.strictly_convex, least, witness),
    ]


def check_scores(F: Generator, limits: curvature.Envelope, K: int) -> list[Diagnostic]:
    """The quadratic bounds on D, the regret identity, the range and the logit gradient."""
    some = points(K, count=16)
    q = jax.tree.map(np.asarray, quick_jit(lambda p: _search(F, p))(some)) | limits._asdict()
    steepest = limits.M / math.sqrt(2), bounds.SHARP_GRADIENT * limits.M_tangent
    q |= {"error": q["apart"] / q["size"], "paper": steepest[0], "sharp": steepest[1]}
    rows = (
        ("D(η,p) ≥ ½ m_T‖η−p‖²", QUADRATIC, "least ≥ m_tangent ≥ m"),
        ("D(η,p) ≤ ½ M_T‖η−p‖²", QUADRATIC, "most ≤ M_tangent ≤ M"),
        ("R(η,p) − R(η,η) = D(η,p)", ARITHMETIC, "error ~ 1e-13"),
        ("ℓ(p,y) ≤ M", "Props. (capm, hpg)", "loss ≤ M_tangent ≤ M"),
        ("‖∇_zℓ‖ ≤ M/√2", "Eq. (logit-gradient)", "slope ≤ sharp ≤ paper"),
    )
    how = f"K={K}: {len(some)} points; {limits.how}"
    least, most, identity, loss, slope = (Claim(*row, slack=SEARCHED).judge(q, how) for row in rows)
    inexact = (
        "the arithmetic of the score failed: R(η,p) − R(η,η) and D(η,p), which are equal for "
        f"every F, were computed {q['apart']:.3g} apart, from terms of size up to {q['size']:.3g}, "
        f"at {describe_pair(q['eta'], q['p'])}"
    )
    return [
        Diagnostic(
            least,
            "the searched bound is too large: the least D(η,p)/½‖η−p‖² found is "
            f"{least.observed:.6g}, below the {least.sharp_bound:.6g} by m_T; F bends less than "
            "the search for m_T saw",
        ),
        Diagnostic(most, explain_upper_bound(most, "the largest D(η,p)/½‖η−p‖²")),
        Diagnostic(identity, inexact),
        Diagnostic(loss, explain_upper_bound(loss, "the largest loss")),
        Diagnostic(slope, explain_upper_bound(slope, "the largest norm of a logit gradient")),
    ]


def explain_upper_bound(row: Check, largest: str) -> str:
    """A value exceeds what the curvature of F allows, so that curvature was not all found."""
    if not math.isfinite(row.observed):
        return f"{largest} is not finite: {row.observed}"
    if row.sharp_bound is not None and row.observed > row.sharp_bound:
        return (
            f"the searched bound is too small: {largest} found is {row.observed:.6g}, above the "
            f"{row.sharp_bound:.6g} by M_T; F bends more than the search for M_T saw, as at a kink"
        )
    return (
        f"the searched bounds on {largest} are inconsistent: "
        f"{row.sharp_bound:.6g} by M_T, {row.paper_bound:.6g} by M"
    )


def _search(F: Generator, points) -> dict[str, jax.Array]:
    """Over the points: the worst pair of the identity, the least and largest D(η,p)/½‖η − p‖² up
    to rounding, and the largest loss and logit gradient."""
    score, K = bregman_score(F), points.shape[1]
    risk, D = conditional_risk(lambda p, y: score(p, y)), bregman_divergence(F)  # label by label
    eta, p = points, (1 - 1e-3) * jnp.roll(points, 1, axis=0) + 1e-3 / K
    regret, size, loss = risk(eta, p) - risk(eta, eta), sizes(F, eta, p), on_logits(score)

    def steepness(p, y):
        return norm(jax.grad(lambda z: loss(z, y))(jnp.log(p)))

    def largest(objective):
        each = jax.vmap(lambda y: maximise(lambda p: objective(p, y), points).value)
        return jnp.max(each(jnp.arange(K)))

    apart = jnp.abs(regret - D(eta, p))
    worst = jnp.argmax(apart)  # the first NaN, if there is one
    square = jnp.sum((eta - p) ** 2, axis=1)
    half = jnp.where(square > 1e-6, square / 2, jnp.nan)  # of pairs that are apart
    rounding = ROUNDING * jnp.finfo(p.dtype).eps * size  # with it as without, a bound is violated
    return {
        "apart": apart[worst],
        "eta": eta[worst],
        "p": p[worst],
        "size": jnp.max(size),
        "least": jnp.nanmin((regret + rounding) / half),
        "most": jnp.nanmax((regret - rounding) / half),
        "loss": largest(score),
        "slope": largest(steepness),
    }


def check_float32(F: Generator, K: int, M: float) -> list[Diagnostic]:
    """Next to a vertex and at exact zeros, the library's score in float32 against float64.

    Whatever F is, an error is allowed as large as a relative 1e-5 and sixteen units in the last
    place of the terms that the number is made of; see `pgeom.scores`. M is the largest curvature
    of F: where it is bounded, entries of H may round as it does.
    """
    logits, loss = numerics.near_vertex_logits(K), numerics.library_loss(F)
    both = quick_jit(lambda z: numerics.computed(loss, z))
    every, every_slope = map(np.asarray, both(logits))
    near = logits[:-2].astype(np.float64)
    exact, exact_slope = map(np.asarray, both(near))
    value_size, slope_size = map(np.asarray, quick_jit(lambda z: _sizes_on_logits(F, z, M))(near))
    value, units = every[:-2], ROUNDING * float(np.finfo(np.float32).eps)
    error = np.abs(value - exact) / (RELATIVE * np.abs(exact) + units * value_size)
    allowed = RELATIVE * np.linalg.norm(exact_slope, axis=1) + units * slope_size
    miss = np.linalg.norm(every_slope[:-2] - exact_slope, axis=1)
    miss = miss / np.maximum(allowed, np.finfo(float).tiny)
    q = {"error": error.max(), "miss": miss.max(), "negative": -np.min(value + units * value_size)}
    q |= {"broken": np.mean(~np.isfinite([*every, *every_slope.ravel()]))}

    def at(badness):
        distances = np.repeat(numerics.DISTANCES, numerics.SPLITS)
        return f" at 1 − p_y = {distances[np.argmax(badness)]:.0e}"

    rows = (
        (
            Claim("float32 loss: error over 1e-5 ℓ + 16 ε size", FLOAT32, "error ~ 1"),
            f"the loss is off by {error.max():.3g} times what is allowed{at(error)}",
        ),
        (
            Claim("float32 logit gradient: error over 1e-5 ‖∇ℓ‖ + 16 ε size", FLOAT32, "miss ~ 1"),
            f"the logit gradient is off by {miss.max():.3g} times what is allowed{at(miss)}",
        ),
        (
            Claim("float32 loss ≥ −16 ε size", FLOAT32, "negative ≤ 0"),
            f"the loss is {value.min():.3g}{at(-value)}",
        ),
        (
            numerics.ZEROS,
            "a loss or a logit gradient is not finite next to a vertex, or at one",
        ),
    )
    how = f"K={K}: 1 − p_y = 1e-1 … 1e-7, and logits ±300"
    return [Diagnostic(claim.judge(q, how), f"{FLOAT32}: {text}") for claim, text in rows]


def sizes(F: Generator, q: jax.Array, p: jax.Array) -> jax.Array:
    """|F(q)| + |F(p)| + Σ_j |∂_jF(p)|(p_j + q_j) of pairs `[n, K]`, and never zero; `[n]`."""
    values, slopes = jax.vmap(jax.value_and_grad(F))(simplex.interior(p))
    size = jnp.abs(jax.vmap(F)(simplex.interior(q))) + jnp.abs(values)
    size = size + jnp.sum(jnp.abs(slopes) * (p + q), axis=1)
    return jnp.maximum(size, jnp.finfo(p.dtype).tiny)


def _sizes_on_logits(F: Generator, logits, M: float):
    """The sizes of the loss of label 0 and of its gradient, Σ_j p_j(|(H(p)d)_j| + M|d_j|)."""
    p = jax.nn.softmax(logits)
    vertices = jnp.broadcast_to(simplex.vertex(0, p.shape[1], p.dtype), p.shape)
    d = jax.vmap(simplex.displacement)(vertices, p, vertices)
    products = jax.vmap(lambda p, d: jax.jvp(jax.grad(F), (p,), (d,))[1])(p, d)
    curvature = M if np.isfinite(M) else 0.0
    return sizes(F, vertices, p), jnp.sum(p * (jnp.abs(products) + curvature * jnp.abs(d)), axis=1)
