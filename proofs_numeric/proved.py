"""Proofs in place of searches: `python -m proofs_numeric --certify`.

For the paper's generators at the experiments' constants, or for a generator of your own, convexity
and curvature are proved or disproved in ball arithmetic. What is neither is searched as ever.

>>> import jax.numpy as jnp
>>> prove("squares", lambda p: jnp.sum(p**2), 3).convex
'proved'
"""

from typing import Any, NamedTuple

from rich.table import Table

from pgeom.geometry.certificates import certify
from pgeom.geometry.diagnosis import check_generator
from pgeom.types import Generator
from proofs_numeric import configurations

COLUMNS = ("generator", "K", "convex", "strictly", "m_T ≥", "M_T ≤, score ≤", "method")


class Row(NamedTuple):
    """What is known of one generator: "proved", "disproved", "searched" or "unknown"."""

    generator: str
    K: int
    convex: str
    strictly_convex: str
    m_tangent: float | None
    M_tangent: float | None
    method: str


def paper_generators(K: int) -> dict[str, Generator]:
    """HPG and CAPM of the experiments with K classes."""
    found = {}
    for named in (configurations.hyperbolics(K), configurations.quadratics(K)):
        pairs = zip(named.names, named.generators, strict=True)
        found |= {name: F for name, F in pairs if "random" not in name and "extremal" not in name}
    return found


def prove(name: str, F: Generator, K: int) -> Row:
    """A certificate in one row; a search where it does not know."""
    certificate = certify(F, K)
    convex, strictly = certificate.convex, certificate.strictly_convex
    if "unknown" in (convex, strictly):
        report = check_generator(F, K)
        convex = "searched" if convex == "unknown" and report.convex else convex
        strictly = "searched" if strictly == "unknown" and report.strictly_convex else strictly
    bounds = (certificate.m_tangent, certificate.M_tangent)
    m, M = (None if bound is None else float(bound) for bound in bounds)
    return Row(name, K, convex, strictly, m, M, certificate.reason or certificate.method)


def to_rich(rows: list[Row]) -> Table:
    """A table of all rows; the bound on M_T is one on the score, too."""
    table = Table(*COLUMNS)
    for row in rows:
        table.add_row(*(_text(value) for value in row))
    return table


def to_json(rows: list[Row]) -> list[dict[str, Any]]:
    return [row._asdict() for row in rows]


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
