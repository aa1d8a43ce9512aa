"""Runs are scored, stored and found again by the forecast of their link, softmax or canonical."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import pgeom
from experiments.engine.cells import Predictions, fit_link_temperature, link_nll, prepare, score
from experiments.engine.identity import identify
from experiments.engine.measures import Measure, TestPart, measure_run
from experiments.engine.options import Options, make_study
from experiments.engine.replaying import describe_parts, rebuild_study
from experiments.engine.results import read_frame, read_logits
from experiments.engine.store import Store
from experiments.engine.training import train_missing
from experiments.shell.errors import UsageError
from pgeom.losses import catalogue
from pgeom.losses.own import generator_loss
from pgeom.types import ClassStats

CANONICAL = Options(seeds=("1",), epochs=2, link="canonical")
ASKED = {"regimes": ("clean",), "losses": ("ce", "brier", "capm")}
BRIER = catalogue.LOSSES["brier"].with_canonical_link()
SPARSEMAX = pgeom.canonical_link(pgeom.generators.squared_norm)


@pytest.fixture(scope="module")
def studied(tmp_path_factory, promotion_as_optax_needs_it):
    folder = tmp_path_factory.mktemp("linked")
    study = make_study("links", CANONICAL, "breast-cancer", **ASKED)
    train_missing(study, Store(folder), 2, Console(quiet=True))
    return study, folder


def test_only_losses_of_a_generator_get_their_link(studied):
    study, _ = studied
    assert [loss.link for loss in study.losses] == ["softmax", "canonical", "canonical"]
    assert [loss.label for loss in study.losses] == ["CE", "Brier, canonical", "CAPM, canonical"]


def test_the_identity_includes_the_link(studied):
    study, _ = studied
    plain = make_study("links", replace(CANONICAL, link="softmax"), "breast-cancer", **ASKED)
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
    for record in Store(folder).records.values():
        linked = record["loss"] != "ce"
        assert ("validation_loss" in record) == linked != ("validation_nll" in record)


def test_a_run_is_found_again_with_its_link(studied):
    store = Store(studied[1])
    for record in store.records.values():
        again = rebuild_study(record, describe_parts(record, store.descriptions))
        assert again.losses[0].link == record.get("link", "softmax")


def test_scores_of_a_sparse_link_by_hand():
    z = np.array([[0.2, 0.1, -0.1], [3.0, 0.0, -1.0], [0.0, 2.0, 0.1], [0.3, 0.0, 0.2]], np.float32)
    labels = np.array([0, 1, 1, 2], np.int32)  # the second has p_y = 0
    one = Predictions(*map(jnp.asarray, (z, labels, z, labels)))
    stats = ClassStats(counts=jnp.ones(3), centroids=jnp.eye(3))
    scores, log_p = score(BRIER, stats, one, one)
    p = np.asarray(SPARSEMAX(z))
    np.testing.assert_allclose(np.exp(log_p), p, atol=1e-6)
    assert scores["zero_rate"] == 0.25 and scores["nll"] == np.inf
    brier = np.mean(np.sum((p - np.eye(3)[labels]) ** 2, 1))
    np.testing.assert_allclose(scores["brier"], brier, rtol=1e-5)
    # hot enough, no label has the probability zero
    assert np.isfinite(scores["calibrated_nll"]) and scores["temperature"] > 1
    hot = np.asarray(SPARSEMAX(z / scores["temperature"]))
    nll = -np.mean(np.log(hot[np.arange(4), labels]))
    np.testing.assert_allclose(scores["calibrated_nll"], nll, rtol=1e-4)


def test_a_measure_sees_the_forecast_of_each_run(studied):
    study, _ = studied

    def largest(predict, forecast, test, key):
        return {"largest": jnp.mean(jnp.max(forecast(predict(test.features)), axis=1))}

    one = prepare(study, study.cells[0])
    parameters, stats = one.data.initial, one.data.arrays.stats
    test = TestPart(one.split.test.features, one.split.test.labels, *np.zeros((2, 30), np.float32))
    logits = study.model.logits(parameters, jnp.asarray(test.features))
    seen = []
    for loss, link in ((None, jax.nn.softmax), (BRIER, SPARSEMAX)):
        asked = (Measure("largest", largest), study.model, loss)
        fields = measure_run(*asked, parameters, test, jax.random.key(0), stats)
        expected = jnp.mean(jnp.max(link(logits), axis=1))
        np.testing.assert_allclose(fields["largest"], expected, rtol=1e-5)
        seen.append(float(expected))
    assert seen[0] != seen[1]


def test_what_a_canonical_link_does_not_go_with():
    with pytest.raises(UsageError, match="--stop-on must be nll or none with --link canonical"):
        replace(CANONICAL, stop_on="accuracy").check()
    with pytest.raises(UsageError, match="--link must be softmax for known_truth"):
        CANONICAL.require_softmax("known_truth")
    with pytest.raises(ValueError, match="focal must be the score of a generator"):
        catalogue.LOSSES["focal"].with_canonical_link()


RNG = np.random.default_rng(0)
Z = RNG.normal(size=(60, 3)).astype(np.float32) * 3
LABELS = np.argmax(Z / 2 + RNG.gumbel(size=Z.shape), axis=1)  # draws from softmax(Z/2)


@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_softmax_is_scaled_as_by_bisection(prior):
    expected = pgeom.calibration.fit_temperature(Z, LABELS, prior=prior)
    z, labels = jnp.asarray(Z), jnp.asarray(LABELS)
    actual = fit_link_temperature(jax.nn.softmax, z, labels, prior=prior)
    np.testing.assert_allclose(actual.temperature, expected.temperature, rtol=2e-3)
    assert not actual.at_bound


def test_a_sparse_link_is_heated_until_no_label_is_ruled_out():
    z, labels = jnp.asarray(Z), jnp.asarray(LABELS)
    assert jnp.sum(link_nll(SPARSEMAX, z, labels)) == jnp.inf
    fit = jax.jit(lambda z, labels: fit_link_temperature(SPARSEMAX, z, labels, prior=0.0))
    temperature = fit(z, labels).temperature
    best = jnp.sum(link_nll(SPARSEMAX, z / temperature, labels))
    assert jnp.isfinite(best)
    for factor in (0.9, 1.1):
        assert jnp.sum(link_nll(SPARSEMAX, z / (factor * temperature), labels)) >= best


@pytest.mark.parametrize(("pick", "limit"), [(np.argmax, 0.0), (np.argmin, np.inf)])
def test_what_has_no_best_temperature_ends_at_a_bound(pick, limit):
    """Where every label has the largest logit, the colder the better, and else the hotter."""
    labels = jnp.asarray(pick(Z, axis=1))
    fit = fit_link_temperature(jax.nn.softmax, jnp.asarray(Z), labels, prior=0.0)
    assert fit.at_bound
    np.testing.assert_allclose(1 / (1 + fit.temperature), 1 / (1 + limit), atol=0.01)
