"""Processes that execute runs: what they send and are sent may be long."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from penstock.experiments.interrupts import Stop
from penstock.experiments.work import Task
from penstock.experiments.workers import Workers
from penstock.scenario import Scenario

LONG = 1 << 20  # bytes, of which a pipe holds a few hundred thousand


@pytest.fixture
def patience() -> Iterator[None]:
    """Ends a test that waits for ever."""

    def end(*_: Any) -> None:
        raise TimeoutError("the processes wait for each other")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(("given", "returned"), [(LONG, LONG), (LONG, 1), (1, LONG)])
def test_both_sides_may_send_much_at_once(given: int, returned: int) -> None:
    tasks = [Task(number, 1, bytes([number]), Scenario("#" * given, "<text>")) for number in range(12)]
    workers = Workers(2, Stop(), {}, execute=lambda task, _stop, _tell: bytes([task.point]) * returned)
    try:
        found = {task.point: data for task, data in workers.results(tasks)}
    finally:
        workers.close()
    assert found == {number: bytes([number]) * returned for number in range(12)}
