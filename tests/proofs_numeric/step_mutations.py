"""False formulas and false steps of proofs, each with the claim that it must break, and the K."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from pgeom.diagnosis import bounds, curvature
from pgeom.paper import displacement
from proofs_numeric import (
    curvature as curvature_claim,
    exact_range,
    gradients,
    graph_weights,
    margin_steps,
)

# curvature, hessian_lipschitz -------------------------------------------------------------------


def centre_dropped(F, p):
    return curvature_claim.gradient(F, p) + F.scale * F.lam / p.shape[0]


def width_dropped(F, p):
    return curvature_claim.gradient(replace(F, a=F.a / F.rho), p)


def factor_two_dropped(F, eta, p):
    return 0.5 * (curvature_claim.divergence_hessian(F, eta, p) + curvature_claim.hessian(F, p))


def sign_of_the_bend(F, eta, p):
    return 2 * curvature_claim.hessian(F, p) - curvature_claim.divergence_hessian(F, eta, p)


def lipschitz_of(change):
    """The paper's constant of a changed generator, the sharper one of F itself."""

    def bound(F, K):
        paper = bounds.hessian_lipschitz(change(F), K).paper
        return bounds.hessian_lipschitz(F, K)._replace(paper=paper)

    return bound


def squared_norms(F):
    """‖w_r‖³ → ‖w_r‖²."""
    norms = np.linalg.norm(F.w, axis=1)
    return replace(F, a=F.a / np.where(norms > 0, norms, 1.0))


def tangent_ridges(F):
    """w_r → Πw_r."""
    return replace(F, w=F.w - F.w.mean(axis=1, keepdims=True))


# loss_range ------------------------------------------------------------------------------------


def vertices_alone(F):
    return exact_range.largest_loss(F, most=1)


def vertices_alone_without_gap(F):
    result = vertices_alone(F)
    return result._replace(high=result.low)


def largest_for_least(F, K):
    limits = curvature.envelope(F, K)
    return limits._replace(m_tangent=limits.M_tangent)


def from_the_centre(y, K, dtype):
    return jnp.full(K, 1 / K, dtype)


# gradients --------------------------------------------------------------------------------------


def first_label_only(F, p, y):
    return gradients.gradient_form(F, p, 0 * y)


def label_dropped(F, p, y):
    return jax.jvp(jax.grad(F), (p,), (p,))[1]


# margin_steps, graph_weights --------------------------------------------------------------------


def one_competitor_more(K, tau, a):
    return margin_steps.least_margin(K + 1, tau, a)


def slope_less_one(K, tau, a):
    return margin_steps.least_growth(K, tau, a) - 1


def share_not_spread(K, tau, a):
    return margin_steps.largest_margin(K, tau, a) + (1 - a) / (K - 1)


def softmax_over_all(p, y, tau):
    return (jnp.arange(p.shape[0]) == y).astype(p.dtype) - jax.nn.softmax(p / tau)


# displacement -----------------------------------------------------------------------------------


def displacement_with(field, **renamed):
    """One bound as it would be with other curvatures: `m="m_tangent"` puts m_T in place of m."""

    def limits(envelope, *args, **kwargs):
        stated = displacement.displacement_bounds(envelope, *args, **kwargs)
        fields = {key: getattr(envelope, name) for key, name in renamed.items()}
        changed = displacement.displacement_bounds(envelope._replace(**fields), *args, **kwargs)
        return stated._replace(**{field: getattr(changed, field)})

    return limits


def lower_without(term):
    """The bound from below, with only 1/(2ν) or only 1/(2τ) for the curvature of the penalty."""

    def limits(envelope, lipschitz, eta, penalty, *, beta):
        stated = displacement.displacement_bounds(envelope, lipschitz, eta, penalty, beta=beta)
        bend = margin_steps.penalty_curvature(penalty)
        left = bend - 1 / (2 * getattr(penalty, term))
        M = envelope.M_tangent
        return stated._replace(lower=stated.lower * (M + beta * bend) / (M + beta * left))

    return limits


def minimise_nothing(F, eta, penalty, *, beta, step, starts):
    """Starts for ends, of which the best is returned."""
    minimum = displacement.minimise(F, eta, penalty, beta=beta, step=step, starts=starts)
    return minimum._replace(ends=starts)


def inverse_of_the_whole_space(hessian, slope):
    pull = -np.linalg.solve(hessian, slope)
    return pull - pull.mean()


def inverse_forgotten(hessian, slope):
    return slope.mean() - slope


def scaled_bounds(**factors):
    def limits(*args, **kwargs):
        stated = displacement.displacement_bounds(*args, **kwargs)
        return stated._replace(**{key: getattr(stated, key) * x for key, x in factors.items()})

    return limits


def bounds_under_test(limits):
    return "displacement", 3, {"displacement_bounds": limits}


