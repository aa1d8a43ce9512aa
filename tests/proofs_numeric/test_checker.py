"""The checker accepts certificates as they are, and refuses every one that was tampered with."""

import ast
import copy
import hashlib
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import jax
import numpy as np
import pytest

import pgeom
from pgeom.certificates import certify_range
from proofs_numeric import checker
from tests.certificates.functions import CONVEX, OTHERS
from tests.sources import ROOT

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
    "p³ norm": 3,
    "geometric mean": 3,
    "quadratic over linear": 3,
}
RANGES = {  # a function on three classes, convex or not
    "penalty": lambda p: jax.nn.softplus(jax.nn.logsumexp(9 * p[1:]) - 9 * p[0]),
    "product": lambda p: 2 * p[0] * p[1] ** 2,
}


@pytest.fixture(scope="module")
def documents():
    def certified(name, K):
        F = CONVEX[name][0](K) if name in CONVEX else OTHERS[name](K)
        return json.loads(json.dumps(pgeom.certify(F, K).document))

    ranges = {name: certify_range(F, 3, gap=0.02).document for name, F in RANGES.items()}
    return {name: certified(name, K) for name, K in NAMES.items()} | json.loads(json.dumps(ranges))


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
        sign = 1 if key in ("m_tangent", "least") else -1
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


def drop_half(d):
    d["evidence"]["largest"]["cover"]["halves"].pop()


def drop_part(d):
    lower(d)["proof"]["parts"].pop()


def swap_points(d):
    d["segment"] = [d["segment"][1], d["segment"][1]]


def raise_ridge(d):
    bounds = leaf(lower(d)["cover"])["bends"]
    bounds[0] = str(Fraction(bounds[0]) + 1)


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
    ("waves", scale("m_tangent", 1.01)),
    ("waves", scale("M_tangent", 0.99)),
    ("quadratic", scale("m_tangent", 1.001)),
    ("quadratic", scale("M_tangent", 0.999)),
    ("entropy", scale("m_tangent", 3)),
    ("Huber", scale("M_tangent", 0.99)),
    ("quadratic", put("9", "m_tangent")),
    ("quadratic", put("99", "evidence", "m_tangent", "bound")),
    ("quadratic", put(None, "evidence", "m_tangent")),
    ("quadratic", put(4, "K")),
    ("waves", drop_box),
    ("waves", drop_part),
    ("waves", raise_ridge),
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
    # products of powers and means
    ("p³ norm", change_rule(rule="compose")),
    ("p³ norm", change_constant("mono", 0, "1/5")),
    ("p³ norm", change_constant("mono", 0, "-1/3")),
    ("p³ norm", change_constant("lin", 1, "-1")),
    ("p³ norm", change_constant("lin", 0, "-1/9")),
    ("p³ norm", drop_part),
    ("p³ norm", put("unknown", "strictly_convex")),
    ("geometric mean", put("proved", "strictly_convex")),
    ("geometric mean", change_constant("mono", 0, "3/4")),
    ("geometric mean", change_constant("mono", 0, "-1/3")),
    ("geometric mean", change_constant("lin", 1, "1")),
    ("quadratic over linear", change_constant("mono", 1, "-3/2")),
    ("quadratic over linear", change_constant("mono", 0, "3")),
    ("quadratic over linear", change_constant("mono", 0, "1")),
    # ranges and what is attained
    ("penalty", scale("largest", "999/1000")),
    ("penalty", scale("least", "1001/1000")),
    ("penalty", put(["1/3", "1/3", "1/3"], "evidence", "least", "cover", "at")),
    ("penalty", put(["2", "-1", "0"], "evidence", "least", "cover", "at")),
    ("penalty", put(None, "evidence", "m_tangent")),
    ("penalty", put("12", "attained", "largest", "value")),
    ("penalty", put("0", "attained", "least", "value")),
    ("penalty", put(["1", "0", "0"], "attained", "largest", "p")),
    ("product", scale("largest", "97/100")),
    ("product", put("1/1000", "least")),
    ("product", drop_half),
    ("product", put([0, 0], "evidence", "largest", "cover", "split")),
    ("product", put("1/3", "attained", "largest", "value")),
    ("product", change_constant("mono", 1, "1")),
    ("quadratic", put("0", "attained", "m_tangent", "value")),
    ("quadratic", put("99", "attained", "M_tangent", "value")),
    ("quadratic", put(["1", "1", "1"], "attained", "m_tangent", "d")),
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
        "format": "pgeom certificate 3",
        "K": 3,
        "nodes": nodes,
        "convex": verdict,
        "strictly_convex": verdict if segment or Fraction(bound) > 0 else "unknown",
        "m_tangent": proof and str(bound),
        "M_tangent": upper and upper["bound"].removeprefix("-"),
        "evidence": {"m_tangent": below, "M_tangent": upper},
        "segment": segment,
        "attained": {},
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
    parts = [{"rule": "affine"} for _ in affine] if rule == "compose" else []
    proof = {"rule": rule, "parts": parts} if parts else {"rule": rule}
    nodes = [*rows, [op, list(range(len(rows))), data]]
    return forged(nodes, None if segment else proof, segment=segment)


