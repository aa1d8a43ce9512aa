"""Figures are drawn, as PNG and as PDF; two of them, because each costs a compilation."""

import jax
import numpy as np
import pytest

from pgeom.diagnosis import curvature
from proofs_numeric import proof_figures, search, theory_figures


def test_the_command_draws_and_checks_nothing(command, tmp_path, monkeypatch, capsys):
    drawn = {"hpg-curvature", "supp-theory-spectrum-regret"}
    chosen = {name: theory_figures.FIGURES[name] for name in drawn}
    monkeypatch.setattr(theory_figures, "FIGURES", chosen)
    assert command(str(tmp_path / "new"), main=proof_figures.main) == 0
    paths = list((tmp_path / "new").iterdir())
    assert {path.name for path in paths} == {
        f"{n}.{kind}" for n in drawn for kind in ("png", "pdf", "svg")
    }
    assert all(path.stat().st_size > 5_000 for path in paths)
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(f"wrote {p}" for p in paths)


@pytest.mark.parametrize("arguments", [(), ("file/figures",)])
def test_a_bad_folder_is_one_line_and_code_two(command, arguments, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    assert command(*arguments, main=proof_figures.main) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "DIR" in err


def test_tangent_eigenvalues_are_within_their_bounds_and_others_need_not_be(x64):
    """What is drawn is what the bounds are about: on the whole space some are outside."""
    F = theory_figures._hpg()
    envelope = curvature.envelope(F, theory_figures.K)
    drawn = theory_figures.tangent_eigenvalues(F)
    assert len(drawn) == 3 * 700 * (theory_figures.K - 1)
    assert envelope.m_tangent - 1e-9 <= drawn.min() and drawn.max() <= envelope.M_tangent + 1e-9
    points = search.draws(theory_figures.K, count=20, seed=20)
    whole = np.linalg.eigvalsh(jax.vmap(jax.hessian(F))(points))
    assert whole.max() > envelope.M_tangent
