"""What a job costs on so many devices, computed from measured parts.

While a group of members trains, one per device, the host prepares the next and writes the one
before. It has no core of its own on a CPU. A group of D members therefore takes

    max(t + h + e (c(D) − c(D₀)), D h + e c(D))

seconds, where t is what it took on D₀ devices, h the host's work for a member, e the epochs, and
c(D) what the host loop takes per epoch, which is linear in D. Where the second is larger, devices
wait for the host.

>>> seconds = {"compiling": 5.0, "group": 1.0, "host": 0.1, "calls": 9}
>>> part = Part("digits", cells=1, devices=2, losses=13, **seconds)
>>> cost = predict([part], HostLoop(fixed=0.001, per_device=0.0), seeds=100, devices=2)
>>> round(cost.total, 6), round(cost.host, 6)  # fifty groups of 1.1 s
(60.0, 10.45)
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

MOST_DEVICES = 100_000


class Part(NamedTuple):
    """What was measured of a dataset, in seconds: a group has one member per device."""

    dataset: str
    cells: int
    devices: int
    losses: int
    compiling: float
    group: float
    host: float  # per member
    calls: float  # of the program, for a group

    def groups(self, seeds: int, devices: int) -> int:
        """How many groups so many seeds are on so many devices."""
        return math.ceil(self.cells * seeds / devices)


class HostLoop(NamedTuple):
    """The seconds of the host per epoch: `fixed + per_device · D`."""

    fixed: float
    per_device: float

    def call(self, devices: int) -> float:
        return self.fixed + self.per_device * devices


class Cost(NamedTuple):
    """Seconds: in total, of which compiling, and those in which the host is busy."""

    total: float
    compiling: float
    host: float


def fit_host_loop(devices: Sequence[int], calls: Sequence[float]) -> HostLoop:
    """The line through calls on several numbers of devices, neither end of it negative."""
    slope, fixed = np.polyfit(devices, calls, 1)
    return HostLoop(max(0.0, float(fixed)), max(0.0, float(slope)))


def predict(parts: Iterable[Part], loop: HostLoop, seeds: int, devices: int) -> Cost:
    """The cost of so many seeds of all cells on so many devices."""
    total = compiling = host = 0.0
    for part in parts:
        groups = part.groups(seeds, devices)
        serial = _host_seconds(part, loop, devices)
        compiling += part.compiling
        host += groups * serial
        total += part.compiling + groups * max(_device_seconds(part, loop, devices), serial)
    return Cost(total, compiling, host)


def host_limit(parts: Sequence[Part], loop: HostLoop) -> int | None:
    """The fewest devices that wait for the host; None if no number of them does."""
    for devices in range(1, MOST_DEVICES):
        host = sum(part.cells * _host_seconds(part, loop, devices) for part in parts)
        if host > sum(part.cells * _device_seconds(part, loop, devices) for part in parts):
            return devices
    return None


def _device_seconds(part: Part, loop: HostLoop, devices: int) -> float:
    """Of a group, if nothing waits for the host."""
    longer = part.calls * (loop.call(devices) - loop.call(part.devices))
    return part.group + part.host + longer


def _host_seconds(part: Part, loop: HostLoop, devices: int) -> float:
    """Of a group, if the host had nothing to wait for."""
    return devices * part.host + part.calls * loop.call(devices)