def falling(op, data, *affine, rule="compose"):
    """Minus an operation on affine functions, and a proof as if it were convex."""
    rows = [["affine", [], form] for form in affine]
    n = len(rows)
    parts = {"parts": [{"rule": "affine"}] * n} if rule == "compose" else {}
    nodes = [*rows, [op, list(range(n)), data], ["lin", [n], [0, -1]]]
    return forged(nodes, whole({"rule": rule, **parts}))


def mean(r, s, count=3, forms=((1, 0, 0), (0, 1, 0), (0, 0, 1)), **claims):
    """(Σ x^r)^s of affine functions."""
    rows = [["affine", [], list(form)] for form in forms[:count]]
    powers = [["mono", [k], [r]] for k in range(count)]
    total = ["lin", list(range(count, 2 * count)), [0] + [1] * count]
    nodes = [*rows, *powers, total, ["mono", [2 * count], [s]]]
    return forged(nodes, {"rule": "mean", "parts": [{"rule": "affine"}] * count}, **claims)


def length(Q, *, power="1/2", bound=0, **claims):
    """√(pᵀQp), or another power of it."""
    nodes = [*UNITS, ["quadratic", [0, 1, 2], Q], ["mono", [3], [power]]]
    return forged(nodes, {"rule": "length"}, bound=bound, **claims)


