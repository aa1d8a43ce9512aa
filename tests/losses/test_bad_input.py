"""A mistake is named: the argument, what it was, and what it must be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pgeom

Z, Y = jnp.zeros((2, 3)), jnp.array([0, 1])
L, G, M = pgeom.losses, pgeom.generators, pgeom.margin
RIDGES = {"lam": 1.0, "a": 0.5, "rho": 0.3, "w": np.eye(3, dtype=np.float32), "b": 0.1}
APMS = {"tau": 0.1, "kappa": 0.2, "nu": 0.1, "beta0": 0.2, "horizon": 10}
COUNTS = [5, 3, 1]
P = jnp.full((2, 3), 1 / 3)


def ridges(**changed):
    return lambda: G.hyperbolic(**(RIDGES | changed))


def apms(**changed):
    return lambda: pgeom.apms(G.squared_norm, **(APMS | changed))


def matrix(*rows):
    return lambda: G.quadratic(jnp.array(rows))


MISTAKES = {  # the call, the argument and what it must be, and what it was
    "lam zero": (ridges(lam=0.0), "lam must be positive", "0"),
    "lam negative": (ridges(lam=-1.0), "lam must be positive", "-1"),
    "a negative": (ridges(a=np.array([0.1, -0.5, 0.1])), "a must be nonnegative", "-0.5"),
    "rho zero": (ridges(rho=0.0), "rho must be positive", "0"),
    "rho not a number": (ridges(rho=np.nan), "rho must be positive and finite", "nan"),
    "scale zero": (ridges(scale=0.0), "scale must be positive", "0"),
    "w too long": (ridges(w=2 * np.eye(3)), "w must be of row norms at most 1", "2"),
    "w a vector": (ridges(w=np.ones(3)), r"w must have shape \[R, K\]", r"\(3,\)"),
    "a of another length": (ridges(a=np.ones(2)), r"a must be .* shape \(3,\)", r"\(2,\)"),
    "b of another length": (ridges(b=np.ones(4)), r"b must be .* shape \(3,\)", r"\(4,\)"),
    "lam a vector": (ridges(lam=np.ones(3)), "lam must be a scalar", r"\(3,\)"),
    "alpha zero": (lambda: G.tsallis(0.0), "alpha must be positive", "0"),
    "tau zero": (apms(tau=0.0), "tau must be positive", "0"),
    "nu negative": (apms(nu=-0.1), "nu must be positive", "-0.1"),
    "beta0 negative": (apms(beta0=-0.2), "beta0 must be nonnegative", "-0.2"),
    "horizon zero": (apms(horizon=0), "horizon must be positive", "0"),
    "power zero": (apms(power=0.0), "power must be positive", "0"),
    "margin tau": (lambda: M.smooth_margin(P, Y, tau=-1.0), "tau must be positive", "-1"),
    "margin range tau": (lambda: M.margin_range(3, tau=0.0), "tau must be positive", "0"),
    "penalty nu": (lambda: M.penalty(P, Y, tau=0.1, kappa=0.0, nu=0.0), "nu must be positive", "0"),
    "asymmetric A": (matrix([1.0, 0.5], [0.0, 1.0]), "A must be symmetric", "0.5"),
    "indefinite A": (matrix([1.0, 2.0], [2.0, 1.0]), "A must be free of negative", "-1"),
    "flat A": (matrix([1.0, 1.0], [1.0, 1.0]), "A must be positive definite on the tangent", "0"),
    "A not square": (lambda: pgeom.capm(jnp.ones((2, 3))), r"A must have shape \[K, K\]", "2, 3"),
    "A of other classes": (lambda: pgeom.capm(jnp.eye(4))(Z, Y), "A must be of K = 3", "K = 4"),
    "w of other classes": (
        lambda: pgeom.hpg(**(RIDGES | {"w": np.eye(4), "a": 0.5}))(Z, Y),
        "w must be of K = 3",
        "K = 4",
    ),
    "q zero": (lambda: L.generalized_cross_entropy(Z, Y, q=0.0), r"q must be in \(0, 1\]", "0"),
    "q large": (lambda: L.generalized_cross_entropy(Z, Y, q=1.2), r"q must be in \(0, 1\]", "1.2"),
    "epsilon": (lambda: L.label_smoothing(Z, Y, epsilon=1.5), "epsilon must be in", "1.5"),
    "poly epsilon": (lambda: L.poly1(Z, Y, epsilon=-2.0), "epsilon must be at least -1", "-2"),
    "gamma": (lambda: L.focal(Z, Y, gamma=-1.0), "gamma must be nonnegative", "-1"),
    "mae scale": (lambda: L.mean_absolute_error(Z, Y, scale=0.0), "scale must be positive", "0"),
    "sce A": (lambda: L.symmetric_cross_entropy(Z, Y, A=4.0), "A must be negative", "4"),
    "sce alpha": (lambda: L.symmetric_cross_entropy(Z, Y, alpha=-1.0), "alpha must be", "-1"),
    "apl beta": (lambda: L.active_passive(Z, Y, beta=-1.0), "beta must be nonnegative", "-1"),
    "t1": (lambda: L.bi_tempered(Z, Y, t1=2.0), "t1 must be less than 2", "2"),
    "t2": (lambda: L.bi_tempered(Z, Y, t2=0.0), "t2 must be positive", "0"),
    "beta of counts": (
        lambda: L.class_balanced_cross_entropy(Z, Y, class_counts=COUNTS, beta=1.0),
        r"beta must be in \[0, 1\)",
        "1",
    ),
    "tau of priors": (
        lambda: L.logit_adjustment(Z, Y, class_counts=COUNTS, tau=-1.0),
        "tau must be nonnegative",
        "-1",
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
    "temperature negative": (
        lambda: pgeom.on_logits(pgeom.bregman_score(G.shannon), temperature=-1.0),
        "temperature must be positive",
        "-1",
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
        lambda: pgeom.bregman_divergence(G.shannon)(P, P[:1]),
        "q and p must have one shape",
        r"\(2, 3\) and \(1, 3\)",
    ),
    "envelope of other classes": (
        lambda: pgeom.curvature.envelope(G.quadratic(jnp.eye(3)), 4),
        "F must be of K = 4 classes",
        "K = 3",
    ),
    "Lipschitz bound of other classes": (
        lambda: pgeom.bounds.hessian_lipschitz(G.hyperbolic(**RIDGES), 5),
        "F must be of K = 5 classes",
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


def test_scores_on_probabilities_are_as_strict():
    score = pgeom.bregman_score(G.shannon)
    with pytest.raises(TypeError, match="p must be floating-point, got dtype int32"):
        score(jnp.eye(3, dtype=int)[:2], Y)
    with pytest.raises(TypeError, match="labels must be integers, got dtype float32"):
        score(P, jnp.zeros(2))
    with pytest.raises(ValueError, match=r"labels must have shape \(2,\) .* p .* got \(\)"):
        score(P, 0)
