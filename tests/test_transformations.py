"""Every public function of arrays under the transformations that users apply.

A new function joins by a line in `ROWS`. What it cannot do is said there, with the reason. Failures
name the row by the test and the column by a note or by the message. The tests run under strict
promotion of ranks and dtypes, which `conftest.py` sets for all of them.
"""

import copy
import inspect
import logging
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

import pgeom
from pgeom import calibration, class_structure, curvature, generators, losses, margin, metrics

N, K, EXAMPLES = 4, 3, 6  # rows, classes, and examples of a row that is a batch
COUNTS = np.array([50.0, 30.0, 20.0], np.float32)
COUNTED = {"class_counts": COUNTS}
A = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.5]], np.float32)
RIDGES = {"a": 0.4, "rho": 0.3, "w": np.array([[0.6, -0.8, 0.0]], np.float32), "b": 0.1}
MARGIN = {"kappa": 0.4, "nu": 0.05}
ANNEALING = {"beta0": 0.2, "horizon": 10.0}
BY_SEARCH = {"derivatives": "the result is searched for by a loop"}


class Row(NamedTuple):
    """A function `f(x, y)` of rows x `[..., K]` with labels y `[...]`, one value or tree per row.

    Attributes:
      function: f, or what makes it of a parameter.
      parameter: a value of that, at which it is differentiated and mapped over.
      simplex: whether x are probabilities rather than logits.
      batch: whether a row is a whole batch, x `[..., EXAMPLES, K]`, as of a metric.
      masks: whether a logit of −∞ rules its class out.
      without: columns that do not apply, and why.
    """

    function: Callable
    parameter: float | None = None
    simplex: bool = False
    batch: bool = False
    masks: bool = False
    without: dict[str, str] = {}  # noqa: RUF012

    @property
    def values(self):
        return self.function if self.parameter is None else self.function(self.parameter)


def cubic(p):
    return jnp.sum(p**3)


def entropy(p):
    return jnp.sum(p * jnp.log(p))


def with_weight(weight):
    """A user's function that closes over what may be traced."""
    return lambda p: weight * jnp.sum(p**3) + jnp.sum(p**2)


def with_terms(a):
    return generators.separable(lambda x: a * x**2 + x**4)


def with_scale(scale):
    return generators.hyperbolic(lam=0.7, scale=scale, **RIDGES)


def on_logits(F, **keywords):
    return pgeom.on_logits(pgeom.bregman_score(F), **keywords)


def soft(y, like):
    """Soft targets for labels."""
    eye = jax.nn.one_hot(y, K, dtype=like.dtype)
    return jnp.asarray(0.75, like.dtype) * eye + jnp.asarray(0.25 / K, like.dtype)


def on_soft(loss):
    return lambda x, y: loss(x, soft(y, x))


def from_soft(pairs):
    """A function of pairs whose first is a soft target."""
    return lambda x, y: pairs(soft(y, x), x)


def alone(link):
    """A function of x without labels."""
    return lambda x, y: link(x)


def matrix(x):
    """The CAPM matrix of centroids x `[K, d]`."""
    stats = pgeom.ClassStats(COUNTS, x)
    return class_structure.capm_matrix(stats, lam=0.1, gamma=1.0, delta=0.2, low_rank=A)


def per_row(function):
    """A function of one row, which has no leading dimensions of its own."""
    return lambda x, y: jnp.vectorize(function, signature="(k,d)->(k,k)")(x[..., :K, :])


def user_brier(p, y):
    """A score that is no `bregman_score`."""
    return jnp.sum((p - jax.nn.one_hot(y, K, dtype=p.dtype)) ** 2, axis=-1)


