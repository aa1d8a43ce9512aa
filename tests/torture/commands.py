"""The commands that are tortured, and what must be true of each afterwards."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODES = {0, 1, 2, 130, 143}  # those that docs/commands.md lists
KILLED = -signal.SIGKILL
IN_USE = "is in use by"
ASIDE = "damaged"  # the folder for what was set aside
TIMED = "runtime"  # in the names of what is measured

TINY = ("--seeds", "1", "--epochs", "1")
NOISE = ("experiments.noise", "--dataset", "breast-cancer", "--regimes", "clean", "symmetric-20")
PAIR = ("--losses", "ce", "hpg")
COMMANDS = {
    "noise": (*NOISE, *PAIR, *TINY),
    "calibration": ("experiments.calibration", "--dataset", "breast-cancer", *PAIR, *TINY),
    "longtail": ("experiments.longtail", *PAIR, *TINY),
    "robustness": ("experiments.robustness", *PAIR, *TINY),
    "lr_sensitivity": ("experiments.lr_sensitivity", "--dataset", "breast-cancer", *PAIR, *TINY),
    "ablation": ("experiments.ablation", *TINY),
    "answer": ("experiments.answer", "--losses", "ce", "hpg", *TINY),
    "links": ("experiments.links", "--datasets", "breast-cancer", "--losses", "brier", *TINY),
    "known_truth": ("experiments.known_truth", "--sizes", "100", "200", *PAIR, *TINY),
    "runtime": ("experiments.runtime", *PAIR, *TINY),
    "comparison": ("experiments.comparison", *TINY),
    "report": ("experiments.report", *PAIR, *TINY),
    "proofs": ("proofs_numeric", "--only", "margin", "--classes", "3"),
    "proof_figures": ("proofs_numeric.proof_figures",),
}


def environment(cache: Path, **more: str) -> dict[str, str]:
    """That of a quick command of this checkout."""
    quick = {"XDG_CACHE_HOME": str(cache), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, **quick, "PYTHONPATH": path, **more}


def start(words: Sequence[str], out: Path, cache: Path, **options) -> subprocess.Popen:
    """The command as a process with pipes, unless `options` say otherwise."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(cache)}
    command = [sys.executable, "-m", *words, *map(str, _places(words, out))]
    return subprocess.Popen(command, **{**given, **options})


def _places(words: Sequence[str], out: Path) -> list[str | Path]:
    """Options that put all files below `out`: some keep records beside their own folder."""
    if "experiments.report" in words:
        return ["--out", out / "report"]
    if "experiments.comparison" in words:
        return ["--out", out / "comparison", "--records", out]
    return [out] if "proofs_numeric.proof_figures" in words else ["--out", out]


def finish(process: subprocess.Popen) -> tuple[int, str]:
    """The exit code, and what it said on standard error."""
    _, said = process.communicate()
    return process.returncode, (said or b"").decode(errors="replace")


def run(words: Sequence[str], out: Path, cache: Path, **options) -> tuple[int, str]:
    return finish(start(words, out, cache, **options))


def faults(code: int, said: str, allowed: set[int]) -> list[str]:
    """What is wrong with how a process ended."""
    found = [] if code in allowed else [f"exit code {code}: {said[-200:]}"]
    return found + ["a traceback"] * ("Traceback" in said)


def records(folder: Path) -> dict[str, bytes | list[bytes]]:
    """Lines in any order, and the bytes of logits and manifests, but for what was set aside.

    Of measured times there are only the files, because no two measurements are the same.
    """
    kept = [
        path
        for path in folder.rglob("*")
        if path.suffix in (".npz", ".json", ".jsonl") and ASIDE not in path.parts
    ]
    named = {path.relative_to(folder).as_posix(): path for path in kept}
    return {name: b"" if TIMED in name else _content(path) for name, path in named.items()}


def _content(path: Path) -> bytes | list[bytes]:
    data = path.read_bytes()
    return sorted(data.splitlines()) if path.suffix == ".jsonl" else data


def shortened(before: dict[Path, int]) -> list[str]:
    """The files that have become empty, or are gone."""
    left = {path: path.stat().st_size if path.exists() else 0 for path in before}
    return [f"{path.name} is empty" for path, size in before.items() if size and not left[path]]


def sizes(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
