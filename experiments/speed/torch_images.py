"""The job of images in PyTorch: one single-threaded process per core, convolutions by oneDNN.

`python -m experiments.speed.torch_images first job.npz` prints a lap as JSON; `last` has the
channels last in memory.
"""

import json
import sys
from functools import cache
from pathlib import Path

import torch
from torch import nn

from experiments.speed.job import Job, Lap, Member, Ridges, read, split
from experiments.speed.torch_contenders import spread
from experiments.speed.torch_losses import LOSSES
from experiments.speed.torch_training import as_tensors, make_objective, reset, train_run

SIDE = 28
FORMATS = {"first": torch.contiguous_format, "last": torch.channels_last}


def convolutional(job: Job, stack: Member, ridges: Ridges, channels: str) -> Lap:
    """Every seed by an ordinary training loop."""
    return spread(_train_member, [(job, one, ridges, channels) for one in split(stack)])


def _train_member(job: Job, member: Member, ridges: Ridges, channels: str) -> list[float]:
    data = as_tensors(member)
    images = {
        name: _images(getattr(data, name), channels) for name in ("x", "validation_x", "test_x")
    }
    sizes = (*job.channels, job.width, len(data.capm))
    model = _network(sizes, job.dropout, channels)
    objective = make_objective(model, LOSSES[job.losses[0]])
    return [train_run(job, data._replace(**images), ridges, reset(model), objective)]


def _images(features: torch.Tensor, channels: str) -> torch.Tensor:
    """Features `[n, 784]` as images `[n, 1, 28, 28]`."""
    images = features.reshape(-1, 1, SIDE, SIDE)
    return images.contiguous(memory_format=FORMATS[channels])


@cache
def _network(sizes: tuple[int, ...], dropout: float, channels: str) -> nn.Module:
    """The layers of `pgeom.models.cnn.CNN`."""
    first, second, hidden, classes = sizes
    model = nn.Sequential(
        *(nn.Conv2d(1, first, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(first, second, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(second * (SIDE // 4) ** 2, hidden), nn.ReLU(), nn.Dropout(dropout)),
        nn.Linear(hidden, classes),
    )
    return model.to(memory_format=FORMATS[channels])


if __name__ == "__main__":
    order, path = sys.argv[1:]
    print(json.dumps(convolutional(*read(Path(path)), order)._asdict()))
