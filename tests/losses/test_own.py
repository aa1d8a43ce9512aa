"""Losses of one's own: what they are made into, and what is refused, with a reason."""

import copy
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom.losses.catalogue import LOSSES
from pgeom.losses.own import (
    generator_loss,
    make_loss,
    matching_factor,
    plain_loss,
    require_convex,
    require_loss,
)
from pgeom.types import ClassStats

STATS = ClassStats(jnp.array([4.0, 5.0, 6.0]), jnp.eye(3, 2))
LOGITS = jnp.array([[2.0, 0.0, 1.0], [-1.0, 0.5, 3.0], [0.0, 0.0, 0.0]])
LABELS = jnp.array([0, 1, 2])


def cubic(p):
    return jnp.sum(p**3)


def cross_entropy(logits, labels):
    chosen = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return jax.nn.logsumexp(logits, axis=-1) - chosen


def values(spec):
    return spec.build(STATS)(LOGITS, LABELS)


def logsumexp_curvature(K):
    """25 tr(diag(q) − qqᵀ)/(K − 1), the less of those with the q at p = 1/K and at p = e_1."""
    q = np.insert(np.full(K - 1, 1.0), 0, np.exp(5.0)) / (np.exp(5.0) + K - 1)
    return 25 * np.clip((1 - np.sum(q**2)) / (K - 1), 0.1 / K, 1 / K)


# by class count, the curvature at p = 1/K or, down to a tenth of it, at the vertices, by hand
MATCHED = {
    "cubic": (cubic, lambda K: 6 / K),
    "-Σ√p": (lambda p: -jnp.sum(jnp.sqrt(p)), lambda K: K**1.5 / 4),
    "Shannon": (lambda p: jnp.sum(jax.scipy.special.xlogy(p, p)), lambda K: K),
    "Brier with a penalty": (lambda p: jnp.sum(p**2) + (1 - 1 / p.size) * jnp.max(p), lambda K: 2),
    "logsumexp": (lambda p: jax.nn.logsumexp(5 * p), logsumexp_curvature),
    "steep along 1": (lambda p: jnp.sum(p**2) + 1e6 * jnp.sum(p) ** 2, lambda K: 2),
    "sum": (3 * pgeom.generators.squared_norm + cubic, lambda K: 6 + 6 / K),
    "steep logsumexp": (lambda p: jax.nn.logsumexp(50 * p), lambda K: 250 / K),  # a tenth
    "quartic": (lambda p: jnp.sum(p**4), lambda K: 12 / K**2),
}


@pytest.mark.parametrize("K", [2, 5])
@pytest.mark.parametrize("case", MATCHED)
def test_a_generator_is_matched_by_its_curvature_where_training_begins_or_ends(case, K):
    F, curvature = MATCHED[case]
    np.testing.assert_allclose(matching_factor(F, K), 2 / curvature(K), rtol=1e-4)
    with jax.enable_x64(True):  # as some other part of a program may have it
        again = generator_loss(F, "F").generator(STATS, mean_curvature=2.0)
    factor, point = matching_factor(F, 3), jnp.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(again(point), factor * F(point), rtol=1e-5)


def test_without_matching_a_generator_is_left_as_it_is():
    plain = pgeom.on_logits(pgeom.bregman_score(cubic))(LOGITS, LABELS)
    left = generator_loss(cubic, "cubic", mean_curvature=None)
    for spec in (left, make_loss(cubic, 3, match=False)):
        np.testing.assert_allclose(values(spec), plain)


UNMATCHED = {
    "max p": jnp.max,
    "|p - 1/K|": lambda p: jnp.sum(jnp.abs(p - 1 / p.size)),
    "a root there": lambda p: jnp.sqrt(jnp.sum((p - 1 / p.size) ** 2)),
}


@pytest.mark.parametrize("case", UNMATCHED)
def test_what_no_factor_matches_is_refused_in_one_line(case):
    with pytest.raises(ValueError) as error:
        matching_factor(UNMATCHED[case], 10, "my.py:F")
    said = str(error.value)
    assert said.startswith("my.py:F must have a positive, finite curvature at uniform prob")
    assert said.endswith("(K=10); match=False leaves it as it is") and "\n" not in said


def test_a_loss_is_taken_as_it_is():
    mine = plain_loss(cross_entropy, "mine")
    np.testing.assert_allclose(values(mine), values(LOSSES["ce"]), rtol=1e-5)


NO_GENERATORS = {
    "concave": (lambda p: -jnp.sum(p**2), "F is not convex, so its score is not proper"),
    "a factory": (
        lambda p: lambda q: jnp.sum(q**2),
        "for p[3], got function",
    ),
    "not for JAX": (lambda p: float(p[0]), "raised"),
    "not finite": (lambda p: jnp.sum(p * jnp.log(p)), "must be finite at the vertices"),
}


