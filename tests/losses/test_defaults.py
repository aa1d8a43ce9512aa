"""A loss called without constants is that of the protocol, by its formula in NumPy."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from tests.losses import test_formulas as formulas

SHORT_NAMES = {  # of the protocol, where they are not those of the functions
    "cross_entropy": "ce",
    "mean_absolute_error": "mae",
    "generalized_cross_entropy": "gce",
    "symmetric_cross_entropy": "sce",
    "active_passive": "apl",
    "bi_tempered": "btl",
    "class_balanced_cross_entropy": "cb_ce",
}


@pytest.mark.parametrize("name", pgeom.losses.__all__)
def test_the_defaults_are_the_constants_of_the_protocol(name, x64):
    loss, formula = getattr(pgeom.losses, name), formulas.FORMULAS[SHORT_NAMES.get(name, name)]
    counts = "class_counts" in inspect.signature(loss).parameters
    data = {"class_counts": formulas.COUNTS} if counts else {}
    logits, labels = formulas.LOGITS[:5], formulas.LABELS[:5]
    assert sorted(labels) == list(range(formulas.K))
    expected = [formula(z, y) for z, y in zip(logits, labels, strict=True)]
    np.testing.assert_allclose(loss(jnp.asarray(logits), labels, **data), expected, rtol=1e-10)
