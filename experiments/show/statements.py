"""What every table and figure of the report shows, by kind and label."""

import numpy as np

from experiments.show import model_findings, noise_findings, regrets, tail_findings
from experiments.show.answer_page import candidates_and_ce, claims, failures
from experiments.show.evidence import Evidence
from experiments.show.item_files import Findings
from experiments.show.links import compare_links, summarise_links
from experiments.show.records import NOISIEST, Results
from experiments.show.words import join
from pgeom.messages import count


def datasets(results: Results) -> str:
    """How small the study is."""
    cells = results.runs.groupby(["dataset", "regime"]).ngroups
    return (
        f"Four small datasets, {cells} cells here, {count(results.seeds, 'seed')} each: a loss "
        f"that wins on these need not win elsewhere."
    )


def told_apart(evidence: Evidence) -> str | None:
    """How many pairs of losses the mean ranks separate."""
    texts = []
    for one in evidence.ranked:
        ranks, count = one.ranking.mean_ranks, len(one.labels)
        gaps = abs(ranks[:, None] - ranks)[np.triu_indices(count, 1)]
        apart = int((gaps > one.ranking.critical_difference).sum())
        texts.append(f"{apart} by {one.metric.label[:-2]}")
    if not texts:
        return None
    return (
        f"Of {len(gaps)} pairs of losses, mean ranks over {one.ranking.cells} cells tell apart "
        f"{join(texts)}; a bar joins losses that are not."
    )


def _from_evidence(sentence):
    return lambda results: sentence(results.evidence) if results.evidence else None


def links(results: Results) -> str | None:
    """Which way the comparisons of links went."""
    return None if results.links is None else summarise_links(compare_links(results.links))


FINDINGS: Findings = {
    "tab:decisions": _from_evidence(failures),
    "tab:claims": _from_evidence(claims),
    "fig:forest-accuracy": _from_evidence(candidates_and_ce),
    "fig:forest-nll": noise_findings.winners,
    "fig:critical-difference": _from_evidence(told_apart),
    "fig:supp-metric-heatmaps": noise_findings.heatmap,
    "fig:supp-clean-ranks": noise_findings.ranks,
    "fig:published": model_findings.agreement,
    "tab:comparison": model_findings.farthest,
    "tab:datasets": datasets,
    "tab:candidate-accuracy": noise_findings.against_reference,
    "fig:noise-accuracy": noise_findings.symmetric_noise,
    "tab:digits-noise": noise_findings.noisiest_table,
    "fig:reliability": noise_findings.calibration_under_noise,
    "fig:supp-noise-nll-confidence": noise_findings.confidence,
    "fig:supp-noise-confusions": noise_findings.confusions,
    "tab:longtail": tail_findings.long_tail,
    "fig:longtail": tail_findings.near_chance,
    "fig:early-stopping": tail_findings.stopping,
    "tab:early-stopping": tail_findings.kept_epochs,
    "fig:supp-longtail-details": tail_findings.rare_classes,
    "tab:calibration": model_findings.temperature,
    "tab:calibration-errors": model_findings.calibration_errors,
    "fig:supp-calibration-gradients": model_findings.gradients,
    "fig:regret-sizes": lambda results: regrets.more_data(results.regrets),
    "fig:regret-heatmaps": lambda results: regrets.noisy_labels(results.regrets, NOISIEST),
    "tab:regrets": lambda results: regrets.best_by_score(results.regrets),
    "tab:displacement": lambda results: regrets.least_distance(results.regrets),
    "fig:natural-corruption": model_findings.corruption,
    "fig:attacks": model_findings.attacks,
    "tab:robustness": model_findings.robustness_table,
    "fig:ablations": model_findings.ablations,
    "tab:links": links,
    "tab:ablations": model_findings.best_variants,
    "fig:lr-sensitivity": model_findings.rates,
    "tab:lr-sensitivity": model_findings.inner_rates,
    "fig:supp-optimization": model_findings.optimisation,
    "tab:significance": model_findings.significance,
}
