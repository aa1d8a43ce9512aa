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


UNITS = [["affine", [], [int(j == k) for j in range(3)]] for k in range(3)]
INSIDE = [["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"]]
RIDGE = {"rule": "sum", "parts": [{"terms": [0], "proof": {"rule": "ridge"}}]}


def whole(*parts):
    """A proof of a sum, term by term."""
    return {"rule": "sum", "parts": [{"terms": [t], "proof": p} for t, p in enumerate(parts)]}


def forged(nodes, proof=None, *, bound=0, segment=None, upper=None, **claims):
    """A certificate made by hand."""
    below = proof and {"bound": str(bound), "proof": proof, "cover": {}}
    verdict = "disproved" if segment else "proved" if proof else "unknown"
    file = {
        "format": "pgeom certificate 1",
        "K": 3,
        "nodes": nodes,
        "convex": verdict,
        "strictly_convex": verdict if segment or Fraction(bound) > 0 else "unknown",
        "m_tangent": proof and str(bound),
        "M_tangent": upper and upper["bound"].removeprefix("-"),
        "evidence": {"m_tangent": below, "M_tangent": upper},
        "segment": segment,
    }
    return seal(file | claims)


def product(*Q):
    return [*UNITS[:2], ["quadratic", [0, 1], list(Q)]]


def squares(**changes):
    row = ["quadratic", [0, 1, 2], [1, 0, 0, 0, 1, 0, 0, 0, 1]]
    return forged([*UNITS, row], {"rule": "quadratic"}, bound=2, **changes)


def row(op, data, rule, *affine, segment=None):
    """An operation on affine functions, and a proof by one rule."""
    rows = [["affine", [], form] for form in affine]
    parts = [{"rule": "affine"} for _ in affine] if rule in ("max", "lse", "compose") else []
    proof = {"rule": rule, "parts": parts} if parts else {"rule": rule}
    nodes = [*rows, [op, list(range(len(rows))), data]]
    return forged(nodes, None if segment else proof, segment=segment)


STEEP = {"bound": "-1", "proof": RIDGE, "cover": {"bends": ["-1"]}}
ROOTS = [[["mono", [k], ["1/2"]], ["log", [3 + 2 * k], []]] for k in range(3)]
NOTHING = [*UNITS, *(r for pair in ROOTS for r in pair), ["lin", [4, 6, 8], [0, 0, 0, 0]]]
HOLLOW = whole(*[{"rule": "compose", "parts": [{"rule": "ridge"}]}] * 3)
LENGTH = [*UNITS, squares()["nodes"][-1], ["exp", [0], []], ["mono", [3, 4], ["1/2"]]]
FORGED = {
    "a matrix above its diagonal": forged(product(1, 10, 0, 1), {"rule": "quadratic"}),
    "the same, disproved": forged(product(1, 10, 0, 1), segment=INSIDE),
    "a falling matrix": forged(product(1, -10, 0, 1), {"rule": "quadratic"}, bound="1/100"),
    "M without evidence": squares(M_tangent="1/1000"),
    "m without evidence": forged(squares()["nodes"], m_tangent="1000"),
    "evidence without m": squares(m_tangent=None),
    "a ramp of two": row("ramp", [2], "ridge", [1, 0, 0], [-1, -1, -1]),
    "a power of a maximum": row("max", [3], "max", [0, -1, 0]),
    "a power of a maximum, disproved": row("max", [3], "max", [0, -1, 0], segment=INSIDE),
    "a power of a logarithm": forged(
        [UNITS[0], ["log", [0], ["3"]], ["mono", [0], [2]], ["lin", [1, 2], [0, 1, 1]]],
        {"rule": "sum", "parts": [{"terms": [0, 1], "proof": {"rule": "ridge"}}]},
    ),
    "a power of x log x": forged([UNITS[0], ["xlogx", [0], ["3"]]], upper=STEEP),
    "nothing, strictly": forged(NOTHING, HOLLOW, strictly_convex="proved"),
    "a root of two": forged(LENGTH, {"rule": "length"}, bound="1/4"),
    "K is a truth value": forged(
        [["affine", [], [1]], ["mono", [0], [2]]], {"rule": "ridge"}, bound=99, K=True
    ),
    "one class": forged([["affine", [], [1]]], {"rule": "affine"}, bound=99, K=1),
    "a root of a ramp": row("ramp", ["3/2"], "ridge", [1, -1, 0]),
    "a negative weight": row("lse", [2, -1], "lse", [1, 0, 0], [0, 1, 0]),
    "an argument that is true": forged(
        [*UNITS[:2], ["mono", [True], [2]]], {"rule": "ridge"}, bound=0
    ),
    "a sum of too few": row("lin", [0, 1, 1], "sum", [1, 0, 0]),
}
NUMERALS = ("1e100000000", "1_0", " 1", "0.5", "1/0", "9" * 9000, 1.0, True, None, "١")


@pytest.mark.parametrize("name", FORGED)
def test_made_certificates_are_refused(name):
    with pytest.raises(ArithmeticError):
        checker.verify(FORGED[name])


@pytest.mark.parametrize("numeral", NUMERALS)
def test_numbers_are_plain_fractions(numeral):
    with pytest.raises(ArithmeticError):
        checker.verify(row("mono", [numeral], "ridge", [1, 0, 0]))


@pytest.mark.parametrize("power", ("1" + "0" * 9, "-1" + "0" * 3000))
def test_powers_are_of_moderate_size(power):
    with pytest.raises(ArithmeticError):
        checker.verify(row("mono", [power], "ridge", [1, 0, 0]))


def test_what_is_made_by_hand_is_verified_if_it_is_right():
    assert "convex proved" in checker.verify(forged(product(1, 1, 1, 1), {"rule": "quadratic"}))
    assert checker.verify(squares()).endswith("m ≥ 2, M ≤ None")
    assert "convex proved" in checker.verify(row("mono", [3], "ridge", [1, 0, 0]))
    assert "convex proved" in checker.verify(row("ramp", ["5/2"], "ridge", [1, -1, 0]))
    assert "convex proved" in checker.verify(row("mono", [4], "ridge", [1, -1, 0]))
    assert "convex proved" in checker.verify(row("lse", [2, 1], "lse", [1, 0, 0], [0, 1, 0]))


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
