"""What is frozen of each function, as flat dictionaries of arrays: one function per part."""

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import pgeom
from experiments.engine.store import Store
from tests.golden import functions
from tests.golden.functions import CLASSES, FEW

PRECISIONS = {"float32": False, "float64": True}
COMMANDS = {  # the paper's cells of which the runs are frozen
    "noise": ("--dataset", "digits", "--regimes", "symmetric-40"),
    "longtail": (),
}


def part_losses() -> dict:
    """Value, gradient and one Hessian-vector product of every loss on logits."""
    found = {}
    for precision, K in precisions_and_classes():
        for name, loss in functions.losses(K).items():
            found |= evaluate(f"{name} {K} {precision}", K, loss, soft=name in functions.SOFT)
    return found


def part_generators() -> dict:
    """The same of the score of every generator, and its divergence."""
    found = {}
    for precision, K in precisions_and_classes():
        for name, F in generators(K):
            loss, divergence = pgeom.on_logits(pgeom.bregman_score(F)), pgeom.bregman_divergence(F)
            found |= evaluate(f"{name} {K} {precision}", K, loss, divergence=divergence)
    return found


def part_links() -> dict:
    """Canonical links, and their losses with gradients and one Hessian-vector product."""
    found = {}
    for precision, K in precisions_and_classes():
        for name, F in generators(K):
            if name in ("kinked", "penalised-brier"):
                continue
            key = f"{name} {K} {precision}"
            try:
                loss, link = pgeom.fenchel_young(F), pgeom.canonical_link(F)
                found |= evaluate(key, K, loss, link=link)
            except (TypeError, ValueError) as error:  # a refusal is a value, too
                found[f"{key} refused"] = type(error).__name__
    return found


def generators(K):
    """The names and functions of convex generators; of many classes only some."""
    everything = functions.library_generators(K) | functions.user_generators(K)
    return [(name, F) for name, F in everything.items() if K < 1000 or name in LARGE]


LARGE = ("shannon", "squared_norm", "tsallis-1.5", "quadratic", "hyperbolic", "cubic")


def part_diagnosis() -> dict:
    """Verdicts, curvature and bounds, as the report gives them."""
    found = {}
    for K in (2, 3, 10):
        everything = functions.library_generators(K) | functions.user_generators(K)
        for name, F in (everything | functions.not_generators(K)).items():
            report, key = pgeom.diagnose(F, K), f"{name} {K}"
            answers = (report.convex, report.strictly_convex, report.smooth)
            found[f"{key} verdict"] = repr((*answers, report.finite_at_vertices))
            envelope = report.envelope
            limits = [envelope.m, envelope.M, envelope.m_tangent, envelope.M_tangent]
            found[f"{key} search envelope"] = np.array(limits)
            if report.convex:
                bounds = [report.loss_range, report.logit_gradient]
                pairs = [(bound.paper, bound.sharp) for bound in bounds]
                found[f"{key} search bounds"] = np.array(pairs).ravel()
                found[f"{key} how"] = repr([bound.how for bound in bounds])
        found[f"hyperbolic {K} lipschitz"] = np.array(
            pgeom.bounds.hessian_lipschitz(functions.library_generators(K)["hyperbolic"], K)[:2]
        )
    return found


def part_metrics() -> dict:
    """Metrics, calibration, decomposition and paired tests."""
    found = {}
    for precision, x64 in PRECISIONS.items():
        with jax.enable_x64(x64):
            rng = np.random.default_rng(5)
            dtype = np.float64 if x64 else np.float32
            z = (3 * rng.normal(size=(400, 4))).astype(dtype)
            chances = np.exp(z / 2.0)
            cumulative = np.cumsum(chances, axis=1) / chances.sum(axis=1, keepdims=True)
            y = np.sum(rng.random((400, 1)) > cumulative, axis=1).clip(max=3)
            p = jax.nn.softmax(jnp.asarray(z))
            for name in ("accuracy", "balanced_accuracy", "brier", "ece", "classwise_ece"):
                found[f"{name} {precision}"] = getattr(pgeom.metrics, name)(p, y)
            for name in ("debiased_ece", "smooth_ece"):
                found[f"{name} {precision}"] = getattr(pgeom.metrics, name)(p, y)
            found[f"nll {precision}"] = pgeom.metrics.nll(z, y)
            fitted = pgeom.calibration.fit_temperature(z, y)
            found[f"temperature {precision}"] = jnp.asarray(jax.tree.leaves(fitted)[0])
            parts = pgeom.decompose(pgeom.generators.squared_norm, p, y)
            numbers = [x for x in jax.tree.leaves(tuple(parts)) if np.ndim(x) == 0][:4]
            found[f"decompose {precision}"] = np.array([float(x) for x in numbers])
    rng = np.random.default_rng(6)
    a, b = rng.normal(size=(2, 9)).round(1)
    found["wilcoxon"] = np.array([float(x) for x in pgeom.significance.paired_wilcoxon(a, b)[:3]])
    found["holm"] = pgeom.significance.holm(np.array([0.01, 0.04, 0.03, 0.5]))
    for K in (2, 3, 10):
        tau, p = 0.1, functions.targets(K)
        y = functions.labels(K)
        found[f"margin {K}"] = pgeom.margin.smooth_margin(p, y, tau=tau)
        found[f"margin range {K}"] = np.array(pgeom.margin.margin_range(K, tau=tau))
        found[f"penalty {K}"] = pgeom.margin.penalty(p, y, tau=tau, kappa=0.2, nu=0.1)
        limits = pgeom.margin.penalty_range(K, tau=tau, kappa=0.2, nu=0.1)
        found[f"penalty range {K}"] = np.array(limits)
        quadratic = functions.library_generators(K)["quadratic"]
        found[f"hessian {K}"] = pgeom.curvature.hessian(quadratic)(np.float32(p[2]))
        key = jax.random.key(0)
        for name in ("quadratic", "hyperbolic", "tsallis-2.5"):
            F = functions.library_generators(K)[name]
            found[f"mean curvature {name} {K}"] = pgeom.curvature.mean_curvature(F, K, key=key)
            matched = pgeom.curvature.match_curvature(F, K, target=2.0, key=key)
            found[f"matched {name} {K}"] = matched(jnp.asarray(p[2], jnp.float32))
    return found


