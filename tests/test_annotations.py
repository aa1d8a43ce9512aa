"""Annotations are checked: by beartype at calls of tests, and by pyrefly."""

import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import jaxtyping
import pytest

from pgeom import simplex

ROOT = Path(__file__).parents[1]


def pyrefly(*paths):
    """Check files with the project's configuration and the interpreter that runs the tests."""
    command = [sys.executable, "-m", "pyrefly", "check", "--config", ROOT / "pyproject.toml"]
    command += ["--python-interpreter-path", sys.executable, *paths]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda: simplex.pick(jnp.zeros((2, 3)), 0),
        lambda: simplex.pick(jnp.zeros(3, int), 0),
        lambda: simplex.displacement(jnp.zeros(3), jnp.zeros(4)),
    ],
    ids=["rank", "dtype", "classes"],
)
def test_a_call_that_contradicts_an_annotation_is_noticed(call):
    with pytest.raises(jaxtyping.TypeCheckError):
        call()


def test_users_do_not_pay_for_the_check():
    code = "import sys, pgeom; assert 'beartype' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_type_error_is_noticed(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from pgeom import checks\n\nchecks.check_positive(1.0)\n")
    checked = pyrefly("--search-path", ROOT, wrong)
    assert checked.returncode == 1 and "check_positive" in checked.stdout
