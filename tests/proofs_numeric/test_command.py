"""The command line: verdicts, exit codes, JSON, and one clear line about bad input."""

import json
import shlex
import sys
import textwrap

import jax
import jax.numpy as jnp
import pytest

from pgeom.scores import bregman_divergence
from proofs_numeric import runner, user_generator
from proofs_numeric.claims import Claim
from proofs_numeric.table import rows

GENERATORS = """
import sys

import jax
import jax.numpy as jnp

def cubic(p):
    return jnp.sum(p**3)

def concave(p):
    return -jnp.sum(p**2)

def flat(p):
    return p[0] ** 2

def vector(p):
    return p

def two_arguments(p, q):
    return jnp.sum(p * q)

def wide_only(p):
    if p.dtype == jnp.float32:
        raise ValueError("64 bits please\\nand another line")
    return jnp.sum(p**2)

@jax.custom_vjp
def once(p):
    return jnp.sum(p**2)

once.defvjp(lambda p: (once(p), p), lambda p, out: (2 * p * out,))

def quits(p):
    sys.exit(0)

def talks(p):
    print("traced")
    return jnp.sum(p**2)

weights = jnp.array([1.0, 2.0, 3.0])

def weighted(p):
    return jnp.sum(weights * p**2)

number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with modules of generators, good and bad."""
    (tmp_path / "my_generators.py").write_text(textwrap.dedent(GENERATORS))
    (tmp_path / "broken_module.py").write_text("raise RuntimeError('no luck')\n")
    (tmp_path / "quits_at_once.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("my_generators", "broken_module", "loaded_my_generators"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--only regrett", "unknown claim 'regrett'; did you mean 'regret'?"),
        ("--classes 1", "at least 2, got 1"),
        ("--classes two", "'two'"),
        ("--classes 1000000", "at most 1000, got 1000000"),
        ("--generator my_generators:cubic --classes 1000000", "at most 1000"),
        ("--generator ''", "module:function"),
        ("--generator quits_at_once:F", "cannot import 'quits_at_once': SystemExit"),
        ("--out my_generators.py", "--out must be a folder"),
        ("--clases 3", "--classes"),
        ("--only regret --classes 100", "margin, improper, contamination only"),
        ("--generator my_generators", "module:function"),
        ("--generator nowhere:F", "cannot import 'nowhere'"),
        ("--generator broken_module:F", "RuntimeError: no luck"),
        ("--generator my_generators:cubi", "did you mean 'cubic'"),
        ("--generator my_generators:number", "must be a function"),
        ("--generator my_generators:two_arguments", "of one p[2]"),
        ("--generator my_generators.py:two_arguments", "two_arguments raised TypeError"),
        ("--generator my_generators:vector --classes 3", "got shape (3,)"),
        ("--generator my_generators.py:wide_only --classes 3", "64 bits please (K=3)"),
        ("--generator my_generators:once --classes 3", "raised TypeError: can't apply"),
        ("--generator my_generators:quits --classes 3", "raised SystemExit"),
        ("--generator my_generators:cubic --classes 1", "at least 2"),
        ("--generator my_generators:cubic --only regret", "no meaning"),
        (
            "--figures my_generators.py/figures",
            "--figures must be a folder, but 'my_generators.py'",
        ),
    ],
)
def test_bad_input_is_one_line_and_code_two(command, arguments, says, folder, capsys):
    assert command(*shlex.split(arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert says in err


def test_json_is_all_of_standard_output(command, capsys):
    assert command("--only", "improper", "--classes", "2", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["holds"] is True
    assert {check["group"] for check in report["checks"]} == {"improper"}


@pytest.fixture
def broken(monkeypatch):
    """A claim that fails."""
    claim = Claim("false " * 30, "nowhere", "x ≤ 0.5 ≤ 1")
    check = claim.judge({"x": 2.0}, "K=2, made up")
    monkeypatch.setattr(runner.Job, "checks", lambda job: [check])


def test_a_failing_claim_exits_with_one(command, broken, capsys):
    assert command("--only", "improper", "--classes", "2") == 1
    out = capsys.readouterr().out
    assert "FAILS   4.0000  false" in out and out.endswith("\n1 check: 1 FAIL\n")
    assert max(map(len, out.splitlines())) <= 100 and "made up" not in out
    assert command("--only", "improper", "--classes", "2", "--verbose") == 1
    assert "K=2, made up" in capsys.readouterr().out


def test_everything_is_written_to_a_folder(command, broken, tmp_path, capsys):
    arguments = ["--only", "improper", "--classes", "2", "--json", "--out", str(tmp_path / "new")]
    assert command(*arguments) == 1
    assert (tmp_path / "new/proofs.json").read_text("utf-8") == capsys.readouterr().out
    assert "1 check: 1 FAIL" in (tmp_path / "new/proofs.md").read_text("utf-8")


def test_a_generator_of_the_user_is_checked_whatever_it_prints(command, folder, capsys):
    assert command("--generator", "my_generators:talks", "--classes", "3", "--json") == 0
    out, err = capsys.readouterr()
    assert set(err.splitlines()) == {"traced"}
    claims = " ".join(check["claim"] for check in json.loads(out)["checks"])
    for part in ("finite at the vertices", "convex", "m_T", "R(η,p)", "ℓ(p,y)", "∇_zℓ", "float32"):
        assert part in claims


def test_no_number_at_a_vertex_is_not_called_finite():
    first = user_generator.check_convexity(lambda p: jnp.sum(p * jnp.log(p)), 3)[0].check
    assert first.holds and first.claim.startswith("F is finite next to the vertices, and no number")
    good, *_ = user_generator.check_convexity(lambda p: jnp.sum(p**2), 3)
    assert good.check.claim == "F is finite at the vertices"
    (row,) = rows([good.check])
    assert row.numbers == "1 case"  # and no "observed nan"
    infinite, *_ = user_generator.check_convexity(lambda p: -jnp.sum(jnp.log(p)), 3)
    assert not infinite.check.holds


@pytest.mark.parametrize(("name", "relation"), [("concave", "<"), ("flat", "=")])
def test_a_function_that_is_no_generator_has_a_witness(command, name, relation, folder, capsys):
    assert command("--generator", f"my_generators:{name}", "--classes", "3") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert f"R(η,p) {relation} R(η,η)" in out
    assert "η = [" in out


def test_an_identity_that_fails_is_arithmetic(command, folder, capsys, monkeypatch):
    """A divergence computed inexactly refutes no lemma."""

    def inexact(F):
        return lambda q, p: bregman_divergence(F)(q, p) + 1e-3 * p[:, 0]

    monkeypatch.setattr(user_generator, "bregman_divergence", inexact)
    arguments = ["--generator", "my_generators.py:cubic", "--classes", "2", "--json"]
    assert command(*arguments) == 1
    report = json.loads(capsys.readouterr().out)
    failed = [check for check in report["checks"] if not check["holds"]]
    assert [check["paper_label"] for check in failed] == ["arithmetic"]
    (note,) = report["notes"]
    assert note.startswith("K=2: the arithmetic of the score failed")
    assert "computed 0.000999 apart" in note and "of size" in note and "p = [9.995e-01" in note
    assert "Lemma" not in note


def test_constants_of_a_module_are_no_failed_claim(command, folder):
    """They are float64, and meet the float32 p of the checks in float32."""
    with jax.numpy_dtype_promotion("standard"):
        assert command("--generator", "my_generators:weighted", "--classes", "3") == 0


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [
        (TypeError("float32 meets float64\nand more"), 2, "TypeError: float32 meets float64 (K=3)"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_an_error_while_a_generator_is_checked_is_no_failed_claim(
    raised, code, says, command, folder, capsys, monkeypatch
):
    def broken(F, K):
        raise raised

    monkeypatch.setattr(user_generator, "check_convexity", broken)
    assert command("--generator", "my_generators:cubic", "--classes", "3") == code
    error = capsys.readouterr().err
    assert says in error and error.count("\n") <= 1


def test_what_is_written_does_not_name_the_folder_it_is_in(command, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("proofs_numeric.theory_figures.draw", lambda folder: [folder / "one.png"])
    places = ("--figures", str(tmp_path), "--out", str(tmp_path))
    assert command("--only", "improper", "--classes", "3", *places) == 0
    assert "wrote" in capsys.readouterr().out
    for name in ("proofs.json", "proofs.md"):
        text = (tmp_path / name).read_text("utf-8")
        assert "improper" in text.lower() and str(tmp_path) not in text
