"""Scenarios of episodes, each drawn from a file of ranges by its seed.

Each key has its own stream of random numbers, so that a key which is added or fixed changes no other.
"""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from penstock import engine, scenario, units
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

Agent = Literal["cc", "aqm"]
AGENTS: tuple[Agent, ...] = ("cc", "aqm")
DEFAULT = Path(__file__).with_name("ranges.toml")
MOST_SEED = 2**63 - 1
MOST_FLOWS = 1000

_PACKET = 1500  # bytes, of which the smallest buffer holds five
# The unit of each key that is a number, its least and its largest value, and whether factors are equally likely.
_NUMBERS: Mapping[str, tuple[str, float, float, bool]] = {
    "rate": ("bit/s", 1e4, 1e11, True),
    "delay": ("s", 1e-6, 10.0, True),
    "buffer": ("", 0.01, 1000.0, True),
    "loss": ("", 0.0, 0.5, False),
    "cross_flows": ("", 0, MOST_FLOWS, False),
}
_NAMES = ("cross_cc", "aqm")
_KEYS = (*_NUMBERS, *_NAMES)
_MEANT = {"bit/s": 'a rate such as "10Mbit/s"', "s": 'a time such as "10ms"', "": "a number"}


@dataclass(frozen=True)
class Ranges:
    """What may be drawn: for each key a lowest and a largest number, or names."""

    numbers: Mapping[str, tuple[float, float]]
    names: Mapping[str, tuple[str, ...]]
    base: Mapping[str, Any] | None = None  # the scenario that is changed; `None` for a dumbbell with these keys alone

    @classmethod
    def load(cls, ranges: str | Path | Mapping[str, Any] | None = None, base: scenario.Source | None = None) -> Ranges:
        """Reads ranges from a file or a mapping, and the scenario that they change.

        Without a scenario, keys that are not there are those of the default file. Raises `MistakeError` for a mistake
        in either of them.
        """
        given = {} if ranges is None else dict(ranges) if isinstance(ranges, Mapping) else _read(Path(ranges))
        where = "ranges" if ranges is None or isinstance(ranges, Mapping) else str(ranges)
        tree = None if base is None else _base(base)
        if tree is None:
            given = {**_read(DEFAULT), **given}
        for key in given:
            if key not in _KEYS:
                raise MistakeError(f"{where}: no key {key!r}; {did_you_mean(key, _KEYS)}there are {', '.join(_KEYS)}")
        numbers = {key: _range(where, key, given[key]) for key in _NUMBERS if key in given}
        names = {key: _names(where, key, given[key]) for key in _NAMES if key in given}
        if tree is not None and "buffer" in numbers:
            _check_product(where, numbers, tree["topology"])
        return cls(numbers, names, tree)

    def draw(self, seed: int, agent: Agent, duration_ns: int) -> str:
        """Returns the scenario of the episode with this seed, as TOML."""
        tree = _copied(self.base) if self.base is not None else _dumbbell()
        topology = tree["topology"]
        for key, unit in (("rate", "bit/s"), ("delay", "ns")):
            if key in self.numbers:
                drawn = self._number(seed, key) * (1e9 if unit == "ns" else 1)
                topology[key] = f"{max(1, round(drawn))}{unit}"
        if "loss" in self.numbers and (loss := self._number(seed, "loss")) > 0:
            topology["loss"] = loss
        if "buffer" in self.numbers:
            product = units.number(topology["rate"]) * 2 * units.number(topology["delay"]) / 8
            topology["limit"] = f"{max(5 * _PACKET, round(self._number(seed, 'buffer') * product))}B"
        self._set_agent(tree, seed, agent)
        tree["duration"] = f"{duration_ns}ns"
        return scenario.to_toml(tree)

    def _set_agent(self, tree: dict[str, Any], seed: int, agent: Agent) -> None:
        cross = self._name(seed, "cross_cc")
        flows = tree["flows"]
        if agent == "aqm":
            tree["aqm"] = {"name": "agent"}
            if cross and self.base is None:
                flows[0]["cc"] = cross
        else:
            flows[0]["cc"] = "agent"
            if aqm := self._name(seed, "aqm"):
                tree["aqm"] = {"name": aqm}
        if count := round(self._number(seed, "cross_flows")) if "cross_flows" in self.numbers else 0:
            more = {"kind": "bulk", "count": count, "start_spread": "1s"}
            flows.append({**more, "cc": cross} if cross else more)

    def _number(self, seed: int, key: str) -> float:
        low, high = self.numbers[key]
        share = uniform(seed, key)
        if key == "cross_flows":
            return min(high, low + math.floor(share * (high - low + 1)))
        if not _NUMBERS[key][3]:
            return low + share * (high - low)
        return low * math.exp(share * math.log(high / low))

    def _name(self, seed: int, key: str) -> str | None:
        names = self.names.get(key)
        return names[int(uniform(seed, key) * len(names))] if names else None


