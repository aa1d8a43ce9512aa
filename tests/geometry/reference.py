"""Generators in fifty digits: value, gradient and Hessian of each, written out from its formula.

Points are lists of K mpmath numbers. A `Reference` also bounds the terms that its Hessian is the
sum of, because the rounding of a Hessian is that of its terms: the Hessian of ‖p‖ next to a vertex
is far smaller than either of the two terms that it is the difference of.

>>> halved_square = weighted((0.5, power(2)))
>>> [float(g) for g in halved_square.gradient([mp.mpf(3), mp.mpf(4)])]
[3.0, 4.0]
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import mpmath
import numpy as np

mp = mpmath.MPContext()  # a context of its own: nobody else's precision changes
mp.dps = 50

Vector = Sequence[mpmath.mpf]


class Reference(NamedTuple):
    """A generator as functions of a point `[K]`.

    Attributes:
      value: F, also on the boundary.
      gradient: ∇F `[K]`, in the interior and off the kinks.
      hessian: ∇²F `[K][K]`, likewise.
      terms: the sums of the absolute values of the terms of each entry of ∇²F, `[K][K]`.
      separable: whether F is Σ f(p_k) of one f.
    """

    value: Callable
    gradient: Callable
    hessian: Callable
    terms: Callable
    separable: bool = False


def dot(x: Vector, y: Vector):
    return mp.fdot(zip(x, y, strict=True))


def times(matrix, x: Vector) -> list:
    return [dot(row, x) for row in matrix]


def exact(values):
    """An array of floats as nested lists of mpmath numbers: the same numbers, to the last bit."""
    return [exact(v) for v in values] if np.ndim(values) else mp.mpf(float(values))


def diagonal(entries: Vector) -> list:
    K = range(len(entries))
    return [[entries[j] if j == k else mp.mpf(0) for k in K] for j in K]


def outer(x: Vector, y: Vector) -> list:
    return [[a * b for b in y] for a in x]


def combined(coefficients, matrices) -> list:
    """Σ_i c_i M_i, entry by entry."""
    rows = zip(*matrices, strict=True)
    return [[dot(coefficients, entries) for entries in zip(*row, strict=True)] for row in rows]


def magnitude(matrix) -> list:
    return [[abs(entry) for entry in row] for row in matrix]


def weighted(*parts: tuple[float, Reference]) -> Reference:
    """Σ c_i F_i, of pairs (c_i, F_i) with c_i ≥ 0."""
    c, F = exact([c for c, _ in parts]), [F for _, F in parts]
    return Reference(
        lambda p: dot(c, [f.value(p) for f in F]),
        lambda p: [dot(c, entries) for entries in zip(*(f.gradient(p) for f in F), strict=True)],
        lambda p: combined(c, [f.hessian(p) for f in F]),
        lambda p: combined(c, [f.terms(p) for f in F]),
        all(f.separable for f in F),
    )


def separable(f, slope, curvature, coefficients=None) -> Reference:
    """Σ c_k f(p_k), from f, f′ and f″; each c_k is one by default."""

    def each(function, p):
        c = exact(np.ones(len(p)) if coefficients is None else coefficients)
        return [c_k * function(p_k) for c_k, p_k in zip(c, p, strict=True)]

    return Reference(
        lambda p: mp.fsum(each(f, p)),
        lambda p: each(slope, p),
        lambda p: diagonal(each(curvature, p)),
        lambda p: magnitude(diagonal(each(curvature, p))),
        coefficients is None,
    )


def power(a: float, coefficients=None) -> Reference:
    """Σ c_k p_k^a, negated where 0 < a < 1: convex either way."""
    a = mp.mpf(a)
    sign = -1 if a < 1 else 1
    return separable(
        lambda x: sign * x**a,
        lambda x: sign * a * x ** (a - 1),
        lambda x: sign * a * (a - 1) * x ** (a - 2),
        coefficients,
    )


entropy = separable(lambda x: x * mp.log(x) if x else x, lambda x: mp.log(x) + 1, lambda x: 1 / x)


def tsallis(alpha: float) -> Reference:
    """Σ (p^α − p)/(α − 1), and its limit at α = 1."""
    if alpha == 1:
        return entropy
    a = mp.mpf(alpha)
    return separable(
        lambda x: (x**a - x) / (a - 1),
        lambda x: (a * x ** (a - 1) - 1) / (a - 1),
        lambda x: a * x ** (a - 2),
    )


def quadratic_form(A, centre: float = 0.0) -> Reference:
    """½ (p − u)ᵀA(p − u) of a symmetric A, with every entry of u equal to `centre`."""
    A, u = exact(A), mp.mpf(centre)

    def gradient(p):
        return times(A, [x - u for x in p])

    return Reference(
        lambda p: dot([x - u for x in p], gradient(p)) / 2,
        gradient,
        lambda p: A,
        lambda p: magnitude(A),
    )


def _norm(p: Vector):
    return mp.sqrt(dot(p, p))


spherical = Reference(
    _norm,
    lambda p: [x / _norm(p) for x in p],
    lambda p: combined(
        [1 / _norm(p), -1 / _norm(p) ** 3], [diagonal([mp.mpf(1)] * len(p)), outer(p, p)]
    ),
    lambda p: combined(
        [1 / _norm(p), 1 / _norm(p) ** 3], [diagonal([mp.mpf(1)] * len(p)), outer(p, p)]
    ),
)


def log_sum_exp(c: float) -> Reference:
    """log Σ e^{c p_k}."""
    c = mp.mpf(c)

    def exponentials(p):
        return [mp.exp(c * x) for x in p]

    def shares(p):
        total = mp.fsum(exponentials(p))
        return [e / total for e in exponentials(p)]

    def hessian(p, sign):
        s = shares(p)
        return combined([c**2, sign * c**2], [diagonal(s), outer(s, s)])

    return Reference(
        lambda p: mp.log(mp.fsum(exponentials(p))),
        lambda p: [c * s for s in shares(p)],
        lambda p: hessian(p, -1),
        lambda p: hessian(p, 1),
    )


class Activation(NamedTuple):
    """A convex function of a number, its two derivatives, and the size of the second's terms."""

    value: Callable
    slope: Callable
    curvature: Callable
    terms: Callable