KINK = [  # exp(x + √(x²)) for x = p₀ − 1/4: constant where x < 0
    ["affine", [], ["3/4", "-1/4"]],
    ["mono", [0], [2]],
    ["lin", [1], [0, 1]],
    ["mono", [2], ["1/2"]],
    ["lin", [0, 3], [0, 1, 1]],
    ["exp", [4], []],
]
ABSOLUTE = {"terms": [1], "proof": {"rule": "mean", "parts": [{"rule": "affine"}]}}
STEEP = {"bound": "-1", "proof": RIDGE, "cover": {"bends": ["-1"]}}
ROOTS = [[["mono", [k], ["1/2"]], ["log", [3 + 2 * k], []]] for k in range(3)]
NOTHING = [*UNITS, *(r for pair in ROOTS for r in pair), ["lin", [4, 6, 8], [0, 0, 0, 0]]]
HOLLOW = whole(*[{"rule": "compose", "parts": [{"rule": "ridge"}]}] * 3)
FORGED = {
    "a matrix above its diagonal": forged(product(1, 10, 0, 1), {"rule": "quadratic"}),
    "a falling matrix": forged(product(1, -10, 0, 1), {"rule": "quadratic"}, bound="1/100"),
    "M without evidence": squares(M_tangent="1/1000"),
    "m without evidence": forged(squares()["nodes"], m_tangent="1000"),
    "evidence without m": squares(m_tangent=None),
    "a ramp of two": row("ramp", [2], "ridge", [1, 0, 0], [-1, -1, -1]),
    "a power of a maximum": row("max", [3], "compose", [0, -1, 0]),
    "a power of a maximum, disproved": row("max", [3], "compose", [0, -1, 0], segment=INSIDE),
    "a power of a logarithm": forged(
        [UNITS[0], ["log", [0], ["3"]], ["mono", [0], [2]], ["lin", [1, 2], [0, 1, 1]]],
        {"rule": "sum", "parts": [{"terms": [0, 1], "proof": {"rule": "ridge"}}]},
    ),
    "a power of x log x": forged([UNITS[0], ["xlogx", [0], ["3"]]], upper=STEEP),
    "nothing, strictly": forged(NOTHING, HOLLOW, strictly_convex="proved"),
    "a product of two": row("mono", [1, 1], "compose", [1, 0, 0], [0, 1, 0]),
    "a product of degree −1": row("mono", [1, -2], "compose", [1, 0, 0], [1, 2, 1]),
    "a quotient of degree 0": row("mono", [2, -2], "compose", [1, 0, 0], [1, 2, 1]),
    "an odd power of both signs": row("mono", [3, -1], "compose", [1, -1, 0], [1, 2, 1]),
    "a quotient by both signs": row("mono", [2, -1], "compose", [1, 0, 0], [1, -1, 1]),
    "a concave product of degree 3/2": falling("mono", ["1/2"] * 3, *np.eye(3, dtype=int).tolist()),
    "a convex product, falling": falling("mono", [2, -1], [1, 0, 0], [1, 2, 1]),
    "a falling ramp": falling("ramp", ["3/2"], [1, -1, 0], rule="ridge"),
    "a mean of low powers": mean("3/2", "1/2"),
    "a mean, strictly, of too few": mean("3", "1/3", 2, strictly_convex="proved"),
    "a mean of both signs": mean("3", "1/3", forms=[[1, -1, 0], [0, 1, 0], [0, 0, 1]]),
    "a maximum that falls": falling("max", [], [1, 0, 0], [0, 1, 0]),
    "K is a truth value": forged(
        [["affine", [], [1]], ["mono", [0], [2]]], {"rule": "ridge"}, bound=99, K=True
    ),
    "one class": forged([["affine", [], [1]]], {"rule": "affine"}, bound=99, K=1),
    "a ramp of power 1": row("ramp", [1], "compose", [1, -1, 0]),
    "a negative weight": row("lse", [2, -1], "compose", [1, 0, 0], [0, 1, 0]),
    "an argument that is true": forged(
        [*UNITS[:2], ["mono", [True], [2]]], {"rule": "ridge"}, bound=0
    ),
    "a sum of too few": row("lin", [0, 1, 1], "sum", [1, 0, 0]),
    "a mean of power 1, strictly": forged(
        [*UNITS, ["lin", [0, 1, 2], [0, 1, 1, 1]], ["mono", [3], [1]], ["lin", [4], [0, -1]]],
        whole({"rule": "mean", "parts": [{"rule": "affine"}] * 3}),
        strictly_convex="proved",
    ),
    "a constant without a value": row("log", [], "affine", [-1, -1, -1]),
    "a kink as if analytic": forged(
        KINK,
        {"rule": "compose", "parts": [{"rule": "sum", "parts": [ABSOLUTE]}]},
        strictly_convex="proved",
        K=2,
    ),
    "a maximum of a constant, strictly": forged(
        [
            ["affine", [], [1, 0]],
            ["mono", [0], [2]],
            ["affine", [], ["1/4"] * 2],
            ["max", [1, 2], []],
        ],
        {"rule": "compose", "parts": [{"rule": "ridge"}, {"rule": "affine"}]},
        strictly_convex="proved",
        K=2,
    ),
    "a ramp of two by its parts": row("ramp", [2], "compose", [-1, -1, -2], [1, 0, 0]),
    "a length of an indefinite matrix": length([1, 0, 0, 0, 1, 0, 0, 0, "-1/10"]),
    "a length of a singular matrix": length([1, 0, 0, 0, 1, 0, 0, 0, 0]),
    "a length of more curvature": length([1, 0, 0, 0, 1, 0, 0, 0, 1], bound="33334/100000"),
    "a length of less curvature": length(
        [1, 0, 0, 0, 1, 0, 0, 0, 1],
        upper={"bound": "-173/100", "proof": {"rule": "length"}, "cover": {}},
    ),
    "a length of a cube root": length([1, 0, 0, 0, 1, 0, 0, 0, 1], power="1/3"),
}
NUMERALS = ("1e100000000", "1_0", " 1", "0.5", "1/0", "9" * 9000, 1.0, True, None, "١")


