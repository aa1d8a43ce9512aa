"""The exact range of an HPG loss, by branch and bound on the faces p_y = 0; part of `loss_range`.

On such a face ℓ(p, y) = s[λ(‖p‖² + 1)/2 + Σ a_rρ_r² φ_r(v_r)], where φ_r(v) is the divergence of
log cosh from v to v_r(e_y): it falls until v reaches v_r(e_y) and grows after that. On a simplex of
the face, each φ_r lies below a line in v: its larger end, or its chord raised by w²/8 times the
largest −φ_r'', w being the length of the interval. A convex quadratic plus lines is largest at a
vertex. Float64, not rounded outward: exact to the gap that is returned.

>>> from proofs_numeric.configurations import off_vertex
>>> result, label = largest_loss(off_vertex())
>>> round(result.low, 5), result.high - result.low < 1e-6
(0.06988, True)
"""

from typing import NamedTuple

import numpy as np

from pgeom.generators import Hyperbolic
from proofs_numeric.search import MOST, Proof, prove_maximum

GAP = 1e-6  # relative
NOTHING = Proof(-np.inf, -np.inf, np.zeros(0), 0)


def largest_loss(F: Hyperbolic, *, most: int = MOST) -> tuple[Proof, int]:
    """The largest ℓ_F(p, y) over the simplex and all labels, and the label."""
    eye, best, highest, cells = np.eye(F.w.shape[1]), (NOTHING, 0), -np.inf, 0
    faces = [_Face(F, (F.w @ e - F.b) / F.rho) for e in eye]
    corners = [np.delete(eye, y, axis=0)[None] for y in range(len(eye))]
    # the largest loss at a vertex first, because it closes the other faces sooner
    for y in np.argsort([-face.assess(some)[1] for face, some in zip(faces, corners, strict=True)]):
        face, known = faces[y], best[0].low
        found = prove_maximum(corners[y], face.assess, face.halve, known=known, gap=GAP, most=most)
        best = (found, int(y)) if found.point.size else best
        highest, cells = max(highest, found.high), cells + found.cells
    return best[0]._replace(high=highest, cells=cells), best[1]


class _Face(NamedTuple):
    """The loss of one label where its probability is zero, over simplices `[n, K − 1, K]`."""

    F: Hyperbolic
    at_label: np.ndarray  # v_r(e_y), [R]

    def assess(self, simplices: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Bounds on the loss `[n]`, its largest value at a vertex, and that vertex."""
        quadratic = self.F.scale * self.F.lam * (np.sum(simplices**2, axis=-1) + 1) / 2
        _, losses, lines, _ = self.pieces(simplices)
        values = quadratic + losses.sum(axis=2)
        i, j = np.unravel_index(np.argmax(values), values.shape)
        bounds = np.max(quadratic + lines.sum(axis=2), axis=1)
        return bounds, float(values[i, j]), simplices[i, j]

    def halve(self, simplices: np.ndarray) -> np.ndarray:
        """Each in two, across the longest edge along the ridge with the loosest line."""
        v, _, _, looseness = self.pieces(simplices)
        rows = np.arange(len(simplices))
        along = v[rows, :, looseness.argmax(axis=1)]
        ends = along.argmin(axis=1), along.argmax(axis=1)
        middle = 0.5 * (simplices[rows, ends[0]] + simplices[rows, ends[1]])
        halves = simplices.copy(), simplices.copy()
        for half, end in zip(halves, ends, strict=True):
            half[rows, end] = middle
        return np.concatenate(halves)

    def pieces(self, simplices: np.ndarray) -> tuple[np.ndarray, ...]:
        """v_r, s a_r ρ_r² φ_r and a line above it `[n, K − 1, R]`; how loose it is `[n, R]`."""
        F, y = self.F, self.at_label
        weight, v = F.scale * F.a * F.rho**2, (simplices @ F.w.T - F.b) / F.rho
        losses = weight * (_log_cosh(y) - _log_cosh(v) - np.tanh(v) * (y - v))
        low, high = v.min(axis=1), v.max(axis=1)
        first, last = (
            np.take_along_axis(losses, index[:, None], axis=1)[:, 0]
            for index in (v.argmin(axis=1), v.argmax(axis=1))
        )
        share = (v - low[:, None]) / np.where(high > low, high - low, 1.0)[:, None]
        sech2 = 1 - np.tanh(np.clip(0.0, low, high)) ** 2  # the largest
        slopes = [np.tanh(v) * (x - y) for v in (low, high) for x in (low, high)]
        bend = sech2 * np.maximum(2 * np.max(slopes, axis=0) - 1, 0.0)  # the largest −φ″
        sag, level = weight * bend * (high - low) ** 2 / 8, np.maximum(first, last)
        drop = level - np.minimum(first, last)
        raised = first[:, None] + share * (last - first)[:, None] + sag[:, None]
        # the level is below the raised chord at both ends if it is at the lower one
        lines = np.where((drop < sag)[:, None], level[:, None], raised)
        return v, losses, lines, np.minimum(drop, sag)


def _log_cosh(v: np.ndarray) -> np.ndarray:
    return np.logaddexp(v, -v) - np.log(2)
