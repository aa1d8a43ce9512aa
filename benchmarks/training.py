"""Implementations of one job side by side, whole commands, and how the cost of a run grows."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.jobs import LOSSES, REGIMES, Job, useful_gflop
from benchmarks.page import Part, Rows, spread
from benchmarks.processes import Processes
from experiments.shell.processes import available_cores

IMAGES = 10_000  # to train on
REPEATS = 3
WIDE = 384
AGREEMENT = 0.03  # in mean test NLL


class Implementation(NamedTuple):
    """A way to train a job: `function(job, **options)` returns seconds and a mean test NLL."""

    name: str
    function: str
    options: Mapping[str, str]


BY_PGEOM, BY_RUNS = "benchmarks.jax_training.train_by_pgeom", "benchmarks.pytorch.train_runs"
PGEOM = Implementation("pgeom", BY_PGEOM, {})
DIGITS = (
    Implementation("PyTorch, eager", BY_RUNS, {}),
    Implementation("PyTorch, batched", "benchmarks.pytorch.train_stacks", {}),
    Implementation("JAX, one loss at a time", "benchmarks.jax_training.train_loss_by_loss", {}),
    PGEOM,
)
CONVOLUTIONS = (
    Implementation("PyTorch, channels first", BY_RUNS, {"layout": "first"}),
    Implementation("PyTorch, channels last", BY_RUNS, {"layout": "last"}),
    Implementation("flax.linen.Conv in the trainer", BY_PGEOM, {"convolve": "flax"}),
    PGEOM,
)


def measure_throughput(processes: Processes, seeds: int, epochs: int) -> Iterator[dict]:
    """Rows of trials: all implementations train one regime in turn, and then the next."""
    for repeat, regime in enumerate(REGIMES[:REPEATS]):
        job = Job(seeds, epochs, (regime,))
        limit = processes.call("benchmarks.jax_training.limit", job)
        row = {"repeat": repeat, "work": job.runs, "gflop": useful_gflop(job), "limit": limit}
        for way in DIGITS:
            yield row | {"way": way.name} | processes.call(way.function, job, **way.options)


def measure_images(processes: Processes, seeds: int, epochs: int) -> Iterator[dict]:
    """Rows of trials of a convolutional network, one seed per core."""
    job = Job(available_cores(), max(1, epochs // 5), losses=("ce",), images=IMAGES)
    for repeat in range(REPEATS):
        row = {"repeat": repeat, "work": IMAGES * job.epochs * job.runs}
        for way in CONVOLUTIONS:
            yield row | {"way": way.name} | processes.call(way.function, job, **way.options)


def compare(rows: Rows) -> tuple[Rows, dict]:
    """A line per implementation, and whether all did one job, as far as their NLLs can tell."""
    trials, lines = pd.DataFrame(rows).set_index("repeat"), []
    ours = trials["seconds"][trials["way"] == PGEOM.name]
    for way, own in trials.groupby("way", sort=False):
        rate, compiling = own["work"] / own["seconds"], own.get("compiling", own["nll"] * np.nan)
        line = {"way": way, "rate": spread(rate), "images": spread(rate, "{:,.0f}")}
        line |= {"faster": spread(own["seconds"] / ours), "nll": own["nll"].mean()}
        line |= {"cold": compiling.iloc[0], "warm": compiling.iloc[-1]}
        lines.append(line)
    apart = float(np.ptp([line["nll"] for line in lines]))
    verdict = "agree" if apart <= AGREEMENT else "DO NOT agree"
    return lines, {"agreement": f"{verdict} within {AGREEMENT}: they span {apart:.3f}"}


def compare_rates(rows: Rows) -> tuple[Rows, dict]:
    """The same, with the rate of useful work beside that of matrix products alone."""
    (lines, facts), trials = compare(rows), pd.DataFrame(rows)
    gflops = trials["gflop"] / trials["seconds"]
    for line in lines:
        own = trials["way"] == line["way"]
        line["gflops"] = gflops[own].median()
        line["share"] = (gflops / trials["limit"])[own].median()
    return lines, facts | {"limit": spread(trials["limit"], "{:.0f}")}


def measure_commands(processes: Processes, seeds: int, epochs: int) -> Iterator[dict]:
    """Rows of whole commands, with early stopping: what a user waits for."""
    job = Job(max(1, seeds // 2), epochs, REGIMES, stopping=True)
    words = ["--dataset", "digits", "--seeds", job.seeds, "--epochs", epochs]
    words += ["--losses", *LOSSES, "--out"]
    eager = processes.call(BY_RUNS, job)["seconds"]
    for cache in ("cold", "warm"):
        _, ours = processes.run(
            "experiments.noise", *words, processes.folder / cache, cache="commands"
        )
        ratio = {"ours": ours, "eager": eager, "ratio": eager / ours}
        yield {"seeds": job.seeds, "runs": job.runs, "cache": cache} | ratio


def measure_growth(processes: Processes, seeds: int, epochs: int) -> Iterator[dict]:
    """Rows of pgeom alone: more seeds, losses, devices, and a wider network."""
    usual, few, cores = Job(seeds, epochs), max(1, seeds // 4), available_cores()
    jobs = [("seeds", n, usual._replace(seeds=n), cores) for n in (few, seeds, 5 * seeds)]
    jobs += [("losses", n, usual._replace(losses=LOSSES[:n]), cores) for n in (1, 3, len(LOSSES))]
    jobs += [("devices", n, usual, n) for n in range(1, cores + 1)]
    jobs += [("width", n, usual._replace(seeds=few, width=n), cores) for n in (96, WIDE)]
    for grown, size, job, devices in jobs:
        trials = [processes.call(BY_PGEOM, job, devices) for _ in range(2)]
        faster, gflop = min(trials, key=lambda trial: trial["seconds"]), useful_gflop(job)
        row = {"grown": grown, "size": size, "cost": faster["seconds"] / job.runs}
        row |= {"gflops": gflop / faster["seconds"], "compiling": faster["compiling"]}
        yield row | {"gib": faster["peak_bytes"] / 2**30}


THROUGHPUT = Part(
    "Training throughput",
    f"Digits with and without noise, {len(LOSSES)} losses, every epoch trained: pgeom beside "
    "PyTorch, run by run and as stacks of networks, and beside JAX with one program per loss. Only "
    "training is timed.",
    measure_throughput,
    {
        "Way": "{way}",
        "Runs per second ↑": "{rate}",
        "pgeom is faster by": "{faster}",
        "GFLOP/s ↑": "{gflops:.1f}",
        "Of the limit ↑": "{share:.0%}",
        "Compile, cold (s)": "{cold:.1f}",
        "Last (s)": "{warm:.1f}",
        "Test NLL": "{nll:.3f}",
    },
    (
        "medians over regimes, trained in turn, with the range",
        "limit: the same matrix products alone, {limit} GFLOP/s",
        "PyTorch: one single-threaded process per core, AdamW with fused=True, gradients clipped "
        "together, validation without gradients",
        "mean test NLLs {agreement}",
    ),
    compare_rates,
)
COMMANDS = Part(
    "`python -m experiments.noise`",
    "What a user waits for, from the command to the figures.",
    measure_commands,
    {
        "Seeds": "{seeds}",
        "Runs": "{runs:,}",
        "Cache": "{cache}",
        "pgeom (s)": "{ours:.1f}",
        "PyTorch, eager (s)": "{eager:.1f}",
        "Ratio ↑": "{ratio:.2f}",
    },
    (
        "with early stopping; pgeom: the whole command, which also writes records, tables and "
        "figures; PyTorch: its training alone",
    ),
)
CNN = Part(
    "A convolutional network",
    "`pgeom.models.cnn.CNN` with cross-entropy. The trainer multiplies patches by a matrix; the "
    "same trainer with `flax.linen.Conv`, and PyTorch with the convolutions of oneDNN, stand "
    "beside it.",
    measure_images,
    {
        "Way": "{way}",
        "Images per second ↑": "{images}",
        "pgeom is faster by": "{faster}",
        "Compile, cold (s)": "{cold:.1f}",
        "Test NLL": "{nll:.3f}",
    },
    (
        f"Fashion-MNIST, {IMAGES:,} training images, one seed per core, validation after each "
        "epoch; medians over trials in turn, with the range",
        "mean test NLLs {agreement}",
    ),
    compare,
)
GROWTH = Part(
    "Growth of the cost",
    "How the cost of a run changes with the size of the job.",
    measure_growth,
    {
        "Grown": "{grown}",
        "To": "{size}",
        "Seconds per run ↓": "{cost:.4f}",
        "GFLOP/s ↑": "{gflops:.1f}",
        "Compile (s)": "{compiling:.1f}",
        "Memory (GiB)": "{gib:.2f}",
    },
    (
        "clean digits, every epoch trained; the faster of two trials",
        "memory: the peak of the whole process",
    ),
)
