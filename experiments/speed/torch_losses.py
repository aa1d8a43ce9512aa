"""The thirteen losses as one would write them in PyTorch, of the catalogue's constants.

`loss(z[..., B, K], y[..., B], context) -> [..., B]`; a leading axis is a stack of runs.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F


class Context(NamedTuple):
    """What a loss may know."""

    capm: torch.Tensor  # [..., K, K], CAPM's matrix
    ridges: tuple[torch.Tensor, ...]  # HPG's λ, a, ρ, w, b and scale
    margin: dict[str, float]  # APMS's τ, κ and ν
    beta: float  # APMS's coefficient at this step


def _log_p(z, y):
    """log p and log p_y."""
    log_p = z.log_softmax(-1)
    return log_p, log_p.gather(-1, y[..., None])[..., 0]


def cross_entropy(z, y, context):
    return -_log_p(z, y)[1]


def label_smoothing(z, y, context):
    log_p, log_py = _log_p(z, y)
    return -0.9 * log_py - 0.1 * log_p.mean(-1)


def _to_vertex(z, y):
    """p and e_y − p."""
    p = z.softmax(-1)
    return p, F.one_hot(y, z.shape[-1]).to(p.dtype) - p


def brier(z, y, context):
    return _to_vertex(z, y)[1].square().sum(-1)


def mean_absolute_error(z, y, context):
    return 2 * (1 - _log_p(z, y)[1].exp())


def focal(z, y, context):
    log_py = _log_p(z, y)[1]
    return -((1 - log_py.exp()) ** 2) * log_py


def generalized_cross_entropy(z, y, context):
    return (1 - (0.7 * _log_p(z, y)[1]).exp()) / 0.7


def symmetric_cross_entropy(z, y, context):
    log_py = _log_p(z, y)[1]
    return -0.1 * log_py + 4 * (1 - log_py.exp())


def active_passive(z, y, context):
    log_p, log_py = _log_p(z, y)
    return log_py / log_p.sum(-1) + 1 - log_py.exp()


def poly1(z, y, context):
    log_py = _log_p(z, y)[1]
    return -log_py + 1 - log_py.exp()


def bi_tempered(z, y, context, t1=0.8, t2=1.2):
    """With the fixed-point iteration of its authors for the normaliser."""

    def exp_t(x):
        return torch.relu(1 + (1 - t2) * x) ** (1 / (1 - t2))

    with torch.no_grad():
        top = z.max(-1, keepdim=True).values
        scaled = z - top
        for _ in range(5):
            total = exp_t(scaled).sum(-1, keepdim=True)
            scaled = (z - top) * total ** (1 - t2)
        total = exp_t(scaled).sum(-1, keepdim=True)
        normaliser = (total ** (t2 - 1) - 1) / (t2 - 1) + top
    p = exp_t(z - normaliser)
    # a Newton step, of which the derivative is that of the exact normaliser
    escort = (p**t2).sum(-1, keepdim=True).detach()
    p = exp_t(z - normaliser - (p.sum(-1, keepdim=True) - 1) / escort)
    p_y = p.gather(-1, y[..., None])[..., 0]
    return (1 - p_y ** (1 - t1)) / (1 - t1) - (1 - (p ** (2 - t1)).sum(-1)) / (2 - t1)


def capm(z, y, context):
    d = _to_vertex(z, y)[1]
    return 0.5 * (torch.matmul(d, context.capm) * d).sum(-1)


def _hyperbolic(p, d, ridges):
    """D_F(e_y, p) of HPG's generator by its definition."""
    lam, a, rho, w, b, scale = ridges
    v, h = (p @ w.T - b) / rho, d @ w.T / rho

    def log_cosh(x):
        return torch.logaddexp(x, -x)

    values = a * rho**2 * (log_cosh(v + h) - log_cosh(v) - h * v.tanh())
    return scale * (lam / 2 * d.square().sum(-1) + values.sum(-1))


def hpg(z, y, context):
    return _hyperbolic(*_to_vertex(z, y), context.ridges)


def apms(z, y, context):
    p, d = _to_vertex(z, y)
    tau, kappa, nu = (context.margin[name] for name in ("tau", "kappa", "nu"))
    mine = F.one_hot(y, z.shape[-1]).bool()
    rivals = torch.where(mine, -torch.inf, p / tau).logsumexp(-1)
    margin = p.gather(-1, y[..., None])[..., 0] - tau * rivals
    penalty = nu * F.softplus((kappa - margin) / nu)
    return _hyperbolic(p, d, context.ridges) + context.beta * penalty


LOSSES = {
    "ce": cross_entropy,
    "label_smoothing": label_smoothing,
    "brier": brier,
    "mae": mean_absolute_error,
    "focal": focal,
    "gce": generalized_cross_entropy,
    "sce": symmetric_cross_entropy,
    "apl": active_passive,
    "poly1": poly1,
    "btl": bi_tempered,
    "capm": capm,
    "hpg": hpg,
    "apms": apms,
}
