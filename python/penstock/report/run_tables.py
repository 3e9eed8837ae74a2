"""The tables and the tiles of a run, from its summary."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock import ecn
from penstock.report.groups import Group, groups
from penstock.report.kit.model import Cell, Table, Tile
from penstock.units import significant

Tree = Mapping[str, Any]
Row = Sequence[Cell | str]

# Categories of a call by its rating R (ITU-T G.109), each with the class of its label.
CALLS = ((90.0, "best", "holds"), (80.0, "high", "holds"), (70.0, "medium", "partly"), (60.0, "low", "fails"))
_POOR = ("poor", "fails")


def number(value: float | None, form: str = "{:,.2f}", scale: float = 1.0) -> Cell:
    """Returns a number in a form; a dash for a missing one."""
    return Cell("–") if value is None else Cell(form.format(scale * value), scale * value)


def _count(value: float) -> Cell:
    return number(value, "{:,.0f}")


def _percentile(ms: float | None) -> Cell:
    """Returns a percentile of the round trips of a flow, which is known to 1.6 %."""
    return Cell("–") if ms is None else Cell(significant(ms), ms)


def _median(values: Iterable[float | None]) -> float | None:
    """Returns the median of the values that there are."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _mbps(value: float | None) -> Cell:
    return number(value, "{:,.3f}", 1e-6)


def _share(value: float | None) -> Cell:
    return number(value, "{:.2f} %", 100)


def _ms(times: Tree, *keys: str) -> list[Cell]:
    return [number(times[key]) for key in keys]


# Tiles.


def tiles(summary: Tree) -> list[Tile]:
    """Returns what sums up a run: of each of the first two bottlenecks, and of each kind of traffic."""
    found = []
    for b in summary["bottlenecks"][:2]:
        found.append(Tile(f"{100 * b['utilization']:.1f} %", f"{b['name']}: utilization"))
        if b["queue_delay_ms"]["p90"] is not None:
            found.append(Tile(f"{b['queue_delay_ms']['p90']:.1f} ms", f"{b['name']}: queueing delay, p90"))
        found.append(Tile(f"{b['drops_overflow'] + b['drops_aqm']:,}", f"{b['name']}: drops"))
        if b["marks"]:
            found.append(Tile(f"{b['marks']:,}", f"{b['name']}: marks"))
    for group in groups(summary["flows"]):
        if group.jain is not None and group.cc and "transfers" not in group.flows[0]:
            found.append(Tile(f"{group.jain:.3f}", f"Jain index of {len(group.flows)} {group.label} flows"))
    return [*found, *_applications(summary["flows"]), *_lost_ecn(summary)]


def _applications(flows: Sequence[Tree]) -> list[Tile]:
    calls = [flow["voip"]["mos"] for flow in flows if "voip" in flow and flow["voip"]["mos"] is not None]
    frames = [flow["video"]["frames"] for flow in flows if "video" in flow]
    pages = _median(flow["transfers"]["completion_ms"]["p50"] for flow in flows if "transfers" in flow)
    found = [Tile(f"{min(calls):.2f}", "MOS of the worst call")] if calls else []
    sent = sum(one["sent"] for one in frames)
    if sent:
        found.append(Tile(f"{100 * sum(one['played'] for one in frames) / sent:.1f} %", "video frames played"))
    return found + ([] if pages is None else [Tile(f"{pages:,.0f} ms", "transfers took, median")])


def _lost_ecn(summary: Tree) -> list[Tile]:
    return [Tile(ecn.share([summary]), "flows without the ECN they asked for")] if ecn.asking(summary) else []


# Bottlenecks.

_LOAD: tuple[str, ...] = (
    "Name",
    "Discipline",
    "Utilization",
    "Throughput (Mbit/s)",
    "Goodput (Mbit/s)",
    "Packets",
    "Drops, queue full",
)
_LOAD += ("Drops, AQM", "of them forced", "Dropped (kB)", "Marks", "Lost on the wire")
_WAIT = ("Name", *(f"Delay, {word} (ms)" for word in ("mean", "p10", "median", "p90", "p99", "longest")))
_WAIT += ("Queue, mean (kB)", "Queue, longest (kB)")


