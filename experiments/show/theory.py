"""The theory: figures and checked claims, made by `python -m proofs_numeric` in its own process.

It needs float64 from the start, which training must not have. It runs while the experiments are
trained, and not at all where its files are there already.
"""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.show.tables import Grid

Proofs = dict[str, Any]
"""What `proofs_numeric --out` writes as JSON."""


CHECKED = {  # by figure, the groups of checks about it, and the one whose bounds it compares
    "hpg-curvature": (("curvature",), "curvature: HPG: λ(ΠHΠ) ≤ M_T ≤ M"),
    "apms-displacement": (("displacement",), "displacement: ‖p*−η‖ ≤ √2β/m"),
    "supp-theory-binary": (
        ("loss_range", "gradients", "contamination"),
        "contamination: score: D(η,η̃) ≤ M_T ε²",
    ),
    "supp-theory-spectrum-regret": (("regret", "graph_weights"), "regret: D ≤ ½M‖η−p‖²"),
}


def finding(label: str, proofs: Proofs) -> str:
    """What the checks say of the claims about a figure."""
    groups, compared = CHECKED[label]
    text = verdict([check for check in proofs["checks"] if check["group"] in groups])
    ratio = proofs["median_sharp_to_paper"].get(compared)
    return f"{text} The sharper bound is {ratio:.2f} of the paper's (median)." if ratio else text


def verdict(checks: list[dict]) -> str:
    """Whether all of some checks hold, or which claims fail."""
    failed = dict.fromkeys(check["claim"] for check in checks if not check["holds"])
    if failed:
        return f"Of the claims about it these fail: {', '.join(failed)}."
    return f"All {len(checks):,} checks of the claims about it hold." if checks else ""


@contextmanager
def proving(out: Path) -> Generator[subprocess.Popen | None, None, None]:
    """Make what is missing, in the background; whatever happens, no process is left behind."""
    files = [picture(label, out) for label in CHECKED]
    if all(file.exists() for file in (*files, out / "proofs.json")):
        yield None
        return
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    places = ("--figures", str(out), "--out", str(out))
    process = subprocess.Popen([sys.executable, "-m", "proofs_numeric", *places], **silent)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def picture(label: str, folder: Path) -> Path:
    """A figure as SVG."""
    return folder / f"{label}.svg"


def read_proofs(folder: Path) -> Proofs | None:
    """What `proofs_numeric --out` wrote, if it did."""
    path = folder / "proofs.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def claims_grid(proofs: Proofs) -> Grid:
    """Every claim with its verdict, and how much sharper a bound is than the paper's."""
    claims: dict[tuple[str, str], list[dict]] = {}
    for check in proofs["checks"]:
        claims.setdefault((check["group"], check["claim"]), []).append(check)
    rows = []
    for (group, claim), checks in claims.items():
        ratio = proofs["median_sharp_to_paper"].get(f"{group}: {claim}")
        holds = "holds" if all(check["holds"] for check in checks) else "FAILS"
        # a bound from below is sharper by being larger
        sharper = f"×{max(ratio, 1 / ratio):.2f}" if ratio else "–"
        about = group.replace("_", " "), checks[0]["paper_label"]
        rows.append([claim, holds, sharper, str(len(checks)), *about])
    header = ["Claim", "Verdict", "Sharper", "Cases", "About", "Stated in"]
    notes = ["sharper: by what factor, the median over cases; – where there is one bound"]
    return Grid("the paper's theory, checked numerically", header, rows, set(), notes)