def _step(x):
    """The slope of max(x, 0), which has none on the kink nor, in float32, next to it."""
    if abs(x) < 1e-6:
        raise ValueError(f"{x} is on the kink")
    return mp.mpf(x > 0)


def _sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def _zero(x):
    return mp.mpf(0)


relu = Activation(lambda x: max(x, mp.mpf(0)), _step, _zero, _zero)
softplus = Activation(
    lambda x: mp.log1p(mp.exp(x)), _sigmoid, lambda x: _sigmoid(x) * _sigmoid(-x), _sigmoid
)


def log_cosh(rho: float) -> Activation:
    """ρ² log cosh(x/ρ), whose curvature is between 0 and 1."""
    rho = mp.mpf(rho)
    return Activation(
        lambda x: rho**2 * mp.log(mp.cosh(x / rho)),
        lambda x: rho * mp.tanh(x / rho),
        lambda x: mp.sech(x / rho) ** 2,
        lambda x: mp.mpf(1),  # sech² = 1 − tanh²
    )


def ridges(activation: Activation, w, b) -> Reference:
    """Σ_r φ(w_r·p − b_r), of directions `w[R, K]` and offsets `b[R]`."""
    w, b = exact(w), exact(b)

    def each(function, p):
        return [function(x - b_r) for x, b_r in zip(times(w, p), b, strict=True)]

    def squares(directions):
        return [outer(w_r, w_r) for w_r in directions]

    return Reference(
        lambda p: mp.fsum(each(activation.value, p)),
        lambda p: times(zip(*w, strict=True), each(activation.slope, p)),
        lambda p: combined(each(activation.curvature, p), squares(w)),
        lambda p: combined(each(activation.terms, p), squares(magnitude(w))),
    )


def input_convex_network(w, b, u, skip, c) -> Reference:
    """Σ max(u max(wp − b, 0) + skip·p − c, 0), convex because u ≥ 0; its curvature is zero."""
    w, b, u, skip, c = (exact(part) for part in (w, b, u, skip, c))

    def first(p):
        return [x - y for x, y in zip(times(w, p), b, strict=True)]

    def second(p):
        hidden = [relu.value(x) for x in first(p)]
        parts = zip(times(u, hidden), times(skip, p), c, strict=True)
        return [x + y - z for x, y, z in parts]

    def gradient(p):
        active = [_step(x) for x in second(p)]
        through = times(zip(*u, strict=True), active)
        hidden = [t * _step(x) for t, x in zip(through, first(p), strict=True)]
        both = zip(
            times(zip(*w, strict=True), hidden), times(zip(*skip, strict=True), active), strict=True
        )
        return [x + y for x, y in both]

    def flat(p):
        return diagonal([mp.mpf(0)] * len(p))

    return Reference(lambda p: mp.fsum(relu.value(x) for x in second(p)), gradient, flat, flat)
