"""Proofs in place of searches: `python -m proofs_numeric --certify`.

For the paper's generators at the experiments' constants, or for a generator of your own, convexity
and curvature are proved or disproved in ball arithmetic. What is neither is searched as ever. For
the paper's margins, penalties, scores and the constant 8√2/27, the least and the largest value on
the simplex is proved. Each is a file that the checker verifies.

>>> import jax.numpy as jnp
>>> prove("squares", lambda p: jnp.sum(p**2), 3).convex
'proved'
>>> prove_range("squares", lambda p: jnp.sum(p**2), 3).largest
1.0
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.shell.files import write_text
from pgeom.certificates import certify, certify_range
from pgeom.diagnosis import check_generator
from pgeom.losses.catalogue import MARGIN
from pgeom.paper.margin import penalty, smooth_margin
from pgeom.types import Generator
from proofs_numeric.configurations import hyperbolics, quadratics
from proofs_numeric.table import markdown_table

VERDICTS = ("proved", "disproved", "searched", "unknown")
SMALL = 3  # classes, up to which ranges of functions that are not convex are proved
GAP = 0.01  # of those, relative


class Row(NamedTuple):
    """What is known of one generator: "proved", "disproved", "searched" or "unknown"."""

    generator: str
    K: int
    convex: str
    strictly_convex: str
    m_tangent: float | None
    M_tangent: float | None
    method: str
    document: dict[str, Any]


class Range(NamedTuple):
    """A proved range, with the values that are attained next to its ends."""

    fact: str
    K: int
    least: float
    lowest: float
    highest: float
    largest: float
    document: dict[str, Any]


Rows = list[Row | Range]
SECTIONS = {  # the bound on M_T is one on the score, too
    Row: ("generator", "K", "convex", "strictly", "m_T ≥", "M_T ≤, score ≤", "method"),
    Range: ("range of", "K", "at least", "attained", "attained", "at most"),
}


def paper_generators(K: int) -> dict[str, Generator]:
    """HPG and CAPM of the experiments with K classes."""
    found = hyperbolics(K).values | quadratics(K).values
    return {name: F for name, F in found.items() if not re.search("random|extremal", name)}


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
    method = certificate.reason or certificate.method
    return Row(name, K, convex, strictly, m, M, method, certificate.document)


def prove_range(name: str, function: Callable[[Any], Any], K: int, gap: float = GAP) -> Range:
    """The range of a function of p `[K]`, proved to a relative gap."""
    found = certify_range(function, K, gap=gap)
    least, lowest = float(found.least), float(found.lowest)
    highest, largest = float(found.highest), float(found.largest)
    return Range(name, K, least, lowest, highest, largest, found.document)


def paper_ranges(K: int) -> dict[str, tuple[Callable[[Any], Any], float]]:
    """The functions whose ranges are proved at the experiments' constants, and the gaps."""
    found: dict[str, tuple[Callable[[Any], Any], float]] = {  # the same for every label
        "APMS: −m_τ(p, y)": (lambda p: -smooth_margin(p, 0, tau=MARGIN["tau"]), GAP),
        "APMS: penalty r(p, y)": (lambda p: penalty(p, 0, **MARGIN), GAP),
    }
    scored = quadratics(K).select("clean seed 0").values
    if K <= SMALL:
        scored |= {"HPG R=4": hyperbolics(K).values["HPG experiments R=4"]}
        found["logit gradients over √2·M_T/T, at most 8/27"] = LOGIT_GRADIENTS[K], 1e-3
    for name, F in scored.items():
        found |= {f"{name}: score of label {y}": (score(F, K, y), GAP) for y in range(K)}
    return found


def score(F: Generator, K: int, y: int) -> Callable[[Any], Any]:
    """ℓ_F(p, y), by its definition."""

    def function(p):
        vertex = jnp.asarray(np.eye(K)[y], p.dtype)
        value, change = jax.jvp(F, (p,), (vertex - p,))
        return F(vertex) - value - change

    return function


def _two_classes(p):
    """‖J(p − e_1)‖/√2: on two classes tangents are one line, and H ⪯ M there is a number."""
    return 2 * p[0] * p[1] ** 2


def _three_classes(p):
    """An upper bound on ‖JH(p − e_1)‖/(√2·M) for every 0 ⪯ H ⪯ M on tangents, tight at (1, 2, 0)/3.

    ‖JHd‖ ≤ (M/2)(‖J‖‖d‖ + ‖Jd‖), where ‖J‖ = (t + √(t² − 12 p_1p_2p_3))/2 and t is the trace of J.
    Roots and products are replaced by their tangents from above, √x ≤ (x/c + c)/2, at that point.
    Whole numbers alone: what is certified is the function with its constants as floats.
    """
    d = p - np.eye(3)[0]
    Jd = p * d - p * jnp.sum(p * d)
    trace = jnp.sum(p * (1 - p))
    norm = (trace + ((trace**2 - 12 * p[0] * p[1] * p[2]) * 81 / 4 + 4) / 18) / 2
    terms = jnp.sum(d**2) / 3 + 3 * norm**2 / 2 + 27 * jnp.sum(Jd**2) / 16
    return (27 * terms + 8) / 108


LOGIT_GRADIENTS = {2: _two_classes, 3: _three_classes}


def tables(rows: Rows) -> list[tuple[tuple[str, ...], list[list[str]]]]:
    """The columns and the cells of a table of generators and of one of ranges, if there are any."""
    found = []
    for kind, columns in SECTIONS.items():
        cells = [[*map(_text, row[:-1])] for row in rows if isinstance(row, kind)]
        found += [(columns, cells)] if cells else []
    return found


def to_json(rows: Rows) -> list[dict[str, Any]]:
    """All but the certificates themselves."""
    return [{key: x for key, x in row._asdict().items() if key != "document"} for row in rows]


def summary(rows: Rows) -> str:
    """How many generators are proved, disproved, searched or unknown, and how many ranges."""
    found = Counter(row.convex for row in rows if isinstance(row, Row))
    counts = [f"{found[verdict]} {verdict}" for verdict in VERDICTS]
    return f"Convexity: {', '.join(counts)}. Ranges: {len(rows) - found.total()} proved."


def write(rows: Rows, folder: Path) -> None:
    """The report as proofs.md and proofs.json, and every certificate as a file beside them."""
    lines = ["# Claims, proved in ball arithmetic", "", summary(rows)]
    for columns, cells in tables(rows):
        lines += ["", *markdown_table(columns, cells)]
    write_text(folder / "proofs.md", "\n".join([*lines, ""]))
    write_text(folder / "proofs.json", json.dumps(to_json(rows), ensure_ascii=False) + "\n")
    for row in rows:
        name = re.sub(r"[^0-9A-Za-z]+", "-", row[0]).strip("-")
        text = json.dumps(row.document, ensure_ascii=False)
        write_text(folder / "certificates" / f"{name}-K{row.K}.json", text + "\n")


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
