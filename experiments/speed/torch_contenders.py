"""The job in PyTorch, by one single-threaded process per core: run by run, or many runs in a batch.

`python -m experiments.speed.torch_contenders eager job.npz` prints a lap as JSON. With `compiled`
as a third word, what is called at every step goes through torch.compile.
"""

import json
import math
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from experiments.shell.processes import available_cores
from experiments.speed.job import Job, Lap, Member, Ridges, read, split
from experiments.speed.torch_losses import LOSSES
from experiments.speed.torch_training import (
    as_tensors,
    contexts,
    make_objective,
    make_optimiser,
    reset,
    train_run,
)


def eager(job: Job, stack: Member, ridges: Ridges, compiling: bool = False) -> Lap:
    """Every run by an ordinary training loop; a part is a member with all its losses."""
    return spread(_train_member, [(job, one, ridges, compiling) for one in split(stack)])


def batched(job: Job, stack: Member, ridges: Ridges, compiling: bool = False) -> Lap:
    """Stacked matrices; a part is all seeds of a loss and a regime."""
    cuts = [slice(first, first + job.seeds) for first in range(0, len(stack.y), job.seeds)]
    groups = [Member(*(part[cut] for part in stack)) for cut in cuts]
    parts = [
        (job._replace(losses=(loss,)), group, ridges, compiling)
        for group in groups
        for loss in job.losses
    ]
    return spread(_train_stack, parts)


def spread(train, parts) -> Lap:
    """Share the parts out, one process per core; the clock runs while they train."""
    with ProcessPoolExecutor(available_cores(), get_context("spawn"), _get_ready) as pool:
        done = list(pool.map(_timed, [train] * len(parts), parts))
    begun, ended, nll = zip(*done, strict=True)
    return Lap(max(ended) - min(begun), 0.0, float(np.mean(np.concatenate(nll))))


def _get_ready() -> None:
    """One thread, and a first step of the optimiser, with which PyTorch loads a second or two."""
    torch.set_num_threads(1)
    weight = torch.zeros(1, requires_grad=True)
    weight.grad = torch.zeros(1)
    torch.optim.AdamW([weight], fused=True).step()


def _timed(train, part):
    begun = time.time()
    nll = train(*part)
    return begun, time.time(), nll


def _train_member(job: Job, member: Member, ridges: Ridges, compiling: bool) -> list[float]:
    """Test NLLs of a member's runs, one loss after another."""
    data, nll = as_tensors(member), []
    for loss in job.losses:
        sizes = (data.x.shape[1], job.width, len(data.capm), job.dropout)
        model, objective = network(*sizes, loss, compiling)
        nll.append(train_run(job, data, ridges, reset(model), objective))
    return nll


@cache
def network(inputs: int, width: int, classes: int, dropout: float, loss: str, compiling: bool):
    """The network of a process for a loss, and its mean loss on a batch, compiled or not."""
    model = nn.Sequential(
        *(nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(dropout)),
        *(nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout)),
        nn.Linear(width, classes),
    )
    objective = make_objective(model, LOSSES[loss])
    # one program for each of the two sizes of batches
    return model, torch.compile(objective, dynamic=False) if compiling else objective


class Stack(NamedTuple):
    """The stacked parameters of all seeds, their optimiser, and the objective of a batch."""

    parameters: list[torch.Tensor]
    optimiser: torch.optim.AdamW
    objective: Callable


def start_stack(job: Job, data: Member, loss: str, compiling: bool) -> Stack:
    """All seeds of a loss before their first epoch."""
    parameters = _initial(len(data.y), data.x.shape[2], job.width, data.capm.shape[1])
    objective = _stacked_objective(loss, job.dropout, compiling)
    return Stack(parameters, make_optimiser(job, parameters), objective)


def train_stack_epoch(job: Job, data: Member, stack: Stack, context) -> None:
    """All batches, of every seed in an order of its own."""
    seeds = torch.arange(len(data.y))[:, None]
    for batch in torch.rand(data.y.shape).argsort(1).split(job.batch_size, 1):
        stack.optimiser.zero_grad()
        x, y = data.x[seeds, batch], data.y[seeds, batch]
        stack.objective(stack.parameters, x, y, next(context)).backward()
        _clip(stack.parameters, job.clip)
        stack.optimiser.step()


def _train_stack(job: Job, group: Member, ridges: Ridges, compiling: bool) -> list[float]:
    """Test NLLs of the runs of one loss, trained as one stack of matrices, to the last epoch."""
    data = as_tensors(group)
    stack, context = start_stack(job, data, job.losses[0], compiling), contexts(job, data, ridges)
    best = torch.full((len(data.y),), math.inf)
    kept = [value.detach().clone() for value in stack.parameters]
    for _ in range(job.epochs):
        train_stack_epoch(job, data, stack, context)
        with torch.no_grad():  # not in inference mode, whose tensors may not be written to
            nll = _nll(_logits(stack.parameters, data.validation_x), data.validation_y)
            better = nll < best
            best = torch.where(better, nll, best)
            for saved, value in zip(kept, stack.parameters, strict=True):
                saved[better] = value[better]
    with torch.inference_mode():
        return _nll(_logits(kept, data.test_x), data.test_y).tolist()


@cache
def _stacked_objective(loss: str, dropout: float, compiling: bool):
    """`objective(parameters, x, y, context)`: the mean losses of a batch, summed over the runs."""

    def objective(parameters, x, y, context):
        return LOSSES[loss](_logits(parameters, x, dropout), y, context).mean(-1).sum()

    return torch.compile(objective, dynamic=False) if compiling else objective


def _initial(runs: int, inputs: int, width: int, classes: int) -> list[torch.Tensor]:
    """Kernels and biases of the three layers, stacked, uniform in ±1/√fan_in."""
    parameters = []
    for inner, columns in ((inputs, width), (width, width), (width, classes)):
        bound = 1 / math.sqrt(inner)
        for shape in ((runs, inner, columns), (runs, 1, columns)):
            parameters.append(torch.empty(shape).uniform_(-bound, bound).requires_grad_())
    return parameters


def _logits(parameters, x, dropout=0.0):
    for kernel, bias in zip(parameters[:4:2], parameters[1:4:2], strict=True):
        x = F.dropout(torch.baddbmm(bias, x, kernel).relu(), dropout, training=dropout > 0)
    return torch.baddbmm(parameters[5], x, parameters[4])


def _clip(parameters, most: float) -> None:
    """Each run's gradient to the norm that one run is allowed."""
    norms = [torch.linalg.vector_norm(value.grad, dim=(1, 2)) for value in parameters]
    total = torch.linalg.vector_norm(torch.stack(norms), dim=0)
    factor = (most / (total + 1e-6)).clamp(max=1)[:, None, None]
    for value in parameters:
        value.grad.mul_(factor)


def _nll(logits, labels):
    return F.cross_entropy(logits.transpose(1, 2), labels, reduction="none").mean(-1)


if __name__ == "__main__":
    way, path, *compiling = sys.argv[1:]
    lap = {"eager": eager, "batched": batched}[way](*read(Path(path)), bool(compiling))
    print(json.dumps(lap._asdict()))