def part_certificates() -> dict:
    """What is proved and disproved, and the bounds."""
    found = {}
    for K in (2, 3, 5, 10):
        everything = functions.library_generators(K) | functions.user_generators(K)
        for name, F in (everything | functions.not_generators(K)).items():
            found[f"{name} {K}"] = " ".join(str(pgeom.certify(F, K)).split())
    return found


def part_runs() -> dict:
    """The test NLL of the runs of two of the paper's cells, by loss."""
    found = {}
    for command, words in COMMANDS.items():
        with tempfile.TemporaryDirectory() as out:
            call = [sys.executable, "-m", f"experiments.{command}", *words, "--seeds", "1"]
            subprocess.run([*call, "--out", out], check=True, capture_output=True)
            for run in Store(Path(out)).records.values():
                nll = np.array([run["nll"], run["calibrated_nll"], run["accuracy"]])
                found[f"run {run['dataset']} {run['regime']} {run['loss']}"] = nll
    return found


def part_estimator() -> dict:
    """Predictions of the estimator, with and without early stopping."""
    from sklearn.datasets import load_iris

    from pgeom.sklearn import ProperLossClassifier

    x, y = load_iris(return_X_y=True)
    found = {}
    for name, options in {
        "ce": {"loss": "ce"},
        "cubic": {"loss": lambda p: jnp.sum(p**3)},
        "stopped": {"loss": "brier", "early_stopping": True},
        "hpg": {"loss": "hpg"},
    }.items():
        fitted = ProperLossClassifier(random_state=0, **options).fit(x[::2], y[::2])
        found[f"run estimator {name}"] = fitted.predict_proba(x[1::2])
    return found


def precisions_and_classes():
    for precision, x64 in PRECISIONS.items():
        for K in CLASSES:
            with jax.enable_x64(x64), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield precision, K


def evaluate(key, K, loss, *, soft=True, divergence=None, link=None) -> dict:
    """What one program computes of a loss and of what belongs to it.

    The Hessian is multiplied with a direction at moderate logits alone.
    """
    z, y, eta = functions.logits(K), functions.labels(K), functions.targets(K)
    z, eta = jnp.asarray(z, float), jnp.asarray(eta, float)
    direction = jnp.asarray(functions.draws(K + 2).normal(size=z.shape), float)

    def program(z, y, eta, direction):
        def total(z, labels):
            values = loss(z, labels)
            return jnp.sum(values), values

        def slope(z):
            return jax.grad(total, has_aux=True)(z, y)

        gradient, product, value = jax.jvp(slope, (z,), (direction,), has_aux=True)
        found = {"value": value, "gradient": gradient, "hvp": product[:7]}
        if soft:
            slopes, values = jax.grad(total, has_aux=True)(z, eta)
            found |= {"soft value": values, "soft gradient": slopes}
        if divergence is not None:
            found["divergence"] = divergence(eta, 0.9 * jax.nn.softmax(z) + 0.1 / K)
        if link is not None:
            found["link"] = link(z)
        return found

    found = jax.jit(program)(z, jnp.asarray(y), eta, direction)
    sizes = {name: jnp.linalg.norm(x, axis=-1) for name, x in found.items() if x.ndim == 2}
    found = {name: x[..., :FEW] if x.ndim == 2 else x for name, x in found.items()}
    found |= {f"norm of {name}": x for name, x in sizes.items()}
    return {f"{key} {name}": x for name, x in found.items()}


PARTS = {
    "losses": part_losses,
    "generators": part_generators,
    "links": part_links,
    "diagnosis": part_diagnosis,
    "metrics": part_metrics,
    "certificates": part_certificates,
    "runs": part_runs,
    "estimator": part_estimator,
}
