"""Canonical links and Fenchel–Young losses: a generator as a loss that is convex in the logits.

    p(z) = ∇F*(z) = argmax_p ⟨z, p⟩ − F(p),    L(z, η) = F*(z) − ⟨z, η⟩ + F(η) ≥ 0

The gradient of L in z is p(z) − η, whatever the curvature of F, so that it never vanishes at a
wrong prediction. With softmax as p and Shannon's entropy as F it is cross-entropy.

May import scores and what is read before them. Read this file first, then `solve` (which method,
and the derivatives), and the methods: `threshold`, `projected_gradient` and `interior_point`.

>>> import jax.numpy as jnp
>>> from pgeom.generators import squared_norm
>>> z = jnp.array([[1.0, 0.0, -4.0]])
>>> canonical_link(squared_norm)(z)                  # sparsemax of z/2
Array([[0.75, 0.25, 0.  ]], dtype=float32)
>>> fenchel_young(squared_norm)(z, jnp.array([1]))
Array([1.125], dtype=float32)

A few pairs of points show while a link is used that a function is not convex. That is no search, as
`pgeom.diagnose` is: it costs a few dozen evaluations of F per batch, and keeps a solver from
returning one of many stationary points without a word.

>>> bool(contradicts_convexity(lambda p: -jnp.sum(p**2), jnp.zeros((3, 1))))
True
"""

from collections.abc import Callable
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pgeom import checks, simplex
from pgeom.functions import scalar_function, trace
from pgeom.generators import Parameter, Shannon, parts, shannon
from pgeom.links.solve import (
    BY_INTERIOR_POINTS,
    choose_method,
    in_unit,
    judge,
    solve_link,
    solve_loss,
)
from pgeom.links.threshold import Columns
from pgeom.pickling import picklable
from pgeom.scores import by_definition
from pgeom.simplex import softmax_cross_entropy
from pgeom.types import Generator, Labels, Loss, Values, Vectors


class LinkInfo(NamedTuple):
    """How well a canonical link was solved.

    Attributes:
      gap: a bound `[...]` on how far ⟨z, p⟩ − F(p) is below its maximum.
      steps: the number of iterations, zero for a formula.
    """

    gap: Float[Array, "..."]
    steps: Array


@picklable
def canonical_link(F: Generator, *, with_info: bool = False) -> Callable:
    """The canonical link of a generator, p(z) = ∇F*(z).

    Solved to the last digits that the optimality gap can show: by formula for Shannon, by a
    threshold for `tsallis`, `squared_norm`, `spherical`, `separable` and sums of separable ones,
    by projected gradients for sums of `quadratic`, `hyperbolic` and `squared_norm`, each in O(K)
    memory per example; for any other F by an interior-point method with K × K matrices. The
    derivatives, in z and in the parameters of F, are those of the equations that p solves.

    Args:
      F: `F(p[K]) -> scalar`, strictly convex. If it is only convex, p is one of the maximisers.
      with_info: whether to return a `LinkInfo` as well.

    Returns:
      `link(logits[..., K]) -> p[..., K]`, or `-> (p, info)`. If F is seen not to be convex, it
      raises an error, or returns NaN where it is traced.
    """
    solve = jax.jit(lambda z: _solve(F, z), inline=True)

    def link(logits: Vectors):
        z = checks.vectors("logits", logits)
        work = z.astype(checks.working_dtype(z)).reshape(-1, z.shape[-1])
        p, gap, solved, steps = solve(work.T)
        what = " inside the simplex for its canonical link, got an optimality gap of"
        _refuse(work, gap, what, right=solved)
        p = p.T.reshape(z.shape).astype(z.dtype)
        return (p, LinkInfo(gap.reshape(z.shape[:-1]), steps)) if with_info else p

    return link


@picklable
def inverse_link(F: Generator) -> Callable[[Vectors], Float[Array, "..."]]:
    """The logits of a point: `logits(p[..., K]) -> z[..., K]`, ∇F(p) centred to sum zero.

    Inside the simplex `canonical_link(F)(inverse_link(F)(p))` is p.
    """

    def logits(p):
        trace(F, p)  # refuses an index out of range
        slope = jax.grad(scalar_function(F))(simplex.interior(p))
        return slope - jnp.mean(slope)

    lifted = jax.jit(jnp.vectorize(logits, signature="(k)->(k)"), inline=True)

    def inverse(p: Vectors) -> Float[Array, "*batch K"]:
        p = checks.probabilities("p", p)
        return lifted(p.astype(checks.working_dtype(p))).astype(p.dtype)

    return inverse


