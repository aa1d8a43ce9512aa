"""Proofs in place of searches: `python -m proofs_numeric --certify`.

For the paper's generators at the experiments' constants, or for a generator of your own, convexity
and curvature are proved or disproved in ball arithmetic. What is neither is searched as ever. The
paper's ranges are proved beside them (`certified_ranges`).

>>> import jax.numpy as jnp
>>> prove("squares", lambda p: jnp.sum(p**2), 3).convex
'proved'
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from experiments.shell.files import write_text
from pgeom.certificates import certify
from pgeom.diagnosis import check_generator
from pgeom.types import Generator
from proofs_numeric import certified_ranges, configurations

COLUMNS = ("generator", "K", "convex", "strictly", "m_T ≥", "M_T ≤, score ≤", "method")
RANGES = ("range of", "K", "at least", "attained", "attained", "at most")
VERDICTS = ("proved", "disproved", "searched", "unknown")


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


Rows = list[Row | certified_ranges.Row]


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
    method = certificate.reason or certificate.method
    return Row(name, K, convex, strictly, m, M, method, certificate.document)


def to_rich(rows: Rows) -> list[Table]:
    """A table of generators, where the bound on M_T is one on the score, too; one of ranges."""
    tables = []
    for columns, some in _sections(rows):
        table = Table(*columns)
        for row in some:
            table.add_row(*row)
        tables.append(table)
    return tables


def to_markdown(rows: Rows) -> str:
    """Everything as a page."""
    lines = ["# Claims, proved in ball arithmetic", "", summary(rows)]
    for columns, some in _sections(rows):
        lines += ["", *map(_cells, (columns, ["---"] * len(columns), *some))]
    return "\n".join([*lines, ""])


def to_json(rows: Rows) -> list[dict[str, Any]]:
    """All but the certificates themselves."""
    return [{key: x for key, x in row._asdict().items() if key != "document"} for row in rows]


def summary(rows: Rows) -> str:
    """How many generators are proved, disproved, searched or unknown, and how many ranges."""
    found = Counter(row.convex for row in rows if isinstance(row, Row))
    counts = [f"{found[verdict]} {verdict}" for verdict in VERDICTS]
    ranges = sum(isinstance(row, certified_ranges.Row) for row in rows)
    return f"Convexity: {', '.join(counts)}. Ranges: {ranges} proved."


def write(rows: Rows, folder: Path) -> None:
    """The report as proofs.md and proofs.json, and every certificate as a file beside them."""
    write_text(folder / "proofs.md", to_markdown(rows))
    write_text(folder / "proofs.json", json.dumps(to_json(rows), ensure_ascii=False) + "\n")
    for row in rows:
        text = json.dumps(row.document, ensure_ascii=False)
        write_text(folder / "certificates" / f"{_slug(row[0])}-K{row.K}.json", text + "\n")


def _sections(rows: Rows) -> list[tuple[tuple[str, ...], list[list[str]]]]:
    """The columns and the cells of each table that has rows."""
    found: list[tuple[tuple[str, ...], list[list[str]]]] = []
    for columns, kind in ((COLUMNS, Row), (RANGES, certified_ranges.Row)):
        if some := [[*map(_text, row[:-1])] for row in rows if isinstance(row, kind)]:
            found.append((columns, some))
    return found


def _slug(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z]+", "-", name).strip("-")


def _cells(texts: Any) -> str:
    return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |"


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
