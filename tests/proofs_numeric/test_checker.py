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
import jax.numpy as jnp
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


def drop(*path):
    """All but the last entry of a list."""

    def change(d):
        for key in path:
            d = d[key]
        d.pop()

    return change


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
    ("waves", drop("evidence", "m_tangent", "cover", "halves")),
    ("waves", drop("evidence", "m_tangent", "proof", "parts")),
    ("waves", raise_ridge),
    ("waves", put([0, 0], "evidence", "m_tangent", "cover", "split")),
    ("waves", change_constant("lin", 1, "-1")),
    ("quadratic", change_constant("quadratic", 0, "-5")),
    ("cubes", change_constant("lin", 1, "-1")),
    ("cubes", change_constant("mono", 0, "1/2")),
    ("cubes", drop("evidence", "m_tangent", "proof", "parts")),
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
    ("p³ norm", drop("evidence", "m_tangent", "proof", "parts")),
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
    ("product", drop("evidence", "largest", "cover", "halves")),
    ("product", put([0, 0], "evidence", "largest", "cover", "split")),
    ("product", put("1/3", "attained", "largest", "value")),
    ("product", change_constant("mono", 1, "1")),
    ("quadratic", put("0", "attained", "m_tangent", "value")),
    ("quadratic", put("99", "attained", "M_tangent", "value")),
    ("quadratic", put(["1", "1", "1"], "attained", "m_tangent", "d")),
]


def sealed(**document):
    """A certificate made by hand."""
    return seal({"format": "pgeom certificate 3"} | document)


MADE = json.loads(Path(__file__).with_name("made_by_hand.json").read_text("utf-8"))
NUMERALS = ("1e100000000", "1_0", " 1", "0.5", "1/0", "9" * 9000, 1.0, True, None, "١")
POWERS = ("1" + "0" * 9, "-1" + "0" * 3000)


@pytest.mark.parametrize("name", MADE["refused"])
def test_what_no_rule_covers_is_refused(name):
    with pytest.raises((ArithmeticError, ValueError, TypeError, IndexError)):
        checker.verify(sealed(**MADE["refused"][name]))


@pytest.mark.parametrize("name", MADE["verified"])
def test_what_is_made_by_hand_is_verified_if_it_is_right(name):
    document = dict(MADE["verified"][name])
    assert document.pop("words") in checker.verify(sealed(**document))


@pytest.mark.parametrize("numeral", NUMERALS + POWERS)
def test_numbers_are_plain_fractions_of_moderate_size(numeral):
    document = copy.deepcopy(MADE["verified"]["a cube"])
    document["nodes"][-1][2][0] = numeral
    with pytest.raises(ArithmeticError):
        checker.verify(sealed(**document))


def test_a_tower_of_products_is_climbed_once():
    """x^(2^200) for x = 1, each floor the product of the one below with itself."""
    floors = [["mono", [i, i], [1, 1]] for i in range(200)]
    proof = {"rule": "compose", "parts": [{"rule": "affine"}] * 2}
    document = MADE["verified"]["a cube"] | {"nodes": [["affine", [], [1, 1, 1]], *floors]}
    document["evidence"] = {"m_tangent": {"bound": "0", "proof": proof, "cover": {}}}
    document.pop("words")
    assert "convex proved" in checker.verify(sealed(**document))


@pytest.mark.parametrize(
    ("steps", "reason"), [(0, "the bound of a ridge"), (500_000 - 20, "too many steps")]
)
def test_a_false_bound_is_refused_at_once_and_the_work_of_one_file_is_limited(steps, reason):
    F = checker.Expression(3, MADE["refused"]["waves of a false bound"]["nodes"])
    w, F.steps = next(iter(F.directions[0])), steps
    with pytest.raises(ArithmeticError, match=reason):
        checker.Rules(F, F.vertices).require_curvature(
            [(1, 2), (2, 3)], w, checker.ZERO, checker.ONE, checker.HALF
        )
    assert steps or F.steps < 20_000


def test_the_bound_of_a_softplus_has_room_for_other_arithmetic():
    found = pgeom.certify(lambda p: jnp.sum(p**2) - 1e-3 * jnp.logaddexp(0.0, 30 * p[0] - 9), 2)
    assert "proved" in checker.verify(json.loads(json.dumps(found.document)))


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
    loaded = "import sys, proofs_numeric.checker; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], cwd=ROOT).returncode == 0


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


def test_a_certificate_is_written(tmp_path: Path):
    path = tmp_path / "squares.json"
    pgeom.certify(CONVEX["squares"][0](3), 3).write(path)
    assert run(path).returncode == 0
