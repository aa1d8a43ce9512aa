"""Where the numbers come from: the paper, seeds, versions and hardware, and how to cite."""

from datetime import date

import pandas as pd

from experiments.show.figures.studies import hardware
from experiments.show.records import Results

PAPER = (
    "Structured Proper Loss Geometries for Multiclass Classification: Theory and Controlled "
    "Empirical Evaluation"
)
AUTHOR = "Soumyadip Sarkar"
BIBTEX = """@unpublished{structured-proper-losses,
  title  = {%s},
  author = {Sarkar, Soumyadip},
  note   = {Manuscript}
}

@software{pgeom,
  title   = {pgeom: structured proper loss geometries for multiclass classification, in JAX},
  author  = {{The pgeom developers}},
  version = {%s},
  url     = {https://github.com/pgeom/pgeom}
}
"""


def bibtex(results: Results) -> str:
    """How to cite the paper, and the version that made the latest runs."""
    return BIBTEX % (PAPER, results.runs["versions"].iloc[-1]["pgeom"])


def facts(results: Results, command: str) -> dict[str, str]:
    """What a reader needs to judge the numbers, or to make them again by the command."""
    runs = results.runs
    seeds = sorted(runs["seed"].unique())
    return {
        "Command": command,
        "Paper": f"{AUTHOR}: {PAPER}",
        "Seeds": f"{len(seeds)}: {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0]),
        "Runs": f"{len(runs):,} of the protocol, and those of the other experiments",
        "Written": date.today().isoformat(),
        "Versions": versions(runs),
        "Hardware": hardware(runs),
        "Records": "one line per run, in the folders of the experiments beside this one",
    }


def versions(runs: pd.DataFrame) -> str:
    """Of what made the runs, several where they differ."""
    made = pd.DataFrame(list(runs["versions"]))
    return ", ".join(f"{name} {' and '.join(sorted(set(made[name])))}" for name in made)
