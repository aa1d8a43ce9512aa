"""The paper's theory figures, by their labels, from the configurations that the checks use.

Colours are those of Okabe and Ito, which remain distinct for colour-blind readers; bounds are
dashed or dotted, so that they remain distinct in print too.
"""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.figure import Figure  # not pyplot: no display, no state

from pgeom.compilation import quick_jit
from pgeom.geometry import bounds, curvature, displacement
from pgeom.geometry.bregman import bregman_divergence, bregman_score
from pgeom.geometry.generators import Quadratic, shannon, squared_norm
from pgeom.losses.catalogue import hpg_generator
from pgeom.losses.proper import on_logits
from proofs_numeric import configurations, probes
from proofs_numeric.displacement import Problem, all_starts, solve
from proofs_numeric.experiment_metrics import experiment_matrix

BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#555555"
# a loss has one colour, here and in the figures of the experiments
CE, BRIER, CAPM, HPG, APMS = "#000000", "#44AA99", "#332288", "#AA4499", "#DDAA33"
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # text that can be searched and edited
}
K = 10


def draw(folder: Path) -> list[Path]:
    """Draw every figure into the folder, as PNG and as PDF, and return the paths."""
    written = []
    with matplotlib.rc_context(STYLE):
        for name, figure in FIGURES.items():
            drawn = figure()
            for suffix in ("png", "pdf"):
                path = folder / f"{name}.{suffix}"
                drawn.savefig(path)
                written.append(path)
    return written


def hpg_curvature() -> Figure:
    """Sampled eigenvalues of the experiments' HPG, with the paper's and the tangent envelope."""
    F, points = _hpg(), probes.draws(K, count=700, seed=20)
    spectrum = quick_jit(jax.vmap(lambda p: jnp.linalg.eigvalsh(jax.hessian(F)(p))))
    eigenvalues = np.ravel(spectrum(points))
    found = curvature.envelope(F, K)
    figure = Figure(figsize=(5.2, 3.2))
    axes = figure.subplots()
    axes.hist(eigenvalues, bins=60, color=HPG, alpha=0.75, label="eigenvalues of H(p), whole space")
    axes.set_yscale("log")
    for x, label in ((eigenvalues.min(), "smallest, largest sampled"), (eigenvalues.max(), None)):
        axes.axvline(x, color=GREY, linewidth=1.0, label=label)
    for x, label in ((found.m_tangent, r"tangent $m_T, M_T$"), (found.M_tangent, None)):
        axes.axvline(x, color=GREEN, linestyle=":", linewidth=1.8, label=label)
    for x, label in ((found.m, r"paper's $m, M$"), (found.M, None)):
        axes.axvline(x, color=RED, linestyle="--", linewidth=1.4, label=label)
    axes.set(xlabel="eigenvalue", ylabel="count")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=2)
    return figure


def apms_displacement() -> Figure:
    """The displacement of the APMS target, between the paper's bounds and the sharper ones."""
    eta = np.random.default_rng([21, K]).dirichlet(np.full(K, 0.7))
    F, betas = configurations.hyperbolics(K).named("HPG experiments R=4"), np.logspace(-3, 0, 13)
    problems = [Problem("", F, eta, configurations.EXPERIMENT, beta) for beta in betas]
    solved = solve(problems, displacement.displacement_bounds, all_starts)
    curves = (
        ([one.bounds.square_root for one in solved], RED, "--", r"paper: $\sqrt{2\beta C_r/m}$"),
        ([one.bounds.linear for one in solved], BLUE, "-.", r"paper: $\sqrt{2}\beta/m$"),
        ([one.bounds.cone for one in solved], GREEN, ":", "sharper: cone bound"),
        ([one.bounds.lower for one in solved], GREY, (0, (1, 3)), "from below"),
    )
    figure = Figure(figsize=(5.2, 3.4))
    axes = figure.subplots()
    for values, colour, line, label in curves:
        axes.loglog(betas, values, color=colour, linestyle=line, linewidth=1.6, label=label)
    distances = [one.distance for one in solved]
    axes.loglog(betas, distances, "o-", color=APMS, markersize=3.5, label="global minimiser")
    axes.axhline(math.sqrt(2), color="#bbbbbb", linewidth=0.8)
    axes.text(betas[0], 1.7, "diameter of the simplex", fontsize=7, color=GREY)
    axes.set(xlabel=r"margin coefficient $\beta$", ylabel=r"$\|p^\star_\beta-\eta\|_2$")
    axes.set_ylim(top=8)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def spectrum_regret() -> Figure:
    """The spectrum of CAPM's matrix on Digits, and HPG's regret ratio between its bounds."""
    figure = Figure(figsize=(9.6, 3.3))
    left, right = figure.subplots(1, 2)
    _spectrum_panel(left)
    _regret_panel(right)
    return figure


