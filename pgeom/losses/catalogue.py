"""The losses of the experiments, with every constant of the protocol.

The paper states none of the constants marked ◇; they were fitted to its published tables.

>>> HPG["ridges"], MARGIN["kappa"]
(4, 0.2)
>>> import jax.numpy as jnp
>>> from pgeom.types import ClassStats
>>> stats = ClassStats(counts=jnp.array([5.0, 5.0]), centroids=jnp.array([[0.0], [1.0]]))
>>> loss = LOSSES["gce"].build(stats)
>>> loss(jnp.zeros(2), jnp.array(0))
Array(0.54918, dtype=float32)
"""

from pgeom.deferred import Deferred
from pgeom.losses.spec import LossSpec, from_counts, from_logits

MEAN_CURVATURE = 2.0  # ◇ the common target of CAPM and HPG, that of the Brier score

CAPM = {  # ◇
    "lam": 1.0,
    "gamma": 1.0,
    "delta": 0.2,
    "low_rank": True,
    "mean_curvature": MEAN_CURVATURE,
}
HPG = {"ridges": 4, "mean_curvature": MEAN_CURVATURE}  # ◇
MARGIN = {"tau": 0.1, "kappa": 0.2, "nu": 0.1}  # ◇ of APMS


likelihood, robust = Deferred("pgeom.losses.likelihood"), Deferred("pgeom.losses.noise_robust")
structured = Deferred("pgeom.losses.structured")


def _hpg(stats, **constants):
    return structured.hpg_generator(stats.counts.shape[0], **constants)


LIKELIHOOD, ROBUST, GENERATOR = "Likelihood", "Noise-robust", "Generator-based"
PRIOR = "Prior-adjusted"

_GENERAL = (
    LossSpec(
        "ce",
        "CE",
        LIKELIHOOD,
        from_logits(likelihood.cross_entropy),
        proper=True,
    ),
    LossSpec(
        "label_smoothing",
        "Label smoothing",
        LIKELIHOOD,
        from_logits(likelihood.label_smoothing),
        {"epsilon": 0.1},
    ),
    LossSpec(
        "brier",
        "Brier",
        GENERATOR,
        from_logits(likelihood.brier),
        proper=True,
        generator=structured.brier_generator,
    ),
    LossSpec(
        "mae",
        "MAE",
        ROBUST,
        from_logits(robust.mean_absolute_error),
        {"scale": 2.0},  # ◇
    ),
    LossSpec(
        "focal",
        "Focal",
        LIKELIHOOD,
        from_logits(likelihood.focal),
        {"gamma": 2.0},  # ◇
    ),
    LossSpec(
        "gce",
        "GCE",
        ROBUST,
        from_logits(robust.generalized_cross_entropy),
        {"q": 0.7},  # ◇
    ),
    LossSpec(
        "sce",
        "SCE",
        ROBUST,
        from_logits(robust.symmetric_cross_entropy),
        {"alpha": 0.1, "beta": 1.0, "A": -4.0},  # ◇
    ),
    LossSpec(
        "apl",
        "APL",
        ROBUST,
        from_logits(robust.active_passive),
        {"alpha": 1.0, "beta": 1.0},  # ◇
    ),
    LossSpec(
        "poly1",
        "Poly-1",
        LIKELIHOOD,
        from_logits(likelihood.poly1),
        {"epsilon": 1.0},  # ◇
    ),
    LossSpec(
        "btl",
        "BTL",
        ROBUST,
        from_logits(robust.bi_tempered),
        {"t1": 0.8, "t2": 1.2},  # ◇
    ),
    LossSpec(
        "capm",
        "CAPM",
        GENERATOR,
        constants=CAPM,
        studied=True,
        proper=True,
        generator=structured.capm_generator,
    ),
    LossSpec(
        "hpg",
        "HPG",
        GENERATOR,
        constants=HPG,
        studied=True,
        proper=True,
        generator=_hpg,
    ),
    LossSpec(
        "apms",
        "APMS",
        GENERATOR,
        structured.apms,
        HPG | MARGIN | {"beta0": 0.2, "power": 1.0},  # ◇
        studied=True,
        proper=True,  # its penalty fades
        annealed=True,
    ),
)

_LONG_TAIL = (
    LossSpec(
        "cb_ce",
        "CB-CE",
        PRIOR,
        from_counts(likelihood.class_balanced_cross_entropy),
        {"beta": 0.99},  # ◇
    ),
    LossSpec(
        "balanced_softmax",
        "Balanced Softmax",
        PRIOR,
        from_counts(likelihood.balanced_softmax),
    ),
    LossSpec(
        "logit_adjustment",
        "Logit adjustment",
        PRIOR,
        from_counts(likelihood.logit_adjustment),
        {"tau": 1.0},
    ),
    LossSpec(
        "ldam",
        "LDAM",
        PRIOR,
        from_counts(likelihood.ldam),
        {"max_margin": 0.5, "scale": 8.0},  # ◇ the scale
    ),
)

GENERAL: dict[str, LossSpec] = {spec.name: spec for spec in _GENERAL}
LOSSES: dict[str, LossSpec] = GENERAL | {spec.name: spec for spec in _LONG_TAIL}
# What users may expect the losses to be called: as in `pgeom.losses`, or elsewhere.
SYNONYMS = {
    "cross_entropy": "ce",
    "softmax_cross_entropy": "ce",
    "categorical_crossentropy": "ce",
    "log_loss": "ce",
    "nll": "ce",
    "smoothing": "label_smoothing",
    "squared": "brier",
    "quadratic": "brier",
    "mse": "brier",
    "mean_absolute_error": "mae",
    "absolute": "mae",
    "focal_loss": "focal",
    "generalized_cross_entropy": "gce",
    "generalised_cross_entropy": "gce",
    "symmetric_cross_entropy": "sce",
    "active_passive": "apl",
    "poly_loss": "poly1",
    "bi_tempered": "btl",
    "tempered": "btl",
    "class_balanced_cross_entropy": "cb_ce",
    "class_balanced": "cb_ce",
    "weighted_cross_entropy": "cb_ce",
    "la": "logit_adjustment",
}
