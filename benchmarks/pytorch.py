"""The jobs in PyTorch, by one single-threaded process per core: run by run, or in stacks of runs.

With what PyTorch itself has to be fast: AdamW is fused, gradients are clipped together, validation
needs no gradients, and a stack of networks is `torch.func.functional_call` under `torch.vmap`.
"""

import math
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.jobs import CLASSES, IMAGE, Arrays, Job, load_cells, load_stacks
from experiments.shell.processes import available_cores
from pgeom.training.settings import PAPER, Optimiser, Training

LOSSES = {  # of log p and log p_y
    "ce": lambda log_p, log_py: -log_py,
    "label_smoothing": lambda log_p, log_py: -0.9 * log_py - 0.1 * log_p.mean(-1),
    "brier": lambda log_p, log_py: log_p.exp().square().sum(-1) - 2 * log_py.exp() + 1,
    "mae": lambda log_p, log_py: 2 * (1 - log_py.exp()),
    "focal": lambda log_p, log_py: -((1 - log_py.exp()) ** 2) * log_py,
    "gce": lambda log_p, log_py: (1 - (0.7 * log_py).exp()) / 0.7,
    "sce": lambda log_p, log_py: -0.1 * log_py + 4 * (1 - log_py.exp()),
    "apl": lambda log_p, log_py: log_py / log_p.sum(-1) + 1 - log_py.exp(),
    "poly1": lambda log_p, log_py: -log_py + 1 - log_py.exp(),
}
LAYOUTS = {"first": torch.contiguous_format, "last": torch.channels_last}


def train_runs(fields: list, layout: str = "first") -> dict:
    """Every run by an ordinary training loop; a process trains all losses of a cell.

    Args:
      fields: of a `Job`.
      layout: whether the channels of images are "first" or "last" in memory.
    """
    job = Job(*fields)
    return _share_out(_train_cell, job, [(cell, layout) for cell in load_cells(job)])


def train_stacks(fields: list) -> dict:
    """All seeds at once; a process trains a loss in a regime."""
    job = Job(*fields)
    stacks = load_stacks(job)
    return _share_out(_train_stack, job, [(one, loss) for one in stacks for loss in job.losses])


def _share_out(train: Callable, job: Job, parts: list[tuple]) -> dict:
    """Train parts in a pool of processes; the clock runs from the first to the last."""
    parts = [(train, job, *part) for part in parts]
    with ProcessPoolExecutor(available_cores(), get_context("spawn"), _get_ready) as pool:
        begun, ended, nll = zip(*pool.map(_timed, parts), strict=True)
    return {"seconds": max(ended) - min(begun), "nll": statistics.fmean(map(statistics.fmean, nll))}


def _get_ready() -> None:
    """One thread, and a first step of the optimiser, for which PyTorch loads a second or two."""
    torch.set_num_threads(1)
    weight = torch.zeros(1, requires_grad=True)
    weight.grad = torch.zeros(1)
    _adamw([weight]).step()


def _timed(part: tuple) -> tuple[float, float, list[float]]:
    train, *arguments = part
    begun = time.time()
    nll = train(*arguments)
    return begun, time.time(), nll


def _adamw(parameters) -> torch.optim.AdamW:
    decay = Optimiser.weight_decay
    return torch.optim.AdamW(parameters, Training.learning_rate, weight_decay=decay, fused=True)


def as_tensors(arrays: Arrays) -> Arrays:
    """The arrays as tensors, labels as the integers that PyTorch wants."""
    tensors = map(torch.as_tensor, arrays)
    return Arrays(*(t if t.is_floating_point() else t.long() for t in tensors))


