"""One run in PyTorch: an ordinary training loop, with what PyTorch itself has to make it fast.

The optimiser is fused, gradients are clipped together, validation runs in inference mode, and
whatever is called at every step may be compiled.
"""

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

from experiments.speed.job import Job, Member, Ridges
from experiments.speed.torch_losses import Context


def as_tensors(member: Member) -> Member:
    """The arrays as tensors, labels as the integers that PyTorch wants."""
    tensors = map(torch.as_tensor, member)
    return Member(*(t if t.is_floating_point() else t.long() for t in tensors))


def contexts(job: Job, data: Member, ridges: Ridges) -> Iterator[Context]:
    """What the loss knows at each step; the coefficient of APMS falls linearly."""
    parameters = tuple(map(torch.as_tensor, ridges))
    horizon = job.epochs * -(-data.y.shape[-1] // job.batch_size)
    for step in range(horizon):
        # a tensor: of a number that changes, a compiled loss would be compiled at each step
        beta = torch.tensor(job.beta0 * (1 - step / horizon))
        yield Context(data.capm, parameters, job.margin, beta)


def make_optimiser(job: Job, parameters) -> torch.optim.AdamW:
    return torch.optim.AdamW(
        parameters, job.learning_rate, weight_decay=job.weight_decay, fused=True
    )


def make_objective(model: nn.Module, loss: Callable) -> Callable:
    """`objective(x, y, context)`, the mean loss of a batch."""

    def objective(x, y, context):
        return loss(model(x), y, context).mean()

    return objective


def train_epoch(job: Job, data: Member, model: nn.Module, objective, optimiser, context) -> None:
    """All batches in a random order."""
    model.train()
    for batch in torch.randperm(len(data.y)).split(job.batch_size):
        optimiser.zero_grad()
        objective(data.x[batch], data.y[batch], next(context)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), job.clip, foreach=True)
        optimiser.step()
    model.eval()


def train_run(job: Job, data: Member, ridges: Ridges, model: nn.Module, objective) -> float:
    """The test NLL of the best epoch of one run, with early stopping."""
    optimiser, context = make_optimiser(job, model.parameters()), contexts(job, data, ridges)
    best, best_epoch, kept = math.inf, 0, None
    for epoch in range(1, job.epochs + 1):
        train_epoch(job, data, model, objective, optimiser, context)
        with torch.inference_mode():
            nll = F.cross_entropy(model(data.validation_x), data.validation_y).item()
        if nll < best:
            best, best_epoch = nll, epoch
            kept = {name: value.clone() for name, value in model.state_dict().items()}
        if epoch >= job.minimum and epoch - best_epoch >= job.patience:
            break
    model.load_state_dict(kept)
    with torch.inference_mode():
        return F.cross_entropy(model(data.test_x), data.test_y).item()


def reset(model: nn.Module) -> nn.Module:
    """New initial weights, in place, so that a compiled objective stays of use."""
    for layer in model.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            layer.reset_parameters()
    return model
