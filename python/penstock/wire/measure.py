"""What was recorded on the wire, as the summary and the tables of a simulated run."""

from __future__ import annotations

import copy
import itertools
import math
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.engine import BrokenInvariant
from penstock.fairness import jain
from penstock.units import number
from penstock.wire import calls, transfers
from penstock.wire.calls import quantiles
from penstock.wire.flow import Flow
from penstock.wire.network import Step
from penstock.wire.packets import Queue
from penstock.wire.plan import Plan
from penstock.wire.world import Recorded

Floats = npt.NDArray[np.float64]
Tables = dict[str, dict[str, tuple[str, bytes]]]
_STEP = math.log(1.01)  # a row of a distribution is so wide
_TRIP_STEP = math.log(1.016)

# Keys of a summary which nothing on the wire measures; they are null there.
UNMEASURED = {
    "bottlenecks[].algorithm": "the emulator does not print what its discipline tells of itself",
    "flows[].stack.delay_ms": "datagrams of a stack are its own and carry no time that others know",
}
# Keys which are measured in another way than in the simulator.
OTHERWISE = {
    "events": "packets that the bottleneck sent or dropped, in both directions",
    "flows[].rtt_ms": "the kernel's smoothed round trip time, every 100 ms; min is the kernel's own",
    "flows[].stack": "by the sockets of its hosts; its round trip times every 100 ms",
    "flows[].ecn_lost_why": "guessed from whether anything was sent again",
    "bottlenecks[].packets": "packets of more than 100 bytes",
}
# The same, of the gateway of `[cooperation]`.
UNMEASURED_OF_GATEWAY = {"cooperation.message_bytes": "the gateway does not count bytes, which TLS hides"}
OTHERWISE_OF_GATEWAY = {"cooperation.messages": "datagrams of QUIC that arrived at the gateway"}


def summarize(plan: Plan, found: Recorded) -> tuple[dict[str, Any], Tables]:
    """Returns the summary and the tables by second."""
    seconds = _Seconds(plan, found)
    queues = [_queue(plan, found, step) for step in plan.queues]
    summary = copy.deepcopy(plan.empty)
    summary["duration_s"] = plan.duration_s
    others = [(link, way) for link in range(len(plan.links)) for way in (False, True) if (link, way) not in plan.queues]
    summary["events"] = sum(one.events for one in queues) + sum(_total(_report(found, step)) for step in others)
    summary["flows"] = [_flow(plan, flow, found, summary["flows"][flow.id]) for flow in plan.flows]
    summary["bottlenecks"] = [
        {**empty, **_bottleneck(plan, step, queue, _report(found, step), summary)}
        for empty, step, queue in zip(plan.empty["bottlenecks"], plan.queues, queues, strict=True)
    ]
    trips = [ms for flow in plan.flows for ms in found.sent[flow.id].get("rtts_ms", ())]
    summary["rtt_ms"] = _trips(np.array(trips, float), None)
    fair = [flow.id for flow in plan.flows if _is_fair(flow) and flow.start_s < plan.duration_s]
    active = [rate for id_ in fair if (rate := summary["flows"][id_]["goodput_bps"]) is not None]
    summary["jain"] = {"overall": _round(jain(active)) if any(active) else None, **seconds.jain()}
    summary["goodput_1s_bps"] = seconds.total()
    if found.gateway:
        summary["cooperation"] = _cooperation(found.gateway)
    tables = {**seconds.tables(queues), **_distributions(queues, plan, found)}
    return summary, tables | (_datagrams(plan, found) if plan.keeps_datagrams else {})


def check_invariants(plan: Plan, summary: Mapping[str, Any]) -> None:
    """Raises `BrokenInvariant` if an invariant of the scenario did not hold; a real run cannot be stopped before."""
    wanted = tomllib.loads(plan.resolved).get("invariants", {})
    most = number(wanted["max_queue"]) if "max_queue" in wanted else math.inf
    for queue in summary["bottlenecks"]:
        dropped = queue["drops_overflow"] + queue["drops_aqm"]
        if wanted.get("no_drops") and dropped:
            raise BrokenInvariant(f'invariant no_drops: {dropped} packets were dropped at "{queue["name"]}"')
        if queue["queue_bytes"]["max"] > most:
            raise BrokenInvariant(
                f'invariant max_queue: {queue["queue_bytes"]["max"]} bytes waited at "{queue["name"]}"'
            )


