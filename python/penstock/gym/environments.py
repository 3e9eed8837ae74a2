"""The environments: spaces, seeds and episodes around what the compiled part advances."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as _VectorEnv
from gymnasium.vector.utils import batch_space

from penstock import engine, scenario, units
from penstock.gym.ranges import AGENTS, MOST_SEED, Agent, Ranges, following
from penstock.mistake import MistakeError

Floats: TypeAlias = npt.NDArray[np.float32]
_Rewards: TypeAlias = npt.NDArray[np.float64]
_Flags: TypeAlias = npt.NDArray[np.bool_]
_Given: TypeAlias = str | Path | Mapping[str, Any]

_LONGEST_S = 86_400  # of an episode, as of every run
_MOST_PLACES = 100_000
_MOST_THREADS = 1000
_LOWEST = {"cc": -1.0, "aqm": 0.0}  # the least action; the largest is 1


def observed(agent: Agent) -> list[str]:
    """Returns the names of what an agent observes, with their units, in the order of an observation."""
    return engine.observed(_known(agent))


@dataclass(frozen=True)
class Reward:
    """The weights of a reward: `throughput · U - delay · D - loss · L`; docs/gym.md says what U, D and L are."""

    throughput: float = 1.0
    delay: float = 0.2
    loss: float = 1.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
                raise MistakeError(f"the weight {name} is {value!r}: it must be a number, 0 or more")


class _Episodes:
    """Places for episodes with their seeds: what `Env` and `VectorEnv` have in common."""

    def __init__(
        self,
        count: int,
        agent: Agent,
        ranges: _Given | None,
        base: scenario.Source | None,
        interval: str,
        decisions: int,
        reward: Reward,
        pacing: float | None,
        threads: int,
    ) -> None:
        self.agent = _known(agent)
        self.ranges = Ranges.load(ranges, base)
        span = units.base(interval) if units.base_unit(interval) == "s" else None
        if span is None or not 1e-4 <= span <= 10:
            raise MistakeError(f'interval is {interval!r}: write a time from "0.1ms" to "10s"')
        _check_whole("decisions", decisions, math.floor(_LONGEST_S / span))
        if pacing is not None and not (isinstance(pacing, int | float) and 0.01 <= pacing <= 100):
            raise MistakeError(f"pacing is {pacing!r}: write a number from 0.01 to 100, or None")
        if not isinstance(reward, Reward):
            raise MistakeError(f"reward is {reward!r}: write penstock.gym.Reward(throughput=..., delay=..., loss=...)")
        step_ns = round(span * 1e9)
        self._duration_ns = step_ns * decisions
        weights = (reward.throughput, reward.delay, reward.loss)
        self._places: engine.Environments | None = engine.Environments(
            count, agent, f"{step_ns}ns", weights, pacing, threads
        )
        self.seeds: list[int] = []
        self.width = len(observed(agent))
        self.observation_space = spaces.Box(0.0, np.inf, (self.width,), np.float32)
        self.action_space = spaces.Box(_LOWEST[agent], 1.0, (1,), np.float32)

    @property
    def places(self) -> engine.Environments:
        if self._places is None:
            raise MistakeError("this environment is closed: make another one")
        return self._places

    def close(self) -> None:
        self._places = None

    def step(self, actions: Floats, begun: Sequence[int] = ()) -> tuple[Floats, _Rewards, _Flags]:
        """Lets agents act, and in the places `begun` an episode with the place's seed begin.

        Returns observations, rewards, and which episodes are over.
        """
        count = len(actions)
        observations = np.empty((count, self.width), np.float32)
        rewards, over = np.empty(count), np.empty(count, np.bool_)
        if not self.seeds:
            raise MistakeError("call reset() before the first step()")
        seeds = self.seeds
        drawn = [(at, self.ranges.draw(seeds[at], self.agent, self._duration_ns), seeds[at]) for at in begun]
        self.places.step(actions, observations, rewards, over.view(np.uint8), drawn)
        return observations, rewards, over

    def begin(self) -> Floats:
        """Begins an episode in every place."""
        count = len(self.seeds)
        return self.step(np.zeros((count, 1), np.float32), range(count))[0]

    def summary(self, place: int) -> dict[str, Any] | None:
        found = self.places.summary(place)
        return None if found is None else json.loads(found)


class Env(gymnasium.Env[Floats, Floats]):
    """One episode at a time. Arguments are those of `VectorEnv`."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - the base class has it so

    def __init__(
        self,
        agent: Agent = "cc",
        *,
        ranges: _Given | None = None,
        scenario: scenario.Source | None = None,
        interval: str = "20ms",
        decisions: int = 500,
        reward: Reward = Reward(),
        pacing: float | None = None,
    ) -> None:
        self._all = _Episodes(1, agent, ranges, scenario, interval, decisions, reward, pacing, 1)
        self.observation_space, self.action_space = self._all.observation_space, self._all.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begins the episode of a seed; without one, that which follows the last episode."""
        chosen = None if seed is None else _checked_seed(seed)
        super().reset(seed=chosen, options=options)
        if chosen is None and self._all.seeds:
            chosen = following(self._all.seeds[0])
        elif chosen is None:
            chosen = int(self.np_random.integers(MOST_SEED))
        self._all.seeds = [chosen]
        return self._all.begin()[0], {"episode_seed": chosen}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Lets the agent act, and the episode go on for an interval. Episodes are truncated and never terminated."""
        observations, rewards, over = self._all.step(_checked_actions(action, (1,))[np.newaxis])
        return observations[0], float(rewards[0]), False, bool(over[0]), {}

    def summary(self) -> dict[str, Any] | None:
        """Returns the results of the episode so far, as `penstock run` has them; `None` before the first episode."""
        return self._all.summary(0)

    def close(self) -> None:
        """Frees the memory. A second call does nothing."""
        self._all.close()


