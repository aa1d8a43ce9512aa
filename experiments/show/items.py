"""The tables and figures of the pages, question by question, and the sentences above them.

A caption says what is drawn. A sentence says what was found: it is computed from contrasts with
their intervals, and is there only where these records support it.
"""

from collections.abc import Callable, Sequence
from datetime import date

import pandas as pd

from experiments.engine import measures
from experiments.show import claims, decisions, published, regrets, summary, theory
from experiments.show.contrasts import (
    CANDIDATES,
    REFERENCE,
    effect,
    effects_grid,
    powered,
    ranks_grid,
    select_effects,
)
from experiments.show.controls import control_grids
from experiments.show.figures import compared, studies
from experiments.show.links import compare_links, links_grid
from experiments.show.metrics import CALIBRATION_ERRORS, METRICS, Samples, headline, select
from experiments.show.page import Made
from experiments.show.records import Evidence, Results
from experiments.show.summary import convergence_notes, edge_notes, performance, version_notes
from experiments.show.tables import Grid, means_grid
from pgeom.data import sources
from pgeom.evaluation.significance import BETTER
from pgeom.losses.catalogue import LOSSES
from pgeom.messages import count

NOISIEST = "symmetric-40"
EXAMPLES = 2  # of contradicted claims in one sentence; the table has all


def statements(evidence: Evidence) -> list[str]:
    """What the numbers support, in at most three sentences."""
    said = (choices(evidence), against_control(evidence), reversed_claims(evidence))
    return [text for text in said if text]


def choices(evidence: Evidence) -> str | None:
    """The situations with a loss that is shown to be better than cross-entropy, if any."""
    rows = evidence.decisions.to_dict("records")
    enough = [row for row in rows if row["evidence"] == decisions.POWERED]
    better = [row for row in enough if row["verdict"] == BETTER]
    if better:
        texts = (
            f"{row['situation'].lower()}: {row['label']} ({effect(row)} "
            f"{METRICS[row['metric']].words})"
            for row in better
        )
        return (
            "Shown to be better than CE, on seeds without a part in the choice – "
            f"{'; '.join(texts)}."
        )
    if enough:
        return "In no situation with enough seeds to tell is a loss shown to be better than CE."
    if not rows:
        return None
    least = count(min(row["seeds"] for row in rows), "seed")
    return (
        f"With {least} to estimate from, no comparison of so many losses can be significant: "
        "everything here describes these runs."
    )


def against_control(evidence: Evidence) -> str | None:
    """Whether a candidate is anywhere shown to be better than Brier, its geometry-free control."""
    metric = evidence.samples.headline
    rows = select_effects(evidence.effects, "brier", metric.name)
    rows = rows[rows["loss"].isin(CANDIDATES) & rows["difference"].notna()]
    if rows.empty or not all(map(powered, rows["attainable"], _families(evidence, rows))):
        return None
    better = rows[rows["verdict"] == BETTER]
    shown = better if len(better) else rows
    row = shown.loc[metric.gain(shown["difference"]).idxmax()].to_dict()
    where = f"{effect(row)} ({row['label']} on {row['dataset']}, {row['regime']})"
    who = join(list(dict.fromkeys(shown["label"])))
    if len(better):
        return (
            f"Shown to reach a higher {metric.words} than Brier, the control without their "
            f"geometry, in some cell: {who}, at most by {where}."
        )
    cells = count(rows.groupby(["dataset", "regime"]).ngroups, "cell")
    return (
        f"None of {who} is shown to reach a higher {metric.words} than Brier, the control without "
        f"their geometry, in any of {cells}: the largest difference is {where}."
    )


def _families(evidence: Evidence, rows: pd.DataFrame) -> pd.Series:
    """How many losses were compared in the place of each row."""
    family = select_effects(evidence.effects, "brier", rows["metric"].iloc[0])
    return family.groupby(["dataset", "regime"])["loss"].transform("count")[rows.index]


def reversed_claims(evidence: Evidence) -> str | None:
    """The claims of the paper that are contradicted."""
    if evidence.claims.empty:
        return None
    rows = evidence.claims[evidence.claims["label"] == claims.REVERSED].to_dict("records")
    texts = [f"“{row['claim']}” ({row['deciding']}: {effect(row)})" for row in rows]
    more = ", among others" if len(texts) > EXAMPLES else ""
    return f"Contradicted by these runs{more}: {join(texts[:EXAMPLES])}." if texts else None


