"""The job in PyTorch, by a single-threaded process a core: run by run, or many runs in a batch.

`python -m experiments.speed.torch_contenders eager job.npz` prints a lap as JSON.
"""

import json
import math
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from experiments.speed.job import Job, Lap, Member, Ridges, read
from experiments.speed.torch_losses import LOSSES, Context


def eager(job: Job, stack: Member, ridges: Ridges) -> Lap:
    """Every run by an ordinary training loop; a part is a member with all its losses."""
    alone = [Member(*(part[place] for part in stack)) for place in range(len(stack.y))]
    return _spread(_train_member, [(job, one, ridges) for one in alone])


def batched(job: Job, stack: Member, ridges: Ridges) -> Lap:
    """Stacked matrices; a part is all seeds of a loss and a regime."""
    cuts = [slice(first, first + job.seeds) for first in range(0, len(stack.y), job.seeds)]
    groups = [Member(*(part[cut] for part in stack)) for cut in cuts]
    single = [job._replace(losses=(loss,)) for loss in job.losses]
    return _spread(_train_stack, [(one, group, ridges) for group in groups for one in single])


def _spread(train, parts) -> Lap:
    """Share the parts out over a process a core; the clock runs while they train."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with ProcessPoolExecutor(cores, get_context("spawn"), _get_ready) as pool:
        done = list(pool.map(_timed, [train] * len(parts), parts))
    begun, ended, nll = zip(*done, strict=True)
    return Lap(max(ended) - min(begun), 0.0, float(np.mean(np.concatenate(nll))))


def _get_ready() -> None:
    """One thread, and a first step of the optimiser, with which PyTorch loads a second or two."""
    torch.set_num_threads(1)
    weight = torch.zeros(1, requires_grad=True)
    weight.grad = torch.zeros(1)
    torch.optim.AdamW([weight]).step()


def _timed(train, part):
    begun = time.time()
    nll = train(*part)
    return begun, time.time(), nll


def _train_member(job: Job, member: Member, ridges: Ridges) -> list[float]:
    """Test NLLs of a member's runs, one loss after another."""
    return [_train_run(job, _tensors(member), ridges, LOSSES[loss]) for loss in job.losses]


def _train_run(job: Job, data: Member, ridges: Ridges, loss) -> float:
    (_, inputs), classes = data.x.shape, len(data.capm)
    model = nn.Sequential(
        *(nn.Linear(inputs, job.width), nn.ReLU(), nn.Dropout(job.dropout)),
        *(nn.Linear(job.width, job.width), nn.ReLU(), nn.Dropout(job.dropout)),
        nn.Linear(job.width, classes),
    )
    optimiser = torch.optim.AdamW(
        model.parameters(), job.learning_rate, weight_decay=job.weight_decay
    )
    context = _contexts(job, data, ridges)
    best, best_epoch, kept = math.inf, 0, None
    for epoch in range(1, job.epochs + 1):
        model.train()
        for batch in torch.randperm(len(data.y)).split(job.batch_size):
            optimiser.zero_grad()
            loss(model(data.x[batch]), data.y[batch], next(context)).mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), job.clip)
            optimiser.step()
        model.eval()
        with torch.no_grad():
            nll = F.cross_entropy(model(data.validation_x), data.validation_y).item()
        if nll < best:
            best, best_epoch = nll, epoch
            kept = {name: value.clone() for name, value in model.state_dict().items()}
        if epoch >= job.minimum and epoch - best_epoch >= job.patience:
            break
    model.load_state_dict(kept)
    with torch.no_grad():
        return F.cross_entropy(model(data.test_x), data.test_y).item()


def _tensors(member: Member) -> Member:
    """The arrays as tensors, labels as the integers that PyTorch wants."""
    tensors = map(torch.as_tensor, member)
    return Member(*(t if t.is_floating_point() else t.long() for t in tensors))


def _contexts(job: Job, data: Member, ridges: Ridges):
    """What the loss knows at each step; the coefficient of APMS falls linearly."""
    parameters = tuple(map(torch.as_tensor, ridges))
    horizon = job.epochs * -(-data.y.shape[-1] // job.batch_size)
    for step in range(horizon):
        beta = job.beta0 * (1 - step / horizon)
        yield Context(data.capm, parameters, job.margin, beta)


def _train_stack(job: Job, group: Member, ridges: Ridges) -> list[float]:
    """Test NLLs of the runs of one loss, trained as one stack of matrices, to the last epoch."""
    data, loss = _tensors(group), LOSSES[job.losses[0]]
    runs = len(data.y)
    parameters = _initial(runs, data.x.shape[2], job.width, data.capm.shape[1])
    optimiser = torch.optim.AdamW(parameters, job.learning_rate, weight_decay=job.weight_decay)
    context, stack = _contexts(job, data, ridges), torch.arange(runs)[:, None]
    best, kept = torch.full((runs,), math.inf), [value.detach().clone() for value in parameters]
    for _ in range(job.epochs):
        for batch in torch.rand(data.y.shape).argsort(1).split(job.batch_size, 1):
            optimiser.zero_grad()
            logits = _logits(parameters, data.x[stack, batch], job.dropout)
            loss(logits, data.y[stack, batch], next(context)).mean(-1).sum().backward()
            _clip(parameters, job.clip)
            optimiser.step()
        with torch.no_grad():
            nll = _nll(_logits(parameters, data.validation_x), data.validation_y)
            better = nll < best
            best = torch.where(better, nll, best)
            for saved, value in zip(kept, parameters, strict=True):
                saved[better] = value[better]
    with torch.no_grad():
        return _nll(_logits(kept, data.test_x), data.test_y).tolist()


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
    zero = torch.zeros(())
    squares = sum((value.grad.square().sum((1, 2)) for value in parameters), zero)
    factor = (most / (squares.sqrt() + 1e-6)).clamp(max=1)[:, None, None]
    for value in parameters:
        value.grad *= factor


def _nll(logits, labels):
    return F.cross_entropy(logits.transpose(1, 2), labels, reduction="none").mean(-1)


if __name__ == "__main__":
    contender = {"eager": eager, "batched": batched}[sys.argv[1]]
    print(json.dumps(contender(*read(Path(sys.argv[2])))._asdict()))
