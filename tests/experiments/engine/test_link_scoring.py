"""Runs with a canonical link are trained, scored, stored and found again by p(z)."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import pgeom
from experiments.engine.identity import describe, identify
from experiments.engine.jobs import Machine, train_missing
from experiments.engine.measures import Measure
from experiments.engine.options import Options, make_study
from experiments.engine.replaying import rebuild_study
from experiments.engine.results import read_frame, read_logits
from experiments.engine.scoring import Predictions, score_canonical
from experiments.engine.store import Store
from experiments.shell.errors import UsageError
from pgeom.data.splits import split
from pgeom.losses import catalogue
from pgeom.losses.own import generator_loss
from pgeom.types import ClassStats

CANONICAL = Options(seeds=("1",), epochs=2, link="canonical")
BRIER = catalogue.LOSSES["brier"].with_canonical_link()
STATS = ClassStats(counts=jnp.ones(3), centroids=jnp.eye(3))


def sparsemax(z):
    return np.asarray(pgeom.canonical_link(pgeom.generators.squared_norm)(jnp.asarray(2 * z)))


@pytest.fixture(scope="module")
def studied(tmp_path_factory, promotion_as_optax_needs_it):
    folder = tmp_path_factory.mktemp("linked")
    study = make_study(
        "links", CANONICAL, "breast-cancer", regimes=("clean",), losses=("ce", "brier", "capm")
    )
    train_missing(study, Store(folder), Machine(2, Console(quiet=True)))
    return study, folder


def test_only_losses_of_a_generator_get_their_link(studied):
    study, _ = studied
    assert [loss.link for loss in study.losses] == ["softmax", "canonical", "canonical"]
    assert [loss.label for loss in study.losses] == ["CE", "Brier, canonical", "CAPM, canonical"]


def test_the_identity_includes_the_link(studied):
    study, _ = studied
    plain = make_study(
        "links",
        replace(CANONICAL, link="softmax"),
        "breast-cancer",
        regimes=("clean",),
        losses=("ce", "brier", "capm"),
    )
    linked, softmax = identify(study), identify(plain)
    assert linked.losses[0] == softmax.losses[0]
    assert not set(linked.losses[1:]) & set(softmax.losses)
    # even where both links are one function
    shannon = generator_loss(pgeom.generators.shannon, "shannon", mean_curvature=None)
    both = replace(study, losses=(shannon, shannon.with_canonical_link()))
    assert len(set(identify(both).losses)) == 2


def test_a_record_says_what_its_stored_forecast_gives(studied):
    study, folder = studied
    frame = read_frame(study, folder).set_index("loss")
    test = read_logits(study, study.regimes[0], folder)
    assert frame.loc["brier", "link"] == frame.loc["capm", "link"] == "canonical"
    for name in ("brier", "capm"):
        p, labels = np.exp(test.logits[name][0].astype(float)), test.labels[0]
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
        brier = np.mean(np.sum((p - np.eye(2)[labels]) ** 2, axis=1))
        np.testing.assert_allclose(frame.loc[name, "brier"], brier, rtol=1e-4)
        right = np.mean(p.argmax(axis=1) == labels)
        np.testing.assert_allclose(frame.loc[name, "accuracy"], right, rtol=1e-5)
    store = Store(folder)
    curves = {
        r["loss"]: ("validation_loss" in r, "validation_nll" in r) for r in store.records.values()
    }
    assert curves == {"ce": (False, True), "brier": (True, False), "capm": (True, False)}


def test_a_run_is_found_again_with_its_link(studied):
    study, folder = studied
    records = Store(folder).records
    for record in records.values():
        again = rebuild_study(record, describe(study), {})
        assert again.losses[0].link == record.get("link", "softmax")


def test_scores_of_a_sparse_link_by_hand():
    z = np.array([[0.2, 0.1, -0.1], [3.0, 0.0, -1.0], [0.0, 2.0, 0.1], [0.3, 0.0, 0.2]], np.float32)
    labels = np.array([0, 1, 1, 2])  # the second has p_y = 0
    one = Predictions(
        jnp.asarray(z)[None], jnp.asarray(labels), jnp.asarray(z)[None], jnp.asarray(labels)
    )
    scores, log_p = score_canonical(BRIER, STATS, one, one)
    p = sparsemax(z / 2)
    np.testing.assert_allclose(np.exp(log_p), p, atol=1e-6)
    assert scores["zero_rate"] == 0.25 and scores["nll"] == np.inf
    np.testing.assert_allclose(
        scores["brier"], np.mean(np.sum((p - np.eye(3)[labels]) ** 2, 1)), rtol=1e-5
    )
    # hot enough, no label has the probability zero
    assert np.isfinite(scores["calibrated_nll"]) and scores["temperature"] > 1
    hot = sparsemax(z / 2 / scores["temperature"])
    nll = -np.mean(np.log(hot[np.arange(4), labels]))
    np.testing.assert_allclose(scores["calibrated_nll"], nll, rtol=1e-4)


def test_a_measure_sees_the_forecast_of_each_run(studied):
    study, _ = studied

    def largest(predict, forecast, test, key):
        return {"largest": jnp.mean(jnp.max(forecast(predict(test.features)), axis=1))}

    parts = split(study.dataset, 0)
    rng, losses = np.random.default_rng(0), (catalogue.LOSSES["brier"], BRIER)
    parameters = np.tile(study.model.initial(rng), (2, 1))
    stats = ClassStats(jnp.ones(2), jnp.zeros((2, 30)))
    fields = Measure("largest", largest).runs(study.model, losses, parameters, parts, stats, 0)
    logits = study.model.logits(jnp.asarray(parameters[0]), jnp.asarray(parts.test.features))
    expected = [
        jnp.mean(jnp.max(link(logits), axis=1))
        for link in (jax.nn.softmax, pgeom.canonical_link(pgeom.generators.squared_norm))
    ]
    np.testing.assert_allclose(fields["largest"], expected, rtol=1e-5)
    assert expected[0] != expected[1]


def test_what_a_canonical_link_does_not_go_with():
    with pytest.raises(UsageError, match="--stop-on must be nll or none with --link canonical"):
        replace(CANONICAL, stop_on="accuracy").check()
    with pytest.raises(UsageError, match="--link must be softmax for known_truth"):
        CANONICAL.require_softmax("known_truth")
    with pytest.raises(ValueError, match="focal must be the score of a generator"):
        catalogue.LOSSES["focal"].with_canonical_link()