def _spectrum_panel(axes) -> None:
    """The eigenvalues of CAPM's matrix, of five seeds: all positive."""
    spectra = [np.linalg.eigvalsh(experiment_matrix("digits", "clean", seed)) for seed in range(5)]
    index = np.arange(1, K + 1)
    axes.bar(index, np.mean(spectra, axis=0), color=CAPM, alpha=0.6, label="mean of five seeds")
    for seed, spectrum in enumerate(spectra):
        label = "each seed" if seed == 0 else None
        axes.plot(index, spectrum, ".", color=ORANGE, markersize=4, label=label)
    axes.set(xlabel="index", ylabel=r"eigenvalue of CAPM's $A$, Digits", xticks=index)
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _regret_panel(axes) -> None:
    """2D(η, p)/‖η − p‖² of HPG on pairs near and far, between its quadratic bounds."""
    F = _hpg()
    eta, p = probes.draws(K, count=800, seed=22), probes.draws(K, count=800, seed=23)
    rng = np.random.default_rng(24)
    near = rng.uniform(0, 1, (len(p), 1)) ** 2
    p = near * p[rng.permutation(len(p))] + (1 - near) * eta
    distance = np.linalg.norm(eta - p, axis=1)
    eta, p, distance = (x[distance > 1e-3] for x in (eta, p, distance))
    ratios = 2 * np.asarray(quick_jit(bregman_divergence(F))(eta, p)) / distance**2
    found = curvature.envelope(F, K)
    axes.scatter(distance, ratios, s=4, color=HPG, alpha=0.4, linewidths=0, label="sampled pairs")
    lines = (
        (found.m, found.M, RED, "--", r"paper's $m, M$"),
        (found.m_tangent, found.M_tangent, GREEN, ":", r"tangent $m_T, M_T$"),
    )
    for low, high, colour, line, label in lines:
        axes.axhline(low, color=colour, linestyle=line, linewidth=1.6, label=label)
        axes.axhline(high, color=colour, linestyle=line, linewidth=1.6)
    axes.set(xlabel=r"$\|\eta-p\|_2$", ylabel=r"HPG: $2D_F(\eta,p)\,/\,\|\eta-p\|_2^2$")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, markerscale=3)


def binary() -> Figure:
    """K = 2: the loss, the true-logit gradient, and what contamination may cost."""
    x = np.linspace(0.005, 0.995, 199)
    logits = np.stack([np.log(x / (1 - x)), np.zeros_like(x)], axis=1)
    capm = Quadratic(experiment_matrix("breast-cancer", "clean", 0))
    with jax.enable_x64(False):
        hpg = hpg_generator(2)
    losses = {
        "CE": (shannon, CE, "-"),
        "Brier": (squared_norm, BRIER, "--"),
        "CAPM": (capm, CAPM, "-."),
        "HPG": (hpg, HPG, ":"),
    }
    figure = Figure(figsize=(9.6, 2.9))
    left, middle, right = figure.subplots(1, 3)
    for name, (F, colour, line) in losses.items():
        loss = on_logits(bregman_score(F))
        of_logits = jax.value_and_grad(lambda z, f=loss: f(z, jnp.array(0)))
        value, slope = quick_jit(jax.vmap(of_logits))(logits)
        style = {"color": colour, "linestyle": line, "linewidth": 1.6, "label": name}
        left.plot(x, value, **style)
        middle.plot(x, np.abs(slope[:, 0]), **style)
    left.set(xlabel=r"true-class probability $p_y$", ylabel=r"loss $\ell(p, y)$", ylim=(0, 5))
    middle.set(xlabel=r"true-class probability $p_y$", ylabel=r"$|\partial\ell/\partial z_y|$")
    left.legend(loc="upper right")
    _contamination_panel(right, capm, hpg)
    return figure


def _contamination_panel(axes, capm, hpg) -> None:
    """εB/(1 − ε) for the bounds of CAPM and HPG, and M_T ε² beside it."""
    epsilon = np.linspace(0, 0.5, 101)
    # the two M_T are nearly the same: the wide line shows beneath the dotted one
    wide, dotted = {"linewidth": 4, "alpha": 0.4}, {"linewidth": 1.8, "linestyle": ":"}
    for name, F, colour, line in (("CAPM", capm, CAPM, wide), ("HPG", hpg, HPG, dotted)):
        B, M = bounds.loss_range(F, 2).paper, curvature.envelope(F, 2).M_tangent
        label = rf"{name}: $\epsilon B/(1-\epsilon)$, $B={B:.2f}$"
        axes.plot(epsilon, B * epsilon / (1 - epsilon), color=colour, linestyle="--", label=label)
        axes.plot(epsilon, M * epsilon**2, color=colour, label=rf"{name}: $M_T\epsilon^2$", **line)
    axes.set(xlabel=r"contamination rate $\epsilon$", ylabel="excess risk, at most")
    axes.legend(loc="upper left")


def _hpg():
    """The experiments' HPG, in float64."""
    return configurations.hyperbolics(K).named("HPG experiments R=4")


FIGURES = {
    "hpg-curvature": hpg_curvature,
    "apms-displacement": apms_displacement,
    "supp-theory-binary": binary,
    "supp-theory-spectrum-regret": spectrum_regret,
}
