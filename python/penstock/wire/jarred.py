"""Runs in the jar: a stock kernel in virtual time plays the plan that the wire plays in real time."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from penstock import store
from penstock.engine import Stopped
from penstock.jar import MEMORY_MB, Jar, last_lines
from penstock.mistake import MistakeError
from penstock.scenario import Scenario
from penstock.wire import inside, world
from penstock.wire.plan import Plan
from penstock.wire.world import Recorded, Tick

# Groups of hosts behind long access links for which the usual memory is enough, and what each other one takes: an
# emulator and a program.
_GROUPS, _GROUP_MB = 8, 60


def play(
    wanted: Plan,
    folder: Path,
    kernel: Jar,
    tick: Tick = lambda _now, _end: None,
    stop: Callable[[], bool] = lambda: False,
) -> Recorded:
    """Plays a plan in virtual time; the fates of packets come into files in a folder, one for each link."""
    # What the run does not need stays here: own classes, and a table for the results.
    alone = replace(wanted, scenario=Scenario(wanted.scenario.text, wanted.scenario.file), link_changes=None)
    store.write(folder / inside.PLAN, pickle.dumps((alone, str(world.emulator().resolve()))))

    def told(line: str) -> None:
        if stop():
            raise Stopped
        if line.startswith(inside.AT):
            tick(float(line.removeprefix(inside.AT)), wanted.duration_s)

    printed = kernel.run(Path(inside.__file__), folder, told, _memory_mb(wanted))
    file = folder / inside.RECORDED
    if not file.is_file():
        raise MistakeError(f"--on jar: {kernel.linux.name} ended without a result: {last_lines(printed)}")
    found: Recorded | str = pickle.loads(file.read_bytes())
    if isinstance(found, str):
        raise MistakeError(f"--on jar: {found.removeprefix('--on wire: ')}")
    return replace(found, packets=_in(folder, found.packets), captures=_in(folder, found.captures))


def _in(folder: Path, files: tuple[Path, ...]) -> tuple[Path, ...]:
    """Returns the files as they are called outside of the jar."""
    return tuple(folder / file.name for file in files)


def _memory_mb(wanted: Plan) -> int:
    return MEMORY_MB + _GROUP_MB * max(0, len(wanted.groups) - _GROUPS)
