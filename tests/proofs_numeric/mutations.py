"""False constants, formulas and shortcuts, each with the claim that it must break, and the K."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp

from pgeom.diagnosis import bounds, curvature
from pgeom.paper import displacement, margin
from pgeom.scores import bregman_divergence, bregman_score, on_logits
from proofs_numeric import curvature as curvature_claim, improper
from tests.proofs_numeric.step_mutations import STEP_MUTATIONS

# regret -----------------------------------------------------------------------------------------


def swapped_arguments(F):
    return lambda q, p: bregman_divergence(F)(p, q)


def gradient_at_q(F):
    def pair(q, p):
        return F(q) - F(p) - jnp.dot(jax.grad(F)(q), q - p)

    return jnp.vectorize(pair, signature="(k),(k)->()")


# curvature --------------------------------------------------------------------------------------


def rho_for_rho_squared(F, p):
    return replace(F, a=F.a / F.rho)(p)


def scale_dropped(F, p):
    return curvature_claim.hessian(replace(F, scale=jnp.ones_like(F.scale)), p)


def sign_swapped(F, p):
    return curvature_claim.hessian(replace(F, a=-F.a), p)


def changed_envelope(**factors):
    """The envelope with some of its fields multiplied."""

    def envelope(F, K):
        limits = curvature.envelope(F, K)
        return limits._replace(**{key: getattr(limits, key) * x for key, x in factors.items()})

    return envelope


def envelope_without_scale(F, K):
    limits = curvature.envelope(F, K)
    scale = getattr(F, "scale", 1.0)
    return limits._replace(m=limits.m / scale, M=limits.M / scale)


# loss_range, gradients, hessian_lipschitz -------------------------------------------------------


def half_range(F, K):
    stated = bounds.loss_range(F, K)
    return stated._replace(paper=stated.paper / 2)


def vertex_only(F, starts):
    vertices = jnp.eye(starts.shape[1])
    label = jnp.zeros(starts.shape[1], int)
    return jnp.stack([jnp.max(bregman_score(F)(vertices, label + y)) for y in range(len(vertices))])


def gradient_with_T_squared(F, K, *, temperature):
    return bounds.logit_gradient(F, K, temperature=temperature**2)


def gradient_times(factor):
    def bound(F, K, *, temperature):
        stated = bounds.logit_gradient(F, K, temperature=temperature)
        return stated._replace(sharp=stated.sharp * factor)

    return bound


def two_thirds(F, K):
    stated = bounds.hessian_lipschitz(F, K)
    return stated._replace(paper=stated.paper * (2 / 3) / (4 / (3 * math.sqrt(3))))


def rho_dropped(F, K):
    stated = bounds.hessian_lipschitz(replace(F, a=F.a * F.rho), K)
    return stated._replace(sharp=bounds.hessian_lipschitz(F, K).sharp)


# margin -----------------------------------------------------------------------------------------


def one_class_more(K, *, tau):
    low = -1 - tau * jnp.log1p((K - 1) * jnp.exp(-1 / tau))
    return low, margin.margin_range(K, tau=tau)[1]


def naive_exponential(K, *, tau):
    low = -tau * jnp.log(jnp.exp(1 / tau) + (K - 2))
    return low, margin.margin_range(K, tau=tau)[1]


def penalty_of(margin_range):
    def penalty_range(K, *, tau, kappa, nu):
        low, high = margin_range(K, tau=tau)
        return tuple(nu * jax.nn.softplus((kappa - m) / nu) for m in (high, low))

    return penalty_range


def concave_penalty(p, y, *, tau, kappa, nu):
    return -margin.penalty(p, y, tau=tau, kappa=kappa, nu=nu)


# displacement, improper, contamination, numerics ------------------------------------------------


def changed_displacement(**factors):
    def limits(*args, **kwargs):
        stated = displacement.displacement_bounds(*args, **kwargs)
        return stated._replace(**{key: getattr(stated, key) * x for key, x in factors.items()})

    return limits


def single_start(eta):
    return eta[None]


def sign_of_the_margin(p, y, *, tau, kappa, nu):
    m = margin.smooth_margin(p, y, tau=tau)
    return nu * jax.nn.softplus((kappa + m) / nu)


def derivative_with_sign_swapped():
    sigma = lambda x: 1 / (1 + math.exp(-x))  # noqa: E731
    return -2 * 0.8 * sigma(0.6) + 2 * 0.2 * sigma(-0.6)


def limit_with_sign_swapped(K, tau, kappa, nu):
    return -improper.stated_limit(K, tau, kappa, nu)


def epsilon_for_odds(B, epsilon):
    return epsilon * B


def naive_loss(F):
    def loss(z, label):
        p, e_y = jax.nn.softmax(z), (jnp.arange(z.shape[-1]) == label).astype(z.dtype)
        return F(e_y) - F(p) - jnp.dot(jax.grad(F)(p), e_y - p)

    return loss


def without_gauge(F):
    return lambda z, label: bregman_score(F)(jax.nn.softmax(z), label)


# canonical_links -------------------------------------------------------------------------------


def softmax_composite(F):
    """The score of softmax(z), which is neither convex in z nor has the gradient p − e_y."""
    return on_logits(bregman_score(F))


MUTATIONS = STEP_MUTATIONS | {
    "regret: swapped arguments of D": ("regret", 3, {"divergence": swapped_arguments}),
    "regret: ∇F at q": ("regret", 3, {"divergence": gradient_at_q}),
    "regret: M × 0.9": ("regret", 3, {"envelope": changed_envelope(M=0.9)}),
    "curvature: ρ² → ρ": ("curvature", 3, {"generator": rho_for_rho_squared}),
    "curvature: s dropped from H": ("curvature", 3, {"hessian": scale_dropped}),
    "curvature: s dropped from m, M": ("curvature", 3, {"envelope": envelope_without_scale}),
    "curvature: sign of the ridges": ("curvature", 3, {"hessian": sign_swapped}),
    "curvature: m × 1.001": ("curvature", 3, {"envelope": changed_envelope(m=1.001)}),
    "curvature: M × 0.999": ("curvature", 3, {"envelope": changed_envelope(M=0.999)}),
    "loss_range: vertex-only supremum": ("loss_range", 3, {"supremum": vertex_only}),
    "loss_range: M/2": ("loss_range", 3, {"bound": half_range}),
    "gradients: constant × 0.999": ("gradients", 2, {"constant": 0.999 * bounds.SHARP_GRADIENT}),
    "gradients: bound × 0.999": ("gradients", 2, {"bound": gradient_times(0.999)}),
    "gradients: T → T²": ("gradients", 2, {"bound": gradient_with_T_squared}),
    "gradients: Jacobian 1/(2T²)": ("gradients", 2, {"jacobian": lambda T: 1 / (2 * T**2)}),
    "gradients: √2 M → 1.4 M": ("gradients", 2, {"probability": lambda M: 1.4 * M}),
    "hessian_lipschitz: 4/(3√3) → 2/3": ("hessian_lipschitz", 3, {"bound": two_thirds}),
    "hessian_lipschitz: ρ dropped": ("hessian_lipschitz", 3, {"bound": rho_dropped}),
    "margin: K − 2 → K − 1": (
        "margin",
        3,
        {"margin_range": one_class_more, "penalty_range": penalty_of(one_class_more)},
    ),
    "margin: K − 2 → K − 1 in C_r alone": (
        "margin",
        3,
        {"penalty_range": penalty_of(one_class_more)},
    ),
    "margin: naive exponential": (
        "margin",
        3,
        {"margin_range": naive_exponential, "penalty_range": penalty_of(naive_exponential)},
    ),
    "margin: concave penalty": ("margin", 3, {"penalty": concave_penalty}),
    "displacement: √2 → 1.4": (
        "displacement",
        2,
        {"displacement_bounds": changed_displacement(linear=1.4 / math.sqrt(2))},
    ),
    "displacement: cone bound × 0.999": (
        "displacement",
        2,
        {"displacement_bounds": changed_displacement(cone=0.999)},
    ),
    "displacement: single start": ("displacement", 2, {"starts": single_start}),
    "improper: sign of the margin": ("improper", 2, {"penalty": sign_of_the_margin}),
    "improper: sign in the derivative": (
        "improper",
        2,
        {"derivative": derivative_with_sign_swapped},
    ),
    "improper: sign of the limit": ("improper", 3, {"limit": limit_with_sign_swapped}),
    "contamination: ε/(1−ε) → ε": ("contamination", 2, {"generic": epsilon_for_odds}),
    "contamination: M_T ε² → M_T ε²/2": (
        "contamination",
        2,
        {"quadratic": lambda M, epsilon: M * epsilon**2 / 2},
    ),
    "numerics: naive form": ("numerics", 3, {"loss": naive_loss}),
    "numerics: missing gauge": ("numerics", 3, {"loss": without_gauge}),
    "canonical_links: 1/m_T × 0.999": (
        "canonical_links",
        3,
        {"lipschitz": lambda m_tangent: 0.999 / m_tangent},
    ),
    "canonical_links: 1/m_T → 1/(2m_T)": (
        "canonical_links",
        3,
        {"lipschitz": lambda m_tangent: 0.5 / m_tangent},
    ),
    "canonical_links: √2 → 1.41": ("canonical_links", 3, {"gradient": 1.41}),
    "canonical_links: √2 → 2": ("canonical_links", 3, {"gradient": 2.0}),
    "canonical_links: softmax in the place of the link": (
        "canonical_links",
        3,
        {"link": lambda F: jax.nn.softmax, "loss": softmax_composite},
    ),
}
