"""A loss as a value: what it computes is compared, how it is called is not."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

from pgeom.losses import catalogue, likelihood
from pgeom.losses.spec import LossSpec, from_counts, from_logits
from pgeom.types import ClassStats

STATS = ClassStats(counts=jnp.array([8.0, 2.0]), centroids=jnp.array([[0.0], [1.0]]))
Z, Y = jnp.array([1.0, 0.0]), jnp.array(0)
GCE = catalogue.LOSSES["gce"]


def power(logits, labels, *, exponent):
    return logits[..., 0] ** exponent


def share(logits, labels, *, class_counts, scale):
    return scale * class_counts[labels] / jnp.sum(class_counts)


@pytest.fixture
def squared():
    return LossSpec("squared", "Squared", "Mine", from_logits(power), {"exponent": 2})


def test_a_variant_changes_some_constants_and_keeps_the_rest():
    sce = catalogue.LOSSES["sce"]
    harsh = sce.variant("sce-harsh", "SCE, harsh", alpha=6.0)
    assert (harsh.name, harsh.label) == ("sce-harsh", "SCE, harsh")
    assert harsh.constants == {**sce.constants, "alpha": 6.0}
    assert (harsh.make, harsh.family) == (sce.make, sce.family)
    assert sce.constants["alpha"] == 0.1  # untouched
    assert harsh != sce


def test_a_variant_computes_with_its_constants(squared):
    cubed = squared.variant("cubed", "Cubed", exponent=3)
    assert squared.build(STATS)(2 * Z, Y) == 4
    assert cubed.build(STATS)(2 * Z, Y) == 8


def test_equality_ignores_how_a_loss_is_called():
    other = replace(GCE, name="x", label="X", family="Y", studied=True)
    assert other == GCE and hash(other) == hash(GCE)
    assert GCE.variant("gce-again", "GCE", q=0.7) == GCE
    assert len({GCE, other}) == 1


def test_equality_sees_what_a_loss_computes():
    assert GCE.variant("gce", "GCE", q=0.2) != GCE
    assert replace(GCE, make=from_logits(likelihood.focal)) != GCE


def test_a_spec_cannot_be_changed():
    with pytest.raises(AttributeError):
        GCE.name = "other"


def test_class_counts_reach_a_loss_that_asks_for_them():
    spec = LossSpec("share", "Share", "Mine", from_counts(share), {"scale": 10.0})
    assert spec.build(STATS)(Z, Y) == 8.0
    other = STATS._replace(counts=jnp.array([1.0, 3.0]))
    assert spec.build(other)(Z, Y) == 2.5


def test_an_annealed_loss_is_told_how_much_is_over():
    def make(stats, *, weight, progress):
        return lambda logits, labels: weight * stats.counts[0] + progress

    spec = LossSpec("own", "Own", "Mine", make, {"weight": 2.0}, annealed=True)
    assert spec.build(STATS)(Z, Y) == 16.0 and spec.build(STATS, 0.5)(Z, Y) == 16.5
