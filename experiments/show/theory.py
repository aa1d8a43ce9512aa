"""The theory: figures and checked claims, made by `python -m proofs_numeric` in its own process.

It needs float64 from the start, which training must not have. It runs while the experiments are
trained, and not at all where its files are there already.
"""

import json
import shlex
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from experiments.shell.files import write_text
from experiments.show.item_files import Table, write_grids
from experiments.show.paper_figures import Figure
from experiments.show.style import FORMS
from experiments.show.tables import Grid, to_latex_figure

PROOFS = "proofs"  # what the claims are written to, as JSON and Markdown
CLAIMS = "theory-claims"


class Drawn(NamedTuple):
    """A figure that `proofs_numeric` draws: its heading, what is drawn, and the claims about it.

    `claims` are the groups of checks, and `compared` the one whose bounds the figure compares.
    """

    heading: str
    caption: str
    claims: tuple[str, ...]
    compared: str


FIGURES = {
    "hpg-curvature": Drawn(
        "The curvature of HPG, and its bounds",
        "Sampled eigenvalues of HPG's Hessian along the simplex, with the tangent bounds and the "
        "paper's.",
        ("curvature",),
        "curvature: HPG: λ(ΠHΠ) ≤ M_T ≤ M",
    ),
    "apms-displacement": Drawn(
        "How far APMS moves its target",
        "The distance of APMS's target from η, for coefficients β from .001 to 1, with the bounds "
        "of Theorem 4 and sharper ones.",
        ("displacement",),
        "displacement: ‖p*−η‖ ≤ √2β/m",
    ),
    "supp-theory-binary": Drawn(
        "Two classes: loss, gradient and contamination",
        "Loss and gradient of cross-entropy, Brier, CAPM and HPG, and bounds on the excess risk "
        "under contamination: the generic one and that of order ε².",
        ("loss_range", "gradients", "contamination"),
        "contamination: score: D(η,η̃) ≤ M_T ε²",
    ),
    "supp-theory-spectrum-regret": Drawn(
        "CAPM's spectrum and HPG's regret",
        "The eigenvalues of CAPM's matrix on digits, and HPG's regret over half the squared "
        "distance on sampled pairs, with the tangent bounds and the paper's.",
        ("regret", "graph_weights"),
        "regret: D ≤ ½M‖η−p‖²",
    ),
}


def finding(drawn: Drawn, proofs: dict[str, Any] | None) -> str:
    """What a figure shows, and what the checks say of the claims about it."""
    if proofs is None:
        return drawn.caption
    checks = [check for check in proofs["checks"] if check["group"] in drawn.claims]
    failed = dict.fromkeys(check["claim"] for check in checks if not check["holds"])
    text = drawn.caption
    if checks:
        verdict = f"these fail: {', '.join(failed)}" if failed else "all hold"
        text += f" Of {len(checks):,} checks of the claims about it, {verdict}."
    ratio = proofs["median_sharp_to_paper"].get(drawn.compared)
    if ratio:
        text += f" The sharper bound is {ratio:.2f} of the paper's (median)."
    return text


class Proving(NamedTuple):
    """A process that checks and draws into a folder, or None where all is there."""

    process: subprocess.Popen | None
    folder: Path

    def finish(self) -> tuple[dict[str, Figure], dict[str, Table]]:
        """Wait for the process; the figures and the table of claims that are there then."""
        if self.process is not None:
            self.process.wait()
        proofs = read_proofs(self.folder)
        figures = {}
        for label, drawn in FIGURES.items():
            picture, text = self.folder / f"{label}.svg", finding(drawn, proofs)
            if picture.exists():
                figures[label] = Figure(drawn.heading, text, picture, command(self.folder))
                write_text(self.folder / f"fig-{label}.tex", to_latex_figure(label, text))
        return figures, {CLAIMS: claims_table(proofs, self.folder)} if proofs else {}


def command(folder: Path) -> str:
    """The command that checks and draws into a folder."""
    return shlex.join(["python", "-m", "proofs_numeric", *_places(folder)])


def _places(folder: Path) -> tuple[str, ...]:
    return ("--figures", str(folder), "--out", str(folder))


@contextmanager
def proving(out: Path) -> Generator[Proving, None, None]:
    """Make what is missing, in the background; whatever happens, no process is left behind."""
    files = [out / f"{label}.{form}" for label in FIGURES for form in FORMS]
    if all(file.exists() for file in (*files, out / f"{PROOFS}.json")):
        yield Proving(None, out)
        return
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-m", "proofs_numeric", *_places(out)], **silent)
    try:
        yield Proving(process, out)
    finally:
        process.terminate()
        process.wait()


def read_proofs(folder: Path) -> dict[str, Any] | None:
    """What `proofs_numeric --out` wrote, if it did."""
    path = folder / f"{PROOFS}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def claims_table(proofs: dict[str, Any], out: Path) -> Table:
    """Every claim with its verdict, and how much sharper a bound is than the paper's."""
    claims: dict[tuple[str, str], list[dict]] = {}
    for check in proofs["checks"]:
        claims.setdefault((check["group"], check["claim"]), []).append(check)
    sharpness = proofs["median_sharp_to_paper"]
    rows = []
    for (group, claim), checks in claims.items():
        ratio = sharpness.get(f"{group}: {claim}")
        rows.append(
            [
                claim,
                "holds" if all(check["holds"] for check in checks) else "FAILS",
                f"×{sharper(ratio):.2f}" if ratio else "–",
                str(len(checks)),
                group.replace("_", " "),
                checks[0]["paper_label"],
            ]
        )
    header = ["Claim", "Verdict", "Sharper", "Cases", "About", "Stated in"]
    notes = ["sharper: by what factor, the median over cases; – where there is one bound"]
    grid = Grid("the paper's theory, checked numerically", header, rows, set(), notes)
    write_grids([grid], CLAIMS, out)
    return Table("Does the theory hold?", _summary(proofs, rows), [grid], command(out), False)


def sharper(ratio: float) -> float:
    """By what factor a bound is sharper: a bound from below is so by being larger.

    >>> sharper(0.25), sharper(4.0)
    (4.0, 4.0)
    """
    return max(ratio, 1 / ratio)


def _summary(proofs: dict[str, Any], rows: list[list[str]]) -> str:
    failed = [row[0] for row in rows if row[1] != "holds"]
    ratios = [sharper(ratio) for ratio in proofs["median_sharp_to_paper"].values() if ratio]
    text = f"{len(proofs['checks']):,} checks of {len(rows)} claims: "
    text += "all hold" if not failed else f"these fail: {', '.join(failed)}"
    if not ratios:
        return f"{text}."
    count = sum(ratio > 1.005 for ratio in ratios)  # the others agree to two decimals
    return f"{text}; {count} with a sharper bound, by a factor of up to {max(ratios):.1f}."
