"""The paper's theory figures by label, and how each is drawn.

They show the configurations that the checks use. Bounds are dashed or dotted, so that they remain
distinct in print too.
"""

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.numpy.linalg import eigvalsh
from matplotlib.axes import Axes

from experiments.show import style as figure_style
from experiments.show.style import BLUE, GREEN, GREY, LOOKS, ORANGE, RED
from pgeom import simplex
from pgeom.compilation import quick_jit
from pgeom.diagnosis import bounds, curvature
from pgeom.generators import Hyperbolic, shannon, squared_norm
from pgeom.losses.catalogue import LOSSES
from pgeom.scores import bregman_divergence, bregman_score, on_logits
from pgeom.types import Generator
from proofs_numeric.claims import Cases
from proofs_numeric.configurations import float64, hyperbolics, quadratics
from proofs_numeric.displacement import EXPERIMENT, Target, measure
from proofs_numeric.search import draws

K = 10
BETA0 = LOSSES["apms"].constants["beta0"]  # at which the experiments begin
PROBABILITIES = np.linspace(0.005, 0.995, 199)  # of the true class of two


def draw(folder: Path) -> list[Path]:
    """Draw every figure into the folder, as PNG, PDF and SVG, and return the paths."""
    paths = []
    for name, (size, panels) in FIGURES.items():
        house_style = figure_style.figure(1, len(panels), size, layout="constrained", math=True)
        with house_style as (figure, axes):
            for draw_panel, panel in zip(panels, axes[0], strict=True):
                draw_panel(panel)
            paths += figure_style.save(figure, folder / name, ("png", "pdf", "svg"))
    return paths


def draw_curvature(axes: Axes) -> None:
    """Sampled tangent eigenvalues of the experiments' HPG, with its bounds and the paper's."""
    F = _hpg()
    eigenvalues, envelope = tangent_eigenvalues(F), curvature.envelope(F, K)
    label = "eigenvalues of H(p) along the simplex"
    axes.hist(eigenvalues, bins=60, color=LOOKS["hpg"].colour, alpha=0.75, label=label)
    axes.set_yscale("log")
    sampled, label = (eigenvalues.min(), eigenvalues.max()), "smallest, largest sampled"
    _draw_ends(axes.axvline, sampled, color=GREY, linewidth=1.0, label=label)
    _draw_envelope(axes.axvline, envelope)
    axes.set(xlabel="eigenvalue", ylabel="count")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=2)


def tangent_eigenvalues(F: Generator) -> np.ndarray:
    """Those of the Hessian on the tangent space, all that a divergence sees, at 2,100 points."""
    basis = jnp.asarray(simplex.tangent_basis(K))

    def spectrum(p):
        return eigvalsh(basis.T @ jax.hessian(F)(p) @ basis)

    return np.ravel(quick_jit(jax.vmap(spectrum))(draws(K, count=700, seed=20)))


def draw_displacement(axes: Axes) -> None:
    """The displacement of the APMS target, between the paper's bounds and the sharper ones."""
    eta = np.random.default_rng([21, K]).dirichlet(np.full(K, 0.7))
    F, betas = _hpg(), np.logspace(-3, 0, 13)
    targets = {
        f"{beta:g}": jax.tree.map(float64, Target(F, eta, EXPERIMENT, beta)) for beta in betas
    }
    q = measure(Cases(K, targets))
    curves = (
        ("square_root", RED, "--", r"paper: $\sqrt{2\beta C_r/m}$"),
        ("linear", BLUE, "-.", r"paper: $\sqrt{2}\beta/m$"),
        ("cone", GREEN, ":", "sharper: cone bound"),
        ("lower", GREY, (0, (1, 3)), "lower bound"),
    )
    for name, colour, line, label in curves:
        axes.loglog(betas, q[name], color=colour, linestyle=line, linewidth=1.6, label=label)
    colour, style = LOOKS["apms"].colour, {"markersize": 3.5, "label": "global minimiser"}
    axes.loglog(betas, q["distance"], "o-", color=colour, **style)
    axes.axhline(math.sqrt(2), color="#bbbbbb", linewidth=0.8)
    axes.text(betas[0], 1.7, "diameter of the simplex", fontsize=7, color=GREY)
    axes.axvline(BETA0, color="#bbbbbb", linewidth=0.8)
    axes.text(BETA0, 2e-4, r" $\beta_0 = .2$, where training begins", fontsize=7, color=GREY)
    axes.set(xlabel=r"margin coefficient $\beta$", ylabel=r"$\|p^\star_\beta-\eta\|_2$")
    axes.set_ylim(top=8)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def draw_spectrum(axes: Axes) -> None:
    """The eigenvalues of CAPM's matrix on Digits, for five seeds: all positive."""
    matrices = quadratics(K).select("CAPM digits clean").values.values()
    spectra = [np.linalg.eigvalsh(F.A) for F in matrices]
    index, mean, colour = np.arange(1, K + 1), np.mean(spectra, axis=0), LOOKS["capm"].colour
    axes.bar(index, mean, color=colour, alpha=0.6, label="mean of five seeds")
    for seed, spectrum in enumerate(spectra):
        label = "each seed" if seed == 0 else None
        axes.plot(index, spectrum, ".", color=ORANGE, markersize=4, label=label)
    axes.set(xlabel="index", ylabel=r"eigenvalue of CAPM's $A$, Digits", xticks=index)
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def draw_regret(axes: Axes) -> None:
    """2D(η, p)/‖η − p‖² of HPG on pairs near and far, between its quadratic bounds."""
    F = _hpg()
    eta, p = draws(K, count=800, seed=22), draws(K, count=800, seed=23)
    rng = np.random.default_rng(24)
    near = rng.uniform(0, 1, (len(p), 1)) ** 2
    p = near * p[rng.permutation(len(p))] + (1 - near) * eta
    distance = np.linalg.norm(eta - p, axis=1)
    eta, p, distance = (x[distance > 1e-3] for x in (eta, p, distance))
    ratios = 2 * np.asarray(quick_jit(bregman_divergence(F))(eta, p)) / distance**2
    envelope, style = curvature.envelope(F, K), {"s": 4, "alpha": 0.4, "linewidths": 0}
    axes.scatter(distance, ratios, color=LOOKS["hpg"].colour, label="sampled pairs", **style)
    _draw_envelope(axes.axhline, envelope)
    axes.set(xlabel=r"$\|\eta-p\|_2$", ylabel=r"HPG: $2D_F(\eta,p)\,/\,\|\eta-p\|_2^2$")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, markerscale=3)


