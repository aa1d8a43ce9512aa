"""Theorem (apms), first part: the exact range of the smoothed margin and of its penalty.

    m_min = −τ log(e^{1/τ} + K − 2),   m_max = 1 − τ log(K − 1)
    ν softplus((κ − m_max)/ν) ≤ r(p, y) ≤ C_r = ν softplus((κ − m_min)/ν)

All four are attained at vertices, and stay finite in float32 where e^{1/τ} does not. The steps of
the proof, at fixed a = p_y, and those about slopes that the second part needs:

    a − τ log(e^{(1−a)/τ} + K − 2) ≤ m_τ(p, y) ≤ (Ka − 1)/(K − 1) − τ log(K − 1)
    ∇m_τ = e_y − q_{−y},    ‖∇m_τ‖ ≤ √2,    ‖∇E_η r‖ ≤ √2

Beyond the paper, for the sharper bounds of the second part: the penalty is convex in p, and
∇²r ⪯ 1/(2ν) + 1/(2τ).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.numpy.linalg import eigvalsh, norm

from pgeom.compilation import quick_jit
from pgeom.paper import displacement, margin
from pgeom.paper.displacement import Penalty
from proofs_numeric.claims import Cases, Claim, Family
from proofs_numeric.configurations import float64
from proofs_numeric.search import draws, max_abs, maximise, over, points

RANGE, PENALTY = "Eq. (margin-minimum)", "Eq. (penalty-bound)"
FIXED, SLOPE = "App. (apms, margin at fixed a)", "App. (apms, linear bound)"
CONVEX = "beyond the paper: the penalty is convex in p"
BEND = "beyond the paper: the curvature of the penalty is at most 1/(2ν) + 1/(2τ)"
SHARP_TAU = 0.005  # e^{1/τ} overflows float32
SHARES = (0.0, 0.3, 0.8, 1.0)  # a
ABOVE = 2.0  # added to margins, so that they are positive and a ratio says something


def penalties(K: int, **rows: tuple[float, float, float]) -> Cases:
    """Cases by τ, κ and ν."""
    named = {f"{name}, τ={row[0]}, κ={row[1]}, ν={row[2]}": row for name, row in rows.items()}
    return Cases(K, {name: Penalty(*map(float64, row)) for name, row in named.items()})


def measure(cases: Cases, penalty=margin.penalty, margin_range=margin.margin_range) -> dict:
    """Ascents on ±m and ±r, and the values at e₁ and e₂, for y = 1."""
    K = cases.K

    def one(constants, starts):
        def m(p):
            return margin.smooth_margin(p, jnp.array(0), tau=constants.tau)

        def r(p):
            return penalty(p, jnp.array(0), **constants._asdict())

        def extreme(choice, q):
            """Of ±m, ±r, or −⟨∇r(p) − ∇r(q), p − q⟩, positive somewhere unless r is convex."""

            def objective(p):
                value, slope = jax.value_and_grad(r)(p)
                return choice @ jnp.stack([m(p), value, -((slope - at_q) @ (p - q))])

            at_q = jax.grad(r)(q)
            return maximise(objective, starts).value

        centres = jnp.concatenate([starts[:4], starts[::2]])  # unused by the first four
        signed = [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 1.0, 0.0]]
        choices = jnp.array(signed + [[0.0, 0.0, 1.0]] * (len(centres) - 4))
        low_m, high_m, low_r, high_r, *bends = jax.vmap(extreme)(choices, centres)
        m_min, m_max = margin_range(K, tau=constants.tau)
        r_min, C_r = margin.penalty_range(K, **constants._asdict())
        return {
            # −m_min > 0, so that a ratio says something
            "-m_low": low_m, "m_high": high_m, "r_low": -low_r, "r_high": high_r,
            "bend": jnp.max(jnp.stack(bends)),
            "-m(e₂)": -m(jnp.eye(K)[1]), "m(e₁)": m(jnp.eye(K)[0]),
            "r(e₂)": r(jnp.eye(K)[1]), "r(e₁)": r(jnp.eye(K)[0]),
            "-m_min": -m_min, "m_max": m_max, "r_min": r_min, "C_r": C_r,
        }  # fmt: skip

    def everything(p, constants):
        total = jax.value_and_grad(lambda p: jnp.sum(penalty(p, labels, **constants._asdict())))
        ranges = margin.penalty_range(K, **constants._asdict())
        return *margin_range(K, tau=constants.tau), *ranges, *total(p)

    q = cases.map(one, np.concatenate([np.eye(K)[:4], draws(K, count=3, seed=7)]))
    with jax.enable_x64(False):
        p = jnp.asarray(points(K, count=2), jnp.float32)
        labels = jnp.zeros(len(p), jnp.int32)
        constants = Penalty(*(np.float32(x) for x in (SHARP_TAU, 0.2, 0.1)))
        computed = [np.ravel(x) for x in quick_jit(everything)(p, constants)]
    return q | {"broken": np.mean(~np.isfinite(np.concatenate(computed)))}


def least_margin(K, tau, a):
    """a − τ log(e^{(1−a)/τ} + K − 2), the least margin at p_y = a."""
    return a - (1 - a) - tau * np.log1p((K - 2) * np.exp(-(1 - a) / tau))


def least_growth(K, tau, a):
    """1 + e^{(1−a)/τ}/(e^{(1−a)/τ} + K − 2) > 0, the derivative of the least margin in a."""
    return 1 + 1 / (1 + (K - 2) * np.exp(-(1 - a) / tau))


def largest_margin(K, tau, a):
    """(Ka − 1)/(K − 1) − τ log(K − 1), the largest margin at p_y = a."""
    return (K * a - 1) / (K - 1) - tau * np.log(K - 1)


def measure_shares(cases: Cases) -> dict:
    """Ascents over the competitors of label K, of which a vertex and the centre attain."""
    K = cases.K

    def one(case, starts):
        tau, a = case

        def m(others, a):
            p = jnp.concatenate([(1 - a) * others, a[None]])
            return margin.smooth_margin(p, jnp.array(K - 1), tau=tau)

        def extreme(sign):
            return sign * maximise(lambda others: sign * m(others, a), starts).value

        low, high = over(extreme, jnp.array([-1.0, 1.0]))
        vertex, growth = jax.value_and_grad(m, argnums=1)(starts[1], a)
        ends = {"low": low, "high": high, "at_centre": m(starts[0], a), "at_vertex": vertex}
        return {name: ABOVE + x for name, x in ends.items()} | {"slope": growth}

    starts = [np.full((1, K - 1), 1 / (K - 1)), np.eye(K - 1)[:3]]
    starts += [draws(K - 1, count=2, seed=14)] if K > 2 else []
    tau, a = np.array(list(cases.values.values())).T
    return cases.map(one, np.concatenate(starts)) | {
        "K": K,
        "τ": tau,
        "a": a,
        "least": ABOVE + least_margin(K, tau, a),
        "largest": ABOVE + largest_margin(K, tau, a),
        "growth": least_growth(K, tau, a),
    }


def margin_gradient(p, y, tau):
    """e_y − q_{−y}, with the softmax q_{−y} of p/τ over the other classes."""
    mine = jnp.arange(p.shape[0]) == y
    return jnp.where(mine, 1.0, -jax.nn.softmax(jnp.where(mine, -jnp.inf, p / tau)))


def measure_slopes(cases: Cases, gradient=margin_gradient) -> dict:
    """The form of ∇m_τ for every label, ascents on norms, and λ_max(∇²r) at points."""
    K = cases.K
    two = np.zeros((2, K))
    two[0, :2], two[1, 1:3] = 0.5, 0.5

    def one(case, starts, points):
        def slope(p, y):
            return jax.grad(lambda p: margin.smooth_margin(p, y, tau=case.tau))(p)

        def risk_slope(p, eta):
            return norm(jax.grad(displacement.expected_penalty)(p, eta, case))

        def error(p, y):
            return max_abs(slope(p, y) - gradient(p, y, case.tau))

        def bend(p):
            r = lambda p: margin.penalty(p, jnp.array(0), **case._asdict())  # noqa: E731
            return eigvalsh(jax.hessian(r)(p))[-1]

        def steepness(p, of_margin):
            margins = norm(slope(p, jnp.array(0)))
            return jnp.where(of_margin, margins, risk_slope(p, starts[-1]))

        def steepest(of_margin):
            return maximise(lambda p: steepness(p, of_margin), starts).value

        of_margin, of_risk = over(steepest, jnp.array([True, False]))
        return {
            "error": over(error, starts, jnp.arange(K)).max(),
            "steepest": of_margin,
            "risk": of_risk,
            "corner": norm(slope(jnp.eye(K)[1], jnp.array(0))),
            "risk_corner": risk_slope(jnp.eye(K)[1], jnp.eye(K)[0]),
            "bend": over(bend, points).max(),
            "1/(2ν)": 1 / (2 * case.nu),
            "1/(2τ)": 1 / (2 * case.tau),
            "bound": 1 / (2 * case.nu) + 1 / (2 * case.tau),
            "√2": jnp.sqrt(2.0),
        }

    starts = np.concatenate([np.eye(K)[:3], draws(K, count=2, seed=15)])
    some = np.concatenate([points(K, count=1)[:2], draws(K, count=2, seed=16), two])
    return cases.map(one, starts, some)


def one_class_more(K, *, tau):
    return -1 - tau * jnp.log1p((K - 1) * jnp.exp(-1 / tau)), margin.margin_range(K, tau=tau)[1]


def naive_exponential(K, *, tau):
    return -tau * jnp.log(jnp.exp(1 / tau) + (K - 2)), margin.margin_range(K, tau=tau)[1]


RANGES = Family(
    # the experiments', a sharp one, a soft one (as soft as K = 100 has a positive margin)
    lambda K: penalties(K, first=(0.1, 0.2, 0.1), sharp=(0.02, -0.3, 0.5), soft=(0.2, 1.5, 0.05)),
    measure,
    (
        Claim("m_min ≤ m_τ", RANGE, "-m_low ≤ -m_min"),
        Claim("m_τ ≤ m_max", RANGE, "m_high ≤ m_max"),
        Claim("r_min ≤ r", PENALTY, "r_low ≥ r_min"),
        Claim("r ≤ C_r", PENALTY, "r_high ≤ C_r"),
        Claim("m_min is attained", RANGE, "-m(e₂) = -m_min", shortfall=1e-9),
        Claim("m_max is attained", RANGE, "m(e₁) = m_max", shortfall=1e-9),
        Claim("C_r is attained", PENALTY, "r(e₂) = C_r", shortfall=1e-9),
        Claim("r_min is attained", PENALTY, "r_min = r(e₁)", shortfall=1e-9),
        # the gradient has a size of the order of one, and its rounding is all that is allowed
        Claim("r is convex (∇r is monotone)", CONVEX, "bend ~ 1e-14"),
        Claim("finite in float32 at τ = 0.005", RANGE, "broken ~ 0", on="first"),
    ),
    how="ascents, and y = 1 at e₁ and e₂",
    false={
        "K − 2 → K − 1": {"margin_range": one_class_more},
        "K − 2 → K − 1 in C_r alone": {"C_r": 1.001},
        "naive exponential": {"margin_range": naive_exponential},
        "concave penalty": {
            "penalty": lambda p, y, **constants: -margin.penalty(p, y, **constants)
        },
    },
    classes=range(2, 1001),
)
FIXED_SHARE = Family(
    lambda K: Cases(
        K, {f"τ={tau}, a={a}": float64([tau, a]) for tau in (0.02, 0.1, 0.2) for a in SHARES}
    ),
    measure_shares,
    (
        Claim("m_τ at p_y = a: least", FIXED, "low ≥ least"),
        Claim("m_τ at p_y = a: largest", FIXED, "high ≤ largest"),
        Claim("m_τ at p_y = a: slope of the least", FIXED, "slope ≈ growth ± 1e-12"),
        Claim("m_τ at p_y = a: least, at a vertex", FIXED, "least = at_vertex", shortfall=1e-9),
        Claim(
            "m_τ at p_y = a: largest, at the centre", FIXED, "at_centre = largest", shortfall=1e-9
        ),
    ),
    how="ascents over the competitors",
    false={
        "K − 2 → K − 1": {"least": lambda q: ABOVE + least_margin(q["K"] + 1, q["τ"], q["a"])},
        "1 dropped from the slope": {"growth": lambda q: q["growth"] - 1},
        "(Ka − 1)/(K − 1) → a": {"largest": lambda q: q["largest"] + (1 - q["a"]) / (q["K"] - 1)},
    },
)
SLOPES = Family(
    lambda K: penalties(
        K,
        soft=(0.1, 0.2, 0.1),
        sharp=(0.02, 0.5, 0.3),
        certain=(0.2, 10.0, 0.05),
        # σ = 1 and one competitor; where one term of the curvature is all of it
        corner=(0.02, 10.0, 0.05),
        steep=(0.02, 0.0, 1e-6),
        wide=(0.02, 4e4, 1e3),
    ),
    measure_slopes,
    (
        Claim("∇m_τ = e_y − q_{−y}", SLOPE, "error ~ 1e-12", how="autodiff, each label"),
        Claim("‖∇m_τ‖ ≤ √2", SLOPE, "steepest ≤ √2"),
        Claim("‖∇E_η r‖ ≤ √2", SLOPE, "risk ≤ √2", how="ascents, one η"),
        Claim("‖∇m_τ‖ = √2 is attained", SLOPE, "corner = √2", "corner", how="p = e₂, y = 1"),
        Claim(
            "‖∇E_η r‖ = √2 is attained", SLOPE, "risk_corner = √2", "corner", how="p = e₂, η = e₁"
        ),
        Claim("∇²r ⪯ 1/(2ν) + 1/(2τ)", BEND, "bend ≤ bound", how="points, y = 1"),
        Claim("∇²r: 1/(2ν) is attained", BEND, "bend = bound", "steep", shortfall=1e-4),
        Claim("∇²r: 1/(2τ) is attained", BEND, "bend = bound", "wide", shortfall=1e-4, least=3),
    ),
    how="ascents",
    false={
        "q over every class": {
            "gradient": lambda p, y, tau: (
                (jnp.arange(p.shape[0]) == y).astype(p.dtype) - jax.nn.softmax(p / tau)
            )
        },
        "√2 → 1.41": {"√2": 1.41 / 2**0.5},
        "√2 → 1.42": {"√2": 1.42 / 2**0.5},
        "1/(2ν) dropped": {"bound": lambda q: q["1/(2τ)"]},
        "1/(2τ) dropped": {"bound": lambda q: q["1/(2ν)"]},
        "1/(2ν) → 1/ν": {"bound": lambda q: q["bound"] + q["1/(2ν)"]},
    },
)
FAMILIES = RANGES, FIXED_SHARE, SLOPES