def bottlenecks(summary: Tree) -> list[Table]:
    """Returns the tables of the measured queues."""
    load, wait = [], []
    for b in summary["bottlenecks"]:
        counts = [_count(b.get(key, 0)) for key in ("packets", "drops_overflow", "drops_aqm", "drops_forced")]
        lost = [number(b["dropped_bytes"], "{:,.1f}", 1e-3), _count(b["marks"]), _count(b.get("lost", 0))]
        rates = [_mbps(b["throughput_bps"]), _mbps(b["goodput_bps"])]
        load.append([b["name"], b.get("aqm", "–"), _share(b["utilization"]), *rates, *counts, *lost])
        delay = _ms(b["queue_delay_ms"], "mean", "p10", "p50", "p90", "p99", "max")
        size = [number(b["queue_bytes"][key], "{:,.1f}", 1e-3) for key in ("mean", "max")]
        wait.append([b["name"], *delay, *size])
    tables = [Table("Load and losses", _LOAD, load, left=2), Table("Waiting", _WAIT, wait)]
    counters = [row for b in summary["bottlenecks"] for row in _counters(b)]
    note = "Counters of the algorithms; their pages (`penstock docs`) say what they mean."
    if counters:
        tables.append(
            Table("What disciplines tell of themselves", ("Counter", "Bottleneck", "Value"), counters, 2, note, 12)
        )
    return tables


def _counters(bottleneck: Tree) -> list[Row]:
    return [[key, bottleneck["name"], cell] for key, cell in _flat(bottleneck.get("algorithm") or {})]


def _flat(value: Any, key: str = "") -> list[tuple[str, Cell]]:
    if isinstance(value, Mapping):
        return [pair for name, inner in value.items() for pair in _flat(inner, f"{key}.{name}".lstrip("."))]
    if isinstance(value, list):
        text = json.dumps(value, ensure_ascii=False)
        return [(key, Cell(text if len(text) <= 120 else f"{text[:117]}..."))]
    if value is None:
        return [(key, Cell("–"))]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return [(key, Cell(str(value)))]
    return [(key, Cell(f"{value:,}" if isinstance(value, int) else f"{value:,.6g}", value))]


# Flows.

_KINDS: tuple[str, ...] = (
    "Kind",
    "Control and direction",
    "Flows",
    "Goodput of all (Mbit/s)",
    "of the median",
    "of the least",
    "of the most",
    "Jain index",
    "Delivered (MB)",
)
_KINDS += ("Resent", "Timeouts", "RTT, median (ms)", "RTT, p90 (ms)")


def by_kind(summary: Tree) -> Table:
    """Returns the table of kinds of flows; fairness is that among the flows of a kind."""
    rows = [_group(group) for group in groups(summary["flows"])]
    jain = summary["jain"]
    note = (
        "Flows of one kind and control together. An index of fairness compares flows of one kind"
        + (f"; over all TCP flows, of whatever kind, Jain's index is {jain['overall']:.3f}" if jain["overall"] else "")
        + (f", and {jain['worst_1s']:.3f} in the worst second." if jain["worst_1s"] else ".")
    )
    return Table("Flows by kind", _KINDS, rows, left=2, note=note)


def _group(group: Group) -> Row:
    of_all: tuple[Callable[[list[float]], float], ...] = (sum, statistics.median, min, max)
    spread = [_mbps(of(group.rates) if group.rates else None) for of in of_all]
    sums = [sum(flow[key] for flow in group.flows) for key in ("delivered_bytes", "retransmits", "timeouts")]
    rtts = [_percentile(_median(flow["rtt_ms"][key] for flow in group.flows)) for key in ("p50", "p90")]
    tcp = bool(group.cc)
    resent = [_count(value) if tcp else Cell("–") for value in sums[1:]]
    about: list[Cell | str] = [group.kind, group.told.strip(" ()") or "–", _count(len(group.flows))]
    return [*about, *spread, number(group.jain, "{:.3f}"), number(sums[0], "{:,.2f}", 1e-6), *resent, *rtts]


_FLOWS: tuple[str, ...] = (
    "Flow",
    "Kind",
    "Control",
    "Start (s)",
    "Goodput (Mbit/s)",
    "Delivered (MB)",
    "Finished after (s)",
    "Resent",
)
_FLOWS += ("Timeouts", "RTT, least (ms)", "RTT, median (ms)", "RTT, p90 (ms)", "RTT, p99 (ms)")