def draw_binary_loss(axes: Axes) -> None:
    """K = 2: the loss of the true class."""
    for name, (values, _, style) in _binary_curves().items():
        axes.plot(PROBABILITIES, values, label=name, **style)
    axes.set(xlabel=r"true-class probability $p_y$", ylabel=r"loss $\ell(p, y)$", ylim=(0, 5))
    axes.legend(loc="upper right")


def draw_binary_gradient(axes: Axes) -> None:
    """K = 2: the size of the true-logit gradient."""
    for _, slopes, style in _binary_curves().values():
        axes.plot(PROBABILITIES, slopes, **style)
    axes.set(xlabel=r"true-class probability $p_y$", ylabel=r"$|\partial\ell/\partial z_y|$")


def draw_contamination(axes: Axes) -> None:
    """K = 2: εB/(1 − ε) for the bounds of CAPM and HPG, and M_T ε² beside it."""
    epsilon, generators = np.linspace(0, 0.5, 101), _binary_generators()
    # the two M_T are nearly the same: the wide line shows beneath the dotted one
    wide: dict[str, Any] = {"linewidth": 4, "alpha": 0.4}
    dotted: dict[str, Any] = {"linewidth": 1.8, "linestyle": ":"}
    for name, line in (("CAPM", wide), ("HPG", dotted)):
        F, colour = generators[name], LOOKS[name.lower()].colour
        B, M = bounds.loss_range(F, 2).paper, curvature.envelope(F, 2).M_tangent
        label = rf"{name}: $\epsilon B/(1-\epsilon)$, $B={B:.2f}$"
        axes.plot(epsilon, B * epsilon / (1 - epsilon), color=colour, linestyle="--", label=label)
        axes.plot(epsilon, M * epsilon**2, color=colour, label=rf"{name}: $M_T\epsilon^2$", **line)
    axes.set(xlabel=r"contamination rate $\epsilon$", ylabel="upper bound on excess risk")
    axes.legend(loc="upper left")


def _draw_envelope(line: Callable, envelope: curvature.Envelope) -> None:
    """The paper's m and M, and the tangent ones."""
    tangent, paper = (envelope.m_tangent, envelope.M_tangent), (envelope.m, envelope.M)
    _draw_ends(line, tangent, color=GREEN, linestyle=":", label=r"tangent $m_T, M_T$")
    _draw_ends(line, paper, color=RED, linestyle="--", label=r"paper's $m, M$")


def _draw_ends(line: Callable, ends: tuple[float, float], *, label: str, **style: Any) -> None:
    style = {"linewidth": 1.6} | style
    line(ends[0], label=label, **style)
    line(ends[1], **style)


def _hpg(classes: int = K) -> Hyperbolic:
    """The experiments' HPG, in float64."""
    return hyperbolics(classes).values["HPG experiments R=4"]


def _binary_generators() -> dict[str, Generator]:
    """The generators of the losses that are shown for two classes."""
    capm = quadratics(2).values["CAPM breast-cancer clean seed 0"]
    return {"CE": shannon, "Brier": squared_norm, "CAPM": capm, "HPG": _hpg(2)}


@cache
def _binary_curves() -> dict[str, tuple[np.ndarray, np.ndarray, dict[str, Any]]]:
    """Loss, size of the true-logit gradient and line style by name, over `PROBABILITIES`."""
    x, curves = PROBABILITIES, {}
    logits = np.stack([np.log(x / (1 - x)), np.zeros_like(x)], axis=1)
    for (name, F), line in zip(_binary_generators().items(), ("-", "--", "-.", ":"), strict=True):
        loss = on_logits(bregman_score(F))
        value_and_slope = jax.value_and_grad(lambda z, loss=loss: loss(z, jnp.array(0)))
        value, slope = map(np.asarray, quick_jit(jax.vmap(value_and_slope))(logits))
        style = {"color": LOOKS[name.lower()].colour, "linestyle": line, "linewidth": 1.6}
        curves[name] = value, np.abs(slope[:, 0]), style
    return curves


# by label: the size in inches, and the panels from left to right
FIGURES: dict[str, tuple[tuple[float, float], tuple[Callable[[Axes], None], ...]]] = {
    "hpg-curvature": ((5.2, 3.2), (draw_curvature,)),
    "apms-displacement": ((5.2, 3.4), (draw_displacement,)),
    "supp-theory-binary": (
        (9.6, 2.9),
        (draw_binary_loss, draw_binary_gradient, draw_contamination),
    ),
    "supp-theory-spectrum-regret": ((9.6, 3.3), (draw_spectrum, draw_regret)),
}
