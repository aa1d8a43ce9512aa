"""Arguments: a mistake is named, with what it was and what it must be, and rounding is none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom
from pgeom import checks

P = jnp.array([0.6, 0.2, 0.2])
SCORE = pgeom.bregman_score(pgeom.generators.squared_norm)
LOSSES = {
    "score": SCORE,
    "on_logits": pgeom.on_logits(SCORE),
    "cross_entropy": pgeom.losses.cross_entropy,
    "brier": pgeom.losses.brier,
}
DISTRIBUTION = "must be nonnegative and sum to one over the last axis, got "


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("K", [2, 1000])
def test_a_softmax_passes_in_every_precision(x64, dtype, K):
    logits = 4 * np.random.default_rng(0).normal(size=(2, 50, K))
    p = jax.nn.softmax(jnp.asarray(logits, dtype))
    assert checks.probabilities("p", p) is p


@pytest.mark.parametrize("row", [(0.6, 0.4015), (0.6, 0.3985), (1.0, -1e-7), (1.0000001, 0.0)])
def test_rounding_passes(row):
    checks.probabilities("p", jnp.array(row))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([0.5, 0.503], r"\[0.5 *, 0.503\]"),
        ([0.5, 0.497], r"\[0.5 *, 0.497\]"),
        ([1.25, -0.25], r"\[ 1.25, -0.25\]"),
        ([np.inf, -np.inf], r"\[ *inf, -inf\]"),
    ],
)
@pytest.mark.parametrize("lead", [(), (2, 1)])
def test_the_first_row_that_is_no_distribution_is_shown(row, said, lead):
    rows = np.full((*lead, 3, 2), 0.5, np.float32)
    rows[..., 1, :], rows[..., 2, :] = row, 7.0
    with pytest.raises(ValueError, match=f"^p {DISTRIBUTION}{said}"):
        checks.probabilities("p", rows)


def test_a_row_with_nan_hides_no_other_row():
    nan = [np.nan, 0.5]
    checks.probabilities("p", np.array([nan, [0.5, 0.5]]))
    with pytest.raises(ValueError, match=DISTRIBUTION):
        checks.probabilities("p", np.array([nan, [0.5, 0.6]]))


def test_shape_and_dtype_are_checked_also_of_traced_values():
    with pytest.raises(ValueError, match=r"p must have shape \[..., K\]"):
        jax.eval_shape(lambda p: checks.probabilities("p", p), jnp.ones(()))
    with pytest.raises(TypeError, match="p must be floating-point"):
        checks.probabilities("p", jnp.array([0, 1]))
    assert jax.jit(lambda p: checks.probabilities("p", p))(jnp.array([3.0, 4.0])).shape == (2,)
    assert checks.probabilities("p", jnp.zeros((0, 3))).shape == (0, 3)


RETURNED = {  # what F returns, and how that is refused
    "a scalar for p[3], got shape (1,)": lambda p: jnp.sum(p**2, keepdims=True),
    "a real scalar for p[3], got tuple": lambda p: (jnp.sum(p**2),),
    "a real scalar for p[3], got NoneType": lambda p: None,
    "a real scalar for p[3], got int": lambda p: 3,
    "a real scalar for p[3], got bool": lambda p: p[0] > 0.5,
    "a real scalar for p[3], got complex64": lambda p: jnp.sum(p**2).astype(jnp.complex64),
}


@pytest.mark.parametrize("must", RETURNED)
def test_a_generator_returns_one_real_number(must):
    F = RETURNED[must]
    calls = [
        lambda: pgeom.bregman_score(F)(P, 0),
        lambda: pgeom.bregman_divergence(F)(P, P),
        lambda: pgeom.bregman_score(pgeom.generator(F) + pgeom.generators.shannon)(P, 0),
        lambda: pgeom.diagnose(F, 3),
    ]
    for call in calls:
        with pytest.raises(ValueError if "shape" in must else TypeError) as error:
            call()
        assert str(error.value) == f"F must return {must}"


def test_a_constant_is_a_generator():
    assert pgeom.bregman_score(lambda p: 1.0)(P, 0) == 0


@pytest.mark.parametrize("name", LOSSES)
def test_bad_targets_are_refused(name):
    loss = LOSSES[name]
    for target in ([0.5, 0.2, 0.2], [1.2, -0.2, 0.0]):
        with pytest.raises(ValueError, match=f"^soft targets {DISTRIBUTION}"):
            loss(P, np.array(target, np.float32))
    for shape in ((2,), (1, 3), (2, 3)):
        with pytest.raises(ValueError, match=r"^soft targets must have shape \(3,\) to go with"):
            loss(P, np.full(shape, 1 / shape[-1]))
    for label, dtype in ((np.float32(1), "float32"), (np.bool_(True), "bool")):
        with pytest.raises(TypeError, match=f"^labels must be integers, got dtype {dtype}"):
            loss(P, label)
    for label in (np.int64(2**32), -1, 3):
        with pytest.raises(ValueError, match=rf"^labels must be in 0 … 2, got {label}"):
            loss(P, label)
    with pytest.raises(ValueError, match=r"^labels must have shape \(\)"):
        loss(P, np.array([1, 0, 0]))


@pytest.mark.parametrize("name", LOSSES)
def test_lists_are_arrays(name):
    loss, rows = LOSSES[name], np.stack([P, P[::-1]])
    np.testing.assert_array_equal(loss(rows, [0, 2]), loss(rows, np.array([0, 2])))
    soft = [[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]
    np.testing.assert_array_equal(loss(rows, soft), loss(rows, np.array(soft, np.float32)))


def test_what_is_no_distribution_is_refused_by_a_score():
    for p, shown in ([2.0, 0.0, 1.0], "2., 0., 1."), ([0.5, 0.2, 0.2], "0.5, 0.2, 0.2"):
        for target in (0, P):
            with pytest.raises(ValueError, match=rf"^p {DISTRIBUTION}\[{shown}\]"):
                SCORE(jnp.array(p), target)
    with pytest.raises(TypeError, match="p must be floating-point, got dtype int32"):
        SCORE(jnp.eye(3, dtype=int)[0], 0)


def test_traced_values_pass():
    """They cannot be looked at: a label out of range is NaN, and the rest is as it comes."""
    target = jnp.array([0.5, 0.2, 0.2])
    for loss in LOSSES.values():
        assert np.isnan(jax.jit(loss)(P, 3)) and np.isnan(jax.jit(loss)(P, -1))
        assert np.isfinite(jax.jit(loss)(P, target))
    assert np.isfinite(jax.jit(SCORE)(jnp.array([2.0, 0.0, 1.0]), 0))


# parameters ---------------------------------------------------------------------------------------

Z, Y = jnp.zeros((2, 3)), jnp.array([0, 1])
L, G, M = pgeom.losses, pgeom.generators, pgeom.margin
RIDGES = {"lam": 1.0, "a": 0.5, "rho": 0.3, "w": np.eye(3, dtype=np.float32), "b": 0.1}
APMS = {"tau": 0.1, "kappa": 0.2, "nu": 0.1, "beta0": 0.2, "horizon": 10}
COUNTS = [5, 3, 1]
ROWS = jnp.full((2, 3), 1 / 3)


def ridges(**changed):
    return lambda: G.hyperbolic(**(RIDGES | changed))


def apms(**changed):
    return lambda: pgeom.apms(G.squared_norm, **(APMS | changed))


def matrix(*rows):
    return lambda: G.quadratic(jnp.array(rows))


MISTAKES = {  # the call, the argument and what it must be, and what it was
    "lam zero": (ridges(lam=0.0), "lam must be positive", "0"),
    "a negative": (ridges(a=np.array([0.1, -0.5, 0.1])), "a must be nonnegative", "-0.5"),
    "rho zero": (ridges(rho=0.0), "rho must be positive", "0"),
    "w too long": (ridges(w=2 * np.eye(3)), "w must be of row norms at most 1", "2"),
    "w a vector": (ridges(w=np.ones(3)), r"w must have shape \[R, K\]", r"\(3,\)"),
    "b of another length": (ridges(b=np.ones(4)), r"b must be .* shape \(3,\)", r"\(4,\)"),
    "lam a vector": (ridges(lam=np.ones(3)), "lam must be a scalar", r"\(3,\)"),
    "alpha zero": (lambda: G.tsallis(0.0), "alpha must be positive", "0"),
    "nu negative": (apms(nu=-0.1), "nu must be positive", "-0.1"),
    "beta0 negative": (apms(beta0=-0.2), "beta0 must be nonnegative", "-0.2"),
    "horizon zero": (apms(horizon=0), "horizon must be positive", "0"),
    "margin tau": (lambda: M.smooth_margin(ROWS, Y, tau=-1.0), "tau must be positive", "-1"),
    "penalty nu": (
        lambda: M.penalty(ROWS, Y, tau=0.1, kappa=0.0, nu=0.0),
        "nu must be positive",
        "0",
    ),
    "asymmetric A": (matrix([1.0, 0.5], [0.0, 1.0]), "A must be symmetric", "0.5"),
    "indefinite A": (matrix([1.0, 2.0], [2.0, 1.0]), "A must be free of negative", "-1"),
    "flat A": (matrix([1.0, 1.0], [1.0, 1.0]), "A must be positive definite on the tangent", "0"),
    "A not square": (lambda: pgeom.capm(jnp.ones((2, 3))), r"A must have shape \[K, K\]", "2, 3"),
    "w of other classes": (
        lambda: pgeom.hpg(**(RIDGES | {"w": np.eye(4), "a": 0.5}))(Z, Y),
        "w must be of K = 3",
        "K = 4",
    ),
    "q zero": (lambda: L.generalized_cross_entropy(Z, Y, q=0.0), r"q must be in \(0, 1\]", "0"),
    "epsilon": (lambda: L.label_smoothing(Z, Y, epsilon=1.5), "epsilon must be in", "1.5"),
    "poly epsilon": (lambda: L.poly1(Z, Y, epsilon=-2.0), "epsilon must be at least -1", "-2"),
    "gamma": (lambda: L.focal(Z, Y, gamma=-1.0), "gamma must be nonnegative", "-1"),
    "mae scale": (lambda: L.mean_absolute_error(Z, Y, scale=0.0), "scale must be positive", "0"),
    "sce A": (lambda: L.symmetric_cross_entropy(Z, Y, A=4.0), "A must be negative", "4"),
    "t1": (lambda: L.bi_tempered(Z, Y, t1=2.0), "t1 must be less than 2", "2"),
    "t2": (lambda: L.bi_tempered(Z, Y, t2=0.0), "t2 must be positive", "0"),
    "beta of counts": (
        lambda: L.class_balanced_cross_entropy(Z, Y, class_counts=COUNTS, beta=1.0),
        r"beta must be in \[0, 1\)",
        "1",
    ),
    "max_margin": (
        lambda: L.ldam(Z, Y, class_counts=COUNTS, max_margin=-0.5),
        "max_margin must be nonnegative",
        "-0.5",
    ),
    "ldam scale": (
        lambda: L.ldam(Z, Y, class_counts=COUNTS, scale=0.0),
        "scale must be positive",
        "0",
    ),
    "temperature zero": (
        lambda: pgeom.on_logits(pgeom.bregman_score(G.shannon), temperature=0.0),
        "temperature must be positive",
        "0",
    ),
    "temperature a vector": (
        lambda: pgeom.on_logits(pgeom.bregman_score(G.shannon), temperature=np.ones(3)),
        "temperature must be a scalar",
        r"\(3,\)",
    ),
    "gradient bound's temperature": (
        lambda: pgeom.bounds.logit_gradient(G.quadratic(jnp.eye(3)), 3, temperature=0.0),
        "temperature must be positive",
        "0",
    ),
    "one class": (lambda: L.cross_entropy(Z[:, :1], Y), "logits must have .* K >= 2", r"\(2, 1\)"),
    "no classes": (lambda: M.margin_range(1, tau=0.1), "K, .* at least 2", "1"),
    "mismatched pair": (
        lambda: pgeom.bregman_divergence(G.shannon)(ROWS, ROWS[:1]),
        "q and p must have one shape",
        r"\(2, 3\) and \(1, 3\)",
    ),
    "envelope of other classes": (
        lambda: pgeom.curvature.envelope(G.quadratic(jnp.eye(3)), 4),
        "F must be of K = 4 classes",
        "K = 3",
    ),
    "target": (
        lambda: pgeom.curvature.match_curvature(
            G.quadratic(jnp.eye(3)), 3, target=0.0, key=jax.random.key(0)
        ),
        "target must be positive",
        "0",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_mistake_is_named(name):
    call, must, was = MISTAKES[name]
    with pytest.raises((ValueError, TypeError), match=f"{must}.*got.*{was}"):
        call()


@pytest.mark.parametrize(
    "loss", [L.class_balanced_cross_entropy, L.balanced_softmax, L.logit_adjustment, L.ldam]
)
def test_class_counts_are_looked_at(loss):
    with pytest.raises(
        ValueError, match=r"class_counts must be positive and finite, got \[5, 0, 1\]"
    ):
        loss(Z, Y, class_counts=[5, 0, 1])
    with pytest.raises(ValueError, match=r"class_counts must be of K = 3 classes, got K = 2"):
        loss(Z, Y, class_counts=[5, 1])
    with pytest.raises(ValueError, match=r"class_counts must have shape \[K\], got \(1, 3\)"):
        loss(Z, Y, class_counts=[[5, 1, 2]])