def flows(summary: Tree) -> Table:
    """Returns the table of all flows."""
    with_ecn = bool(ecn.asking(summary))
    rows = [_flow(flow, with_ecn) for flow in summary["flows"]]
    columns = (*_FLOWS[:3], "ECN", *_FLOWS[3:]) if with_ecn else _FLOWS
    return Table("Each flow", columns, rows, left=4 if with_ecn else 3, most=24)


def _flow(flow: Tree, with_ecn: bool) -> Row:
    tcp = bool(flow["cc"])
    about: list[Cell | str] = [Cell(str(flow["id"]), flow["id"]), flow["kind"], flow["cc"] or "–"]
    about += [ecn.text(flow)] if with_ecn else []
    times = [number(flow["start_s"], "{:,.3f}"), _mbps(flow["goodput_bps"])]
    done = [number(flow["delivered_bytes"], "{:,.2f}", 1e-6), number(flow["completion_s"], "{:,.3f}")]
    resent = [_count(flow[key]) if tcp else Cell("–") for key in ("retransmits", "timeouts")]
    least = number(flow["rtt_ms"]["min"], "{:,.1f}")
    rtts = [_percentile(flow["rtt_ms"][key]) for key in ("p50", "p90", "p99")]
    return [*about, *times, *done, *resent, least, *rtts]


# Applications.

_DELIVERY = ("Packets", "Lost", "Delay, median (ms)", "Delay, p99 (ms)", "Jitter (ms)")


def _delivery(one: Tree) -> list[Cell]:
    delays = [number(one["delay_ms"][key], "{:,.1f}") for key in ("p50", "p99")]
    return [_count(one["sent"]), _share(one["loss"]), *delays, number(one["jitter_ms"]["mean"])]


def _call(flow: Tree) -> Row:
    call = flow["voip"]
    word, chip = next(((word, chip) for least, word, chip in CALLS if (call["r"] or 0.0) >= least), _POOR)
    rating = [
        Cell("–") if call["r"] is None else Cell(word, call["r"], chip),
        number(call["mos"]),
        number(call["r"], "{:.1f}"),
        _share(call["late"]),
    ]
    return [_id(flow), *rating, number(call["playout_ms"], "{:,.1f}"), *_delivery(call)]


def _video(flow: Tree) -> Row:
    frames = flow["video"]["frames"]
    counts = [_count(frames[key]) for key in ("sent", "played", "late", "lost")]
    waits = [number(frames["delay_ms"][key], "{:,.1f}") for key in ("p50", "p99")]
    return [_id(flow), *counts, *waits, *_delivery(flow["video"])]


def _transfers(flow: Tree) -> Row:
    one = flow["transfers"]
    counts = [_count(one[key]) for key in ("started", "count", "failed", "refused")]
    took = [number(one["completion_ms"][key], "{:,.1f}") for key in ("p10", "p50", "p90", "p99", "max")]
    return [_id(flow), flow["kind"], *counts, number(one["bytes"], "{:,.2f}", 1e-6), *took]


def _stack(flow: Tree) -> Row:
    one = flow["stack"]
    counts = [_count(one[key]) for key in ("sent", "received", "believed_lost", "answers")]
    delays = [number(one["delay_ms"][key], "{:,.1f}") for key in ("p50", "p99")]
    return [_id(flow), one["version"], *counts, number(one["handshake_ms"], "{:,.1f}"), *delays, one.get("ended", "–")]


def _id(flow: Tree) -> Cell:
    return Cell(str(flow["id"]), flow["id"])


