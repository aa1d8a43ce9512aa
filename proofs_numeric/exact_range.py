"""The exact range of an HPG loss, by branch and bound on the faces p_y = 0; part of `ridge_range`.

On such a face ℓ(p, y) = s[λ(‖p‖² + 1)/2 + Σ a_rρ_r² φ_r(v_r)], where φ_r(v) is the divergence of
log cosh from v to v_r(e_y): it falls until v reaches v_r(e_y) and grows after that. On a simplex of
the face, each φ_r lies below a line in v: its larger end, or its chord raised by w²/8 times the
largest −φ_r'', w being the length of the interval. A convex quadratic plus lines is largest at a
vertex. Float64, not rounded outward: exact to the gap that is returned.

>>> from proofs_numeric.instances import off_vertex
>>> result = largest_loss(off_vertex())
>>> round(result.low, 5), result.high - result.low < 1e-6
(0.06988, True)
"""

from typing import NamedTuple

import numpy as np

from pgeom.generators import Hyperbolic

GAP = 1e-6  # relative
BATCH = 2048  # simplices at a time
MOST = 300_000  # simplices, before the gap is returned as it is


class Range(NamedTuple):
    """The largest loss lies between `low`, which is attained at `point` for `label`, and `high`."""

    low: float
    high: float
    point: np.ndarray
    label: int
    simplices: int


class _Face(NamedTuple):
    """What the loss of one label is made of: a quadratic and weighted ridges."""

    F: Hyperbolic
    at_label: np.ndarray  # v_r(e_y), [R]

    def ridges(self, p: np.ndarray) -> np.ndarray:
        """v_r(p), `[..., R]`."""
        return (p @ self.F.w.T - self.F.b) / self.F.rho

    def quadratic(self, p: np.ndarray) -> np.ndarray:
        return self.F.scale * self.F.lam * (np.sum(p**2, axis=-1) + 1) / 2

    def losses(self, v: np.ndarray) -> np.ndarray:
        """s a_r ρ_r² φ_r(v_r), `[..., R]`."""
        y = self.at_label
        divergence = _log_cosh(y) - _log_cosh(v) - np.tanh(v) * (y - v)
        return self.F.scale * self.F.a * self.F.rho**2 * divergence

    def sag(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """At most how far s a_r ρ_r² φ_r rises above its chord on [low, high], `[n, R]`."""
        y = self.at_label
        sech2 = 1 - np.tanh(np.clip(0.0, low, high)) ** 2
        ends = [np.tanh(v) * (x - y) for v in (low, high) for x in (low, high)]
        bend = sech2 * np.maximum(2 * np.max(ends, axis=0) - 1, 0.0)
        return self.F.scale * self.F.a * self.F.rho**2 * bend * (high - low) ** 2 / 8


def largest_loss(F: Hyperbolic, *, gap: float = GAP, most: int = MOST) -> Range:
    """The largest ℓ_F(p, y) over the simplex and all labels."""
    K = F.w.shape[1]
    faces = [_Face(F, (F.w[:, y] - F.b) / F.rho) for y in range(K)]
    best = Range(-np.inf, np.inf, np.full(K, 1 / K), 0, 0)
    open_: list[tuple[float, int, np.ndarray]] = []  # bound, label, vertices [K − 1, K]
    fresh = [(y, np.delete(np.eye(K), y, axis=0)[None]) for y in range(K)]
    count = 0
    while True:
        for y, simplices in fresh:
            count += len(simplices)
            bounds, best = _assess(faces[y], simplices, y, best)
            open_ += [(bound, y, one) for bound, one in zip(bounds, simplices, strict=True)]
        open_ = [one for one in open_ if one[0] > best.low * (1 + gap)]
        open_.sort(key=lambda one: -one[0])
        if not open_ or count >= most:
            high = max([best.low * (1 + gap), *(bound for bound, _, _ in open_[:1])])
            return best._replace(high=high, simplices=count)
        chosen, open_ = open_[:BATCH], open_[BATCH:]
        fresh = [
            (y, _halve(faces[y], np.stack([one for _, label, one in chosen if label == y])))
            for y in dict.fromkeys(label for _, label, _ in chosen)
        ]


def _assess(face: _Face, simplices: np.ndarray, y: int, best: Range) -> tuple[np.ndarray, Range]:
    """Bounds on the loss `[n]` over simplices `[n, K − 1, K]`, and the best point so far."""
    v = face.ridges(simplices)
    losses, quadratic = face.losses(v), face.quadratic(simplices)
    values = quadratic + losses.sum(axis=2)
    i, j = np.unravel_index(np.argmax(values), values.shape)
    if values[i, j] > best.low:
        best = best._replace(low=float(values[i, j]), point=simplices[i, j], label=y)
    lines, _ = _lines(face, v, losses)
    return np.max(quadratic + lines.sum(axis=2), axis=1), best


def _lines(face: _Face, v: np.ndarray, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lines above each ridge, at the vertices `[n, K − 1, R]`, and how loose each is `[n, R]`."""
    low, high = v.min(axis=1), v.max(axis=1)
    first, last = (
        np.take_along_axis(losses, index[:, None], axis=1)[:, 0]
        for index in (v.argmin(axis=1), v.argmax(axis=1))
    )
    width = np.where(high > low, high - low, 1.0)
    share = (v - low[:, None]) / width[:, None]
    chord = first[:, None] + share * (last - first)[:, None]
    sag, level = face.sag(low, high), np.maximum(first, last)
    flat = level - np.minimum(first, last) < sag  # the level is then the lower line at both ends
    lines = np.where(flat[:, None], level[:, None], chord + sag[:, None])
    return lines, np.where(flat, level - np.minimum(first, last), sag)


def _halve(face: _Face, simplices: np.ndarray) -> np.ndarray:
    """Each simplex in two, across the longest edge along the ridge with the loosest line."""
    v = face.ridges(simplices)
    _, looseness = _lines(face, v, face.losses(v))
    rows = np.arange(len(simplices))
    along = v[rows, :, looseness.argmax(axis=1)]
    first, last = along.argmin(axis=1), along.argmax(axis=1)
    middle = 0.5 * (simplices[rows, first] + simplices[rows, last])
    one, other = simplices.copy(), simplices.copy()
    one[rows, first], other[rows, last] = middle, middle
    return np.concatenate([one, other])


def _log_cosh(v: np.ndarray) -> np.ndarray:
    return np.logaddexp(v, -v) - np.log(2)
