"""Environments of Gymnasium in which an agent is a congestion control or an AQM: `docs/gym.md`.

`Env` has one episode at a time and `VectorEnv` many, whose observations come in one array. Needs the package gymnasium.
"""

from __future__ import annotations

from penstock.mistake import lacking

try:
    import gymnasium
except ImportError:
    raise lacking("gymnasium", "penstock.gym") from None

from penstock.gym.environments import Env, Reward, VectorEnv, observed
from penstock.gym.ranges import AGENTS, Ranges

__all__ = ["Env", "Ranges", "Reward", "VectorEnv", "observed"]

for _agent in AGENTS:
    gymnasium.register(
        f"penstock/{_agent}-v0",
        entry_point="penstock.gym:Env",
        vector_entry_point="penstock.gym:VectorEnv",
        kwargs={"agent": _agent},
    )
