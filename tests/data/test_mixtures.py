"""Mixtures whose posterior is known, and channels whose effect on it is."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from pgeom.data import mixtures, regimes, sources
from pgeom.data.regimes import Regime, transition


@pytest.mark.parametrize("K", [2, 3, 10])
def test_the_posterior_is_bayes_rule(K):
    mixture, data = mixtures.make_mixture(K), sources.load(f"mixture-{K}-400")
    joint = np.stack(
        [
            share * multivariate_normal(centre).pdf(data.features)
            for share, centre in zip(*mixture, strict=True)
        ],
        axis=-1,
    )
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(data.posterior, expected, rtol=1e-9, atol=1e-300)


def test_labels_are_drawn_from_the_posterior():
    data = sources.load("mixture-5-20000")
    chosen = data.posterior[np.arange(20000), data.labels]
    # E log P(y | x) is minus the mean entropy, whatever the posterior
    entropy = -np.sum(data.posterior * np.log(data.posterior), axis=1)
    spread = np.std(np.log(chosen) + entropy) / np.sqrt(20000)
    assert abs(np.mean(np.log(chosen)) + np.mean(entropy)) < 4 * spread
    counts = np.bincount(data.labels)
    assert counts[0] / counts[-1] == pytest.approx(mixtures.IMBALANCE, rel=0.1)
    assert 0.6 < np.mean(data.posterior.max(axis=1)) < 0.95, "classes overlap, and are learnable"


@pytest.mark.parametrize(
    "name", ["mixture-1-100", "mixture-11-1000", "mixture-3-59", "mixture-3", "mixture-3-x"]
)
def test_a_mixture_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match="a mixture must be mixture-CLASSES-EXAMPLES") as error:
        sources.load(name)
    assert name in str(error.value)


NOISE = {
    "symmetric-40": lambda y, rng: regimes.symmetric(y, 0.4, 4, rng),
    "pair-flip-30": lambda y, rng: regimes.pair_flip(y, 0.3, 4, rng),
    "asymmetric-20": lambda y, rng: regimes.asymmetric(y, 0.2, 4, rng, class_map=(1, 1, 3, 2)),
}


@pytest.mark.parametrize("name", NOISE)
def test_a_channel_is_what_the_noise_does(name):
    labels = np.arange(40000) % 4
    drawn = NOISE[name](labels, np.random.default_rng(0)).transition
    exact = transition(Regime.parse(name), 4, (1, 1, 3, 2))
    np.testing.assert_allclose(exact.sum(axis=1), 1)
    np.testing.assert_allclose(drawn, exact, atol=0.02)


@pytest.mark.parametrize("name", ["instance-40", "long-tail-30", "asymmetric-20"])
def test_what_is_no_channel_is_refused(name):
    with pytest.raises(ValueError, match="is no channel"):
        transition(Regime.parse(name), 3)
