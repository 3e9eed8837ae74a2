"""The simulator beside ns-3: drawn networks, the same on both sides, and what removes the differences.

A difference counts if the ranges of the seeds have nothing in common and the means are more than 2 % apart. Then the
same network runs again with one thing switched on both sides at a time: a switch after which the difference is gone
names the cause. If none does, it is `open`.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock import ns3, store
from penstock.engine import core_fingerprint, simulate
from penstock.scenario import Scenario
from penstock.verify.compare import Watcher
from penstock.verify.digests import digest

NUMBER, SEEDS, DURATION_S = 10, 5, 20
CONTROLS = ("newreno", "cubic", "bic", "hybla", "highspeed", "scalable", "vegas")
DISCIPLINES = ("droptail", "codel", "fq-codel", "pie", "red")
RATES_MBPS, RTTS_MS, FLOWS, BUFFERS = (2, 20), (20, 200), (1, 12), (0.5, 2.0)
MEASURES = ("goodput_mbps", "queue_ms", "drops")
_PARAMETERS: Mapping[str, dict[str, Any]] = {
    "codel": {"target": "5ms", "interval": "100ms"},
    "fq-codel": {"target": "5ms", "interval": "100ms", "ecn": False},
    "pie": {"target": "15ms", "tupdate": "15ms"},
    "red": {
        "min_threshold": "5p",
        "max_threshold": "15p",
        "max_probability": 0.1,
        "weight": 0.002,
        "mean_packet": "1kB",
        "gentle": True,
        "wait": False,
        "least_waiting": 2,
    },
}
# Keys that ns-3 is not told: its RED leaves packets alone while fewer than two wait (red-queue-disc.cc: nQueued > 1).
_OURS_ALONE = ("least_waiting",)
# Means that are closer than this do not differ, however narrow the ranges of the seeds are.
LEAST_SHARE = 0.02
# The delay of an access link, one way.
_ACCESS_MS = 0.5


@dataclass(frozen=True)
class Network:
    """One drawn network."""

    number: int
    control: str
    rate_mbps: int
    rtt_ms: int
    aqm: str
    limit: int
    flows: int
    ecn: bool = False

    @property
    def name(self) -> str:
        """The name of the network in tables and files."""
        aqm = f"{self.aqm}-ecn" if self.ecn else self.aqm
        return f"{self.number}-{self.control}-{self.rate_mbps}M-{self.rtt_ms}ms-{aqm}-{self.flows}"

    def tree(self, switched: Mapping[str, Any], one_less: bool = False, spread: str = "1s") -> dict[str, Any]:
        """Returns the scenario for both programs; `switched` replaces keys of [tcp], `spread` is that of the starts.

        With `one_less` the discipline looks away from one packet, as that of ns-3 does, whose device holds one: its
        thresholds are higher by a packet or by the time that it takes.
        """
        control = {"name": "cubic", "hystart": False} if self.control == "cubic" else {"name": self.control}
        tcp: dict[str, object] = {
            "cc": control,
            "mss": "1448B",
            "receive_buffer": "4MB",
            "send_buffer": "4MB",
            "min_rto": "1s",
            "delayed_ack_timeout": "200ms",
        }
        aqm = {"name": self.aqm, **_PARAMETERS.get(self.aqm, {}), **(self._one_less() if one_less else {})}
        if self.ecn:
            tcp["ecn"] = aqm["ecn"] = True
        return {
            "duration": f"{DURATION_S}s",
            "seed": 1,
            "topology": {
                "kind": "dumbbell",
                "rate": f"{self.rate_mbps}Mbit/s",
                "delay": f"{self.rtt_ms / 2 - 2 * _ACCESS_MS:g}ms",
                "limit": f"{self.limit}p",
                "access_rate": "1Gbit/s",
                "access_delay": f"{_ACCESS_MS:g}ms",
            },
            "aqm": aqm,
            "tcp": _merged(tcp, switched),
            "flows": [{"kind": "bulk", "count": self.flows, "start_spread": spread}],
        }

    def _one_less(self) -> dict[str, Any]:
        if self.aqm == "red":
            return {"min_threshold": "6p", "max_threshold": "16p", "least_waiting": 3}
        if self.aqm == "droptail":
            return {}
        target_us = 15_000 if self.aqm == "pie" else 5_000
        return {"target": f"{target_us + 1500 * 8 // self.rate_mbps}us"}


def _merged(tcp: dict[str, Any], switched: Mapping[str, Any]) -> dict[str, Any]:
    control = {**tcp["cc"], **switched.get("cc", {})}
    return {**tcp, **switched, "cc": control}


# Networks that are not drawn: marks instead of drops, and a round trip time that is CoDel's interval.
ALWAYS = (
    Network(NUMBER, "newreno", 10, 100, "red", 1000, 8, ecn=True),
    Network(NUMBER + 1, "cubic", 10, 100, "codel", 1000, 1),
)


def networks(seed: str) -> list[Network]:
    """Draws the networks of a seed, and adds those of `ALWAYS`.

    Controls and disciplines are dealt, so that none is left out.
    """
    dice = random.Random(f"penstock ns3 {seed}")
    controls, disciplines = (_dealt(dice, things) for things in (CONTROLS, DISCIPLINES))
    drawn = [_draw(dice, number, controls[number], disciplines[number]) for number in range(NUMBER)]
    return [*drawn, *ALWAYS]


def _dealt(dice: random.Random, things: Sequence[str]) -> list[str]:
    found: list[str] = []
    while len(found) < NUMBER:
        found += sorted(things, key=lambda _: dice.random())
    return found


def _draw(dice: random.Random, number: int, control: str, aqm: str) -> Network:
    rate, rtt, flows = (round(_logarithmic(dice, *ends)) for ends in (RATES_MBPS, RTTS_MS, FLOWS))
    buffer = _logarithmic(dice, *BUFFERS)
    product = rate * 1000 * rtt / (8 * 1500)
    limit = max(16, round(buffer * product)) if aqm == "droptail" else 1000
    return Network(number, control, rate, rtt, aqm, limit, flows)


def _logarithmic(dice: random.Random, least: float, most: float) -> float:
    return math.exp(dice.uniform(math.log(least), math.log(most)))


@dataclass(frozen=True)
class Switch:
    """One thing changed, on both sides unless one of them has it already."""

    name: str
    about: str
    tcp: Mapping[str, Any]
    ours_alone: bool = False
    of: tuple[str, ...] = CONTROLS
    one_less: bool = False
    spread: str = "1s"

    def concerns(self, network: Network) -> bool:
        """True if the switch changes anything in this network that a difference may come from."""
        if self.spread != "1s":
            return network.ecn
        return network.control in self.of and not (self.one_less and network.aqm == "droptail")

    def tree(self, network: Network) -> dict[str, Any]:
        """Returns the scenario of a network with the switch, as ns-3 gets it."""
        return network.tree(self.tcp, spread=self.spread)


SWITCHES = (
    Switch(
        "device",
        "the discipline here looks away from one packet, as in ns-3, whose device holds it",
        {},
        True,
        one_less=True,
    ),
    Switch(
        "hybla-rtt0",
        "the reference round trip time of Hybla is 50 ms, as in ns-3",
        {"cc": {"rtt0": "50ms"}},
        True,
        ("hybla",),
    ),
    Switch("together", "flows begin within a millisecond, so that no SYN is dropped", {}, spread="1ms"),
    Switch("acks", "an ACK for each segment", {"ack_every_segment": True}),
    Switch("prr", "the window is halved at once, without proportional rate reduction", {"prr": False}),
    Switch("sack", "no selective acknowledgments, and no proportional rate reduction", {"sack": False, "prr": False}),
    Switch("slow-start", "slow start ends at 10 segments, before it loses any", {"initial_ssthresh": "14480B"}),
    Switch("rack", "losses by time (RACK-TLP) here, which ns-3 does not have", {"rack": True}, True),
)


@dataclass(frozen=True)
class Range:
    """The smallest and the largest number of the seeds, and their mean."""

    least: float
    mean: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Range:
        """Returns the range of the values."""
        return cls(min(values), sum(values) / len(values), max(values))

    def is_apart_from(self, other: Range) -> bool:
        """True if the ranges have no number in common, and the means differ by more than `LEAST_SHARE`."""
        meet = self.least <= other.most and other.least <= self.most
        return not meet and abs(self.mean - other.mean) > LEAST_SHARE * max(self.mean, other.mean)


Side = dict[str, Range]


@dataclass(frozen=True)
class Compared:
    """One network in both programs, with one switch or none."""

    ours: Side
    theirs: Side

    @property
    def apart(self) -> list[str]:
        """The measures that differ by more than the seeds."""
        return [name for name in MEASURES if self.ours[name].is_apart_from(self.theirs[name])]

    def to_json(self) -> dict[str, Any]:
        """Returns both sides as they are stored."""
        sides = (("penstock", self.ours), ("ns3", self.theirs))
        return {label: {name: asdict(found) for name, found in side.items()} for label, side in sides}


@dataclass(frozen=True)
class Row:
    """The result of one network: without a switch, and with those that were tried."""

    network: Network
    plain: Compared
    switched: dict[str, Compared]

    def cause(self, measure: str) -> str:
        """Returns the first switch that removes the difference of a measure, or `open`."""
        removes = (name for name, compared in self.switched.items() if measure not in compared.apart)
        return next(removes, "open")

    def to_json(self) -> dict[str, Any]:
        """Returns the row as it is printed and stored."""
        return {
            "network": asdict(self.network),
            "plain": self.plain.to_json(),
            "apart": {name: self.cause(name) for name in self.plain.apart},
            "switched": {name: compared.to_json() for name, compared in self.switched.items()},
        }


@dataclass(frozen=True)
class Plan:
    """The networks to run, the program of ns-3, and the directory of the results."""

    networks: Sequence[Network]
    program: Path
    out: Path
    fresh: bool = False

    def file(self, network: Network, switch: Switch | None) -> Path:
        """Returns the file with the stored runs of a network."""
        return self.out / f"{network.name}{f'+{switch.name}' if switch else ''}.json"

    def key(self, network: Network, switch: Switch | None) -> dict[str, Any]:
        """Returns the key of stored runs, which are reused as long as it does not change."""
        tree = _ours(network, switch)
        return {"core": core_fingerprint(), "ns3": digest(self.program), "tree": tree, "seeds": SEEDS}


def run(plan: Plan, watcher: Watcher) -> bool:
    """Executes all runs that are not stored; returns false if Ctrl-C ended it early. Each is stored at once."""
    watcher.begin(len(plan.networks), 0, DURATION_S * len(plan.networks))
    try:
        for network in plan.networks:
            row = _row(plan, network)
            watcher.advanced(DURATION_S)
            found = ", ".join(f"{name}: {row.cause(name)}" for name in row.plain.apart) or "within the seeds"
            watcher.finished(f"{network.name}: {found}", 0.0)
    except KeyboardInterrupt:
        return False
    return True


def rows(plan: Plan) -> list[Row]:
    """Returns the rows of the networks whose runs are stored."""
    kept = [network for network in plan.networks if _kept(plan, network, None)]
    return [_row(plan, network) for network in kept]


def _row(plan: Plan, network: Network) -> Row:
    """Compares one network; if it differs, tries the switches until each difference has its cause."""
    plain = _compared(plan, network, None)
    switched: dict[str, Compared] = {}
    left = set(plain.apart)
    for switch in SWITCHES:
        if left and switch.concerns(network):
            switched[switch.name] = _compared(plan, network, switch)
            left -= {name for name in left if name not in switched[switch.name].apart}
    return Row(network, plain, switched)


def _compared(plan: Plan, network: Network, switch: Switch | None) -> Compared:
    file = plan.file(network, switch)
    if plan.fresh or not _kept(plan, network, switch):
        found = {"key": plan.key(network, switch), **_both(plan, network, switch)}
        store.write(file, store.dump(found))
    found = store.read_json(file)
    return Compared(_side(found["penstock"]), _side(found["ns3"]))


def _kept(plan: Plan, network: Network, switch: Switch | None) -> bool:
    file = plan.file(network, switch)
    return file.is_file() and bool(store.read_json(file)["key"] == plan.key(network, switch))


def _both(plan: Plan, network: Network, switch: Switch | None) -> dict[str, list[dict[str, float]]]:
    ours, seeds = _ours(network, switch), range(1, SEEDS + 1)
    here = [_simulated(ours, seed) for seed in seeds]
    if switch is not None and switch.ours_alone:
        return {"penstock": here, "ns3": store.read_json(plan.file(network, None))["ns3"]}
    tree = switch.tree(network) if switch else network.tree({})
    return {"penstock": here, "ns3": [_peer(plan.program, tree, seed) for seed in seeds]}


def _ours(network: Network, switch: Switch | None) -> dict[str, Any]:
    return network.tree(switch.tcp, switch.one_less, switch.spread) if switch else network.tree({})


def _side(runs: Sequence[Mapping[str, float]]) -> Side:
    return {name: Range.of([run[name] for run in runs]) for name in MEASURES}


def _simulated(tree: dict[str, Any], seed: int) -> dict[str, float]:
    # ns-3's device holds one packet beside the queue of the discipline.
    here = copy.deepcopy(tree)
    here["topology"]["limit"] = f"{int(here['topology']['limit'].removesuffix('p')) + 1}p"
    result = simulate(Scenario.load(here), seed)
    queue = result.summary["bottlenecks"][0]
    delivered = sum(flow["delivered_bytes"] for flow in result.summary["flows"])
    return {
        "goodput_mbps": delivered * 8 / DURATION_S / 1e6,
        "queue_ms": queue["queue_delay_ms"]["mean"],
        "drops": queue["drops_overflow"] + queue["drops_aqm"],
    }


def theirs(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a scenario without the keys that ns-3 is not told: what it does by itself, or has no effect."""
    there = copy.deepcopy(dict(tree))
    if there["aqm"]["name"] == "fq-codel":
        there["aqm"].pop("ecn")  # on in ns-3, and of no effect without ECN in TCP
    for key in _OURS_ALONE:
        there["aqm"].pop(key, None)
    return there


def _peer(program: Path, tree: Mapping[str, Any], seed: int) -> dict[str, float]:
    found = ns3.run(program, {**theirs(tree), "seed": seed}, measure=True)
    return {"goodput_mbps": found.goodput_bps / 1e6, "queue_ms": found.queue_delay_ms, "drops": found.drops}