def uniform(seed: int, name: str) -> float:
    """Returns the number in [0, 1) that a seed has under this name."""
    return (_bits(seed, name) >> 11) / 2**53


def following(seed: int) -> int:
    """Returns the seed of the episode that follows one with this seed."""
    return _bits(seed, "next episode") & MOST_SEED


def _bits(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest(), "little")


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MistakeError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise MistakeError(f"{path}: not a file of ranges: {error}") from None


def _base(source: scenario.Source) -> dict[str, Any]:
    found = scenario.Scenario.load(source)
    tree = scenario.tree(found.text)
    topology, flows = tree.get("topology"), tree.get("flows")
    if not isinstance(topology, dict) or topology.get("kind") != "dumbbell":
        raise MistakeError(f'{found.file}: the scenario of an environment needs [topology] with kind = "dumbbell"')
    if not isinstance(flows, list) or not flows or flows[0].get("kind") != "bulk" or flows[0].get("count", 1) != 1:
        raise MistakeError(f'{found.file}: the first [[flows]] of an environment is one flow with kind = "bulk"')
    return tree


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _dumbbell() -> dict[str, Any]:
    return {
        "topology": {"kind": "dumbbell"},
        "flows": [{"kind": "bulk"}],
        "output": {"series": False},
    }


def _range(where: str, key: str, given: Any) -> tuple[float, float]:
    unit, least, most, _ = _NUMBERS[key]
    ends = given if isinstance(given, list) else [given]
    found = [units.base(end) for end in ends]
    known = [x for x, end in zip(found, ends, strict=True) if x is not None and units.base_unit(end) == unit]
    if not 0 < len(known) == len(ends) <= 2:
        raise MistakeError(
            f"{where}: {key} is {given!r}: write {_MEANT[unit]}, or a list of the lowest and the largest"
        )
    low, high = known[0], known[-1]
    if low > high:
        raise MistakeError(f"{where}: {key} is {given!r}: the first number is the lowest one")
    if not (least <= low and high <= most):
        raise MistakeError(f"{where}: {key} is {given!r}: {least:g} to {most:g}{unit and ' ' + unit} are allowed")
    if key == "cross_flows" and any(x != int(x) for x in known):
        raise MistakeError(f"{where}: {key} is {given!r}: write whole numbers")
    return low, high


def _check_product(where: str, numbers: Mapping[str, Any], topology: Mapping[str, Any]) -> None:
    """Raises `MistakeError` if there is no rate or no delay of which a buffer could be a product."""
    for key in ("rate", "delay"):
        if key not in numbers and units.base_unit(topology.get(key)) != _NUMBERS[key][0]:
            raise MistakeError(f"{where}: buffer needs {key}, here or in [topology] of the scenario")


def _names(where: str, key: str, given: Any) -> tuple[str, ...]:
    names = given if isinstance(given, list) else [given]
    if not names or not all(isinstance(name, str) for name in names):
        raise MistakeError(f"{where}: {key} is {given!r}: write a name, or a list of names")
    known = [entry.name for entry in engine.entries() if (entry.kind == "cc") == (key == "cross_cc")]
    for name in names:
        if name not in known:
            raise MistakeError(f"{where}: {key}: no {name!r}; {did_you_mean(name, known)}there are {', '.join(known)}")
    return tuple(names)
