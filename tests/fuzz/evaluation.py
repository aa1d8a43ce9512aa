"""Every metric: within its range and no NaN, for any distributions, logits and labels."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import pgeom
from pgeom import checks
from tests.fuzz import arrays

RANGES = {
    "accuracy": (0, 1),
    "balanced_accuracy": (0, 1),
    "brier": (0, 2),
    "ece": (0, 1),
    "classwise_ece": (0, 1),
    "debiased_ece": (0, 1),
    "smooth_ece": (0, 1),
    "confidence": (0, 1),
    "bin_accuracy": (0, 1),
    "share": (0, 1),
    "confusion": (0, 1),
    "nll": (0, np.inf),
    "temperature": (0, np.inf),
}
BINS = (1, 15)
KINDS = [*arrays.FEW, ((1, 2), "float64"), ((2, 6, 5), "float32"), ((6, 3), "bfloat16")]
KINDS += [((2, 2), "float16")]
MOST = 25  # pairs to compare


@st.composite
def inputs(draw, kinds=KINDS):
    """Probabilities and logits of one kind, and samples to compare and to adjust."""
    kind = [draw(st.sampled_from(kinds))]
    p, z = draw(arrays.probabilities(kind)), draw(arrays.logits(kind))
    numbers = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 0.5 + 1e-16]), st.floats(-1e3, 1e3))
    pairs = draw(st.lists(st.tuples(numbers, numbers), max_size=MOST))
    levels = draw(st.lists(st.floats(0, 1), max_size=MOST))
    return p, z, np.array(pairs).reshape(-1, 2), np.array(levels)


def check(drawn) -> None:
    """See the module."""
    p, z, pairs, levels = drawn
    checks.probabilities("probabilities", p.vectors)  # what the metrics would refuse
    with jax.enable_x64(p.dtype == "float64"):
        values = _program()(jnp.asarray(p.vectors), jnp.asarray(z.vectors), jnp.asarray(p.labels))
    slack = 8 * float(jnp.finfo(p.vectors.dtype).eps)
    for name, value in values.items():
        wide, (low, high) = np.asarray(value).astype(float), RANGES[name.partition("-")[0]]
        assert value.dtype == p.vectors.dtype, name
        assert not np.any(np.isnan(wide)), (name, value)
        assert np.all((wide >= low) & (wide <= high + slack)), (name, value)
    check_tests(pairs, levels)


def check_tests(pairs: np.ndarray, levels: np.ndarray) -> None:
    """Paired tests are symmetric, and adjusted p-values keep their order."""
    test = pgeom.significance.paired_wilcoxon(pairs[:, 0], pairs[:, 1])
    assert 0 < test.attainable <= test.p_value <= 1 and test.statistic >= 0
    assert pgeom.significance.paired_wilcoxon(pairs[:, 1], pairs[:, 0]) == test
    adjusted = pgeom.significance.holm(levels)
    assert np.all((adjusted >= levels) & (adjusted <= 1))
    assert np.all(np.diff(adjusted[np.argsort(levels, kind="stable")]) >= 0)


@cache
def _program():
    metrics = pgeom.metrics

    def every(p, logits, labels):
        values = {
            "accuracy": metrics.accuracy(p, labels),
            "balanced_accuracy": metrics.balanced_accuracy(p, labels),
            "brier": metrics.brier(p, labels),
            "nll": metrics.nll(logits, labels),
            "temperature": pgeom.calibration.fit_temperature(logits, labels).temperature,
            "classwise_ece": metrics.classwise_ece(p, labels),
            "debiased_ece": metrics.debiased_ece(p, labels),
            "smooth_ece": metrics.smooth_ece(p, labels),
            "confusion": metrics.confusion_matrix(p, labels),
        }
        for bins in BINS:
            table = metrics.reliability(p, labels, bins)
            values |= {f"ece-{bins}": metrics.ece(p, labels, bins), f"share-{bins}": table.share}
            values |= {f"confidence-{bins}": table.confidence}
            values |= {f"bin_accuracy-{bins}": table.accuracy}
        return values

    return jax.jit(every)