class VectorEnv(_VectorEnv[Floats, Floats, npt.NDArray[Any]]):
    """Many episodes side by side, advanced by several threads; the results do not depend on their number.

    `agent` is "cc" (the congestion control of the first flow) or "aqm". Each episode is drawn from `ranges`, a file or
    a mapping, which change `scenario`, a file or a mapping with a dumbbell; without one, keys that `ranges` lacks are
    those of `penstock/gym/ranges.toml`. An episode has so many `decisions`, one every `interval`. A control paces at
    `pacing` windows per round trip, or not at all. `threads` of `None` are as many as this process may use.
    """

    def __init__(
        self,
        num_envs: int = 64,
        agent: Agent = "cc",
        *,
        ranges: _Given | None = None,
        scenario: scenario.Source | None = None,
        interval: str = "20ms",
        decisions: int = 500,
        reward: Reward = Reward(),
        pacing: float | None = None,
        threads: int | None = None,
    ) -> None:
        _check_whole("num_envs", num_envs, _MOST_PLACES)
        if threads is not None:
            _check_whole("threads", threads, _MOST_THREADS)
        workers = threads or len(os.sched_getaffinity(0))
        self._all = _Episodes(num_envs, agent, ranges, scenario, interval, decisions, reward, pacing, workers)
        self.num_envs = num_envs
        self.metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space, self.single_action_space = self._all.observation_space, self._all.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._over = np.zeros(num_envs, np.bool_)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begins an episode in every place.

        A number is the seed of the first place, and each other place has the next number; a list has one for each.
        Without a seed, the episodes follow the last ones.
        """
        del options
        if isinstance(seed, Sequence | np.ndarray):
            if len(seed) != self.num_envs:
                raise MistakeError(f"{len(seed)} seeds for {self.num_envs} places: write one for each")
            self._all.seeds = [_checked_seed(one) for one in seed]
        elif seed is not None:
            super().reset(seed=_checked_seed(seed))
            self._all.seeds = [_checked_seed(seed + place) for place in range(self.num_envs)]
        elif self._all.seeds:
            self._all.seeds = [following(one) for one in self._all.seeds]
        else:
            self._all.seeds = [int(self.np_random.integers(MOST_SEED)) for _ in range(self.num_envs)]
        self._over = np.zeros(self.num_envs, np.bool_)
        return self._all.begin(), self._info(~self._over)

    def step(
        self, actions: Floats
    ) -> tuple[Floats, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Lets all agents act, and their episodes go on for an interval.

        Where an episode was over, the action is ignored and the next episode begins (`AutoresetMode.NEXT_STEP`).
        """
        given = _checked_actions(actions, (self.num_envs, 1))
        again = [int(place) for place in np.flatnonzero(self._over)]
        for place in again:
            self._all.seeds[place] = following(self._all.seeds[place])
        observations, rewards, over = self._all.step(given, again)
        info = self._info(self._over) if again else {}
        self._over = over.copy()
        return observations, rewards, np.zeros(self.num_envs, np.bool_), over, info

    def _info(self, begun: npt.NDArray[np.bool_]) -> dict[str, Any]:
        seeds = np.array(self._all.seeds, np.int64)
        return {"episode_seed": np.where(begun, seeds, 0), "_episode_seed": begun.copy()}

    def summary(self, place: int) -> dict[str, Any] | None:
        """Returns the results of a place's episode so far, as `penstock run` has them."""
        return self._all.summary(place)

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the memory."""
        del kwargs
        self._all.close()


def _known(agent: Agent) -> Agent:
    if agent not in AGENTS:
        raise MistakeError(f"agent is {agent!r}: write {' or '.join(map(repr, AGENTS))}")
    return agent


def _check_whole(name: str, value: object, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise MistakeError(f"{name} is {value!r}: write a whole number from 1 to {most}")


def _checked_seed(seed: int) -> int:
    if not isinstance(seed, int | np.integer) or not 0 <= seed <= MOST_SEED:
        raise MistakeError(f"the seed {seed!r} is not a whole number between 0 and {MOST_SEED}")
    return int(seed)


def _checked_actions(given: Any, shape: tuple[int, ...]) -> Floats:
    try:
        with np.errstate(over="ignore"):
            actions = np.ascontiguousarray(given, np.float32)
    except (TypeError, ValueError):
        raise MistakeError(f"the actions are no array of numbers with the shape {shape}") from None
    if actions.shape != shape:
        raise MistakeError(f"the actions have the shape {actions.shape}; it must be {shape}")
    return actions
