"""`python -m proofs_numeric --certify`: what its rows say."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.losses.catalogue import MARGIN
from pgeom.paper import margin
from proofs_numeric import certified, checker, configurations, exact_range


def test_rows_say_proved_disproved_or_searched():
    cubes = certified.prove("cubes", lambda p: jnp.sum(p**3), 5)
    assert (cubes.convex, cubes.strictly_convex, cubes.m_tangent) == ("proved", "proved", 0)
    dent = certified.prove("dent", lambda p: -jnp.sum(p**2), 3)
    assert (dent.convex, dent.strictly_convex, dent.M_tangent) == ("disproved", "disproved", -2)
    gamma = certified.prove("gamma", lambda p: jnp.sum(jax.scipy.special.gammaln(p + 1)), 2)
    assert gamma.convex == "searched"


def test_certificates_are_written_beside_the_report(tmp_path: Path):
    squares = lambda p: jnp.sum(p**2)  # noqa: E731
    rows = [certified.prove("squares", squares, 2), certified.prove_range("a score", squares, 2)]
    certified.write(rows, tmp_path)
    files = sorted((tmp_path / "certificates").iterdir())
    assert [path.name for path in files] == ["a-score-K2.json", "squares-K2.json"]
    for path in files:
        assert "convex proved" in checker.verify(json.loads(path.read_text("utf-8")))
    page = (tmp_path / "proofs.md").read_text("utf-8")
    assert len(certified.tables(rows)) == 2
    assert "Convexity: 1 proved, 0 disproved, 0 searched" in page
    assert "| squares | 2 | proved | proved | 2 | 2 |" in page and "Ranges: 1 proved." in page
    assert len(json.loads((tmp_path / "proofs.json").read_text("utf-8"))) == 2


def test_the_ranges_of_margins_are_what_their_formulas_say():
    low, high = margin.margin_range(3, tau=MARGIN["tau"])
    stated = [(-high, -low), margin.penalty_range(3, **MARGIN)]
    facts = certified.paper_ranges(3)
    for (name, (function, gap)), ends in zip([*facts.items()][:2], stated, strict=True):
        row, ends = certified.prove_range(name, function, 3, gap), tuple(map(float, ends))
        assert (row.least, row.largest) == pytest.approx(ends, rel=1e-6)
        assert (row.lowest, row.highest) == pytest.approx(ends, rel=1e-6)
        assert "'largest'" in checker.verify(json.loads(json.dumps(row.document)))


@pytest.mark.parametrize("K", (2, 3))
def test_logit_gradients_are_at_most_8_over_27(K):
    row = certified.prove_range("gradients", certified.LOGIT_GRADIENTS[K], K, gap=0.05)
    assert 8 / 27 <= row.largest <= 1.06 * 8 / 27 and 0.94 * 8 / 27 <= row.highest <= 8 / 27
    point = np.array([1, 2, 0][:K]) / 3
    assert certified.LOGIT_GRADIENTS[K](point) == pytest.approx(8 / 27, rel=1e-6)
    assert "'largest'" in checker.verify(json.loads(json.dumps(row.document)))


def test_the_ranges_of_scores_are_the_exact_ones():
    F = configurations.one_ridge(2)
    row = certified.prove_range("ridge", certified.score(F, 2, 0), 2, gap=0.1)
    exact, _ = exact_range.largest_loss(F)
    assert exact.low <= row.largest <= 1.12 * exact.high and row.highest <= exact.high
    F = configurations.quadratics(3).values["extremal: pair metric"]
    row = certified.prove_range("metric", certified.score(F, 3, 0), 3)
    assert (row.least, row.largest) == pytest.approx((0, 7), abs=1e-9)  # 1 + 2c


def test_a_diagnosis_may_hold_a_certificate():
    F = pgeom.generators.quadratic(np.diag([1.0, 2.0, 3.0]))
    report = pgeom.diagnose(F, 3, certify=True)
    assert report.certificate.convex == "proved"
    assert "proved: <F on 3 classes" in str(report)
    assert pgeom.diagnose(F, 3).certificate is None
