"""The numbers of a run over which sentences speak: the measures of sweeps, and those that only this search needs.

A measure of a group of flows is called with its group: `subject.goodput_bps`, `udp.call_loss`. With `flows.` it is the
worst of all groups, or their sum where nothing is said about better and worse.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from penstock.adversary.space import base_rtt_s, product_bytes
from penstock.engine import RawTables
from penstock.experiments.measures import BY_KEY, BY_PART, FLOWS, HIGHER, LINK, LOWER, RUN, Measure
from penstock.fairness import jain
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean
from penstock.units import base, base_unit

SUBJECT, OTHERS = "subject", "others"
LONG = ("bulk", "stack")  # the traffic that always has data
_MSS, _HEADERS = 1448, 52  # bytes of a full segment: payload, and headers of IP and TCP with timestamps
_NO_SCALING = 65_535  # bytes: the largest window without window scaling
_SENDS = ("cbr", "onoff", "video")  # traffic that does not react
_FULL = 0.8  # a link is full again after a change when so much of it is used
_BEGINS_S = 1  # the first second of a flow is its slow start
_SETTLED_S = 3  # a flow has begun after so many seconds


@dataclass
class Run:
    """One run: its scenario as tables, its summary, and its tables."""

    tree: Mapping[str, Any]
    roles: Sequence[str]  # of each entry of [[flows]]
    summary: Mapping[str, Any]
    raw: RawTables

    @cached_property
    def groups(self) -> list[tuple[str, Mapping[str, Any], list[dict[str, Any]]]]:
        """For each entry of [[flows]]: its role, its keys, and the flows of the summary."""
        found, first = [], 0
        for role, table in zip(self.roles, self.tree["flows"], strict=True):
            count = table.get("count", 1)
            found.append((role, table, self.summary["flows"][first : first + count]))
            first += count
        return found

    @property
    def link(self) -> Mapping[str, Any]:
        """The bottleneck in the summary."""
        found: Mapping[str, Any] = self.summary["bottlenecks"][0]
        return found

    def columns(self, table: str) -> dict[str, Any]:
        """Returns a table as arrays."""
        return {name: np.frombuffer(data, dtype) for name, (dtype, data) in self.raw.get(table, {}).items()}

    @cached_property
    def rates(self) -> list[tuple[float, float]]:
        """The rate of the link over time: seconds from which on it holds, and bit/s."""
        changes = self.columns("link_changes")
        if not changes:
            return [(0.0, float(base(self.tree["topology"]["rate"]) or 0.0))]
        ours = (changes["link"] == 0) & (changes["reverse"] == 0)
        return [(float(t), float(r)) for t, r in zip(changes["t_s"][ours], changes["rate_bps"][ours], strict=True)]

    @cached_property
    def least_rate(self) -> float:
        """The least rate that the link ever has, in bit/s."""
        return min(rate for _, rate in self.rates)

    @cached_property
    def seconds(self) -> list[float]:
        """The use of the link in each whole second, as a part of what it could have sent."""
        queue = self.columns("queue_seconds")
        if not queue:
            return []
        ours = queue["queue"] == 0
        pairs = zip(queue["t_s"][ours], queue["throughput_bps"][ours], strict=True)
        return [float(sent) / self._carried(float(t)) for t, sent in pairs if float(t) == int(t)]

    def _carried(self, end: float) -> float:
        """Returns the bits that the link can send in the second that ends at `end`."""
        steps = [*self.rates, (math.inf, 0.0)]
        total: float = 0.0
        for (since, rate), (until, _) in itertools.pairwise(steps):
            total += rate * max(0.0, min(end, until) - max(end - 1, since))
        return max(total, 1.0)

    @cached_property
    def long_flows(self) -> list[tuple[str, float]]:
        """For each flow that always has data: its role, and its goodput as a part of its fair share.

        The fair share is that of max-min fairness in each second in which the flow was there from begin to end: other
        traffic keeps what it got, up to its own fair share, and the long flows share the rest.
        """
        seconds = self._by_second()
        long = [(role, table, flow) for role, table, flows in self._forward for flow in flows if table["kind"] in LONG]
        totals = {flow["id"]: [0.0, 0.0] for _, _, flow in long}  # what it got, and its fair share
        for end, got in seconds.items():
            there = [(table, flow) for _, table, flow in long if _is_there(table, flow, end)]
            fair = self._fair(end, got, {flow["id"] for _, flow in there})
            for table, flow in there:
                totals[flow["id"]][0] += got.get(flow["id"], 0.0)
                totals[flow["id"]][1] += min(fair, self._most(table))
        return [
            (role, totals[flow["id"]][0] / totals[flow["id"]][1]) for role, _, flow in long if totals[flow["id"]][1] > 0
        ]

    @property
    def _forward(self) -> list[tuple[str, Mapping[str, Any], list[dict[str, Any]]]]:
        return [one for one in self.groups if one[1].get("direction") != "reverse"]

    def _by_second(self) -> dict[float, dict[int, float]]:
        """Returns what each forward flow got in each whole second, by the end of the second."""
        table = self.columns("flow_seconds")
        ids = {flow["id"] for _, _, flows in self._forward for flow in flows}
        found: dict[float, dict[int, float]] = {}
        if table:
            rows = zip(table["t_s"].tolist(), table["flow"].tolist(), table["goodput_bps"].tolist(), strict=True)
            for end, flow, got in rows:
                if end == int(end) and flow in ids:
                    found.setdefault(end, {})[flow] = got
        return found

    def _fair(self, end: float, got: Mapping[int, float], long: set[int]) -> float:
        """Returns the fair share of each long flow in the second that ends at `end`, in bit/s."""
        link = self._carried(end) * _MSS / (_MSS + _HEADERS)
        link *= 1 - float(base(self.tree["topology"].get("loss", 0)) or 0.0)
        demands = sorted(rate for flow, rate in got.items() if flow not in long)
        for place, demand in enumerate(demands):
            fair = link / (len(demands) - place + len(long))
            if demand > fair:
                return fair
            link -= demand
        return link / max(len(long), 1)

    def _most(self, table: Mapping[str, Any]) -> float:
        """Returns the largest rate that the windows of a flow allow, in bit/s."""
        tcp = {**self.tree.get("tcp", {}), **table.get("tcp", {})}
        if tcp.get("window_scaling", True):
            return math.inf
        waiting = float(self.link["queue_delay_ms"]["mean"] or 0.0) / 1e3  # nothing waited if nothing was sent
        return _NO_SCALING * 8 / max(base_rtt_s(self.tree["topology"], table.get("access_delay")) + waiting, 1e-4)

    def share(self, of: Callable[[list[float]], float], wanted: Callable[[str], bool]) -> float | None:
        """Returns a number of the shares of the long flows whose role is wanted; `None` if there are none."""
        found = [share for role, share in self.long_flows if wanted(role)]
        return of(found) if found else None

    def late(self) -> list[float]:
        """Returns the use of the link in each second of the second half of the run."""
        return self.seconds[len(self.seconds) // 2 :]

    def use_late(self) -> float | None:
        """Returns the mean of these, as a part of what the windows of all long flows allow."""
        late = self.late()
        return sum(late) / len(late) / self._allowed if late else None

    @cached_property
    def _allowed(self) -> float:
        """What the windows of all long flows allow, as a part of the largest rate of the link; at most 1."""
        most = sum(
            self._most(table) * len(flows)
            for _, table, flows in self.groups
            if table["kind"] in LONG and table.get("direction") != "reverse"
        )
        return min(1.0, most / max(rate for _, rate in self.rates)) or 1.0

    def stalled(self) -> float:
        """Returns the longest time for which a long flow that had begun got nothing, in whole seconds."""
        seconds = self.columns("flow_seconds")
        longest = 0
        for _, table, flows in self.groups:
            if not seconds or table["kind"] not in LONG:
                continue
            end = base(table.get("stop")) or math.inf
            for flow in flows:
                there = (seconds["t_s"] > flow["start_s"] + _SETTLED_S) & (seconds["t_s"] <= end)
                ours = (seconds["flow"] == flow["id"]) & there
                longest = max(longest, _run_of_zeros(seconds["goodput_bps"][ours]))
        return float(longest)

    def recovery(self) -> float | None:
        """Returns the seconds from the last change of the link until it is full; `None` without a change."""
        if len(self.rates) < 2 or self._allowed < _FULL:
            return None
        at = self.rates[-1][0]
        first = math.ceil(at)
        full = next((i for i, use in enumerate(self.seconds) if i >= first and use >= _FULL), len(self.seconds))
        return float(max(full + 1 - at, 0.0)) if full < len(self.seconds) else float(len(self.seconds) - at)

    def unresponsive(self) -> float:
        """Returns the mean rate of the traffic that does not react, in bit/s."""
        total = 0.0
        for _, table, _ in self.groups:
            if table["kind"] in _SENDS and table.get("direction") != "reverse":
                part = 1.0
                if table["kind"] == "onoff":
                    on, off = (base(table[key]) or 0.0 for key in ("mean_on", "mean_off"))
                    part = on / (on + off)
                total += (base(table["rate"]) or 0.0) * part * table.get("count", 1)
        return total

    def needless(self) -> float:
        """Returns the part of dropped packets that exceeds what the traffic that does not react makes necessary."""
        offered = self.unresponsive()
        forced = max(0.0, 1 - self.least_rate / offered) if offered else 0.0
        dropped = BY_KEY["link.drop_share"].of(self.link) or 0.0
        return max(0.0, dropped - forced)

    def impossible(self) -> list[str]:
        """Lists what no run may have: numbers that contradict each other."""
        return list(_contradictions(self))


def _is_there(table: Mapping[str, Any], flow: Mapping[str, Any], end: float) -> bool:
    """True if a flow was there in the whole second that ends at `end`, and had begun before."""
    return bool(flow["start_s"] + _BEGINS_S <= end - 1 and end <= (base(table.get("stop")) or math.inf))


def _run_of_zeros(values: Any) -> int:
    longest = length = 0
    for value in values:
        length = 0 if value > 0 else length + 1
        longest = max(longest, length)
    return longest


def _contradictions(run: Run) -> Any:
    link, topology = run.link, run.tree["topology"]
    if link["utilization"] > 1 + 1e-6:
        yield f"the link is used by {link['utilization']:.6f}, more than it can send"
    delays = [link["queue_delay_ms"][key] for key in ("p10", "p50", "p90", "p99", "max")]
    delays = [] if None in delays else delays
    if any(a > b * 1.02 + 0.01 for a, b in itertools.pairwise(delays)):
        yield f"percentiles of the queueing delay fall: {delays}"
    limit = base(topology.get("limit")) if base_unit(topology.get("limit")) == "B" else None
    if limit and link["queue_bytes"]["max"] > limit:
        yield f"{link['queue_bytes']['max']} bytes waited in a queue of {limit:g}"
    forward = [
        flow for _, t, flows in run.groups if t.get("direction") != "reverse" and not _lies(run, t) for flow in flows
    ]
    delivered = sum(flow["delivered_bytes"] for flow in forward)
    if delivered > link["bytes_all"]:
        yield f"{delivered} bytes were delivered over a link that sent {link['bytes_all']}"
    least = min(base_rtt_s(topology), *(base_rtt_s(topology, t.get("access_delay")) for t in run.tree["flows"])) * 1e3
    shortest = run.summary["rtt_ms"]["min"]
    if not _delay_changes(run) and shortest is not None and shortest < 0.98 * least:
        yield f"a round trip took {shortest} ms on a path of {least:g} ms"
    if not 0 <= (run.summary["jain"]["overall"] or 0.0) <= 1 + 1e-6:
        yield f"Jain's index is {run.summary['jain']['overall']}"
    most = max(rate for _, rate in run.rates)
    for flow in forward:
        if flow["goodput_bps"] is not None and flow["goodput_bps"] > 1.001 * most:
            yield f"flow {flow['id']} has {flow['goodput_bps']:.0f} bit/s over a link of {most:.0f}"


def _lies(run: Run, table: Mapping[str, Any]) -> bool:
    """True for flows whose receiver acknowledges what it has not got: what they delivered is not what was sent."""
    return bool(base({**run.tree.get("tcp", {}), **table.get("tcp", {})}.get("optimistic_ack", 0)))


def _delay_changes(run: Run) -> bool:
    return any("delay" in change for change in run.tree.get("changes", []))


def _spread(values: list[float]) -> float | None:
    mean = sum(values) / len(values) if values else 0.0
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)) / mean if mean else None


def _ours(role: str) -> bool:
    return role == SUBJECT


@dataclass(frozen=True)
class Quantity:
    """A number of a run that is no measure of sweeps."""

    unit: str
    about: str
    of: Callable[[Run], float | None] = field(repr=False)


def _q(unit: str, about: str, of: Callable[[Run], float | None]) -> Quantity:
    return Quantity(unit, about, of)


# fmt: off
QUANTITIES: Mapping[str, Quantity] = {
    "share_lowest": _q("", "goodput of the slowest flow that always has data, as a part of its fair share", lambda run: run.share(min, lambda _: True)),
    "subject_share": _q("", "mean of the same over the flows of the scenario itself", lambda run: run.share(lambda v: sum(v) / len(v), _ours)),
    "subject_share_lowest": _q("", "the lowest of these", lambda run: run.share(min, _ours)),
    "others_share": _q("", "mean of the same over the long flows that the search added", lambda run: run.share(lambda v: sum(v) / len(v), lambda role: not _ours(role))),
    "others_share_lowest": _q("", "the lowest of these", lambda run: run.share(min, lambda role: not _ours(role))),
    "jain_long": _q("", "Jain's index of the shares of all flows that always have data", lambda run: run.share(jain, lambda _: True)),
    "use_late": _q("", "use of the link in the second half of the run, as a part of what the windows of the long flows allow", lambda run: run.use_late()),
    "oscillation": _q("", "standard deviation of the use of the link over the seconds of the second half, as a part of its mean", lambda run: _spread(run.late())),
    "stalled_s": _q("s", "longest time, in whole seconds, for which a flow that always has data got nothing, from 3 s after its start", lambda run: run.stalled()),
    "recovery_s": _q("s", "time from the last change of the link until a second in which 80 % of it is used; none without a change", lambda run: run.recovery()),
    "needless_drops": _q("", "dropped packets as a part of all, less the part that traffic which does not react makes necessary", lambda run: run.needless()),
    "ecn_lost": _q("", "connections that asked for ECN and go on without", lambda run: float(sum(f["ecn_lost"] for f in run.summary["flows"]))),
    "impossible": _q("", "contradictions in the summary: more delivered than sent, percentiles that fall, a queue above its limit", lambda run: float(len(run.impossible()))),
    "failed": _q("", "1 if the run ended with an error", lambda _: 0.0),
    "rate_bps": _q("bit/s", "rate of the link at the start", lambda run: float(base(run.tree["topology"]["rate"]) or 0.0)),
    "base_rtt_ms": _q("ms", "round trip time without queues", lambda run: base_rtt_s(run.tree["topology"]) * 1e3),
    "buffer_products": _q("", "size of the queue in products of rate and round trip time", lambda run: (base(run.tree["topology"].get("limit")) or 0.0) / max(product_bytes(run.tree["topology"]), 1.0)),
    "unresponsive_bps": _q("bit/s", "mean rate of the traffic that does not react", lambda run: run.unresponsive()),
    "flows_long": _q("", "number of flows that always have data", lambda run: float(len(run.long_flows))),
}
# fmt: on


def check(name: str, parts: Sequence[str]) -> None:
    """Raises `MistakeError` if no run has a number of this name; `parts` are the names of groups of flows."""
    first, dot, rest = name.partition(".")
    groups = (FLOWS, SUBJECT, OTHERS, *parts)
    if name in QUANTITIES or name in BY_KEY:
        return
    if dot and first in groups and any(measure.name == rest for measure in BY_PART[FLOWS]):
        return
    known = [*QUANTITIES, *BY_KEY]
    if dot and first in groups:
        meant = did_you_mean(rest, [measure.name for measure in BY_PART[FLOWS]])
    elif dot and first != LINK:
        meant = did_you_mean(first, [*groups, LINK])
    else:
        meant = did_you_mean(name, known)
    raise MistakeError(
        f"there is no measure {name!r}; {meant}`penstock docs measures` lists those of sweeps, and "
        "`penstock docs adversary` the others"
    )


def values(run: Run, names: Sequence[str]) -> dict[str, float | None]:
    """Returns the values of these names in a run."""
    return {name: _value(run, name) for name in names}


def of_failure(names: Sequence[str]) -> dict[str, float | None]:
    """Returns the values of these names in a run that ended with an error."""
    return {name: 1.0 if name == "failed" else None for name in names}


def _value(run: Run, name: str) -> float | None:
    if name in QUANTITIES:
        return QUANTITIES[name].of(run)
    first, dot, rest = name.partition(".")
    if first == LINK and dot:
        return BY_KEY[name].of(run.link)
    if not dot:
        measure = BY_KEY[name]
        assert measure.part == RUN
        return measure.of(run.summary)
    return _of_groups(run, first, next(one for one in BY_PART[FLOWS] if one.name == rest))


def _is_of(role: str, group: str) -> bool:
    return group in (FLOWS, role) or (group == OTHERS and not _ours(role))


def _of_groups(run: Run, group: str, measure: Measure) -> float | None:
    found = []
    for role, _, flows in run.groups:
        members = [flow for flow in flows if not measure.only or flow.get(measure.only)]
        value = measure.of_group(members) if _is_of(role, group) else None
        if value is not None:
            found.append(value)
    if not found:
        return None
    return min(found) if measure.better == HIGHER else max(found) if measure.better == LOWER else math.fsum(found)
