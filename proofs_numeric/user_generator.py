"""The same diagnostics for a generator of your own: `--generator module:function`.

>>> import jax.numpy as jnp
>>> [check.holds for check in convexity(lambda p: jnp.sum(p**2), 3)[0]]
[True, True, True]
"""

import difflib
import importlib
import math
import os
import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.geometry import bounds, curvature
from pgeom.geometry.bregman import bregman_divergence, bregman_score, conditional_risk
from pgeom.geometry.convexity import GeneratorReport, check_generator
from pgeom.losses.proper import on_logits
from pgeom.types import Generator
from proofs_numeric import numerics, probes
from proofs_numeric.check import Check, agrees, below, finite
from proofs_numeric.compilation import quick_jit
from proofs_numeric.runner import BadInput

SEARCHED = 1e-3  # an envelope that was searched for may fall short of the true one by this much
IDENTITY = 1e-8  # the quadrature of a function that is not analytic on the whole simplex


def load(spec: str) -> Callable:
    """The function named by `module:function`, modules of the working folder included."""
    name, colon, attribute = spec.partition(":")
    if not (name and colon and attribute):
        raise BadInput(f"--generator: must be module:function, got {spec!r}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(name)
    except Exception as error:  # whatever a module may raise while it is imported
        raise BadInput(f"--generator: cannot import {name!r}: {_one_line(error)}") from error
    known = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
    if not hasattr(module, attribute):
        nearest = difflib.get_close_matches(attribute, known, n=1, cutoff=0.0)
        hint = f"; nearest is {nearest[0]!r}" if nearest else ""
        raise BadInput(f"--generator: module {name!r} has no {attribute!r}{hint}")
    F = getattr(module, attribute)
    if not callable(F):
        raise BadInput(f"--generator: {spec} must be a function of p[K], got {type(F).__name__}")
    return F


def refuse_unless_scalar(F: Callable, K: int) -> None:
    """Refuse a function that does not take one `p[K]` and return one real number."""
    try:
        result = jax.eval_shape(F, jax.ShapeDtypeStruct((K,), jnp.float64))
    except Exception as error:  # whatever a user's function may raise
        raise BadInput(
            f"--generator: must be a function F(p) of one p[{K}]; it raised {_one_line(error)}"
        ) from error
    shape, dtype = getattr(result, "shape", None), getattr(result, "dtype", None)
    if shape != () or not jnp.issubdtype(dtype, jnp.floating):
        got = type(result).__name__ if shape is None else f"{dtype} of shape {shape}"
        raise BadInput(f"--generator: must return a real scalar for p[{K}], got {got}")


def checks(F: Generator, K: int) -> tuple[list[Check], list[str]]:
    """Everything about F on K classes, and notes: a witness where F is not a generator."""
    refuse_unless_scalar(F, K)
    rows, found = convexity(F, K)
    notes = [] if found.witness is None else [_describe(found, K)]
    if not found.convex:
        return rows, notes
    limits = curvature.envelope(F, K)
    return [*rows, *_envelope(limits, K), *_scores(F, limits, K), *_float32(F, K)], notes


def convexity(F: Generator, K: int) -> tuple[list[Check], GeneratorReport]:
    """Finite at the vertices, convex, strictly convex."""
    found = check_generator(F, K)
    least = math.nan if found.witness is None else found.witness.divergence
    verdicts = (
        ("F is finite at the vertices", found.finite_at_vertices),
        ("F is convex", found.convex),
        ("F is strictly convex on the tangent space", found.strictly_convex),
    )
    return [
        Check(claim, "Lemma (regret)", None, None, least, None, None, holds, f"K={K}, {found.how}")
        for claim, holds in verdicts
    ], found


def _envelope(limits: curvature.Envelope, K: int) -> list[Check]:
    """m_T ≥ 0 and M_T, as numbers to read; an unbounded M_T makes the next bounds empty."""
    how = f"K={K}, {limits.how}: m_T = {limits.m_tangent:.6g}, M_T = {limits.M_tangent:.6g}"
    least = {"observed": -limits.m_tangent, "sharp": 0.0, "slack": 0.0}
    return [below("0 ≤ m_T (−m_T)", "Eq. (bregman-quadratic)", how=how, **least)]


def _scores(F: Generator, limits: curvature.Envelope, K: int) -> list[Check]:
    """The regret identity, the range and the logit gradient."""
    points = probes.points(K, count=16)
    error, size, highest, steepest = map(float, quick_jit(lambda p: _search(F, p))(points))
    sharp_gradient = bounds.SHARP_GRADIENT * limits.M_tangent
    how = f"K={K}: {len(points)} points, ascents for each label; M_T {limits.how}"
    return [
        agrees(
            "R(η,p) − R(η,η) = D(η,p)",
            "Lemma (regret)",
            error=error / max(1.0, size),
            tolerance=IDENTITY,
            how=f"K={K}: {len(points)} pairs",
        ),
        below(
            "ℓ(p,y) ≤ M",
            "Props. (capm, hpg)",
            observed=highest,
            paper=limits.M,
            sharp=limits.M_tangent,
            how=how,
            slack=SEARCHED,
        ),
        below(
            "‖∇_zℓ‖ ≤ M/√2",
            "Eq. (logit-gradient)",
            observed=steepest,
            paper=limits.M / math.sqrt(2),
            sharp=sharp_gradient,
            how=how,
            slack=SEARCHED,
        ),
    ]


def _search(F: Generator, points):
    """The error of the identity and the size of its terms, the largest loss and logit gradient."""
    risk, D = conditional_risk(bregman_score(F)), bregman_divergence(F)
    eta, p = points, (1 - 1e-3) * jnp.roll(points, 1, axis=0) + 1e-3 / points.shape[1]
    regret, size = risk(eta, p) - risk(eta, eta), jnp.max(jnp.abs(risk(eta, p)))
    labels, loss = jnp.arange(points.shape[1]), on_logits(bregman_score(F))

    def steepness(y):
        return lambda p: jnp.linalg.norm(jax.grad(lambda z: loss(z, y))(jnp.log(p)))

    highest = jax.vmap(lambda y: probes.highest(lambda p: bregman_score(F)(p, y), points).value)
    steepest = jax.vmap(lambda y: probes.highest(steepness(y), points).value)
    error = jnp.max(jnp.abs(regret - D(eta, p)))
    return error, size, jnp.max(highest(labels)), jnp.max(steepest(labels))


def _float32(F: Generator, K: int) -> list[Check]:
    """The loss in float32 against the reference, next to a vertex and at exact zeros."""
    logits = numerics.near_vertex_logits(K)
    of_logits = jax.value_and_grad(lambda z: numerics.library_loss(F)(z, jnp.array(0)))
    value, slope = map(np.asarray, quick_jit(jax.vmap(of_logits))(logits))
    of_reference = quick_jit(jax.vmap(lambda z: numerics.reference(F, z)))
    exact, exact_slope = map(np.asarray, of_reference(logits[:-2].astype(np.float64)))
    how = f"K={K}: 1 − p_y = 1e-1 … 1e-7"
    every = np.concatenate([value, slope.ravel()])
    value, slope = value[:-2], slope[:-2]
    miss = np.linalg.norm(slope - exact_slope, axis=1) / np.linalg.norm(exact_slope, axis=1)
    error = np.abs(value - exact) / exact
    claims = ("float32 loss: relative error", "float32 logit gradient: relative error")
    return [
        agrees(claims[0], "§3", error=error, tolerance=numerics.VALUE, how=how),
        agrees(claims[1], "§3", error=miss, tolerance=numerics.GRADIENT, how=how),
        below("float32 loss ≥ 0 (−min ℓ)", "§3", observed=-value.min(), paper=0.0, how=how),
        finite("finite at exact zeros", "§3", values=every, how=f"K={K}: logits ±300"),
    ]


def _describe(found: GeneratorReport, K: int) -> str:
    """The witness, in one line."""
    eta, p = (np.array2string(x, precision=6, separator=", ") for x in found.witness[:2])
    relation = "<" if not found.convex else "="
    return (
        f"K={K}: not a strictly proper score: R(η,p) {relation} R(η,η), with D(η,p) = "
        f"{found.witness.divergence:.6g} at η = {' '.join(eta.split())}, p = {' '.join(p.split())}"
    )


def _one_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else 'no message'}"