STEP_MUTATIONS = {
    "displacement: 2 → 8 under the root": bounds_under_test(scaled_bounds(square_root=2.0)),
    "displacement: 2 → 1.9 under the root": bounds_under_test(
        scaled_bounds(square_root=math.sqrt(0.95))
    ),
    "displacement: m_T for m under the root": bounds_under_test(
        displacement_with("square_root", m="m_tangent")
    ),
    "displacement: m_T for m in √2β/m": bounds_under_test(
        displacement_with("linear", m="m_tangent")
    ),
    "displacement: √2β/m × 4": bounds_under_test(scaled_bounds(linear=4.0)),
    "displacement: √2β/m × 0.1": bounds_under_test(scaled_bounds(linear=0.1)),
    "displacement: m for m_T in the cone bound": bounds_under_test(
        displacement_with("cone", m_tangent="m")
    ),
    "displacement: cone bound × 4": bounds_under_test(scaled_bounds(cone=4.0)),
    "displacement: cone bound × 0.1": bounds_under_test(scaled_bounds(cone=0.1)),
    "displacement: m for M_T in the lower bound": bounds_under_test(
        displacement_with("lower", M_tangent="m")
    ),
    "displacement: 1/(2τ) dropped": bounds_under_test(lower_without("tau")),
    "displacement: 1/(2ν) dropped": bounds_under_test(lower_without("nu")),
    "displacement: lower bound × 4": bounds_under_test(scaled_bounds(lower=4.0)),
    "displacement: lower bound × 0.1": bounds_under_test(scaled_bounds(lower=0.1)),
    "displacement: 2 → 1 in its own steps": (
        "displacement",
        3,
        {"root": lambda beta, largest, least: math.sqrt(beta * largest / least)},
    ),
    "displacement: D ≤ ½β(ρ(η) − ρ(p*))": ("displacement", 2, {"slack": lambda x: x / 2}),
    "displacement: H⁻¹ for H_T⁻¹ as β → 0": (
        "displacement",
        3,
        {"first_order": inverse_of_the_whole_space},
    ),
    "displacement: H forgotten as β → 0": ("displacement", 3, {"first_order": inverse_forgotten}),
    "displacement: ends that are not stationary": (
        "displacement",
        3,
        {"minimise": minimise_nothing},
    ),
    "margin_steps: K − 2 → K − 1": ("margin_steps", 3, {"least": one_competitor_more}),
    "margin_steps: 1 dropped from the slope": ("margin_steps", 3, {"growth": slope_less_one}),
    "margin_steps: (Ka − 1)/(K − 1) → a": ("margin_steps", 3, {"largest": share_not_spread}),
    "margin_steps: q over every class": ("margin_steps", 3, {"gradient": softmax_over_all}),
    "margin_steps: √2 → 1.41": ("margin_steps", 3, {"steepest": 1.41}),
    "margin_steps: √2 → 1.42": ("margin_steps", 3, {"steepest": 1.42}),
    "margin_steps: 1/(2ν) dropped": ("margin_steps", 3, {"bend": lambda one: 1 / (2 * one.tau)}),
    "margin_steps: 1/(2τ) dropped": ("margin_steps", 3, {"bend": lambda one: 1 / (2 * one.nu)}),
    "margin_steps: 1/(2ν) → 1/ν": (
        "margin_steps",
        3,
        {"bend": lambda one: 1 / one.nu + 1 / (2 * one.tau)},
    ),
    "graph_weights: cosines": ("graph_weights", 3, {"weights": graph_weights.cosines}),
    "graph_weights: −2.71 → −2.7": ("graph_weights", 10, {"eigenvalue": -2.7}),
    "graph_weights: nothing is refused": ("graph_weights", 10, {"laplacian": jnp.asarray}),
    "curvature: u dropped from ∇F": ("curvature", 3, {"gradient": centre_dropped}),
    "curvature: ρ dropped from ∇F": ("curvature", 3, {"gradient": width_dropped}),
    "curvature: 2 tanh → tanh in ∇²D": (
        "curvature",
        3,
        {"divergence_hessian": factor_two_dropped},
    ),
    "curvature: sign of tanh in ∇²D": ("curvature", 3, {"divergence_hessian": sign_of_the_bend}),
    "hessian_lipschitz: ‖w‖³ → ‖w‖²": (
        "hessian_lipschitz",
        3,
        {"bound": lipschitz_of(squared_norms)},
    ),
    "hessian_lipschitz: w → Πw": (
        "hessian_lipschitz",
        3,
        {"bound": lipschitz_of(tangent_ridges)},
    ),
    "loss_range: exact range from vertices": (
        "loss_range",
        3,
        {"exact": vertices_alone_without_gap},
    ),
    "loss_range: exact range without branching": ("loss_range", 3, {"exact": vertices_alone}),
    "loss_range: rays from the centre": ("loss_range", 3, {"origin": from_the_centre}),
    "loss_range: growth by M_T": ("loss_range", 3, {"envelope": largest_for_least}),
    "gradients: Eq. (prob-gradient) of label 0": ("gradients", 2, {"form": first_label_only}),
    "gradients: p for p − e_y": ("gradients", 2, {"form": label_dropped}),
    "gradients: T dropped from ‖J‖": ("gradients", 2, {"jacobian": lambda T: 0.5}),
    "gradients: ‖J‖ ≤ 1/T": ("gradients", 2, {"jacobian": lambda T: 1 / T}),
    "gradients: constant × 1.01": ("gradients", 2, {"constant": 1.01 * bounds.SHARP_GRADIENT}),
    "gradients: 16/27 → 3/5": ("gradients", 2, {"best_ratio": 3 / 5}),
    "gradients: 16/27 → 4/7": ("gradients", 2, {"best_ratio": 4 / 7}),
}