APMS = pgeom.apms(cubic, tau=0.1, **MARGIN, **ANNEALING)
METRIC = {"simplex": True, "batch": True}
ROWS = {
    "losses.cross_entropy": Row(losses.cross_entropy, masks=True),
    "losses.cross_entropy, soft": Row(on_soft(losses.cross_entropy)),
    "losses.label_smoothing": Row(lambda e: partial(losses.label_smoothing, epsilon=e), 0.1),
    "losses.focal": Row(lambda g: partial(losses.focal, gamma=g), 2.0, masks=True),
    "losses.poly1": Row(lambda e: partial(losses.poly1, epsilon=e), 1.0, masks=True),
    "losses.brier": Row(losses.brier, masks=True),
    "losses.brier, soft": Row(on_soft(losses.brier)),
    "losses.mean_absolute_error": Row(
        lambda s: partial(losses.mean_absolute_error, scale=s), 2.0, masks=True
    ),
    "losses.generalized_cross_entropy": Row(
        lambda q: partial(losses.generalized_cross_entropy, q=q), 0.7, masks=True
    ),
    "losses.symmetric_cross_entropy": Row(
        lambda a: partial(losses.symmetric_cross_entropy, alpha=a), 0.1, masks=True
    ),
    "losses.active_passive": Row(lambda a: partial(losses.active_passive, alpha=a), 1.0),
    # its temperatures choose the program, and may not be traced
    "losses.bi_tempered": Row(losses.bi_tempered),
    "losses.bi_tempered, finite": Row(partial(losses.bi_tempered, t1=0.5, t2=0.8)),
    "losses.class_balanced_cross_entropy": Row(
        lambda b: partial(losses.class_balanced_cross_entropy, beta=b, **COUNTED), 0.9
    ),
    "losses.balanced_softmax": Row(partial(losses.balanced_softmax, **COUNTED)),
    "losses.logit_adjustment": Row(
        lambda t: partial(losses.logit_adjustment, tau=t, **COUNTED), 1.0
    ),
    "losses.ldam": Row(lambda m: partial(losses.ldam, max_margin=m, **COUNTED), 0.5),
    "on_logits, shannon": Row(on_logits(generators.shannon), masks=True),
    "on_logits, tsallis": Row(lambda a: on_logits(generators.tsallis(a)), 1.5, masks=True),
    "on_logits, tsallis, soft": Row(on_soft(on_logits(generators.tsallis(0.5)))),
    "on_logits, spherical": Row(on_logits(generators.spherical), masks=True),
    "on_logits, separable": Row(on_logits(generators.separable(lambda x: x**4)), masks=True),
    "on_logits, sum": Row(
        lambda c: on_logits(generators.combine((c, generators.shannon), (1.0, cubic))),
        0.5,
    ),
    "on_logits, function": Row(lambda w: on_logits(with_weight(w)), 1.5, masks=True),
    "on_logits, function, soft": Row(on_soft(on_logits(entropy))),
    "on_logits, temperature": Row(lambda T: on_logits(generators.squared_norm, temperature=T), 2.0),
    "on_logits, score": Row(pgeom.on_logits(user_brier)),
    "capm": Row(pgeom.capm(A), masks=True),
    "hpg": Row(lambda s: on_logits(with_scale(s)), 1.5),
    "apms": Row(lambda s: partial(APMS, step=s), 3.0),
    "bregman_score": Row(lambda w: pgeom.bregman_score(with_weight(w)), 1.5, True),
    "bregman_score, tsallis": Row(lambda a: pgeom.bregman_score(generators.tsallis(a)), 1.5, True),
    "bregman_divergence": Row(
        lambda w: from_soft(pgeom.bregman_divergence(with_weight(w))), 1.5, True
    ),
    "conditional_risk": Row(
        from_soft(pgeom.conditional_risk(pgeom.bregman_score(entropy))), simplex=True
    ),
    "conditional_risk, score": Row(from_soft(pgeom.conditional_risk(user_brier)), simplex=True),
    "regret": Row(from_soft(pgeom.regret(user_brier)), simplex=True),
    "canonical_link, shannon": Row(alone(pgeom.canonical_link(generators.shannon))),
    "canonical_link, squared_norm": Row(alone(pgeom.canonical_link(generators.squared_norm))),
    "canonical_link, separable": Row(lambda a: alone(pgeom.canonical_link(with_terms(a))), 1.5),
    "canonical_link, function": Row(lambda w: alone(pgeom.canonical_link(with_weight(w))), 1.5),
    "inverse_link": Row(lambda w: alone(pgeom.inverse_link(with_weight(w))), 1.5, True),
    "fenchel_young, shannon": Row(pgeom.fenchel_young(generators.shannon), masks=True),
    "fenchel_young, tsallis": Row(lambda a: pgeom.fenchel_young(generators.tsallis(a)), 1.5),
    "fenchel_young, separable": Row(lambda a: pgeom.fenchel_young(with_terms(a)), 1.5),
    "fenchel_young, quadratic": Row(pgeom.fenchel_young(generators.quadratic(A))),
    "fenchel_young, function": Row(pgeom.fenchel_young(cubic)),
    "fenchel_young, function, soft": Row(on_soft(pgeom.fenchel_young(entropy))),
    "curvature.hessian": Row(alone(curvature.hessian(cubic)), simplex=True),
    "margin.smooth_margin": Row(lambda t: partial(margin.smooth_margin, tau=t), 0.1, True),
    "margin.penalty": Row(lambda t: partial(margin.penalty, tau=t, **MARGIN), 0.1, True),
    "margin.expected_penalty": Row(
        lambda t: on_soft(partial(margin.expected_penalty, tau=t, **MARGIN)), 0.1, True
    ),
    "margin.margin_range": Row(
        lambda t: lambda p, y: p[..., 0] + margin.margin_range(K, tau=t)[0].astype(p.dtype),
        0.1,
        True,
    ),
    "margin.penalty_range": Row(
        lambda t: (
            lambda p, y: p[..., 0] + margin.penalty_range(K, tau=t, **MARGIN)[1].astype(p.dtype)
        ),
        0.1,
        True,
    ),
    "margin.anneal": Row(
        lambda b: lambda p, y: margin.anneal(p[..., 0], beta0=b, horizon=10.0).astype(p.dtype),
        0.2,
        True,
    ),
    "class_structure.capm_matrix": Row(
        per_row(matrix), batch=True, without={"dtypes": "the other arrays are in float32"}
    ),
    "class_structure.centroid_graph": Row(per_row(class_structure.centroid_graph), batch=True),
    "class_structure.laplacian": Row(
        per_row(lambda x: class_structure.laplacian(x + x.T)), batch=True
    ),
    "metrics.accuracy": Row(metrics.accuracy, **METRIC),
    "metrics.balanced_accuracy": Row(metrics.balanced_accuracy, **METRIC),
    "metrics.nll": Row(metrics.nll, batch=True),
    "metrics.brier": Row(metrics.brier, **METRIC),
    "metrics.ece": Row(metrics.ece, **METRIC),
    "metrics.classwise_ece": Row(metrics.classwise_ece, **METRIC),
    "metrics.smooth_ece": Row(metrics.smooth_ece, **METRIC, without=BY_SEARCH),
    "metrics.debiased_ece": Row(metrics.debiased_ece, **METRIC),
    "metrics.reliability": Row(metrics.reliability, **METRIC),
    "metrics.confusion_matrix": Row(metrics.confusion_matrix, **METRIC),
    "calibration.fit_temperature": Row(
        lambda z, y: calibration.fit_temperature(z, y).temperature, batch=True, without=BY_SEARCH
    ),
    "calibration.reliability_curve": Row(
        lambda p, y: jnp.mean(calibration.reliability_curve(p, y).recalibrated, axis=-1),
        **METRIC,
        without=BY_SEARCH,
    ),
    "calibration.rescale": Row(
        lambda z, y: calibration.rescale(z, jnp.full(z.shape[:-2], 2, z.dtype)), batch=True
    ),
    "decompose": Row(
        lambda p, y: pgeom.decompose(cubic, p, y).mean_score, **METRIC, without=BY_SEARCH
    ),
}
ON_HOST = "computed on the host, from numbers"
NO_ROWS = {
    "bounds": ON_HOST,
    "certify": ON_HOST,
    "certify_range": ON_HOST,
    "compare": ON_HOST,
    "check_generator": ON_HOST,
    "diagnose": ON_HOST,
    "significance": ON_HOST,
    "verify": ON_HOST,
    "fit": ON_HOST,
    "from_arrays": ON_HOST,
    "generator": "makes a generator",
    "generators": "makes generators, which rows are made of",
    "ClassStats": "a record",
    "Diagnosis": "a record",
    "LossSpec": "a record",
    "class_structure.class_stats": "counts of labels, which must be positive numbers",
    "class_structure.tail_diagonal": "a part of capm_matrix, of counts alone",
    "curvature.envelope": ON_HOST,
    "curvature.match_curvature": "makes a generator",
    "curvature.matching_curvature": "of a generator, without rows",
    "curvature.measure_curvature": "a number",
    "curvature.mean_curvature": "of a generator and a key, without rows",
}


