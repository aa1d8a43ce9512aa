"""A certificate: verdicts about F, bounds, and all that is needed to check them without JAX."""

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pgeom.geometry.convexity import Witness

Verdict: TypeAlias = Literal["proved", "disproved", "unknown"]
FORMAT = "pgeom certificate 3"


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is proved about F on K classes.

    It is about the real function that F's jaxpr denotes: literals are the floats that they are, and
    arithmetic is exact. F is convex on the simplex if it is so where all p_k > 0 and its values on
    the boundary are limits from inside, which is how "proved" is to be read.

    Attributes:
      K: the number of classes.
      convex, strictly_convex: "proved", "disproved" or "unknown".
      m_tangent: a proved lower bound on the curvature along tangents, None if there is none.
      M_tangent: a proved upper bound, None if there is none.
      method: "rules", "structured Hessian", "bisection", "disproof", or "none".
      witness: points η and p with D_F(η, p) < 0 if F is not convex, = 0 if not strictly; else None.
      reason: why a verdict is unknown, in one line; empty if none is.
      seconds: the time taken.
      document: the certificate as it is written.
    """

    K: int
    convex: Verdict
    strictly_convex: Verdict
    m_tangent: Fraction | None
    M_tangent: Fraction | None
    method: str
    witness: Witness | None
    reason: str
    seconds: float
    document: dict[str, Any]

    def write(self, path: str | Path) -> None:
        """Write the certificate as JSON, for `python -m proofs_numeric.checker PATH`."""
        write_document(self.document, path)

    def __repr__(self) -> str:
        m, M = (None if b is None else float(b) for b in (self.m_tangent, self.M_tangent))
        bounds = f"m_T ≥ {_shown(m)}, M_T ≤ {_shown(M)}"
        verdicts = f"convex {self.convex}, strictly {self.strictly_convex}"
        reason = f"; {self.reason}" if self.reason else ""
        return f"<F on {self.K} classes: {verdicts} by {self.method}; {bounds}{reason}>"


def _shown(bound: float | None) -> str:
    return "?" if bound is None else f"{bound:.6g}"


def write_document(document: dict[str, Any], path: str | Path) -> None:
    """Write a certificate as JSON."""
    Path(path).write_text(json.dumps(document, ensure_ascii=False) + "\n", "utf-8")


def seal(document: dict[str, Any]) -> dict[str, Any]:
    """The document with rationals as text and a digest of everything in it."""
    plain = _plain({"format": FORMAT, **document})
    text = json.dumps(plain, sort_keys=True)
    return {**plain, "digest": hashlib.sha256(text.encode()).hexdigest()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    return str(value)  # a rational number
