"""The order of the page: people's questions, and the tables and figures that answer them."""

from typing import NamedTuple


class Section(NamedTuple):
    """One question, and by kind and label what answers it."""

    name: str
    question: str
    items: tuple[str, ...]


SECTIONS = (
    Section("choose", "Which loss should I choose?", ("tab:decisions",)),
    Section("claims", "Do the paper's claims hold?", ("tab:claims",)),
    Section(
        "differences",
        "How large are the differences?",
        (
            "fig:forest-accuracy",
            "fig:forest-nll",
            "fig:critical-difference",
            "fig:supp-metric-heatmaps",
            "fig:supp-clean-ranks",
            "tab:significance",
        ),
    ),
    Section(
        "published",
        "Does this reproduce what was published?",
        ("fig:published", "tab:candidate-accuracy", "tab:comparison"),
    ),
    Section(
        "noise",
        "What does label noise do?",
        (
            "fig:noise-accuracy",
            "tab:digits-noise",
            "fig:reliability",
            "fig:supp-noise-nll-confidence",
            "fig:supp-noise-confusions",
        ),
    ),
    Section(
        "long-tail",
        "What if some classes are rare?",
        (
            "fig:longtail",
            "tab:longtail",
            "fig:early-stopping",
            "tab:early-stopping",
            "fig:supp-longtail-details",
        ),
    ),
    Section(
        "calibration",
        "Are the probabilities calibrated?",
        ("tab:calibration", "tab:calibration-errors", "fig:supp-calibration-gradients"),
    ),
    Section(
        "truth",
        "Which losses recover the true probabilities?",
        ("fig:regret-sizes", "fig:regret-heatmaps", "tab:regrets", "tab:displacement"),
    ),
    Section(
        "perturbations",
        "Are the models robust to perturbed inputs?",
        ("fig:natural-corruption", "fig:attacks", "tab:robustness"),
    ),
    Section(
        "parts",
        "Which parts and settings matter?",
        (
            "fig:ablations",
            "tab:ablations",
            "fig:lr-sensitivity",
            "tab:lr-sensitivity",
            "fig:supp-optimization",
        ),
    ),
    Section("links", "Is softmax the right link?", ("tab:links",)),
    Section(
        "theory",
        "Does the theory hold?",
        (
            "tab:theory-claims",
            "fig:hpg-curvature",
            "fig:apms-displacement",
            "fig:supp-theory-binary",
            "fig:supp-theory-spectrum-regret",
        ),
    ),
    Section("data", "On which data?", ("tab:datasets",)),
)