# One row for each way in which the library computes, for the columns that are slow.
REPRESENTATIVE = (
    "losses.cross_entropy",
    "losses.bi_tempered",
    "on_logits, sum",
    "on_logits, function",
    "bregman_divergence",
    "canonical_link, shannon",
    "fenchel_young, function",
    "metrics.classwise_ece",
)
representative = pytest.mark.parametrize("name", REPRESENTATIVE)
# checks of annotations are a third of the time of tracing; other columns make them
unchecked = pytest.mark.usefixtures("unchecked_annotations")


@pytest.fixture(params=ROWS)
def row(request):
    return ROWS[request.param]


def example(row):
    """x and y of N rows, and a direction."""
    rng = np.random.default_rng(0)
    shape = (N, EXAMPLES, K) if row.batch else (N, K)
    x, d = (jnp.asarray(rng.normal(size=shape), jnp.float32) for _ in range(2))
    y = jnp.asarray(rng.integers(K, size=shape[:-1]))
    return (
        (jax.nn.softmax(x), y, d - jnp.mean(d, axis=-1, keepdims=True))
        if row.simplex
        else (x, y, d)
    )


def weighted_sum(tree):
    """A sum in which no row and no leaf counts as much as another one."""

    def one(leaf):
        weights = np.sin(1.0 + np.arange(leaf.size)).reshape(leaf.shape)
        return jnp.sum(jnp.asarray(weights, leaf.dtype) * leaf)

    return sum(map(one, jax.tree.leaves(tree)))


