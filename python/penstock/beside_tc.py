"""Our disciplines beside those of a kernel: one scenario in the simulator, in the emulator, behind the kernel's own."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from penstock import marked, worlds
from penstock.beside import DELAY, DELAY_MS, GOODPUT, Key, Told, numbers, run_in
from penstock.experiments.processes import Job, cores, run_all
from penstock.scenario import Scenario

_RULES = 'compat = "linux"\n'
# The keys of each discipline, with the kernel's rules.
DISCIPLINES = {
    "droptail": "",
    "codel": _RULES,
    "fq-codel": _RULES,
    "pie": _RULES,
    "fq-pie": _RULES,
    "red": _RULES,
    "cake": _RULES,
}
# Below a shaper (HTB, TBF) the kernel's RED is not asked for packets while it has none, and never learns that it is
# idle. With cells of 2^31 us the average of ours does not fall in idle times either.
_BELOW_A_SHAPER = {"red": "scell_log = 31\n"}
CONTROLS = ("newreno", "cubic-linux")
COLUMNS = {worlds.SIM: "simulator", worlds.JAR: "ours on the kernel's packets", worlds.JAR_TC: "the kernel's own"}
HEADINGS = ("discipline", "control", "Mbit/s", "queue ms", "dropped %", "ours beside the kernel's")
PART = "disciplines"  # of a page
_SCENARIO = """\
duration = "{seconds:g}s"
[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "20ms"
limit = "{limit}"
[aqm]
name = "{name}"
{keys}[[flows]]
kind = "bulk"
cc = "{control}"
count = 4
start_spread = "1s"
"""


@dataclass(frozen=True)
class Row:
    """A discipline with a control: medians of goodput in Mbit/s, mean queueing delay in ms, and part dropped."""

    discipline: str
    control: str
    medians: dict[str, tuple[float, float, float]]  # by the world

    @property
    def missed(self) -> list[str]:
        """In what our code on the kernel's packets is further from the kernel's own than the bars of a run allow."""
        ours, theirs = self.medians[worlds.JAR], self.medians[worlds.JAR_TC]
        goodput = abs(ours[0] / theirs[0] - 1) > GOODPUT
        delay = abs(ours[1] / theirs[1] - 1) > DELAY and abs(ours[1] - theirs[1]) > DELAY_MS
        return ["goodput"] * goodput + ["delay"] * delay

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        goodput, delay, dropped = (
            " / ".join(f"{self.medians[world][place] * factor:.{digits}f}" for world in COLUMNS)
            for place, factor, digits in ((0, 1, 2), (1, 1, 1), (2, 100, 2))
        )
        verdict = f"apart: {', '.join(self.missed)}" if self.missed else "pass"
        return [self.discipline, self.control, goodput, delay, dropped, verdict]

    def to_json(self) -> dict[str, object]:
        """Returns the row as plain values."""
        return {**vars(self), "missed": self.missed}


@dataclass(frozen=True)
class Found:
    """What was compared."""

    kernel: str
    seeds: int
    seconds: float
    rows: tuple[Row, ...]

    @property
    def about(self) -> str:
        """What the numbers of the table are."""
        return (
            f"Linux {self.kernel}; {' / '.join(COLUMNS.values())}. Four flows, 10 Mbit/s, a round trip of 40 ms, "
            f"{self.seconds:g} s, medians of {self.seeds} seeds; the queue of droptail has 33 packets, others 1000."
        )


def compare(
    seeds: int, seconds: float, jobs: int | None, tick: Callable[[str], None], disciplines: Sequence[str] = ()
) -> Found | None:
    """Runs each discipline with each control in the three worlds; `None` if Ctrl-C ended it."""
    names = [(name, control) for name in disciplines or DISCIPLINES for control in CONTROLS]
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    kernels: set[str] = set()

    def kept(job: Job[Key], told: Told) -> None:
        [measured] = told.numbers.values()
        found.setdefault((job.key.name, job.key.on), []).append(measured)
        kernels.update([told.kernel] if told.kernel else [])
        tick(str(job.key))

    for world in COLUMNS:
        todo = [
            Job(Key(f"{name} {control}", world, seed), scenario(name, control, seconds, world), seed)
            for name, control in names
            for seed in range(1, seeds + 1)
        ]
        if not run_all(todo, jobs or cores(), numbers, kept, run=partial(run_in, world)):
            return None

    def medians(name: str) -> dict[str, tuple[float, float, float]]:
        each = {world: list(zip(*found[name, world], strict=True)) for world in COLUMNS}
        return {
            world: (statistics.median(one[0]), statistics.median(one[1]), statistics.median(one[2]))
            for world, one in each.items()
        }

    rows = tuple(Row(name, control, medians(f"{name} {control}")) for name, control in names)
    return Found(", ".join(sorted(kernels)), seeds, seconds, rows)


def scenario(name: str, control: str, seconds: float, world: str) -> Scenario:
    """Returns the scenario of a discipline in a world, with the hosts of Linux."""
    keys = DISCIPLINES[name] + ("" if world == worlds.JAR_TC else _BELOW_A_SHAPER.get(name, ""))
    limit = "33p" if name == "droptail" else "1000p"
    text = _SCENARIO.format(seconds=seconds, limit=limit, name=name, keys=keys, control=control)
    return worlds.linux_hosts(Scenario(text, f"{name}.toml"))


def write(page: Path, found: Found) -> None:
    """Writes the table into its part of a page."""
    table = marked.table(HEADINGS, [row.cells for row in found.rows])
    marked.replace(page, "\n".join([found.about, "", *table]), PART)