def _cooperation(told: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the gateway of budgets counted, in the keys of the simulator's gateway."""
    counted, refused = told["messages"], told["refused"]
    return {
        "clients": told["holders"],
        "granted_bps": told["granted_bps"],
        "bandwidth_bps": told["rate_bps"],
        "messages": told["sessions"]["datagrams"],
        "message_bytes": None,
        **{key: counted[key] for key in ("joined", "left", "lapsed", "repeated", "stale", "forged")},
        "ignored": refused["other_names"] + refused["not_theirs"],
    }


def _is_fair(flow: Flow) -> bool:
    """True if Jain's index has the flow: sessions are limited by their applications."""
    return flow.kind == "stack" or (flow.tcp is not None and not flow.in_sessions)


def _queue(plan: Plan, found: Recorded, step: Step) -> Queue:
    link, reverse = step
    way = "reverse" if reverse else "forward"
    return Queue.read(found.packets[link], way, found.zeros_s[link], plan.duration_s)


def _report(found: Recorded, step: Step) -> Mapping[str, Any]:
    link, reverse = step
    told: Mapping[str, Any] = found.reports[link]["reverse" if reverse else "forward"]
    return told


def _total(way: Mapping[str, Any]) -> int:
    return int(way["delivered"]["packets"] + sum(way["dropped"][key] for key in ("early", "overflow", "dequeue")))


def _bottleneck(
    plan: Plan, step: Step, queue: Queue, report: Mapping[str, Any], summary: Mapping[str, Any]
) -> dict[str, Any]:
    crossing = [flow.id for flow in plan.flows if step in flow.path]
    payload = sum(summary["flows"][id_]["delivered_bytes"] for id_ in crossing)
    sent_bits = queue.sent_bytes * 8
    return {
        "utilization": _round(min(sent_bits / _capacity_bits(plan, step), 1.0)),
        "throughput_bps": _round(sent_bits / plan.duration_s),
        "goodput_bps": _round(payload * 8 / plan.duration_s),
        "packets": queue.data_packets,
        "packets_all": queue.sent_packets,
        "bytes_all": queue.sent_bytes,
        "drops_overflow": report["dropped"]["overflow"],
        "drops_aqm": report["dropped"]["early"] + report["dropped"]["dequeue"],
        "drops_forced": report["dropped"].get("forced", 0),
        "dropped_bytes": queue.dropped_bytes,
        "marks": report["marked"],
        "lost": report["lost"],
        **{key: report[key] for key in ("policed", "bursts", "reordered", "duplicated") if key in report},
        "queue_delay_ms": quantiles(queue.waited_ms),
        "queue_bytes": {"mean": _round(queue.mean_bytes), "max": queue.most_bytes},
    }


def _capacity_bits(plan: Plan, step: Step) -> float:
    """Returns what the link could have sent, with the changes of its rate."""
    changes = [] if plan.link_changes is None else plan.link_changes.to_pylist()
    rows = [row for row in changes if (row["link"], bool(row["reverse"])) == step]
    if not rows:
        return plan.links[step[0]].rates_bps[step[1]] * plan.duration_s
    ends = [*(row["t_s"] for row in rows[1:]), plan.duration_s]
    return float(sum(row["rate_bps"] * (end - row["t_s"]) for row, end in zip(rows, ends, strict=True)))


def _flow(plan: Plan, flow: Flow, found: Recorded, empty: Mapping[str, Any]) -> dict[str, Any]:
    sent, received = found.sent[flow.id], found.received[flow.id]
    end = received["ended_s"]
    stopped = end if end is not None else _stopped(plan, flow, received)
    active = min(stopped, plan.duration_s) - flow.start_s
    made = {
        **empty,
        "goodput_bps": _round(received["bytes"] * 8 / active) if active > 0 else None,
        "delivered_bytes": received["bytes"],
        "completion_s": None if end is None else _round(end - flow.start_s),
        "retransmits": sent.get("resent") or 0,
        "timeouts": sent.get("timeouts", None if flow.tcp else 0),
    }
    if flow.tcp:
        asked, used = _ecn(flow, sent)
        why = ("syn-retransmitted" if sent.get("resent") else "declined") if asked > used else None
        made |= {"ecn_asked": asked, "ecn_used": used, "ecn_lost": asked - used, "ecn_lost_why": why}
        made["rtt_ms"] = _trips(np.array(sent["rtts_ms"], float), sent.get("least_rtt_ms"))
    if flow.in_sessions:
        made["transfers"] = transfers.judge(flow.kind, sent)
    if flow.kind == "stack":
        made["rtt_ms"] = _trips(np.array(sent["rtts_ms"], float), None)
        made["stack"] = _hosted(flow, sent, received)
    if flow.kind == "voip":
        made["voip"] = calls.judge(sent["sent"], received["delays"])
    if flow.kind == "video":
        deadline_s = float(flow.sends["deadline_s"])
        made["video"] = calls.judge_video(sent["frames"], sent["sent"], received["delays"], deadline_s)
    return made


def _hosted(flow: Flow, sent: Mapping[str, Any], received: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the two ends of a hosted stack counted, in the keys of the simulator."""
    connected = sent["connected_s"]
    ended = None if flow.stop_s is not None else sent["ended"] or received["ended"]
    return {
        "version": sent["version"],
        "handshake_ms": None if connected is None else _round(1e3 * (connected - flow.start_s)),
        "sent": sent["sent"],
        "sent_bytes": sent["sent_bytes"],
        "received": received["received"],
        "believed_lost": sent["lost"],
        "answers": received["sent"],
        **({"ended": ended} if ended else {}),
        "delay_ms": dict.fromkeys(("mean", "p10", "p50", "p90", "p99", "max")),
    }


def _stopped(plan: Plan, flow: Flow, received: Mapping[str, Any]) -> float:
    """Returns when a flow that has no end of its own was no longer active."""
    if flow.stop_s is None or (flow.tcp and not flow.in_sessions):
        return plan.duration_s
    return max(flow.stop_s, float(received.get("last_s", 0.0)))


def _ecn(flow: Flow, sent: Mapping[str, Any]) -> tuple[int, int]:
    """Returns how many connections asked for ECN, and how many got it."""
    if not flow.tcp or not flow.tcp.ecn:
        return 0, 0
    if flow.in_sessions:
        return sent["connections"], sent["with_ecn"]
    return int("ecn" in sent), int(bool(sent.get("ecn")))


def _trips(ms: Floats, least: float | None) -> dict[str, float | None]:
    if not len(ms):
        return {"min": least, **dict.fromkeys(("mean", "p10", "p50", "p90", "p99"))}
    at = {f"p{q}": _round(float(np.percentile(ms, q))) for q in (10, 50, 90, 99)}
    return {"min": _round(float(ms.min()) if least is None else least), "mean": _round(float(ms.mean())), **at}


def _round(value: float) -> float:
    return round(value, 6)


class _Seconds:
    """The counters of the receivers at the end of each second."""

    def __init__(self, plan: Plan, found: Recorded) -> None:
        self._plan, self._found = plan, found
        self._rows: list[tuple[float, float, dict[int, float], float]] = []  # begin, end, rates, real end
        rows = found.seconds
        for (before_s, before), (after_s, after) in itertools.pairwise(rows):
            begin, end = len(self._rows) * 1.0, min(len(self._rows) + 1.0, plan.duration_s)
            if end <= begin or after_s <= before_s:
                continue
            rates = {id_: (after[id_] - before[id_]) * 8 / (after_s - before_s) for id_ in after}
            self._rows.append((begin, end, rates, after_s))

    def _counted(self) -> list[tuple[float, dict[int, float]]]:
        """Returns the whole seconds after the warm-up."""
        warmup = self._plan.empty["warmup_s"]
        return [(begin, rates) for begin, end, rates, _ in self._rows if begin >= warmup and end - begin == 1]

    def jain(self) -> dict[str, float | None]:
        """Returns the fairness of the seconds among the TCP flows that were active throughout."""
        found = []
        for begin, rates in self._counted():
            fair = [rates[flow.id] for flow in self._plan.flows if _is_fair(flow) and self._is_active(flow, begin)]
            if any(fair):
                found.append(jain(fair))
        if not found:
            return {"mean_1s": None, "worst_1s": None}
        return {"mean_1s": _round(sum(found) / len(found)), "worst_1s": _round(min(found))}

    def _is_active(self, flow: Flow, begin: float) -> bool:
        end = self._found.received[flow.id]["ended_s"]
        return flow.start_s <= begin and (end is None or end >= begin + 1)

    def total(self) -> dict[str, float | None]:
        """Returns the goodput of all flows together by seconds."""
        return quantiles(np.array([sum(rates.values()) for _, rates in self._counted()]))

    def tables(self, queues: Sequence[Queue]) -> Tables:
        """Returns the tables of flows and of queues by seconds."""
        flows: list[tuple[float, int, float, int]] = []
        for _, end, rates, _real in self._rows:
            for flow in self._plan.flows:
                if flow.start_s < end:
                    flows.append((end, flow.id, _round(rates[flow.id]), self._window(flow, end)))
        rows = [
            (end, number, *queue.second(begin, end))
            for begin, end, _, _ in self._rows
            for number, queue in enumerate(queues)
        ]
        names = ("throughput_bps", "queue_bytes_max", "queue_bytes_mean", "queue_delay_ms_mean")
        return {
            "flow_seconds": _columns(
                flows, [("t_s", "<f8"), ("flow", "<u4"), ("goodput_bps", "<f8"), ("cwnd_bytes", "<u8")]
            ),
            "queue_seconds": _columns(
                rows, [("t_s", "<f8"), ("queue", "<u4"), *zip(names, ("<f8", "<u8", "<f8", "<f8"), strict=True)]
            ),
        }

    def _window(self, flow: Flow, end: float) -> int:
        windows = [row for row in self._found.sent[flow.id].get("windows", ()) if row[0] <= end + 0.05]
        return int(windows[-1][1]) if windows else 0


def _columns(rows: Sequence[Sequence[Any]], columns: Sequence[tuple[str, str]]) -> dict[str, tuple[str, bytes]]:
    return {
        name: (form, np.array([row[place] for row in rows], form).tobytes())
        for place, (name, form) in enumerate(columns)
    }


def _distributions(queues: Sequence[Queue], plan: Plan, found: Recorded) -> Tables:
    delays = [(number, *row) for number, queue in enumerate(queues) for row in _rows(queue.waited_ms, _STEP)]
    groups: dict[tuple[str, str], tuple[int, list[float]]] = {}
    for flow in plan.flows:
        key = (flow.kind, str(plan.empty["flows"][flow.id]["cc"]))
        groups.setdefault(key, (flow.id, []))[1].extend(found.sent[flow.id].get("rtts_ms", ()))
    trips = [(first, *row) for first, ms in groups.values() for row in _rows(np.array(ms, float), _TRIP_STEP)]
    made: Tables = {
        "queue_delays": _columns(delays, [("queue", "<u4"), ("delay_ms", "<f8"), ("packets", "<u8")]),
        "round_trips": _columns(trips, [("flow", "<u4"), ("rtt_ms", "<f8"), ("samples", "<u8")]),
    }
    if plan.link_changes is not None:
        made["link_changes"] = {
            name: (column.to_numpy().dtype.str, column.to_numpy().tobytes())
            for name, column in zip(plan.link_changes.column_names, plan.link_changes.columns, strict=True)
        }
    return made


def _datagrams(plan: Plan, found: Recorded) -> Tables:
    """Returns the datagrams of each flow up to the last one that arrived. A lost one has no delay, and its time of
    sending is taken from its neighbours.
    """
    rows: list[tuple[int, int, float, float]] = []
    for flow in plan.flows:
        arrived = {int(place): (sent_s, delay) for place, sent_s, delay in found.received[flow.id].get("delays", ())}
        known = sorted(arrived)
        places = range(max(known, default=-1) + 1)
        sent = np.interp(places, known, [arrived[place][0] for place in known]) if known else ()
        for place, at in zip(places, sent, strict=True):
            delay = arrived[place][1] * 1e3 if place in arrived else math.nan
            rows.append((flow.id, place, float(at), delay))
    columns = [("flow", "<u4"), ("number", "<u4"), ("sent_s", "<f8"), ("delay_ms", "<f8")]
    return {"datagrams": _columns(rows, columns)}


def _rows(ms: Floats, step: float) -> list[tuple[float, int]]:
    """Returns the upper bounds of bins, and how many values there are in each."""
    if not len(ms):
        return []
    bins = np.ceil(np.log(np.maximum(ms, 1e-3) / 1e-3) / step).astype(int)
    numbers, counts = np.unique(bins, return_counts=True)
    bounds = np.where(numbers == 0, 1e-3, 1e-3 * np.exp(numbers * step))
    return [(float(bound), int(count)) for bound, count in zip(bounds, counts, strict=True)]