def differentiable(row):
    return "derivatives" not in row.without


@contextmanager
def named(column):
    try:
        yield
    except Exception as error:
        error.add_note(f"column: {column}")
        raise


def assert_close(actual, expected, column, tolerance=2e-5):
    """Equal up to rounding, relative to the largest entry."""
    with named(column):
        for one, other in zip(*map(jax.tree.leaves, (actual, expected)), strict=True):
            one, other = np.asarray(one, float), np.asarray(other, float)
            size = np.max(np.abs(other), initial=1e-3, where=np.isfinite(other))
            np.testing.assert_allclose(one, other, atol=tolerance * size, rtol=tolerance)


def in_scan(f, x, y):
    return jax.lax.scan(lambda carry, row: (carry, f(*row)), 0.0, (x, y))[1]


def in_switch(f, x, y):
    nothing = jax.tree.map(lambda out: jnp.zeros(out.shape, out.dtype), jax.eval_shape(f, x, y))
    return jax.lax.switch(jnp.sum(y) * 0 + 1, [lambda x, y: nothing, f], x, y)


def in_cond(f, x, y):
    return jax.lax.cond(jnp.sum(y) < 0, lambda x, y: f(2 * x, y), f, x, y)


def halves(f, x, y):
    """With two leading dimensions."""
    out = f(*(a.reshape(2, -1, *a.shape[1:]) for a in (x, y)))
    return jax.tree.map(lambda out: out.reshape(-1, *out.shape[2:]), out)


def in_while(f, x, y):
    def step(state):
        i, out = state
        row = f(x[i], y[i])
        return i + 1, jax.tree.map(lambda all_, one: all_.at[i].set(one), out, row)

    empty = jax.tree.map(lambda out: jnp.zeros(out.shape, out.dtype), jax.eval_shape(f, x, y))
    return jax.lax.while_loop(lambda state: state[0] < len(x), step, (0, empty))[1]


def in_fori(f, x, y):
    first = jax.tree.map(jnp.zeros_like, f(x, y))
    return jax.lax.fori_loop(0, jnp.max(y) * 0 + 2, lambda i, out: f(x, y), first)


POLICY = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
# A column that is a form computes the same rows in another way, with the same gradient.
FORMS = {
    "jit": lambda f, x, y: jax.jit(f)(x, y),
    "checkpoint": lambda f, x, y: jax.checkpoint(f)(x, y),
    "checkpoint with a policy": lambda f, x, y: jax.checkpoint(f, policy=POLICY)(x, y),
    "scan": in_scan,
    "map": lambda f, x, y: jax.lax.map(lambda row: f(*row), (x, y)),
    "cond": in_cond,
    "switch": in_switch,
    "vmap": lambda f, x, y: jax.vmap(f)(x, y),
    "nested vmap": lambda f, x, y: halves(jax.vmap(jax.vmap(f)), x, y),
    "leading dimensions": halves,
}
# of each kind one, for the rows that are only traced
TRACED = ("jit", "checkpoint", "scan", "switch", "vmap", "leading dimensions")
LOOPS = {"while_loop": in_while, "fori_loop": in_fori}  # forward only


def gradient_of_form(form, f, x, y):
    out, pull = jax.vjp(lambda x: weighted_sum(form(f, x, y)), x)
    return out, pull(jnp.ones_like(out))[0]


def forms(f, x, y, only):
    """The results of each form, which are to equal those of the first."""
    plain = gradient_of_form(lambda f, x, y: f(x, y), f, x, y)
    results = {"plain": plain}
    for name in only:
        with named(name):
            results[name] = gradient_of_form(FORMS[name], f, x, y)
    return results


def loops(f, x, y):
    results = {"plain": weighted_sum(f(x, y))}
    for name, loop in LOOPS.items():
        with named(name):
            results[name] = weighted_sum(loop(f, x, y))
    return results


def derivatives(f, x, y, d):
    """Derivatives along d: of each row, and the four orders of the second one of their sum."""
    rows, total = lambda x: f(x, y), lambda x: weighted_sum(f(x, y))
    along = lambda x: jax.jvp(total, (x,), (d,))[1]  # noqa: E731
    product = jax.jvp(jax.grad(total), (x,), (d,))[1]
    results = {"Hd": {"forward over reverse": product}, "dHd": {"plain": jnp.sum(d * product)}}
    with named("reverse over forward"):
        results["Hd"]["reverse over forward"] = jax.grad(along)(x)
    with named("reverse over reverse"):
        results["Hd"]["reverse over reverse"] = jax.grad(lambda x: jnp.sum(d * jax.grad(total)(x)))(
            x
        )
    with named("forward over forward"):
        results["dHd"]["forward over forward"] = jax.jvp(along, (x,), (d,))[1]
    with named("linearize and transpose"):
        out, push = jax.linearize(rows, x)
        (back,) = jax.linear_transpose(push, x)(jax.grad(weighted_sum)(out))
        results["d"] = {"plain": jax.jvp(rows, (x,), (d,))[1], "linearize": push(d)}
        results["transpose"] = {"plain": weighted_sum(push(d)), "transpose": jnp.sum(back * d)}
    return results