def join(texts: Sequence[str]) -> str:
    """Texts as an English list."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def dataset_grid(results: Results) -> list[Grid]:
    """The datasets of the paper and the regimes they are studied under."""
    rows = [
        [
            dataset.name,
            f"{len(dataset.labels):,}",
            str(dataset.num_classes),
            ", ".join(map(str, dataset.regimes)),
        ]
        for dataset in map(sources.load, dict.fromkeys(results.runs["dataset"]))
    ]
    header = ["Dataset", "Samples", "Classes", "Training regimes"]
    notes = ["stratified 60/20/20 splits; long-tail-30 thins the training part alone, to 30:1"]
    return [Grid("datasets and regimes", header, rows, set(), notes)]


def candidate_accuracy(runs: pd.DataFrame) -> list[Grid]:
    """Accuracy of cross-entropy and the candidates in every cell; test parts are balanced."""
    return means_grids(Samples(runs[runs["loss"].isin((REFERENCE, *CANDIDATES))]))[:1]


def ranked_performance(frame: pd.DataFrame, title: str, regime: str) -> list[Grid]:
    """The metrics of a regime, the loss of the highest mean first, as in the paper."""
    frame = frame[frame["regime"] == regime]
    means = frame[headline(frame).name].astype(float).groupby(frame["loss"], observed=True).mean()
    order = list(means.sort_values(ascending=False, kind="stable").index)
    frame = frame.assign(loss=pd.Categorical(frame["loss"], order, ordered=True))
    return [performance(frame, title, regime)]


def calibration_errors(results: Results) -> list[Grid]:
    """By every measure, of clean digits and of the noisiest."""
    digits = results.noise["digits"]
    return [
        performance(digits, f"digits, {regime}: calibration errors", regime, CALIBRATION_ERRORS)
        for regime in ("clean", NOISIEST)
    ]


def temperature_grid(results: Results) -> list[Grid]:
    """The paper's fit is the plain one; ours has a prior."""
    fields = ("nll", "plain_calibrated_nll", "calibrated_nll")
    fields += ("ece", "plain_calibrated_ece", "calibrated_ece")
    title = "digits, clean: temperature scaling"
    return [performance(results.clean, title, "clean", select(*fields))]


def robustness_grids(frame: pd.DataFrame) -> list[Grid]:
    """One table per kind of perturbation."""
    name, natural = frame["dataset"].iloc[0], measures.NATURAL
    if headline(frame).name != "accuracy":  # of the clean inputs alone: nothing else is recorded
        natural = {"accuracy": "Clean ↑", "balanced_accuracy": "Clean, balanced ↑"} | natural
    kinds = {"corruption": natural, "FGSM": measures.FGSM, "PGD": measures.PGD}
    return [
        performance(frame, f"{name}, clean models: accuracy under {kind}", "clean", columns)
        for kind, columns in (kinds | {"APGD": measures.APGD}).items()
    ]


def ablation_grids(frame: pd.DataFrame, families: studies.Families) -> list[Grid]:
    """One table per family of variants."""
    metric = headline(frame).name
    return [
        summary.crossed(frame, variants, f"ablation: {family}", metric)
        for family, variants in families.items()
    ]


def link_grids(runs: pd.DataFrame | None) -> list[Grid]:
    """Canonical links against softmax, where that was run."""
    if runs is None:
        return []
    return [links_grid(compare_links(runs)).with_notes(convergence_notes(runs))]


def against(evidence: Evidence, reference: str) -> list[Grid]:
    """Every loss against a reference, one table per metric."""
    grids = []
    for metric in evidence.samples.metrics:
        part = select_effects(evidence.effects, reference, metric.name)
        title = f"{metric.label}: difference from {LOSSES[reference].label}"
        grids += [effects_grid(part, title, ("dataset", "regime"))] if len(part) else []
    return grids


