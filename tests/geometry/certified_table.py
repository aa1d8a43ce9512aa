"""All generators with known truth: `python -m tests.geometry.certified_table`.

On 2, 3, 5 and 10 classes. Prints what is unknown, wrong, slow or refused by the checker, and a
summary for each number of classes. `--classes 3 5` takes some of them, `--only norm` the
generators whose names contain it.
"""

import argparse
import json
import time
from collections import Counter

import pgeom
from proofs_numeric import checker
from tests.geometry import certified, strangers

CLASSES = (2, 3, 5, 10)
SECONDS = 5.0  # of processor time for a proof, and for its verification
UNKNOWN = 0.1  # the share of generators of which something may be unknown
STRICT_ON_TWO = {  # though flat somewhere on three classes
    "clipped",
    "geometric mean",
    "harmonic",
    "low rank",
    "max squared",
    "ramp to the 1.5",
    "root of a product",
    "squared hinge",
}
ON_TWO = {  # not convex on three classes: convex, and strictly
    "shallow quartic": ("proved", "proved"),
    "Rényi": ("proved", "proved"),
    "sigmoid wide": ("proved", "disproved"),  # a constant
}
ON_THREE = {"quadratic over linear"}  # not functions of two classes
CONVEX = certified.CONVEX | strangers.CONVEX
OTHERS = certified.OTHERS | strangers.OTHERS


def truth(name, K):
    """Whether F is convex, and strictly."""
    if name in OTHERS:
        return ON_TWO.get(name, ("disproved",) * 2) if K == 2 else ("disproved", "disproved")
    return "proved", "proved" if K == 2 and name in STRICT_ON_TWO else CONVEX[name][1]


def generator(name, K):
    return CONVEX[name][0](K) if name in CONVEX else OTHERS[name](K)


def faults(name, K):
    """What is to be said against a certificate: wrong, unknown, slow, refused."""
    start = time.process_time()
    found = pgeom.certify(generator(name, K), K)
    proved = time.process_time()
    verdicts = found.convex, found.strictly_convex
    complaints = []
    if any(v not in (t, "unknown") for v, t in zip(verdicts, truth(name, K), strict=True)):
        complaints.append("wrong")
    if "unknown" in verdicts:
        complaints.append("unknown")
    try:
        checker.verify(json.loads(json.dumps(found.document)))
    except Exception as error:
        complaints.append(f"refused ({error})")
    seconds = proved - start, time.process_time() - proved
    if max(seconds) > SECONDS:
        complaints.append("slow")
    return complaints, found, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=CLASSES)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    for K in options.classes:
        names = [name for name in CONVEX | OTHERS if options.only in name]
        names = [name for name in names if K > 2 or name not in ON_THREE]
        counts, longest = Counter(), (0.0, 0.0)
        for name in names:
            complaints, found, seconds = faults(name, K)
            longest = tuple(map(max, longest, seconds))
            counts.update(word.split()[0] for word in complaints)
            if complaints:
                spent = " and ".join(f"{x:.1f} s" for x in seconds)
                print(f"K = {K}, {name}: {', '.join(complaints)}; {found}; {spent}", flush=True)
        shown = ", ".join(
            f"{counts[word]} {word}" for word in ("wrong", "unknown", "slow", "refused")
        )
        share = counts["unknown"] / max(len(names), 1)
        print(f"K = {K}: {len(names)} generators, {shown} ({share:.1%} unknown)", end="")
        print(", longest {:.1f} s to prove, {:.1f} s to verify".format(*longest), flush=True)


if __name__ == "__main__":
    main()
