"""The same diagnostics for a generator of your own: `--generator path/to/file.py:function`.

Each row that fails is explained by a note, which says what failed and what that means.

>>> import jax.numpy as jnp
>>> [one.check.holds for one in check_convexity(lambda p: jnp.sum(p**2), 3)]
[True, True, True]
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.shell.errors import UsageError, refusals
from pgeom.compilation import quick_jit
from pgeom.diagnosis import bounds, check_generator, curvature, explain_convexity
from pgeom.losses.own import require_generator
from pgeom.messages import describe_error
from pgeom.scores import bregman_divergence, bregman_score, conditional_risk, on_logits, values_at
from pgeom.types import Generator
from proofs_numeric import failures, probes, user_float32
from proofs_numeric.check import Check, agreement, lower_bound, upper_bound
from proofs_numeric.failures import ARITHMETIC, PROPERTY, Diagnostic

SEARCHED = 1e-3  # an envelope that was searched for may fall short of the true one by this much
IDENTITY = 1e-13  # of the terms that both sides of an identity are made of
ROUNDING = 16  # units in the last place of the terms by which a regret may be off


def checks(F: Generator, K: int, name: str = "F") -> tuple[list[Check], list[str]]:
    """Everything about F on K classes, and a note for each failure; `name` is for messages."""
    with refusals("--generator: "):
        require_generator(F, K, name)
    try:
        diagnostics = _diagnostics(F, K)
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
    least = math.nan if report.witness is None else report.witness.divergence
    finite = "F is finite at the vertices"
    if not report.finite_at_vertices and _has_limits(F, K):
        finite = "F is finite next to the vertices, and no number at them: see xlogy"
    vertices, witness = (
        "F is infinite at a vertex, and so is its score",
        explain_convexity(report),
    )
    verdicts = (
        (finite, report.finite_at_vertices or _has_limits(F, K), math.nan, vertices),
        ("F is convex", report.convex, least, witness),
        ("F is strictly convex on the tangent space", report.strictly_convex, least, witness),
    )

    def row(claim, holds, observed, failure):
        how = f"K={K}, {report.how}" if holds is not None else f"K={K}, unknown: {failure}"
        known = None, None, observed, None, None, holds is not False, how
        return Diagnostic(Check(claim, PROPERTY, *known), failure)

    return [row(*verdict) for verdict in verdicts]


def _diagnostics(F: Generator, K: int) -> list[Diagnostic]:
    properties = check_convexity(F, K)
    if not (check_generator(F, K).convex and properties[0].check.holds):
        return properties  # no score, and nothing to bound
    limits = curvature.envelope(F, K)
    float32 = user_float32.diagnostics(F, K, limits.M)
    return [*properties, *_scores(F, limits, K), *float32]


def _has_limits(F: Generator, K: int) -> bool:
    """Whether F is finite next to every vertex where it is no number at it, as 0·log 0 is none."""
    return bool(np.all(np.isfinite(quick_jit(lambda p: values_at(F, p))(np.eye(K)))))


class _Extremes(NamedTuple):
    """What was found over the probes.

    The worst pair of the identity, the least and largest D(η,p)/½‖η − p‖² up to rounding, the
    largest loss and logit gradient.
    """

    error: jax.Array
    eta: jax.Array
    p: jax.Array
    size: jax.Array
    least: jax.Array
    most: jax.Array
    loss: jax.Array
    slope: jax.Array


def _scores(F: Generator, limits: curvature.Envelope, K: int) -> list[Diagnostic]:
    """The quadratic bounds on D, the regret identity, the range and the logit gradient."""
    points = probes.points(K, count=16)
    seen = jax.tree.map(np.asarray, quick_jit(lambda p: _search(F, p))(points))
    m, M, sharp = limits.m, limits.M, limits.M_tangent
    steepest = M / math.sqrt(2), bounds.SHARP_GRADIENT * sharp
    quadratic, how = "Eq. (bregman-quadratic)", f"K={K}: {len(points)} points; {limits.how}"

    def bounded(judge, claim, label, observed, paper, sharp):
        given = {"observed": float(observed), "paper": paper, "sharp": sharp}
        return judge(claim, label, how=how, slack=SEARCHED, **given)

    flattest = m, limits.m_tangent
    least = bounded(lower_bound, "D(η,p) ≥ ½ m_T‖η−p‖²", quadratic, seen.least, *flattest)
    most = bounded(upper_bound, "D(η,p) ≤ ½ M_T‖η−p‖²", quadratic, seen.most, M, sharp)
    loss = bounded(upper_bound, "ℓ(p,y) ≤ M", "Props. (capm, hpg)", seen.loss, M, sharp)
    slope = bounded(upper_bound, "‖∇_zℓ‖ ≤ M/√2", "Eq. (logit-gradient)", seen.slope, *steepest)
    error = seen.error / seen.size
    claim = "R(η,p) − R(η,η) = D(η,p)"
    identity = agreement(claim, ARITHMETIC, error=error, tolerance=IDENTITY, how=how)
    inexact = failures.explain_identity(seen.error, seen.size, seen.eta, seen.p)
    return [
        Diagnostic(least, failures.explain_lower_bound(least)),
        Diagnostic(most, failures.explain_upper_bound(most, "the largest D(η,p)/½‖η−p‖²")),
        Diagnostic(identity, inexact),
        Diagnostic(loss, failures.explain_upper_bound(loss, "the largest loss")),
        Diagnostic(
            slope, failures.explain_upper_bound(slope, "the largest norm of a logit gradient")
        ),
    ]


def _search(F: Generator, points) -> _Extremes:
    score = bregman_score(F)
    risk, D = conditional_risk(lambda p, y: score(p, y)), bregman_divergence(F)  # label by label
    eta, p = points, (1 - 1e-3) * jnp.roll(points, 1, axis=0) + 1e-3 / points.shape[1]
    regret, sizes = risk(eta, p) - risk(eta, eta), user_float32.sizes(F, eta, p)
    labels, loss = jnp.arange(points.shape[1]), on_logits(score)

    def steepness(y):
        return lambda p: jnp.linalg.norm(jax.grad(lambda z: loss(z, y))(jnp.log(p)))

    highest = jax.vmap(lambda y: probes.maximise_inside(lambda p: score(p, y), points).value)
    steepest = jax.vmap(lambda y: probes.maximise_inside(steepness(y), points).value)
    error = jnp.abs(regret - D(eta, p))
    worst = jnp.argmax(error)  # the first NaN, if there is one
    square = jnp.sum((eta - p) ** 2, axis=1)
    half = jnp.where(square > 1e-6, square / 2, jnp.nan)  # of pairs that are apart
    rounding = ROUNDING * jnp.finfo(p.dtype).eps * sizes  # with it as without, a bound is violated
    bends = jnp.nanmin((regret + rounding) / half), jnp.nanmax((regret - rounding) / half)
    extremes = *bends, jnp.max(highest(labels)), jnp.max(steepest(labels))
    return _Extremes(error[worst], eta[worst], p[worst], jnp.max(sizes), *extremes)
