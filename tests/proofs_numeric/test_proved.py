"""`python -m proofs_numeric --certify`: what its rows say."""

import jax.numpy as jnp
import numpy as np

import pgeom
from proofs_numeric import proved


def test_rows_say_proved_disproved_or_searched():
    cubes = proved.prove("cubes", lambda p: jnp.sum(p**3), 5)
    assert (cubes.convex, cubes.strictly_convex, cubes.m_tangent) == ("proved", "proved", 0)
    dent = proved.prove("dent", lambda p: -jnp.sum(p**2), 3)
    assert (dent.convex, dent.strictly_convex, dent.M_tangent) == ("disproved", "disproved", -2)
    norm = proved.prove("norm", lambda p: jnp.sum(p**3) ** (1 / 3), 2)
    assert norm.convex == "searched"


def test_the_table_and_the_json_have_every_row():
    rows = [proved.prove("squares", lambda p: jnp.sum(p**2), K) for K in (2, 3)]
    assert proved.to_rich(rows).row_count == 2
    assert [row["M_tangent"] for row in proved.to_json(rows)] == [2, 2]


def test_a_diagnosis_may_hold_a_certificate():
    F = pgeom.generators.quadratic(np.diag([1.0, 2.0, 3.0]))
    report = pgeom.diagnose(F, 3, certify=True)
    assert report.certificate.convex == "proved"
    assert "proved: <F on 3 classes" in str(report)
    assert pgeom.diagnose(F, 3).certificate is None