def means_grids(samples: Samples) -> list[Grid]:
    """Mean ± sample sd over seeds: losses down, places across, one table per metric."""
    places, grids = {place: str(place) for place in samples.places}, []
    for metric in samples.metrics:

        def values(loss, place, name=metric.name):
            known = loss in samples.losses(place)
            return samples.compared(place, [loss], name)[0] if known else ()

        title, notes = f"{metric.label}: mean ± sample sd", ["best of each column marked"]
        way = {"notes": notes, "lower": not metric.higher_is_better}
        grids.append(means_grid(title, samples.labels, places, values, **way))
    return grids


def of_evidence(evidence: Evidence) -> dict[str, Callable[[], Made]]:
    """The items that compare losses, by name."""
    samples, effects = evidence.samples, evidence.effects
    rows = evidence.decisions.to_dict("records")
    chosen = {row["situation"]: row["label"] for row in rows}
    first = samples.headline.name

    return {
        "fig:situations": lambda: compared.verdicts(evidence.judged, "situation", chosen),
        "tab:decisions": lambda: [decisions.decision_grid(evidence.decisions)],
        "tab:claims": lambda: [claims.claims_grid(evidence.claims)],
        "tab:controls": lambda: control_grids(evidence.controls, evidence.control_runs),
        "fig:critical-difference": lambda: compared.critical_difference(evidence.ranked),
        "tab:ranks": lambda: [ranks_grid(evidence.ranked)],
        "fig:forest-accuracy": lambda: compared.forest(effects, "ce", first),
        "fig:forest-nll": lambda: compared.forest(effects, "ce", "nll"),
        "fig:forest-brier-calibrated-nll": lambda: compared.forest(
            effects, "brier", "calibrated_nll"
        ),
        "tab:against-ce": lambda: against(evidence, "ce"),
        "tab:against-brier": lambda: against(evidence, "brier"),
        "tab:means": lambda: means_grids(samples),
    }


def cells_of(evidence: Evidence) -> pd.DataFrame:
    """The comparisons with cross-entropy in the headline metric, with the cell of each."""
    part = select_effects(evidence.effects, REFERENCE, evidence.samples.headline.name)
    return part.assign(cell=part["dataset"] + ", " + part["regime"])


def of_results(results: Results) -> dict[str, Callable[[], Made]]:
    """The items of the report, by name."""
    runs, legend, evidence = results.runs, results.legend, results.evidence
    digits, probed, tail = results.noise["digits"], results.robustness, results.early_stopping
    ways = summary.ways_to_stop(results.longtail)
    first = dict(list(ways.items())[:1])
    chance = 1 / len(results.tail_counts)
    cells = published.compare(published.load_published(), runs)
    proofs = results.proofs
    return of_evidence(evidence) | {
        "fig:supp-metric-heatmaps": lambda: compared.verdicts(cells_of(evidence), "cell", {}),
        "fig:supp-clean-ranks": lambda: compared.clean_scatter(results.clean, legend),
        "fig:published": lambda: compared.published(cells),
        "tab:candidate-accuracy": lambda: candidate_accuracy(runs),
        "tab:comparison": lambda: [published.counts_grid(cells), published.cells_grid(cells)],
        "fig:noise-accuracy": lambda: studies.noise_curves(digits, legend, METRICS["accuracy"]),
        "tab:digits-noise": lambda: ranked_performance(digits, f"digits, {NOISIEST}", NOISIEST),
        "fig:reliability": lambda: studies.reliability(results.noisiest, legend),
        "fig:supp-noise-nll-confidence": lambda: studies.noise_curves(
            digits, legend, METRICS["nll"]
        ),
        "fig:longtail": lambda: studies.longtail(first, legend, chance),
        "tab:longtail": lambda: ranked_performance(tail, "30:1 long tail", "long-tail-30"),
        "fig:early-stopping": lambda: studies.longtail(ways, legend, chance),
        "tab:early-stopping": lambda: summary.stopping_grids(results.longtail),
        "fig:supp-longtail-details": lambda: studies.longtail_details(
            results.tail, results.tail_counts, legend
        ),
        "tab:calibration": lambda: temperature_grid(results),
        "tab:calibration-errors": lambda: calibration_errors(results),
        "fig:supp-calibration-gradients": lambda: studies.calibration(
            results.clean, legend, probed
        ),
        "fig:regret-sizes": lambda: studies.regret_curves(results.regrets, results.regret_legend),
        "tab:regrets": lambda: regrets.grids(results.regrets),
        "fig:natural-corruption": lambda: studies.natural_corruption(
            probed, legend, measures.NATURAL
        ),
        "fig:attacks": lambda: studies.attacks(probed, legend, measures.RADII),
        "tab:robustness": lambda: robustness_grids(probed),
        "fig:ablations": lambda: studies.ablations(results.ablation, results.families),
        "tab:ablations": lambda: ablation_grids(results.ablation, results.families),
        "fig:lr-sensitivity": lambda: studies.lr_sensitivity(results.rate_counts),
        "tab:lr-sensitivity": lambda: [summary.selection_grid(results.rate_counts, "digits")],
        "fig:supp-optimization": lambda: studies.optimization(
            results.clean, results.runtime, legend
        ),
        "tab:links": lambda: link_grids(results.links),
        "tab:theory-claims": lambda: [theory.claims_grid(proofs)] if proofs else [],
        **{
            f"fig:{label}": lambda label=label: results.pictures.get(label)
            for label in theory.CHECKED
        },
        "tab:datasets": lambda: dataset_grid(results),
    }


