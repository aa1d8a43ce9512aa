"""BCa intervals against SciPy's, with the same resamples, and where SciPy has no answer."""

import numpy as np
import pytest
from scipy import stats

from pgeom.evaluation import significance


def scipy_interval(sample, level, resamples, seed):
    """SciPy's own BCa interval of a mean; its generator draws the resamples that ours draws."""
    found = stats.bootstrap(
        (sample,),
        np.mean,
        confidence_level=level,
        n_resamples=resamples,
        method="BCa",
        rng=np.random.default_rng(seed),
    )
    return found.confidence_interval


SAMPLES = {
    "normal": lambda rng, n: rng.normal(0.01, 0.02, n),
    "skewed": lambda rng, n: rng.lognormal(0.0, 1.0, n),
    "far from zero": lambda rng, n: 1e3 + rng.exponential(size=n),
}


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("n", [20, 30, 100])
@pytest.mark.parametrize("draw", SAMPLES.values(), ids=list(SAMPLES))
def test_equals_scipys(draw, n, level):
    samples = np.stack([draw(np.random.default_rng(k), n) for k in range(3)])
    got = significance.mean_interval(samples, level=level, resamples=1_999, seed=7)
    expected = [scipy_interval(sample, level, 1_999, 7) for sample in samples]
    np.testing.assert_allclose(np.transpose(got), expected, rtol=1e-12, atol=1e-14)


def test_equals_scipys_where_resampled_means_tie():
    """With integers, of which SciPy's sums are exact too; as many resamples as its default."""
    sample = np.random.default_rng(3).integers(-3, 4, 32).astype(float)
    got = significance.mean_interval(sample[None])
    np.testing.assert_allclose(
        np.ravel(got), scipy_interval(sample, 0.95, 9_999, significance.SEED), rtol=1e-12
    )
    few = np.array([-2.0, 0.0, 1.0, 1.0, 5.0])  # a tenth of the means of five is their own mean
    for level in np.linspace(0.3, 0.98, 18):
        got = significance.mean_interval(few[None], level=level, resamples=999, seed=1)
        np.testing.assert_allclose(np.ravel(got), scipy_interval(few, level, 999, 1), rtol=1e-12)


def test_a_constant_sample_is_its_own_interval_and_a_single_value_has_none():
    constant = np.full((2, 6), [[0.1], [0.0]])
    for ends in significance.mean_interval(constant):
        np.testing.assert_array_equal(ends, constant.mean(axis=1))
    assert np.isnan(significance.mean_interval(np.array([[1.0]]))).all()
    assert np.shape(significance.mean_interval(np.zeros((0, 5)))) == (2, 0)
