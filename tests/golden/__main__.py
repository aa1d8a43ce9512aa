"""Freeze values of the public functions, or compare with those: `python -m tests.golden --check`.

Without --check the values are computed and written to the files beside this one: only where a
change of numbers is meant. `--only links runs` names parts.
"""

import argparse
import lzma
import pickle
import sys
from pathlib import Path

import jax
import numpy as np

from tests.golden.values import PARTS

FOLDER = Path(__file__).parent
UNITS = 64  # of rounding, relative to the entry and to a thousandth of the largest of its row
RUNS = 1e-4  # between the numbers of two trainings
SEARCHED = 1e-3  # between what two searches found, relative
"""The largest differences: of formulas, trained runs and searches."""


def frozen(part: str) -> dict:
    """The values as they were."""
    return pickle.loads(lzma.decompress((FOLDER / f"{part}.xz").read_bytes()))


def plain(values: dict) -> dict:
    return {k: v if isinstance(v, str) else np.asarray(v) for k, v in values.items()}


def differs(key: str, now, then) -> str | None:
    """Why two values are not the same, or None."""
    if isinstance(then, str) or isinstance(now, str):
        return None if now == then else f"{now} instead of {then}"
    if now.shape != then.shape or now.dtype != then.dtype:
        return f"{now.dtype}{now.shape} instead of {then.dtype}{then.shape}"
    now, exact = now.astype(float), then.astype(float)
    finite = np.isfinite(exact)
    if not np.array_equal(finite, np.isfinite(now)) or not np.array_equal(
        now[~finite], exact[~finite], equal_nan=True
    ):
        return f"{now} instead of {exact}"
    now, exact = (np.where(finite, x, 0.0) for x in (now, exact))
    if key.startswith("run "):
        allowed = np.full(exact.shape, RUNS)
    elif " search " in key:
        allowed = SEARCHED * np.abs(exact) + 1e-9
    else:
        row = np.max(np.abs(exact), axis=-1, keepdims=True) if exact.ndim else np.abs(exact)
        allowed = UNITS * np.finfo(then.dtype).eps * (np.abs(exact) + 1e-3 * row)
        allowed = allowed + 4 * float(np.finfo(then.dtype).tiny)
    off = np.abs(now - exact) > allowed
    if not off.any():
        return None
    worst = np.unravel_index(
        np.argmax(np.abs(now - exact) / np.maximum(allowed, 1e-300)), off.shape
    )
    return f"{now[worst]:.9g} instead of {exact[worst]:.9g} at {[*map(int, worst)]}"


def compare(part: str) -> list[str]:
    """One line per value of a part that is not what it was."""
    now, then = plain(PARTS[part]()), frozen(part)
    gone = [f"{part}: {key} is missing" for key in then.keys() - now.keys()]
    new = [f"{part}: {key} is new" for key in now.keys() - then.keys()]
    pairs = ((key, differs(key, now[key], then[key])) for key in then if key in now)
    return gone + new + [f"{part}: {key}: {why}" for key, why in pairs if why]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=list(PARTS))
    options = parser.parse_args()
    jax.config.update(
        "jax_disable_most_optimizations", True
    )  # thousands of programs, each run once
    lines = []
    for part in options.only:
        if options.check:
            found = compare(part)
            print(f"{part}: {len(found)} differences", flush=True)
            lines += found
        else:
            values = plain(PARTS[part]())
            (FOLDER / f"{part}.xz").write_bytes(lzma.compress(pickle.dumps(values)))
            print(f"{part}: {len(values)} values", flush=True)
    print("\n".join(lines))
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
