"""The tables of the speed study."""

import numpy as np
import pandas as pd

from experiments.show.tables import Grid
from experiments.speed.laps import TRIAL
from experiments.speed.workshop import CONTENDERS, EAGER, OURS, spread

AGREEMENT = 0.03  # in mean test NLL


def throughput(rows: pd.DataFrame) -> Grid:
    """Training alone, compile apart: medians over the regimes, which are the repeats."""
    ours = rows[rows["contender"] == OURS].set_index("regime")
    lines = []
    for contender in (name for name in CONTENDERS if name in set(rows["contender"])):
        own = rows[rows["contender"] == contender].set_index("regime")
        rate, least, most = spread(own["runs_per_second"])
        faster, low, high = spread((ours["runs_per_second"] / own["runs_per_second"]).dropna())
        share = np.median(own["gflops"] / own["limit"])
        compiling = own["compiling"].tolist()
        lines.append(
            [
                contender,
                f"{rate:.2f} ({least:.2f}–{most:.2f})",
                "1" if contender == OURS else f"{faster:.2f} ({low:.2f}–{high:.2f})",
                f"{np.median(own['gflops']):.1f}",
                f"{100 * share:.0f}%",
                f"{compiling[0]:.1f}" if compiling[0] else "–",
                f"{np.median(compiling[1:]):.1f}" if compiling[0] and compiling[1:] else "–",
                f"{own['nll'].mean():.3f}",
            ]
        )
    header = ["Way", "Runs per second ↑", "pgeom is faster by", "GFLOP/s ↑", "Of the limit ↑"]
    header += ["Compile, cold (s)", "Warm (s)", "Test NLL"]
    title = "training throughput, every epoch trained"
    return Grid(title, header, lines, set(), _throughput_notes(rows))


def _throughput_notes(rows: pd.DataFrame) -> list[str]:
    laps, trials = rows[rows["contender"] != TRIAL], rows[rows["contender"] == TRIAL]
    rate, least, most = spread(laps["limit"])
    return [
        "median over regimes, run in turn, with the range; ratios are taken lap by lap; what "
        "compiles for a minute has one lap",
        f"{laps['machine'].iloc[0]}; limit: the same matrix products alone, {rate:.0f} GFLOP/s "
        f"({least:.0f}–{most:.0f})",
        "PyTorch: one single-threaded process per core, AdamW with fused=True, gradients clipped "
        f"together, validation in inference mode; {_describe_trials(trials)}",
        describe_agreement(laps),
    ]


def _describe_trials(trials: pd.DataFrame) -> str:
    """What torch.compile made of it."""
    if "error" in trials and trials["error"].notna().any():
        return f"torch.compile failed: {trials['error'].dropna().iloc[0]}"
    tried = (f"{row['regime']} {row['ratio']:.2f}" for row in trials.to_dict("records"))
    seconds = trials["compiling"].sum()
    return (
        f"torch.compile was tried, and trains if it is faster: times the speed of PyTorch without "
        f"it: {', '.join(tried)}; all that took {seconds:.0f} s to compile"
    )


def describe_agreement(rows: pd.DataFrame) -> str:
    """Whether all contenders do the same job, in words."""
    verdict = "agree" if agree(rows) else "DO NOT agree"
    return f"mean test NLLs {verdict} within {AGREEMENT}: they span {_span(rows):.3f}"


def agree(rows: pd.DataFrame) -> bool:
    """Whether all contenders do the same job, as far as its results can tell."""
    return _span(rows) <= AGREEMENT


def _span(rows: pd.DataFrame) -> float:
    """How far apart mean test NLLs are: each contender less pgeom, over the laps of both."""
    scored = rows.dropna(subset="nll")
    lap = "regime" if "regime" in scored else "repeat"
    by_lap = scored.pivot(index=lap, columns="contender", values="nll")
    return float(np.ptp(by_lap.sub(by_lap[OURS], axis=0).mean()))


def end_to_end(rows: pd.DataFrame) -> Grid:
    """Whole commands, from start to end, with what a user waits for."""
    lines = [
        [
            f"{row['seeds']:.0f} seeds, {row['runs']:.0f} runs, {way} cache",
            f"{row[way]:.1f}",
            f"{row[EAGER]:.1f}",
            f"{row[EAGER] / row[way]:.2f}",
        ]
        for row in rows.to_dict("records")
        for way in ("cold", "warm")
    ]
    header = ["Job", "pgeom (s)", f"{EAGER} (s)", "Ratio ↑"]
    notes = [
        "with early stopping, process start included; pgeom also writes records, tables and "
        "figures; PyTorch is given its data ready and writes nothing"
    ]
    return Grid("python -m experiments.noise --dataset digits", header, lines, set(), notes)


def growth(rows: pd.DataFrame) -> Grid:
    """How the cost of a run changes with the size of the job."""
    header = ["Grown", "To", "Seconds per run ↓", "GFLOP/s ↑", "Compile, warm (s)", "Memory (GiB)"]
    lines = []
    for (what, value), laps in rows.groupby(["what", "value"], sort=False):
        cost, least, most = spread(laps["seconds_per_run"])
        lines.append(
            [
                what,
                str(value),
                f"{cost:.4f} ({least:.4f}–{most:.4f})",
                f"{laps['gflops'].median():.1f}",
                f"{laps['compiling'].min():.1f}",
                f"{laps['peak_gib'].max():.2f}",
            ]
        )
    notes = [
        "clean digits, every epoch trained; medians over rounds, with the range; what takes longer "
        "than the usual job was measured once",
        "memory: the peak of the whole process",
    ]
    return Grid("growth of the cost", header, lines, set(), notes)


def kernels(rows: pd.DataFrame) -> Grid:
    """Value and gradient of scores beside optax's cross-entropy."""
    header = ["Classes", "Batch", "Score", "Milliseconds ↓", "Times optax CE ↓"]
    header += ["As JAX comes ↓", "Memory (MiB) ↓"]
    lines = [
        [
            f"{row['classes']:,}",
            f"{row['batch']:,}",
            row["score"],
            f"{row['milliseconds']:.2f}",
            f"{row['ratio']:.2f}",
            f"{row['usual_ratio']:.2f}",
            f"{row['bytes'] / 2**20:.1f}",
        ]
        for row in rows.to_dict("records")
    ]
    notes = [
        "compiled with `pgeom.compilation.CPU_OPTIONS`, as the trainer does, optax CE too; as JAX "
        "comes: the ratio with XLA's defaults, for both",
        "memory: what the program takes beyond its inputs and outputs",
    ]
    return Grid("value and gradient of a batch", header, lines, set(), notes)


def first(rows: pd.DataFrame) -> Grid:
    """What a newcomer waits for."""
    header = ["Step", "First time (s) ↓", "Again (s) ↓", "Memory (GiB) ↓"]
    lines = [
        [row["what"], *(f"{row[column]:.2f}" for column in ("first", "second", "peak_gib"))]
        for row in rows.to_dict("records")
    ]
    notes = [
        "commands are processes of their own, the others one, in this order, with nothing compiled "
        "before; again: the same once more",
        "memory: the peak of the processes so far",
    ]
    return Grid("first seconds", header, lines, set(), notes)
