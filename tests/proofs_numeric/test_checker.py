"""The checker accepts certificates as they are, and refuses every one that was tampered with."""

import ast
import copy
import hashlib
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import pgeom
from proofs_numeric import checker
from tests.geometry.certified import CONVEX, OTHERS
from tests.test_house import ROOT

NAMES = {  # a name, and the number of classes
    "waves": 3,
    "norm": 3,
    "cubes": 5,
    "exponential": 5,
    "log-sum-exp": 5,
    "quadratic": 3,
    "Huber": 3,
    "maximum": 3,
    "entropy": 5,
    "large waves": 3,
}


@pytest.fixture(scope="module")
def documents():
    def certified(name, K):
        F = CONVEX[name][0](K) if name in CONVEX else OTHERS[name](K)
        return json.loads(json.dumps(pgeom.certify(F, K).document))

    return {name: certified(name, K) for name, K in NAMES.items()}


def seal(document):
    """What a forger does: a digest that fits."""
    rest = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True)
    return {**rest, "digest": hashlib.sha256(text.encode()).hexdigest()}


def refused(document):
    try:
        checker.verify(document)
    except Exception:
        return True
    return False


def scale(key, factor):
    """A better bound, in the claim and in the evidence."""

    def change(d):
        sign = 1 if key == "m_tangent" else -1
        better = Fraction(d[key]) * Fraction(factor)
        d[key], d["evidence"][key]["bound"] = str(better), str(sign * better)

    return change


def put(value, *path):
    """Another value in one place."""

    def change(d):
        for key in path[:-1]:
            d = d[key]
        assert d[path[-1]] != value
        d[path[-1]] = value

    return change


def rows(d, op):
    return [row for row in d["nodes"] if row[0] == op]


def leaf(tree):
    return leaf(tree["halves"][0]) if "halves" in tree else tree


def lower(d):
    return d["evidence"]["m_tangent"]


def drop_box(d):
    lower(d)["cover"]["halves"].pop()


def drop_part(d):
    lower(d)["proof"]["parts"].pop()


def swap_points(d):
    d["segment"] = [d["segment"][1], d["segment"][1]]


def raise_bend(d):
    bends = leaf(lower(d)["cover"])["bends"]
    bends[0] = str(Fraction(bends[0]) + 1)


def change_constant(op, place, value):
    def change(d):
        rows(d, op)[-1][2][place] = value

    return change


def change_rule(*path, rule):
    return put(rule, "evidence", "m_tangent", "proof", *path, "rule")


def disprove(d):
    d["convex"] = d["strictly_convex"] = "disproved"


TAMPERED = [
    ("norm", scale("m_tangent", 1.001)),
    ("norm", scale("M_tangent", 0.999)),
    ("waves", scale("m_tangent", 1.01)),
    ("waves", scale("M_tangent", 0.99)),
    ("quadratic", scale("m_tangent", 1.001)),
    ("quadratic", scale("M_tangent", 0.999)),
    ("entropy", scale("m_tangent", 3)),
    ("Huber", scale("M_tangent", 0.99)),
    ("norm", put("2", "m_tangent")),
    ("norm", put("1", "evidence", "m_tangent", "bound")),
    ("norm", put(None, "evidence", "m_tangent")),
    ("norm", put(4, "K")),
    ("waves", drop_box),
    ("waves", drop_part),
    ("waves", raise_bend),
    ("waves", put([0, 0], "evidence", "m_tangent", "cover", "split")),
    ("waves", change_constant("lin", 1, "-1")),
    ("quadratic", change_constant("quadratic", 0, "-5")),
    ("cubes", change_constant("lin", 1, "-1")),
    ("cubes", change_constant("mono", 0, "1/2")),
    ("cubes", drop_part),
    ("cubes", change_rule("parts", 0, "proof", rule="affine")),
    ("cubes", change_rule("parts", 0, "proof", rule="max")),
    ("exponential", change_constant("lin", 1, "-3")),
    ("exponential", change_rule(rule="lse")),
    ("exponential", change_rule("parts", 0, rule="affine")),
    ("log-sum-exp", put("max", "evidence", "m_tangent", "proof", "parts", 0, "proof", "rule")),
    ("log-sum-exp", change_constant("lin", 1, "-1/5")),
    ("Huber", put("proved", "strictly_convex")),
    ("maximum", put("proved", "strictly_convex")),
    ("maximum", swap_points),
    ("large waves", swap_points),
    ("large waves", put("proved", "convex")),
    ("large waves", change_constant("lin", 1, "9")),
    ("cubes", disprove),
    ("maximum", put("unknown", "nodes", 1, 0)),
]


@pytest.mark.parametrize("name", NAMES)
def test_certificates_are_verified(documents, name):
    words = checker.verify(documents[name])
    assert f"convex {documents[name]['convex']}" in words


@pytest.mark.parametrize("case", range(len(TAMPERED)))
def test_forged_certificates_are_refused(documents, case):
    name, change = TAMPERED[case]
    document = copy.deepcopy(documents[name])
    change(document)
    assert refused(seal(document)), "with a digest that fits"
    assert refused(document)


def test_a_hash_is_part_of_the_digest(documents):
    assert refused({**documents["norm"], "jaxpr": "0" * 64})


def test_the_checker_shares_no_code():
    source = (ROOT / "proofs_numeric/checker.py").read_text()
    assert len(source.splitlines()) <= 250
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
    assert found <= {*sys.stdlib_module_names, "flint"}


def run(*arguments):
    command = [sys.executable, "-m", "proofs_numeric.checker", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_the_command(documents, tmp_path: Path):
    good, bad, other = (tmp_path / f"{name}.json" for name in ("good", "bad", "other"))
    good.write_text(json.dumps(documents["norm"]))
    bad.write_text(json.dumps(documents["norm"] | {"m_tangent": "2"}))
    other.write_text("{}")
    assert (run(good).returncode, run(bad).returncode, run(other).returncode) == (0, 1, 2)
    assert run(good).stdout.startswith("verified: convex proved")
    assert run(bad).stdout == "refused: the digest\n"
    loaded = "import sys, proofs_numeric.checker; print('jax' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", loaded], capture_output=True, text=True, cwd=ROOT
        ).stdout
        == "False\n"
    )


def test_a_certificate_is_written(tmp_path: Path):
    path = tmp_path / "squares.json"
    pgeom.certify(CONVEX["squares"][0](3), 3).write(path)
    assert run(path).returncode == 0