@pytest.mark.parametrize("name", FORGED)
def test_made_certificates_are_refused(name):
    with pytest.raises((ArithmeticError, ValueError)):
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
    assert checker.verify(squares()).endswith("bounds {'m_tangent': 2}")
    assert "convex proved" in checker.verify(row("mono", [3], "ridge", [1, 0, 0]))
    assert "convex proved" in checker.verify(row("ramp", ["5/2"], "ridge", [1, -1, 0]))
    assert "convex proved" in checker.verify(row("mono", [4], "compose", [1, -1, 0]))
    assert "convex proved" in checker.verify(row("lse", [2, 1], "compose", [1, 0, 0], [0, 1, 0]))
    assert "convex proved" in checker.verify(row("ramp", ["3/2"], "ridge", [1, -1, 0]))
    assert "convex proved" in checker.verify(row("mono", [2, -1], "compose", [1, -1, 0], [1, 2, 1]))
    assert "strictly proved" in checker.verify(mean("3", "1/3", strictly_convex="proved"))
    root_3 = {"bound": "-17321/10000", "proof": {"rule": "length"}, "cover": {}}
    norm = length([1, 0, 0, 0, 1, 0, 0, 0, 1], bound="333/1000", upper=root_3)
    assert checker.verify(norm).endswith("bounds {'m_tangent': 333/1000, 'M_tangent': 17321/10000}")
    kink = {"rule": "compose", "parts": [{"rule": "sum", "parts": [ABSOLUTE]}]}
    assert "strictly unknown" in checker.verify(forged(KINK, kink, K=2))
    concave = falling("mono", ["1/3"] * 3, *np.eye(3, dtype=int).tolist())
    assert "convex proved" in checker.verify(concave)


@pytest.mark.parametrize("name", NAMES)
def test_certificates_are_verified(documents, name):
    words = checker.verify(documents[name])
    assert f"convex {documents[name]['convex']}" in words


@pytest.mark.parametrize("name", RANGES)
def test_ranges_are_verified(documents, name):
    assert f"'largest': {documents[name]['largest']}" in checker.verify(documents[name])


@pytest.mark.parametrize("case", range(len(TAMPERED)))
def test_forged_certificates_are_refused(documents, case):
    name, change = TAMPERED[case]
    document = copy.deepcopy(documents[name])
    change(document)
    assert refused(seal(document)), "with a digest that fits"
    assert refused(document)


def test_a_hash_is_part_of_the_digest(documents):
    assert refused({**documents["quadratic"], "jaxpr": "0" * 64})


def test_the_checker_shares_no_code():
    source = (ROOT / "proofs_numeric/checker.py").read_text()
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
    good.write_text(json.dumps(documents["quadratic"]))
    bad.write_text(json.dumps(documents["quadratic"] | {"m_tangent": "9"}))
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
