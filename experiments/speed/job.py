"""A job as a file: what every contender is given, ready, and what it gives back.

Nothing here needs JAX, so that a contender without it does not pay for its import.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Job(NamedTuple):
    """So many seeds of some regimes with some losses, and every constant of the protocol."""

    regimes: tuple[str, ...]
    seeds: int
    losses: tuple[str, ...]
    epochs: int
    minimum: int  # of early stopping; both beyond `epochs` where the work is to be equal
    patience: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    clip: float
    dropout: float
    width: int
    beta0: float
    margin: dict[str, float]  # of APMS
    images: int = 0  # so many of Fashion-MNIST instead of digits, and a convolutional network
    channels: tuple[int, ...] = ()  # of its two convolutions

    @property
    def runs(self) -> int:
        return len(self.regimes) * self.seeds * len(self.losses)


class Member(NamedTuple):
    """The data of a regime and a seed, or of a stack of them."""

    x: np.ndarray
    y: np.ndarray
    validation_x: np.ndarray
    validation_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    capm: np.ndarray  # [K, K], the matrix of CAPM


class Ridges(NamedTuple):
    """The parameters of HPG's generator."""

    lam: np.ndarray
    a: np.ndarray
    rho: np.ndarray
    w: np.ndarray
    b: np.ndarray
    scale: np.ndarray


class Lap(NamedTuple):
    """What a contender took: `seconds` of training, `compiling` apart, and the mean test NLL."""

    seconds: float
    compiling: float
    nll: float
    peak_bytes: int = 0


def write(path: Path, job: Job, stack: Member, ridges: Ridges) -> None:
    """The job, with the data of its members stacked, seeds within regimes."""
    arrays = {**stack._asdict(), **ridges._asdict()}
    np.savez(path, job=np.array(json.dumps(job._asdict())), **arrays)


def read(path: Path) -> tuple[Job, Member, Ridges]:
    with np.load(path) as arrays:
        fields = json.loads(str(arrays["job"]))
        fields |= {name: tuple(fields[name]) for name in ("regimes", "losses", "channels")}
        stack = Member(*(arrays[name] for name in Member._fields))
        return Job(**fields), stack, Ridges(*(arrays[name] for name in Ridges._fields))


def split(stack: Member) -> list[Member]:
    """The members of a stack."""
    return [Member(*(part[place] for part in stack)) for place in range(len(stack.y))]