def rules(evidence: Evidence) -> list[str]:
    """How verdicts are reached, and what the results do not cover."""
    samples = evidence.samples
    margins = ", ".join(f"±{one.margin:g} {one.title}" for one in samples.metrics)
    datasets = count(len({place.dataset for place in samples.places}), "dataset")
    noise = ", synthetic noise" if any(place.is_noisy for place in samples.places) else ""
    ends = [runs["at_end"] for runs in evidence.control_runs.values() if "at_end" in runs]
    return [
        "Losses share data, initial weights and batches with each seed, so that differences are "
        "paired. Intervals are 95% BCa bootstrap intervals of the mean difference.",
        "Equivalent: two one-sided t-tests at 5% place the mean difference within the margin, "
        f"stated before any comparison: {margins}. It comes first, and is not corrected for the "
        "number of comparisons.",
        "Better and worse: the interval excludes zero, and the exact Wilcoxon test, "
        "Holm-corrected over the losses of one cell, metric and reference, has p ≤ .05.",
        "Undetermined: neither.",
        f"{datasets}, one model{noise}: nothing here is about others.",
        *convergence_notes(samples.runs),
        *(note for end in ends for note in edge_notes(int(end.sum()), len(end))),
        *version_notes(samples.runs),
    ]


PAPER = (
    "Structured Proper Loss Geometries for Multiclass Classification: Theory and Controlled "
    "Empirical Evaluation"
)
AUTHOR = "Soumyadip Sarkar"
BIBTEX = """@unpublished{structured-proper-losses,
  title  = {%s},
  author = {Sarkar, Soumyadip},
  note   = {Manuscript}
}

@software{pgeom,
  title   = {pgeom: structured proper loss geometries for multiclass classification, in JAX},
  author  = {{The pgeom developers}},
  version = {%s},
  url     = {https://github.com/pgeom/pgeom}
}
"""


def bibtex(runs: pd.DataFrame) -> str:
    """How to cite the paper, and the version that made the latest runs."""
    return BIBTEX % (PAPER, runs["versions"].iloc[-1]["pgeom"])


def facts(runs: pd.DataFrame, given: str, took: str) -> dict[str, str]:
    """What a reader needs to judge the numbers, or to make them again.

    Args:
      runs: of the protocol.
      given: the command.
      took: how many runs it trained, and how long that took.
    """
    seeds, made = sorted(runs["seed"].unique()), pd.DataFrame(list(runs["versions"]))
    versions = (f"{name} {' and '.join(sorted(set(made[name])))}" for name in made)
    return {
        "Command": given,
        "Took": took,
        "Paper": f"{AUTHOR}: {PAPER}",
        "Seeds": f"{len(seeds)}: {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0]),
        "Runs": f"{len(runs):,} of the protocol",
        "Written": date.today().isoformat(),
        "Versions": ", ".join(versions),
        "Hardware": studies.hardware(runs),
    }
