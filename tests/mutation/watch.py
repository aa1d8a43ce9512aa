"""What a test run notes about each test, and which of its tests it is given.

Plugins of pytest: `Watch` notes how long each test takes and which lines of a copy with probes run
meanwhile, and `Choice` leaves only the tests that it names, in its order.
"""

import time
from collections.abc import Sequence

import pytest

from tests.mutation import probes

Lines = dict[str, dict[int, list[int]]]
"""By file and line, the numbers of the tests in which the line ran."""


class Watch:
    """Notes of a run: the tests with the CPU seconds they took, and the lines of each."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.lines: Lines = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """What ran at import counts for the first test."""
        if self.seconds:
            probes.clear()
        self.seconds[nodeid] = -time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] += time.process_time()
        number = list(self.seconds).index(nodeid)
        for file, lines in probes.read_lines().items():
            module = self.lines.setdefault(file, {})
            for line in lines:
                module.setdefault(line, []).append(number)


class Choice:
    """Some of the tests that were collected, in a given order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(chosen, key=lambda item: self.order[item.nodeid])
