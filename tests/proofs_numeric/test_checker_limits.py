"""The checker ends on every file, and refuses what its rules do not cover."""

import json

import jax.numpy as jnp
import pytest

import pgeom
from proofs_numeric import checker
from tests.proofs_numeric.test_checker import UNITS, forged, row, whole

FLAT = {"rule": "affine"}
TERMS = [(1, 2), (2, 3)]  # of `waves`
LOGARITHM = [["affine", [], [-1, 1, 0]], ["log", [0], []]]  # of both signs


def tower(height):
    """x^(2^height) for x = 1, each floor the product of the one below with itself."""
    floors = [["mono", [i, i], [1, 1]] for i in range(height)]
    return [["affine", [], [1, 1, 1]], *floors]


def waves(frequency, curvature, **claims):
    """sin(frequency·p₀) + 2 p₀², with a bound on its second derivative."""
    nodes = [
        ["affine", [], [1, 0, 0]],
        ["affine", [], [frequency, 0, 0]],
        ["sin", [1], []],
        ["mono", [0], [2]],
        ["lin", [2, 3], [0, 1, 2]],
    ]
    proof = {"rule": "sum", "parts": [{"terms": [0, 1], "proof": {"rule": "ridge"}}]}
    evidence = {"bound": "-9", "proof": proof, "cover": {"bends": [curvature]}}
    bounds = {"m_tangent": "-9", "convex": "unknown", "strictly_convex": "unknown"}
    return forged(nodes, evidence={"m_tangent": evidence}, **bounds | claims)


def test_a_tower_of_products_is_climbed_once():
    proof = {"rule": "compose", "parts": [FLAT, FLAT]}
    assert "convex proved" in checker.verify(forged(tower(200), proof))


def test_a_false_bound_of_a_ridge_is_refused_at_once():
    F = checker.Expression(3, waves(2, "0")["nodes"])
    w = next(iter(F.directions[0]))
    with pytest.raises(ArithmeticError, match="the bound of a ridge"):
        checker.Rules(F, F.vertices).require_curvature(
            TERMS, w, checker.ZERO, checker.ONE, checker.HALF
        )
    assert F.steps < 20_000


def test_the_work_of_one_file_is_limited():
    F = checker.Expression(3, waves(2, "0")["nodes"])
    w, F.steps = next(iter(F.directions[0])), 500_000 - 20
    with pytest.raises(ArithmeticError, match="too many steps"):
        checker.Rules(F, F.vertices).require_curvature(
            TERMS, w, checker.ZERO, checker.ONE, checker.HALF
        )


def test_a_true_bound_of_a_ridge_is_verified():
    assert "unknown" in checker.verify(waves(2, "-1"))


@pytest.mark.parametrize("K", (10**9, 1, -3, 2.0, "3", None))
def test_the_number_of_classes_is_moderate(K):
    with pytest.raises(ArithmeticError):
        checker.verify(forged([["affine", [], [1, 1, 1]]], FLAT, K=K))


ZEROS = [0] * 9
SQUARES = ["quadratic", [0, 1, 2], [1, 0, 0, 0, 1, 0, 0, 0, 1]]
FORGED = {
    "nothing times what has no value": forged(
        [*LOGARITHM, *UNITS, ["quadratic", [1, 2, 3], ZEROS]], {"rule": "hessian"}
    ),
    "x log x of both signs": row("xlogx", [], "ridge", [-1, 1, 0]),
    "a logarithm of both signs, negated": forged(
        [*LOGARITHM, ["lin", [1], [0, -1]]], whole({"rule": "ridge"})
    ),
    "log-sum-exp without a weight": row("lse", [1, 0], "compose", [1, 0, 0], [0, 1, 0]),
    "a square as a concave mean": forged(
        [*UNITS, ["lin", [0, 1], [0, 1, 1]], ["mono", [3], [2]], ["lin", [4], [0, -1]]],
        whole({"rule": "mean", "parts": [FLAT, FLAT]}),
    ),
    "a product of forms as affine": row("mono", [1, 1], "affine", [1, 0, 0], [0, 1, 0]),
    "an exponential that falls": forged(
        [UNITS[0], ["exp", [0], []], ["lin", [1], [0, -1]]],
        whole({"rule": "compose", "parts": [FLAT]}),
    ),
    "an increasing function of a concave one": forged(
        [UNITS[0], ["log", [0], []], ["exp", [1], []], ["exp", [2], []]],
        {"rule": "compose", "parts": [{"rule": "compose", "parts": [{"rule": "ridge"}]}]},
        bound=1,
    ),
    "a term twice": forged(
        [*UNITS, ["mono", [0], [2]], ["mono", [1], [2]], ["lin", [3, 4], [0, 1, -1]]],
        {"rule": "sum", "parts": [{"terms": [0], "proof": {"rule": "ridge"}}] * 2},
    ),
    "two directions in one ridge": forged(
        [*UNITS, ["mono", [0], [2]], ["mono", [1], [2]], ["lin", [3, 4], [0, 1, -1]]],
        {"rule": "sum", "parts": [{"terms": [0, 1], "proof": {"rule": "ridge"}}]},
    ),
    "a sine as a power": row("sin", [], "compose", [1, 0, 0]),
    "a step that is not there": forged(
        [*UNITS, ["mono", [0], [2]]],
        attained={"m_tangent": {"p": ["1/3"] * 3, "d": ["0", "0", "0"], "value": "0"}},
    ),
    "strictly, by one direction of two": forged(
        [*UNITS, ["mono", [0], [2]]], {"rule": "ridge"}, strictly_convex="proved"
    ),
    "a function of a flat quadratic, strictly": forged(
        [*UNITS, ["quadratic", [0, 1], [1, 1, 1, 1]], ["exp", [3], []]],
        {"rule": "compose", "parts": [{"rule": "quadratic"}]},
        strictly_convex="proved",
    ),
    "a maximum of squares and a constant, strictly": forged(
        [*UNITS, SQUARES, ["affine", [], ["1/2"] * 3], ["max", [3, 4], []]],
        {"rule": "compose", "parts": [{"rule": "quadratic"}, FLAT]},
        strictly_convex="proved",
    ),
    "a square of a maximum of both signs": forged(
        [
            ["affine", [], [1, -1, -1]],
            ["affine", [], [-1, 1, -1]],
            ["max", [0, 1], []],
            ["mono", [2], [2]],
        ],
        {"rule": "compose", "parts": [{"rule": "compose", "parts": [FLAT, FLAT]}]},
    ),
    "a maximum as if smooth": forged([*UNITS, ["max", [0, 1], []]], {"rule": "hessian"}, bound=0),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_no_rule_covers_is_refused(name):
    with pytest.raises((ArithmeticError, ValueError, TypeError, IndexError)):
        checker.verify(FORGED[name])


def test_a_function_of_squares_is_strictly_convex():
    nodes = [*UNITS, SQUARES, ["exp", [3], []]]
    proof = {"rule": "compose", "parts": [{"rule": "quadratic"}]}
    assert "strictly proved" in checker.verify(forged(nodes, proof, strictly_convex="proved"))


def test_the_bound_of_a_softplus_has_room_for_other_arithmetic():
    found = pgeom.certify(lambda p: jnp.sum(p**2) - 1e-3 * jnp.logaddexp(0.0, 30 * p[0] - 9), 2)
    assert "proved" in checker.verify(json.loads(json.dumps(found.document)))