@pytest.mark.parametrize("case", NO_GENERATORS)
def test_no_generator_is_refused(case):
    F, says = NO_GENERATORS[case]
    with pytest.raises(ValueError) as error:
        require_convex(F, 3, "my.py:F")
    assert str(error.value).startswith("my.py:F") and says in str(error.value)
    assert "\n" not in str(error.value)


NO_LOSSES = {
    "a mean": (lambda z, y: jnp.mean(z), "one number per example, shape [4], got float32"),
    "not finite": (lambda z, y: jnp.log(-jnp.ones(len(y))) + z[:, 0], "must be finite"),
    "one sign wrong": (
        lambda z, y: jnp.where(y == 2, -1, 1) * cross_entropy(z, y),
        "for label 2, from",
    ),
    "no labels": (lambda z, y: jnp.sum(z, axis=-1) ** 2, "is the same whether the label's"),
    "infinite once": (lambda z, y: jnp.where(y == 0, jnp.inf, z[:, 0]), "must be finite"),
    "steps": (lambda z, y: jnp.where(jnp.argmax(z, -1) == y, 0.0, 1.0), "a gradient of zero"),
    "no gradient": (lambda z, y: jnp.sqrt(jnp.sum(0.0 * z, axis=-1)), "finite gradient"),
    "a table": (lambda z, y: z, "shape [4], got float32 of shape [4, 3]"),
    "no gradient once": (lambda z, y: jnp.sqrt(jnp.where(y == 0, 0.0 * z[:, 0], 4.0)), "gradient"),
}


def margin(logits, labels):
    return cross_entropy(logits, labels) - jax.nn.logsumexp(logits, axis=-1)


def others(logits, labels):
    label = jax.nn.one_hot(labels, logits.shape[-1])
    return jnp.sum((1 - label) * jax.nn.softplus(logits), axis=-1)


def probability(logits, labels):
    return -jnp.exp(-cross_entropy(logits, labels))


LOSSES_OF_ALL_KINDS = [cross_entropy, margin, others, probability]


@pytest.mark.parametrize("K", [2, 30])
@pytest.mark.parametrize("loss", LOSSES_OF_ALL_KINDS)
def test_a_negated_loss_is_refused(loss, K):
    def negated(logits, labels):
        return -loss(logits, labels)

    require_loss(loss, K, "mine")
    with pytest.raises(
        ValueError, match=r"^mine grows as the label's probability grows: for label "
    ):
        require_loss(negated, K, "mine")
    with pytest.raises(ValueError, match=r"^negated grows as the label"):
        make_loss(negated, K)


@pytest.mark.parametrize("case", NO_LOSSES)
def test_no_loss_is_refused(case):
    loss, says = NO_LOSSES[case]
    with pytest.raises(ValueError) as error:
        require_loss(loss, 3, "my.py:loss")
    assert str(error.value).startswith("my.py:loss") and says in str(error.value)


def test_a_loss_that_is_flat_for_unlikely_labels_passes():
    def truncated(logits, labels):
        p = jnp.exp(-cross_entropy(logits, labels))
        return -jnp.maximum(p, 0.5)

    for K in (2, 3, 30, 300):
        require_loss(truncated, K, "truncated")


def scaled_entropy(logits, labels, scale=1.0):
    return scale * cross_entropy(logits, labels)


def test_what_a_user_may_call_a_loss():
    """A name, a value, F(p), or loss(logits, labels), whatever else it has a default for."""
    assert make_loss("ce", 3) is make_loss(LOSSES["ce"], 3) is LOSSES["ce"]
    generator, loss = make_loss(cubic, 3), make_loss(scaled_entropy, 3)
    assert (generator.name, generator.proper, loss.name) == ("cubic", True, "scaled_entropy")
    np.testing.assert_allclose(values(generator), values(generator_loss(cubic, "cubic")))
    np.testing.assert_allclose(values(loss), values(LOSSES["ce"]), rtol=1e-5)
    with pytest.raises(ValueError, match="loss must be a name, a generator F"):
        make_loss(lambda a, b, c: a, 3)


def test_equal_losses_share_one_value_and_its_compiled_programs():
    """As the copies that scikit-learn's `clone` makes of every parameter."""
    for one in (pgeom.generators.tsallis(1.5), partial(scaled_entropy, scale=2.0), cubic):
        assert make_loss(copy.deepcopy(one), 3) is make_loss(one, 3)
    for other in (pgeom.generators.tsallis(1.25), partial(scaled_entropy, scale=3.0)):
        assert make_loss(other, 3) is not make_loss(pgeom.generators.tsallis(1.5), 3)
    assert make_loss(cubic, 3) is not make_loss(cubic, 3, match=False)