_TOOK = tuple(f"Took, {word} (ms)" for word in ("p10", "median", "p90", "p99", "longest"))
_APPLICATIONS: tuple[tuple[str, str, str, tuple[str, ...], int, Callable[[Tree], Row]], ...] = (
    (
        "voip",
        "Calls",
        "MOS is the opinion score that the E-model (ITU-T G.107) expects, from 1 to 4.5; the words are those of G.109 "
        "for the rating R. A packet that comes after its time of play-out is late.",
        ("Flow", "Quality", "MOS", "R", "Late", "Play-out (ms)", *_DELIVERY),
        2,
        _call,
    ),
    (
        "video",
        "Video",
        "A frame is played if all of it arrives before its deadline.",
        (
            "Flow",
            "Frames",
            "Frames played",
            "Frames late",
            "Frames lost",
            "Frame delay, median (ms)",
            "Frame delay, p99 (ms)",
            *_DELIVERY,
        ),
        1,
        _video,
    ),
    (
        "transfers",
        "Transfers",
        "Pages and files: the time from the request until the last byte.",
        ("Flow", "Kind", "Started", "Complete", "Failed", "Refused", "MB", *_TOOK),
        2,
        _transfers,
    ),
    (
        "stack",
        "Hosted stacks",
        "Datagrams that the client sent, those that the server received, those that the stack believed lost, and "
        "the answers of the server.",
        (
            "Flow",
            "Stack",
            "Sent",
            "Received",
            "Believed lost",
            "Answers",
            "Handshake (ms)",
            "Delay, median (ms)",
            "Delay, p99 (ms)",
            "Ended",
        ),
        2,
        _stack,
    ),
)


def applications(summary: Tree) -> list[Table]:
    """Returns a table for each kind of application with measures of its own, and one of transfers by size."""
    tables = []
    for key, title, note, columns, left, row in _APPLICATIONS:
        rows = [row(flow) for flow in summary["flows"] if key in flow]
        if rows:
            tables.append(Table(title, columns, rows, left, note, 24))
    sizes = [row for flow in summary["flows"] for row in _sizes(flow)]
    if sizes:
        columns = ("Flow", "From size", "Complete", "Mean size (kB)", *_TOOK)
        tables.append(Table("Transfers by size", columns, sizes, 2, "", 24))
    return tables


def _sizes(flow: Tree) -> list[Row]:
    return [
        [
            _id(flow),
            Cell(f"{one['from_bytes'] / 1e3:,.0f} kB", one["from_bytes"]),
            _count(one["count"]),
            number(one["mean_bytes"], "{:,.1f}", 1e-3),
            *(number(one["completion_ms"][key], "{:,.1f}") for key in ("p10", "p50", "p90", "p99", "max")),
        ]
        for one in flow.get("transfers", {}).get("by_size", [])
    ]


# The rest.

_WORDS = {
    "cooperation": "Cooperation: budgets",
    "handovers": "Handovers",
    "clients": "clients that hold a budget at the end",
    "granted_bps": "sum of their budgets (bit/s)",
    "bandwidth_bps": "rate that is divided (bit/s)",
    "message_bytes": "bytes of messages",
    "joined": "clients admitted",
    "left": "clients that said goodbye",
    "lapsed": "clients removed after a silent lease",
    "repeated": "requests answered again",
    "stale": "requests ignored as too old",
    "forged": "requests with a forged state",
    "moves": "flows moved",
    "forwarded": "packets forwarded from the old cell",
    "held": "packets held until the host had attached",
    "lost_in_air": "packets lost in flight",
}


def counters(summary: Tree) -> list[Table]:
    """Returns the counters of cooperation, of handovers and of ECN, as far as a run has them."""
    tables = []
    for key in ("cooperation", "handovers"):
        if key in summary:
            rows: list[Row] = [[_WORDS.get(name, name), cell] for name, cell in _flat(summary[key])]
            tables.append(Table(_WORDS[key], ("Counter", "Value"), rows))
    asking = ecn.asking(summary)
    if asking:
        told = [_ecn(group) for group in groups(asking)]
        why = "syn-retransmitted: a retransmitted SYN does not offer ECN (RFC 3168); declined: the peer did not agree."
        columns = ("Kind", "Control and direction", "Connections that asked", "in use", "lost", "not yet agreed")
        tables.append(Table("ECN", columns, told, 2, why))
    return tables


def _ecn(group: Group) -> Row:
    asked, used, lost = (sum(flow[f"ecn_{key}"] for flow in group.flows) for key in ("asked", "used", "lost"))
    return [
        group.kind,
        group.told.strip(" ()") or "–",
        *(_count(value) for value in (asked, used, lost, asked - used - lost)),
    ]
