"""Shows on stderr how far runs are: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress


class _OnStderr:
    """A bar on a terminal, and lines of text on stderr; nothing if `quiet`."""

    def __init__(self, label: str, quiet: bool) -> None:
        self._label, self._quiet = label, quiet
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress:
            self._progress.stop()

    def _start(self, runs: int, reused: int, simulated_s: float) -> None:
        """Shows the bar if stderr is a terminal and something is simulated; several runs are counted below it."""
        if not sys.stderr.isatty() or self._quiet or simulated_s <= 0:
            return
        self._progress = _bar()
        self._task = self._progress.add_task(self._label, total=simulated_s)
        self._runs_task = self._progress.add_task("runs", total=runs, completed=reused, visible=runs > 1)
        self._progress.start()

    def _say(self, line: str) -> None:
        if not self._quiet:
            print(line, file=sys.stderr, flush=True)


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    times = (MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, *times, console=Console(stderr=True), transient=True)


class Bar(_OnStderr):
    """Shows the simulated seconds of one run or of many. Prints nothing if `quiet`."""

    def __init__(self, label: str, quiet: bool = False) -> None:
        super().__init__(label, quiet)
        self._runs = self._done = 0

    def begin(self, runs: int, reused: int, simulated_s: float) -> None:
        """Starts the bar: `runs` in all, of which `reused` have results already; the others simulate `simulated_s`."""
        self._runs, self._done = runs, reused
        if reused:
            self._say(f"{reused} of {runs} runs are reused")
        self._start(runs, reused, simulated_s)

    def advanced(self, seconds: float) -> None:
        """Adds simulated seconds to what is done."""
        if self._progress:
            self._progress.advance(self._task, seconds)

    def of_one_run(self) -> Callable[[float, float], None]:
        """Returns a function that a single run calls with the simulated seconds that are done, and those in all."""
        last = 0.0

        def on_progress(now_s: float, duration_s: float) -> None:
            nonlocal last
            if not last:
                self.begin(1, 0, duration_s)
            self.advanced(now_s - last)
            last = now_s

        return on_progress

    def finished(self, label: str, cpu_s: float) -> None:
        """Counts a finished run, and prints its label and its CPU time if there is no bar."""
        self._done += 1
        if self._progress:
            self._progress.advance(self._runs_task)
        elif self._runs > 1:
            self._say(f"[{self._done}/{self._runs}] {label}: {cpu_s:.1f} s")


class RunsBar(_OnStderr):
    """Shows how far many runs are: a bar with the time that is left on a terminal, now and then a line elsewhere."""

    LINE_S = 10.0  # time between two lines

    def __init__(self, label: str, quiet: bool = False) -> None:
        super().__init__(label, quiet)
        self._runs = self._done = self._reused = self._failed = 0
        self._total_s = self._before_s = 0.0
        self._begun = self._told = time.monotonic()

    def begin(self, runs: int, reused: int, simulated_s: float) -> None:
        """Starts the bar: `runs` in all, of which `reused` are finished; the others simulate `simulated_s`."""
        self._runs = runs
        self._done = self._reused = reused
        self._total_s = simulated_s
        if reused:
            self._say(f"{reused:,} of {runs:,} runs are reused")
        self._start(runs, reused, simulated_s)

    def more(self, runs: int, simulated_s: float) -> None:
        """Adds runs, whose seeds a rule added."""
        if runs:
            self._say(f"{runs:,} runs are added, so that the intervals are as narrow as was asked")
        self._runs += runs
        self._before_s, self._total_s = self._total_s, self._total_s + simulated_s
        if self._progress:
            self._progress.update(self._task, total=self._total_s)
            self._progress.update(self._runs_task, total=self._runs, visible=self._runs > 1)

    def simulated(self, seconds: float) -> None:
        """Shows the simulated seconds of the workers that run now."""
        if self._progress:
            self._progress.update(self._task, completed=self._before_s + seconds)
        elif time.monotonic() - self._told > self.LINE_S:
            self._told = time.monotonic()
            self._line(self._before_s + seconds)

    def finished(self, failed: bool) -> None:
        """Counts a finished run."""
        self._done += 1
        self._failed += failed
        if self._progress:
            self._progress.advance(self._runs_task)

    def _line(self, simulated_s: float) -> None:
        took_s = time.monotonic() - self._begun
        left_s = took_s * (self._total_s - simulated_s) / simulated_s if simulated_s else 0.0
        rate = (self._done - self._reused) / took_s
        self._say(f"[{self._done:,}/{self._runs:,}] {rate:.3g} runs/s, {left_s:.0f} s left")
