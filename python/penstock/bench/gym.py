"""Measures decisions of agents per second in the vector environment, beside the same runs without decisions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from penstock.mistake import MistakeError

if TYPE_CHECKING:
    from penstock.gym import VectorEnv
    from penstock.gym.ranges import Agent

PLACES = 64
DECISIONS = 500
BAR = 80_000  # decisions per second on two processors
# Others on the link keep it busy, also beside a control whose window stays where it is.
_RANGES = {"cross_flows": [1, 3]}
# What changes nothing, and so is the same whether it is decided often or once.
_STILL = 0.0
COLUMNS = ("agent", "threads", "decisions/s", "us/decision", "us alone", "ratio", "bar", "met")


@dataclass(frozen=True)
class Cost:
    """The cost of the decisions of one kind of agent."""

    agent: str
    threads: int
    decisions_per_s: float  # of wall-clock time
    cpu_us_per_decision: float
    cpu_us_alone: float  # of the same simulated time in runs whose agents decide once

    @property
    def ratio(self) -> float:
        """Processor time with decisions over that without."""
        return self.cpu_us_per_decision / self.cpu_us_alone

    @property
    def met(self) -> bool:
        """True if there are as many decisions per second as the bar asks for."""
        return self.decisions_per_s >= BAR

    def to_json(self) -> dict[str, Any]:
        """Returns the cost as plain values for JSON."""
        return {**asdict(self), "ratio": self.ratio, "bar_decisions_per_s": BAR, "met": self.met}


@dataclass(frozen=True)
class Costs:
    """What was measured, or why nothing was."""

    costs: tuple[Cost, ...] = ()
    missing: str | None = None
    load: float | None = None  # load average before

    def to_json(self) -> dict[str, Any]:
        """Returns the costs as plain values for JSON."""
        return {
            "gym": None if self.missing else [cost.to_json() for cost in self.costs],
            "gym_missing": self.missing,
            "gym_load": self.load,
        }


NOT_REACHED = Costs(missing="not reached")


def measure(quick: bool, repeat: int, say: Callable[[str], None]) -> Costs:
    """Measures both agents; the fastest of the repetitions of each counts."""
    try:
        import penstock.gym  # noqa: F401 - it says what is missing
    except MistakeError as error:
        return Costs(missing=str(error))
    say("decisions in penstock.gym")
    load = os.getloadavg()[0]
    kinds: tuple[Agent, ...] = ("cc", "aqm")
    threads = sorted({1, min(2, len(os.sched_getaffinity(0)))})
    return Costs(tuple(_cost(agent, n, 1 if quick else 4, repeat) for agent in kinds for n in threads), None, load)


def _cost(agent: Agent, threads: int, episodes: int, repeat: int) -> Cost:
    from penstock.gym import VectorEnv

    often = VectorEnv(PLACES, agent, ranges=_RANGES, interval="20ms", decisions=DECISIONS, threads=threads)
    once = VectorEnv(PLACES, agent, ranges=_RANGES, interval="10s", decisions=1, threads=threads)
    wall, cpu, alone = [], [], []
    for _ in range(repeat):
        # Both begin the same episodes, which are not counted.
        seconds, busy = _played(often, episodes, DECISIONS)
        wall.append(seconds)
        cpu.append(busy)
        alone.append(_played(once, episodes, 1)[1])
    often.close()
    once.close()
    decisions = PLACES * DECISIONS * episodes
    us = 1e6 / decisions
    return Cost(agent, threads, decisions / min(wall), min(cpu) * us, min(alone) * us)


def _played(env: VectorEnv, episodes: int, decisions: int) -> tuple[float, float]:
    """Plays episodes; returns the wall-clock and the processor time of their steps."""
    import numpy as np

    still = np.full((PLACES, 1), _STILL, np.float32)
    wall = cpu = 0.0
    for episode in range(episodes):
        env.reset(seed=episode * PLACES)
        wall_before, cpu_before = time.perf_counter(), time.process_time()
        for _ in range(decisions):
            env.step(still)
        wall += time.perf_counter() - wall_before
        cpu += time.process_time() - cpu_before
    return wall, cpu


def cells(costs: Costs) -> list[list[str]]:
    """Returns the rows of the table."""
    return [
        [
            cost.agent,
            str(cost.threads),
            f"{cost.decisions_per_s:,.0f}",
            f"{cost.cpu_us_per_decision:.2f}",
            f"{cost.cpu_us_alone:.2f}",
            f"{cost.ratio:.2f}",
            f"{BAR:,}",
            "yes" if cost.met else "no",
        ]
        for cost in costs.costs
    ]
