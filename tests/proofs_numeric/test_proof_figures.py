"""Figures are drawn, as PNG and as PDF; two of them, because each costs a compilation."""

import sys

import pytest

from pgeom.frontend import command_line
from proofs_numeric import proof_figures


def execute(*arguments, monkeypatch):
    """The exit code of `python -m proofs_numeric.proof_figures`."""
    monkeypatch.setattr(sys, "argv", ["proof_figures", *arguments])
    with pytest.raises(SystemExit) as stop:
        command_line.run(proof_figures.main, "proofs_numeric.proof_figures")
    return stop.value.code or 0


def test_the_command_draws_and_checks_nothing(tmp_path, monkeypatch, capsys):
    drawn = {"hpg-curvature", "supp-theory-spectrum-regret"}
    chosen = {name: proof_figures.FIGURES[name] for name in drawn}
    monkeypatch.setattr(proof_figures, "FIGURES", chosen)
    assert execute(str(tmp_path / "new"), monkeypatch=monkeypatch) == 0
    paths = list((tmp_path / "new").iterdir())
    assert {path.name for path in paths} == {
        f"{n}.{kind}" for n in drawn for kind in ("png", "pdf")
    }
    assert all(path.stat().st_size > 5_000 for path in paths)
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(f"wrote {p}" for p in paths)


@pytest.mark.parametrize("arguments", [(), ("file/figures",)])
def test_a_bad_folder_is_one_line_and_code_two(arguments, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    assert execute(*arguments, monkeypatch=monkeypatch) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "DIR" in err