def check_forms(f, x, y, only=tuple(FORMS)):
    results = jax.jit(partial(forms, f, only=only))(x, y)
    for name, actual in results.items():
        assert_close(actual, results["plain"], name)


def check_loops(f, x, y):
    results = jax.jit(partial(loops, f))(x, y)
    for name, actual in results.items():
        assert_close(actual, results["plain"], name)


def check_derivatives(f, x, y, d):
    for kind in jax.jit(partial(derivatives, f))(x, y, d).values():
        first, *others = kind
        for name in others:
            assert_close(kind[name], kind[first], name, tolerance=2e-4)


def in_forward_forms(f, x, y):
    return {name: weighted_sum(form(f, x, y)) for name, form in FORMS.items()}


@unchecked
def test_forms_are_traced(row):
    """The forms of `TRACED` and their gradients; loops forward."""
    x, y, d = example(row)
    f = jax.jit(row.values)  # which is traced once for each shape, and not in each form
    if differentiable(row):
        jax.eval_shape(partial(forms, f, only=TRACED), x, y)
        jax.eval_shape(partial(derivatives, f), x, y, d)
    else:
        jax.eval_shape(partial(in_forward_forms, f), x, y)
    jax.eval_shape(partial(loops, f), x, y)


@representative
def test_forms(name):
    """Same values and same gradients in every form."""
    x, y, _ = example(ROWS[name])
    check_forms(ROWS[name].values, x, y)
    check_loops(ROWS[name].values, x, y)


@representative
def test_derivatives(name):
    x, y, d = example(ROWS[name])
    check_derivatives(ROWS[name].values, x, y, d)


def check_parameter(make, x, y, parameter):
    """Mapped over, and differentiated inside of jit, a parameter is what it is alone."""
    values = jnp.array([parameter, 0.9 * parameter])

    def one(parameter):
        return jax.value_and_grad(lambda h: weighted_sum(make(h)(x, y)))(parameter)

    def of_jit(parameter):
        return jax.value_and_grad(jax.jit(lambda h: weighted_sum(make(h)(x, y))))(parameter)

    program = jax.jit(lambda values: (jax.vmap(one)(values), jax.lax.map(of_jit, values)))
    mapped, jitted = program(values)
    assert_close(jitted, mapped, "grad of jit in a parameter", tolerance=2e-4)
    at = [weighted_sum(make(float(h))(x, y)) for h in values]
    assert_close(mapped[0], jnp.stack(at), "vmap over a parameter", tolerance=2e-4)


@unchecked
def test_parameters(row):
    if row.parameter is None:
        pytest.skip("no parameter")
    x, y, _ = example(row)
    check_parameter(row.function, x, y, row.parameter)


def check_rows(f, x, y, infinite, masks):
    """What is not finite in one row changes no other row; −∞ rules a class out where it may.

    The buffer of x is donated to the gradient.
    """

    def both(x, y):
        return f(x, y), jax.grad(lambda x: weighted_sum(f(x, y)))(x)

    program = jax.jit(both, donate_argnums=0)
    whole = program(jnp.array(x), y)
    chex.assert_tree_all_finite(whole)
    for name, bad in (("NaN", jnp.nan), ("∞", jnp.inf), ("−∞", -jnp.inf)):
        if name != "NaN" and not infinite:
            continue
        spoilt = program(x.at[(1, *(x.ndim - 1) * (0,))].set(bad), y)
        for one, other in zip(*map(jax.tree.leaves, (spoilt, whole)), strict=True):
            for i in (0, 2, 3):
                np.testing.assert_array_equal(one[i], other[i], err_msg=f"column: {name}")
        if name == "NaN":
            shown = [np.any(np.isnan(leaf[1])) for leaf in jax.tree.leaves(spoilt[0])]
            assert np.any(shown), "column: NaN in one row"
    if masks:
        out = jnp.asarray(jax.nn.one_hot((y + 1) % K, K), bool)
        ruled_out = program(jnp.where(out, -jnp.inf, x), y)
        chex.assert_tree_all_finite(ruled_out)
        np.testing.assert_array_equal(np.asarray(ruled_out[1])[np.asarray(out)], 0)


