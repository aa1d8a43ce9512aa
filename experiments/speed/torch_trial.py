"""Whether torch.compile makes the contenders in PyTorch faster: epochs of both kinds, in turn.

`python -m experiments.speed.torch_trial job.npz` prints, by the way of training, how many times as
fast it becomes, the program's first epochs apart, and the seconds that those take. One process and
one thread, as each process of a contender has.
"""

import json
import sys
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np
import torch

from experiments.speed import torch_contenders as contenders
from experiments.speed.job import Job, Member, Ridges, read, split
from experiments.speed.torch_training import (
    as_tensors,
    contexts,
    make_optimiser,
    train_epoch,
)

LOSSES = ("ce", "hpg")  # a plain one, and one with many operations
EPOCHS = 30


def trial(job: Job, stack: Member, ridges: Ridges, epochs: int = EPOCHS) -> dict[str, dict]:
    """By way and loss, the speed of compiled over eager epochs, and the seconds of compiling."""
    torch.set_num_threads(1)
    found = {}
    for way, make in (("eager", _one_run), ("batched", _one_stack)):
        for loss in (loss for loss in LOSSES if loss in job.losses):
            epoch = {compiling: make(job, stack, ridges, loss, compiling) for compiling in (0, 1)}
            begun = time.perf_counter()
            epoch[1]()
            compiling = time.perf_counter() - begun
            epoch[0]()
            times = [(_seconds(epoch[0]), _seconds(epoch[1])) for _ in range(epochs)]
            ratio = float(np.median([eager / compiled for eager, compiled in times]))
            found[f"{way}, {loss}"] = {"ratio": ratio, "compiling": compiling}
    return found


def _seconds(step: Callable[[], None]) -> float:
    begun = time.perf_counter()
    step()
    return time.perf_counter() - begun


def _one_run(job: Job, stack: Member, ridges: Ridges, loss: str, compiling: int):
    """An epoch of one run."""
    data = as_tensors(split(stack)[0])
    sizes = (data.x.shape[1], job.width, len(data.capm), job.dropout)
    model, objective = contenders.network(*sizes, loss, bool(compiling))
    optimiser = make_optimiser(job, model.parameters())
    context = cycle(contexts(job, data, ridges))
    return lambda: train_epoch(job, data, model, objective, optimiser, context)


def _one_stack(job: Job, stack: Member, ridges: Ridges, loss: str, compiling: int):
    """An epoch of all seeds of a loss."""
    data = as_tensors(stack)
    state = contenders.start_stack(job, data, loss, bool(compiling))
    context = cycle(contexts(job, data, ridges))
    return lambda: contenders.train_stack_epoch(job, data, state, context)


if __name__ == "__main__":
    print(json.dumps(trial(*read(Path(sys.argv[1])))))