@picklable
def fenchel_young(F: Generator) -> Loss:
    """The Fenchel–Young loss of a generator, L(z, η) = F*(z) − ⟨z, η⟩ + F(η).

    It is convex in z, with gradient p(z) − η, and zero where p(z) = η. At an interior p(z) it is
    the divergence D_F(η, p(z)); on the boundary it is larger, by the multipliers of p ≥ 0. Its
    value for one-hot η is that for the label.

    Args:
      F: `F(p[K]) -> scalar`, strictly convex. A NaN on the boundary, as of 0·log 0, stands for
        the limit from inside.

    Returns:
      `loss(logits[..., K], labels) -> [...]`. Labels are integers `[...]`, or soft targets
      `[..., K]`. A logit of −∞ rules its class out. If F is infinite at a target, or NaN there
      and next to it, it raises an error, or returns that value where it is traced. If p(z) is at
      a kink of F, or F is seen not to be convex, it raises an error, or returns NaN.
    """
    lifted = checks.lift_targets(*_loss_forms(F))

    def loss(logits: Vectors, labels: Labels) -> Values:
        z = checks.vectors("logits", logits)
        work = z.astype(checks.working_dtype(z))  # 16 bits may be too few for the loss
        values = lifted(work, labels)
        _refuse(work, values, ", and finite at the targets, for its Fenchel–Young loss, got")
        return values.astype(z.dtype)

    return loss


def _loss_forms(F: Generator):
    """The loss of a batch `[n, K]` for labels and for soft targets."""
    (c, part), *others = parts(F)
    if isinstance(part, Shannon) and not others:
        return _cross_entropy_forms(c)

    def for_targets(z, eta):
        ruled_out = jnp.any((eta > 0) & (z == -jnp.inf), axis=1)
        G, columns, unit = in_unit(F, (z + jnp.zeros_like(eta)).T)
        eta = eta.T + jnp.zeros_like(columns)  # in a `shard_map`, the two vary alike
        values = unit * solve_loss(G, columns, eta)
        values = jnp.where(contradicts_convexity(G, columns), jnp.nan, values)
        return jnp.where(ruled_out, jnp.inf, values)

    def for_labels(z, labels):
        return for_targets(z, jax.nn.one_hot(labels, z.shape[-1], dtype=z.dtype))

    return for_labels, for_targets


def _cross_entropy_forms(c: Parameter):
    """c times the cross-entropy, or the divergence of Shannon, of z/c: its link is softmax(z/c)."""

    def multiple(form):
        def values(z, labels):
            factor = jnp.asarray(c, z.dtype)
            return factor * jax.vmap(form)(z / factor, labels)

        return values

    divergence = cast(Callable, shannon.closed_forms.divergence_on_logits)
    return multiple(softmax_cross_entropy), multiple(lambda z, eta: divergence(eta, z))


def _solve(F: Generator, z):
    F, z, unit = in_unit(F, z)
    p, steps = solve_link(F, z)
    p = jnp.where(contradicts_convexity(F, z), jnp.nan, p)
    gap, solved = judge(F, p, z)
    return p, unit * gap, solved, steps


def _refuse(logits, values, what: str, right=True) -> None:
    """Raise if finite logits have a value that is infinite or not right, unless they are traced."""
    if isinstance(values, jax.core.Tracer):
        return
    with np.errstate(over="ignore", invalid="ignore"):  # the difference of two finite logits too
        finite = np.isfinite(np.ptp(np.asarray(logits), axis=-1))
    wrong = finite & ~(np.isfinite(values) & right)
    if np.any(wrong):
        got, K = np.asarray(values)[wrong][0], logits.shape[-1]
        raise ValueError(
            f"F must be convex and smooth{what} {got:.2g}; pgeom.diagnose(F, {K}) may say why"
        )


UNITS = 64  # of rounding of the terms of a divergence that a negative one must exceed
POINTS = 16  # next to the corners, and as many draws


def contradicts_convexity(F: Generator, z: Columns) -> Array:
    """Whether D_F(q, p) < 0 for one of a few pairs; never of a generator known to be convex.

    Not a search, as `pgeom.diagnose` is: it costs a few dozen evaluations of F per batch, and keeps
    a solver from returning one of many stationary points without a word. Of z only the type is
    used.
    """
    if choose_method(F) is not BY_INTERIOR_POINTS:
        return jnp.zeros((), bool)
    K = len(z)
    draws = np.random.default_rng(0).dirichlet(np.ones(K), POINTS)
    inside = 0.99 * np.concatenate([np.eye(K)[:POINTS], draws]) + 0.01 / K
    points = jnp.asarray(inside, z.dtype) + jnp.sum(jnp.zeros_like(z))
    values = jax.vmap(F)(points)

    def negative(shift):
        q, at_q = (jnp.roll(x, shift, axis=0) for x in (points, values))
        divergence, size = by_definition(F, q, points, q - points, at_q, values)
        return jnp.any(divergence < -UNITS * jnp.finfo(z.dtype).eps * size)

    return negative(1) | negative(2) | negative(5)
