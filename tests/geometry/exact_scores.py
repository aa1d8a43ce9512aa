"""Scores in fifty digits, from the definition, and how large the terms are that they consist of."""

from functools import cache
from typing import NamedTuple

import numpy as np

from tests.geometry.reference import Reference, dot, exact, mp, times


@cache
def softmax(logits: tuple[float, ...]) -> list:
    """The probabilities `[K]` of logits given as floats."""
    powers = [mp.exp(z) for z in exact(logits)]
    return [x / mp.fsum(powers) for x in powers]


class Answer(NamedTuple):
    """The score of one example and its logit gradient, rounded to float64.

    Attributes:
      value: Σ_y η_y D_F(e_y, p).
      value_terms: the sum of the absolute values of the terms of its definition.
      gradient: in the logits, `[K]`.
      gradient_terms: Σ_j p_j Σ_k |H_jk|(p_k + η_k), term by term of H.
      competitors: 1 − p_k at the largest η_k.
    """

    value: float
    value_terms: float
    gradient: np.ndarray
    gradient_terms: float
    competitors: float


def answers(F: Reference, logits, targets) -> list[Answer]:
    """The expected scores Σ_y η_y D_F(e_y, p) of p = softmax(logits) and targets η `[n, K]`.

    The gradient in the logits is −J H (η − p), with J = diag(p) − ppᵀ and H the Hessian at p. Each
    η must sum to one exactly.
    """
    p = softmax(tuple(logits))
    vertices = [F.value(e) for e in exact(np.eye(len(p)))]
    here, slope, hessian, terms = F.value(p), F.gradient(p), F.hessian(p), F.terms(p)
    actual = []
    for eta in exact(targets):
        d = [q_k - p_k for q_k, p_k in zip(eta, p, strict=True)]
        reach = [q_k + p_k for q_k, p_k in zip(eta, p, strict=True)]
        value = dot(eta, vertices) - here - dot(slope, d)
        size = abs(F.value(eta)) + abs(here) + dot([abs(g) for g in slope], reach)
        if max(eta) < 1:  # an expectation, D_F(η, p) + Σ η_y F(e_y) − F(η)
            size += dot(eta, [abs(v) for v in vertices]) + abs(F.value(eta))
        g = times(hessian, d)
        mean = dot(p, g)
        gradient = [-p_k * (g_k - mean) for p_k, g_k in zip(p, g, strict=True)]
        actual.append(
            Answer(
                float(value),
                float(size),
                np.array(gradient, np.float64),
                float(dot(p, times(terms, reach))),
                float(1 - p[eta.index(max(eta))]),
            )
        )
    return actual