@unchecked
def test_rows_are_independent(row):
    if "NaN" in row.without:
        pytest.skip(row.without["NaN"])
    x, y, _ = example(row)
    if differentiable(row):
        check_rows(row.values, x, y, infinite=not row.simplex, masks=row.masks)
    else:
        check_rows_forward(row.values, x, y)


def check_rows_forward(f, x, y):
    whole = f(x, y)
    spoilt = jax.jit(f)(x.at[1, 0, 0].set(jnp.nan), y)
    assert np.isnan(spoilt[1]), "column: NaN in one row"
    assert_close(spoilt[jnp.array([0, 2, 3])], whole[jnp.array([0, 2, 3])], "NaN")


def check_dtypes(f, x, y):
    """16-bit, 32-bit and 64-bit numbers come back as such; no rows give none."""
    for dtype in (jnp.bfloat16, jnp.float16, jnp.float32, jnp.float64):
        with jax.enable_x64(dtype is jnp.float64), named(jnp.dtype(dtype).name):
            like = jax.ShapeDtypeStruct(x.shape, dtype)
            for leaf in jax.tree.leaves(jax.eval_shape(f, like, y)):
                assert leaf.dtype == dtype
    with named("empty batch"):
        for leaf in jax.tree.leaves(f(x[:0], y[:0])):
            assert leaf.shape[0] == 0


def test_dtypes_and_empty_batches(row):
    if "dtypes" in row.without:
        pytest.skip(row.without["dtypes"])
    x, y, _ = example(row)
    check_dtypes(row.values, x, y)