def mean_losses(loss: str, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Of each run: the last axes are examples and classes."""
    log_p = logits.log_softmax(-1)
    return LOSSES[loss](log_p, log_p.gather(-1, labels[..., None])[..., 0]).mean(-1)


def make_network(job: Job, x: torch.Tensor) -> nn.Module:
    """The layers of the job's model, for examples such as x."""
    channels, widths, dropout = job.layers
    layers: list[nn.Module] = [nn.Unflatten(1, (1, *IMAGE))] if channels else []
    for count in channels:
        layers += [nn.LazyConv2d(count, 3, stride=2, padding=1), nn.ReLU()]
    layers.append(nn.Flatten())
    for width in widths:
        layers += [nn.LazyLinear(width), nn.ReLU(), nn.Dropout(dropout)]
    network = nn.Sequential(*layers, nn.LazyLinear(CLASSES))
    network(x[:1])  # by which its layers learn their inputs
    return network


def _train_cell(job: Job, cell: Arrays, layout: str) -> list[float]:
    """Test NLLs of a cell's runs, one loss after another."""
    data = as_tensors(cell)
    return [_train_run(job, data, layout, loss) for loss in job.losses]


def _train_run(job: Job, data: Arrays, layout: str, loss: str) -> float:
    """The test NLL of the best epoch of a run."""
    model = make_network(job, data.x).to(memory_format=LAYOUTS[layout])
    optimiser, best, best_epoch, kept = _adamw(model.parameters()), math.inf, 0, {}
    for epoch in range(1, job.epochs + 1):
        model.train()
        for batch in torch.randperm(len(data.y)).split(job.training.batch_size):
            optimiser.zero_grad()
            mean_losses(loss, model(data.x[batch]), data.y[batch]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), Optimiser.clip, foreach=True)
            optimiser.step()
        model.eval()
        with torch.inference_mode():
            nll = F.cross_entropy(model(data.validation_x), data.validation_y).item()
        if nll < best:
            best, best_epoch = nll, epoch
            kept = {name: value.clone() for name, value in model.state_dict().items()}
        if job.stopping and epoch >= PAPER.minimum and epoch - best_epoch >= PAPER.patience:
            break
    model.load_state_dict(kept)
    with torch.inference_mode():
        return F.cross_entropy(model(data.test_x), data.test_y).item()


def _train_stack(job: Job, stack: Arrays, loss: str) -> list[float]:
    """Test NLLs of the runs of one loss, trained side by side to the last epoch."""
    data = as_tensors(stack)
    runs, examples = data.y.shape
    networks = [make_network(job, x) for x in data.x]
    weights, _ = torch.func.stack_module_state(networks)
    call = partial(torch.func.functional_call, networks[0])
    forward = torch.vmap(lambda weights, x: call(weights, (x,)), randomness="different")
    optimiser, seeds = _adamw(weights.values()), torch.arange(runs)[:, None]
    best = torch.full((runs,), math.inf)
    kept = {name: value.detach().clone() for name, value in weights.items()}
    for _ in range(job.epochs):
        networks[0].train()
        for batch in torch.rand(runs, examples).argsort(1).split(job.training.batch_size, 1):
            optimiser.zero_grad()
            logits = forward(weights, data.x[seeds, batch])
            mean_losses(loss, logits, data.y[seeds, batch]).sum().backward()
            _clip_each([value.grad for value in weights.values()])
            optimiser.step()
        networks[0].eval()
        with torch.no_grad():
            nll = mean_losses("ce", forward(weights, data.validation_x), data.validation_y)
            better, best = nll < best, nll.minimum(best)
            for name, value in weights.items():
                kept[name][better] = value[better]
    with torch.no_grad():
        return mean_losses("ce", forward(kept, data.test_x), data.test_y).tolist()


def _clip_each(gradients: list[torch.Tensor]) -> None:
    """Each run's gradient to the norm that one run is allowed."""
    flat = torch.cat([gradient.flatten(1) for gradient in gradients], dim=1)
    factor = (Optimiser.clip / (flat.norm(dim=1) + 1e-6)).clamp(max=1)
    for gradient in gradients:
        gradient.mul_(factor.view(-1, *[1] * (gradient.ndim - 1)))
