"""Ctrl-C, and the signal by which clusters end jobs, ask for an end in good order: what is finished is kept.

The second Ctrl-C is the usual one. A thread that is not the main one gets no signals.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from multiprocessing.sharedctypes import RawValue
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """A flag that this process shares with its workers; true once the end was asked for."""

    def __init__(self) -> None:
        self._flag: Any = RawValue("b", 0)

    def __bool__(self) -> bool:
        return bool(self._flag.value)

    def set(self) -> None:
        """Asks for the end."""
        self._flag.value = 1


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Yields the flag that the first Ctrl-C sets while the block runs."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def first(number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in _SIGNALS:
        signal.signal(number, first)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