class Compilations(logging.Handler):
    """Counts what JAX compiles."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.count = 0

    def emit(self, record):
        self.count += "Finished XLA compilation" in record.getMessage()


def count_compilations(call):
    counter, logger = Compilations(), logging.getLogger("jax")
    propagated = logger.propagate
    logger.addHandler(counter)
    logger.propagate = False
    try:
        with jax.log_compiles():
            call()
    finally:
        logger.removeHandler(counter)
        logger.propagate = propagated
    return counter.count


def check_eager(f, x, y):
    """Without jit: no NaN on the way, in any thread, compiled once."""
    with jax.debug_nans(True), named("debug_nans"):
        expected = jax.block_until_ready(f(x, y))
    f(x, y)
    assert count_compilations(lambda: [f(x, y), f(x, y)]) == 0, "column: compiles once"
    with ThreadPoolExecutor(4) as pool, named("threads"):
        for actual in pool.map(lambda _: f(x, y), range(8)):
            chex.assert_trees_all_equal(actual, expected)


def test_eager(row):
    x, y, _ = example(row)
    check_eager(row.values, x, y)


def check_sharded(f, x, y):
    """Rows spread over devices by `shard_map`, with its checks, and by the sharding of x and y."""
    across = PartitionSpec("d")

    def both(f, x, y):
        return f(x, y), jax.grad(lambda x: weighted_sum(f(x, y)))(x)

    def mapped(mesh):
        return partial(both, jax.shard_map(f, mesh=mesh, in_specs=across, out_specs=across))

    mesh = jax.make_mesh((jax.device_count(),), ("d",), axis_types=(AxisType.Auto,))
    spread = jax.device_put((x, y), NamedSharding(mesh, across))
    expected = jax.jit(partial(both, f))(x, y)
    assert_close(jax.jit(mapped(mesh))(x, y), expected, "shard_map")
    assert_close(jax.jit(partial(both, f))(*spread), expected, "sharded inputs")


def check_shard_map(f, x, y):
    """On four devices, of which nothing is computed: types that vary over them must agree."""
    across = PartitionSpec("d")
    mesh = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))

    def both(x, y):
        mapped = jax.shard_map(f, mesh=mesh, in_specs=across, out_specs=across)
        return mapped(x, y), jax.grad(lambda x: weighted_sum(mapped(x, y)))(x)

    jax.eval_shape(jax.jit(both), x, y)


def check_export(f, x, y, call):
    """A program for any number of rows, of the value and the gradient."""
    (rows,) = export.symbolic_shape("rows")

    def both(x, y):
        total = lambda x: sum(map(jnp.sum, jax.tree.leaves(f(x, y))))  # noqa: E731
        return f(x, y), jax.grad(total)(x)

    shapes = (jax.ShapeDtypeStruct((rows, *a.shape[1:]), a.dtype) for a in (x, y))
    exported = export.export(jax.jit(both))(*shapes)
    if call:
        for n in (1, 3):
            assert_close(exported.call(x[:n], y[:n]), jax.jit(both)(x[:n], y[:n]), "export")


def check_leaks(make, x, y, parameter):
    with jax.checking_leaks():
        total = lambda x, parameter: weighted_sum(make(parameter)(x, y))  # noqa: E731
        jax.eval_shape(jax.jit(jax.grad(total)), x, parameter)


def check_precisions(f, x, y):
    """x64 switched between calls: each call computes in its own precision."""
    first = f(x, y)
    with jax.enable_x64(True):
        wide = f(np.asarray(x, np.float64), y)
        assert_close(first, wide, "x64", tolerance=1e-5)
        assert all(leaf.dtype == jnp.float64 for leaf in jax.tree.leaves(wide))
    chex.assert_trees_all_equal(f(x, y), first)


@representative
def test_sharded(name):
    x, y, _ = example(ROWS[name])
    check_sharded(ROWS[name].values, x, y)


@unchecked
def test_shard_map(row):
    if differentiable(row):
        x, y, _ = example(row)
        check_shard_map(row.values, x, y)


@unchecked
def test_exports(row):
    if differentiable(row):
        x, y, _ = example(row)
        check_export(row.values, x, y, call=False)


@representative
def test_exported_programs_compute_the_same(name):
    x, y, _ = example(ROWS[name])
    check_export(ROWS[name].values, x, y, call=True)


@pytest.mark.parametrize("name", [*REPRESENTATIVE, "fenchel_young, separable"])
def test_leaks(name):
    row = ROWS[name]
    x, y, _ = example(row)
    make = row.function if row.parameter else lambda _: row.function
    check_leaks(make, x, y, row.parameter or 0.0)


@representative
def test_precisions(name):
    x, y, _ = example(ROWS[name])
    check_precisions(ROWS[name].values, x, y)


WITH_LABELS = {  # picklable functions of probabilities, or logits, and labels
    "cross_entropy": losses.cross_entropy,
    "bi_tempered": losses.bi_tempered,
    "score of shannon": pgeom.bregman_score(generators.shannon),
    "score of tsallis": pgeom.bregman_score(generators.tsallis(1.5)),
    "score of a sum": pgeom.bregman_score(generators.shannon + generators.squared_norm),
    "score of quadratic": pgeom.bregman_score(generators.quadratic(A)),
    "score of hyperbolic": pgeom.bregman_score(with_scale(1.5)),
    "score of a function": pgeom.bregman_score(cubic),
    "on_logits": on_logits(generators.tsallis(1.5)),
    "on_logits, temperature": on_logits(cubic, temperature=2.0),
    "capm": pgeom.capm(A),
    "apms": partial(APMS, step=3.0),
    "fenchel_young": pgeom.fenchel_young(generators.tsallis(1.5)),
    "fenchel_young, function": pgeom.fenchel_young(cubic),
}
OF_PAIRS = {
    "divergence": pgeom.bregman_divergence(cubic),
    "conditional_risk": pgeom.conditional_risk(user_brier),
    "regret": pgeom.regret(user_brier),
}
OF_VECTORS = {
    "canonical_link": pgeom.canonical_link(generators.tsallis(1.5)),
    "inverse_link": pgeom.inverse_link(cubic),
}
PICKLED = {**WITH_LABELS, **OF_PAIRS, **OF_VECTORS}


def check_copies(f, *arguments):
    """Pickled and copied before it is called, after it, and after a gradient."""
    again = pickle.loads(pickle.dumps(f))
    expected = f(*arguments)
    jax.grad(lambda x: weighted_sum(f(x, *arguments[1:])))(arguments[0])
    for one in (again, copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        chex.assert_trees_all_equal(one(*arguments), expected)
        chex.assert_trees_all_equal(pickle.loads(pickle.dumps(one))(*arguments), expected)


@pytest.mark.parametrize("name", PICKLED)
def test_copies(name):
    x, y, _ = example(ROWS["bregman_score"])
    others = (y,) if name in WITH_LABELS else (x[::-1],) if name in OF_PAIRS else ()
    check_copies(PICKLED[name], x, *others)


def public_names():
    """Every public function, by the name that a row starts with."""
    names = {name for name in dir(pgeom) if not name.startswith("_")}
    for module in names & {name for name in names if inspect.ismodule(getattr(pgeom, name))}:
        source = getattr(pgeom, module)
        own = [name for name, value in vars(source).items() if _is_own(value, source)]
        listed = [name for name in getattr(source, "__all__", own) if name[0].islower()]
        names = names - {module} | {f"{module}.{name}" for name in listed if name[0] != "_"}
    return names


def _is_own(value, module):
    return inspect.isroutine(value) and value.__module__ == module.__name__


def test_every_public_function_is_here():
    rows = {name.partition(",")[0] for name in ROWS}
    known = rows | set(NO_ROWS)
    missing = {name for name in public_names() if not {name, name.partition(".")[0]} & known}
    assert not missing, f"add a line to ROWS, or a reason to NO_ROWS: {sorted(missing)}"
    assert not set(NO_ROWS) - public_names() - {name.partition(".")[0] for name in public_names()}


def leaking(x, y):
    """A derivative rule that closes over a traced value."""
    mask = jnp.arange(K) == y[..., None]

    @jax.custom_jvp
    def chosen(x):
        return jnp.sum(jnp.where(mask, x, 0.0), axis=-1)

    @chosen.defjvp
    def rule(primals, tangents):
        return chosen(*primals), jnp.sum(jnp.where(mask, tangents[0], 0.0), axis=-1)

    return chosen(x)


def of_the_batch(x, y):
    """A value that depends on the other rows."""
    return jnp.sum(x, axis=-1) - jnp.mean(x)


def on_the_host(x, y):
    return jnp.sum(jnp.asarray(np.asarray(x)), axis=-1)


def by_size(x, y):
    """A program that asks how many rows there are."""
    return jnp.sum(x, axis=-1) * (2.0 if len(x) > 2 else 1.0)


def with_a_loop(x, y):
    """A carry that does not vary over devices as x does, and no derivative in reverse."""
    step = lambda i, carry: carry + jnp.max(x, axis=-1)  # noqa: E731
    return jax.lax.while_loop(lambda c: jnp.all(c < 9.0), partial(step, 0), jnp.zeros(x.shape[:-1]))


def compiled_at_every_call(x, y):
    return jax.jit(lambda x: jnp.sum(x, axis=-1))(x)


def wide(x, y):
    return jnp.sum(x, axis=-1).astype(jnp.float32)


def nan_on_the_way(x, y):
    safe = jnp.where(x > 0, jnp.log(x), 0.0)
    return jnp.sum(safe, axis=-1)


def hiding_nan(x, y):
    return jnp.sum(jnp.nan_to_num(x), axis=-1)


@jax.custom_vjp
def squared(x):
    return x**2


squared.defvjp(lambda x: (x**2, x), lambda x, out: (2 * x * out,))


def in_reverse_only(x, y):
    return jnp.sum(squared(x), axis=-1)


def scaled_on_the_host(scale):
    return lambda x, y: jnp.sum(x, axis=-1) * float(scale)


TRACED = []


def remembering(scale):
    """What keeps a traced value."""
    TRACED.append(scale)
    return lambda x, y: jnp.sum(x, axis=-1) * scale


class Unpicklable:
    def __init__(self):
        self.kept = lambda x: jnp.sum(x, axis=-1)

    def __call__(self, x, y):
        return self.kept(x)


# A false claim for each column, which it sees.
PLANTED = {
    "forms": lambda x, y, d: check_forms(leaking, x, y),
    "forms of rows": lambda x, y, d: check_forms(of_the_batch, x, y, ("map",)),
    "checkpoint": lambda x, y, d: check_forms(leaking, x, y, ("checkpoint",)),
    "loops": lambda x, y, d: check_loops(of_the_batch, x, y),
    "derivatives": lambda x, y, d: check_derivatives(in_reverse_only, x, y, d),
    "reverse": lambda x, y, d: check_derivatives(with_a_loop, x, y, d),
    "parameters": lambda x, y, d: check_parameter(scaled_on_the_host, x, y, 1.5),
    "NaN": lambda x, y, d: check_rows(hiding_nan, x, y, False, False),
    "rows": lambda x, y, d: check_rows(of_the_batch, x, y, False, False),
    "masks": lambda x, y, d: check_rows(losses.label_smoothing, x, y, False, True),
    "dtypes": lambda x, y, d: check_dtypes(wide, x, y),
    "empty batch": lambda x, y, d: check_dtypes(lambda x, y: jnp.max(x) + x[..., 0], x, y),
    "debug_nans": lambda x, y, d: check_eager(nan_on_the_way, x, y),
    "compiles once": lambda x, y, d: check_eager(compiled_at_every_call, x, y),
    "shard_map": lambda x, y, d: check_shard_map(with_a_loop, x, y),
    "export": lambda x, y, d: check_export(by_size, x, y, call=False),
    "leaks": lambda x, y, d: check_leaks(remembering, x, y, 1.5),
    "x64": lambda x, y, d: check_precisions(wide, x, y),
    "copies": lambda x, y, d: check_copies(Unpicklable(), x, y),
    "rank promotion": lambda x, y, d: check_eager(lambda x, y: x[0] + x, x, y),
    "dtype promotion": lambda x, y, d: check_eager(lambda x, y: x[..., 0] * y, x, y),
}


@pytest.mark.parametrize("column", PLANTED)
def test_a_planted_defect_is_seen(column):
    x, y, d = example(Row(losses.cross_entropy))
    with pytest.raises(Exception):  # noqa: B017, of which kind is for JAX to choose
        PLANTED[column](x, y, d)
