"""Figures are drawn, as PNG and as PDF; two of them, because each costs a compilation."""

import pytest

from proofs_numeric import figures


@pytest.mark.parametrize("name", ["supp-theory-spectrum-regret", "hpg-curvature"])
def test_figures_are_written(name, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", {name: figures.FIGURES[name]})
    paths = figures.draw(tmp_path)
    assert {path.name for path in paths} == {f"{name}.png", f"{name}.pdf"}
    assert all(path.stat().st_size > 5_000 for path in paths)
