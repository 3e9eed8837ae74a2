"""Prints tables, summaries, claims and JSON on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock import ecn
from penstock.cli import layout
from penstock.cli.layout import Cell, Styled
from penstock.units import significant

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.claims import Entry

_FLOWS_SHOWN = 16


def console() -> Console:
    """Creates a console for stdout, which shows pages of the documentation on a terminal."""
    from rich.console import Console

    return Console(highlight=False)


def line(text: str = "", style: str = "") -> None:
    """Prints one line, which is never broken, in a style if stdout is a terminal."""
    print(layout.styled(text, style))


def as_json(value: Any) -> None:
    """Prints `value` as one JSON document in one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")


def warn(message: str) -> None:
    """Prints a warning on stderr; an empty one is none."""
    if message:
        print(message, file=sys.stderr)


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], left: int = 1, heads: bool = True
) -> None:
    """Prints a table. The first `left` columns are text, the others numbers; `heads` shows the names of the columns."""
    print("\n".join(layout.table(title, columns, rows, left, heads)))


def summary(run: dict[str, Any]) -> None:
    """Prints a run: tables of bottlenecks and flows, and one for each kind of application with measures of its own."""
    table("Bottlenecks", _BOTTLENECK, [_bottleneck(b) for b in run["bottlenecks"]])
    flows = run["flows"]
    line()
    with_ecn = bool(ecn.asking(run))
    rows = [_flow(flow) + ([ecn.text(flow)] if with_ecn else []) for flow in flows[:_FLOWS_SHOWN]]
    table("Flows", (*_FLOW, "ECN") if with_ecn else _FLOW, rows, left=3)
    if len(flows) > _FLOWS_SHOWN:
        line(f"... and {len(flows) - _FLOWS_SHOWN} more flows", "dim")
    for key, title, columns, row in _APPLICATIONS:
        told = [flow for flow in flows if key in flow]
        if told:
            line()
            table(title, ("flow", *columns), [[str(flow["id"]), *row(flow[key])] for flow in told[:_FLOWS_SHOWN]])
            if len(told) > _FLOWS_SHOWN:
                line(f"... and {len(told) - _FLOWS_SHOWN} more", "dim")
    line(f"\n{_jain(run['jain'])}{run['duration_s']:g} s simulated, seed {run['seed']}")


def _jain(jain: dict[str, float | None]) -> str:
    """Returns what is said of fairness, with a semicolon; nothing if there is no TCP flow."""
    if jain["overall"] is None:
        return ""
    worst = "" if jain["worst_1s"] is None else f", {jain['worst_1s']:.3f} in the worst second"
    return f"Jain index {jain['overall']:.3f} over the run{worst}; "


def number(value: float | None, form: str, scale: float = 1.0) -> str:
    """Returns a number in a form, multiplied by `scale`; a dash for one that is missing."""
    return "-" if value is None else format(value * scale, form)


_BOTTLENECK = (
    "name",
    "use",
    "goodput Mbit/s",
    "packets",
    "drops full",
    "drops AQM",
    "marks",
    "delay ms p50",
    "p90",
    "p99",
    "queue kB max",
)


def _bottleneck(b: dict[str, Any]) -> list[str]:
    delay = b["queue_delay_ms"]
    return [
        b["name"],
        f"{b['utilization']:.1%}",
        f"{b['goodput_bps'] / 1e6:.3f}",
        f"{b['packets']:,}",
        f"{b['drops_overflow']:,}",
        f"{b['drops_aqm']:,}",
        f"{b['marks']:,}",
        *(number(delay[key], ".2f") for key in ("p50", "p90", "p99")),
        f"{b['queue_bytes']['max'] / 1e3:.1f}",
    ]


_FLOW = (
    "flow",
    "kind",
    "cc",
    "start s",
    "goodput Mbit/s",
    "delivered MB",
    "done after s",
    "resent",
    "RTT ms p50",
    "p90",
)


def _flow(f: dict[str, Any]) -> list[str]:
    tcp = bool(f["cc"])
    return [
        str(f["id"]),
        f["kind"],
        f["cc"] or "-",
        f"{f['start_s']:.2f}",
        number(f["goodput_bps"], ".3f", 1e-6),
        f"{f['delivered_bytes'] / 1e6:.2f}",
        number(f["completion_s"], ".2f"),
        f"{f['retransmits']:,}" if tcp else "-",
        *("-" if (ms := f["rtt_ms"][key]) is None else significant(ms) for key in ("p50", "p90")),  # known to 1.6 %
    ]


_TRANSFERS = ("transfers", "complete", "failed", "MB", "took ms p10", "p50", "p90", "p99")
_DELIVERY = ("packets", "lost", "delay ms p50", "p99", "jitter ms")
_CALL = (*_DELIVERY, "late", "R", "MOS")
_VIDEO = (*_DELIVERY, "frames", "played", "late", "lost", "delay ms p99")


def _transfers(t: dict[str, Any]) -> list[str]:
    took = t["completion_ms"]
    counts = [f"{t[key]:,}" for key in ("started", "count", "failed")]
    return [*counts, f"{t['bytes'] / 1e6:.2f}", *(number(took[p], ".1f") for p in ("p10", "p50", "p90", "p99"))]


def _delivery(d: dict[str, Any]) -> list[str]:
    delay = d["delay_ms"]
    return [
        f"{d['sent']:,}",
        number(d["loss"], ".2%"),
        number(delay["p50"], ".1f"),
        number(delay["p99"], ".1f"),
        number(d["jitter_ms"]["mean"], ".2f"),
    ]


def _call(v: dict[str, Any]) -> list[str]:
    return [*_delivery(v), number(v["late"], ".2%"), number(v["r"], ".1f"), number(v["mos"], ".2f")]


def _video(v: dict[str, Any]) -> list[str]:
    frames = v["frames"]
    counts = [f"{frames[key]:,}" for key in ("sent", "played", "late", "lost")]
    return [*_delivery(v), *counts, number(frames["delay_ms"]["p99"], ".1f")]


_STACK = ("datagrams", "received", "believed lost", "handshake ms", "delay ms p50", "p99", "ended", "version")


def _stack(s: dict[str, Any]) -> list[str]:
    times = [s["handshake_ms"], s["delay_ms"]["p50"], s["delay_ms"]["p99"]]
    counts = [f"{s[key]:,}" for key in ("sent", "received", "believed_lost")]
    return [*counts, *(number(one, ".1f") for one in times), s.get("ended", "-"), s["version"]]


# Kinds of applications: the key of a flow with their measures, the title of the table, its columns and its rows.
_APPLICATIONS = (
    ("transfers", "Transfers", _TRANSFERS, _transfers),
    ("voip", "Calls", _CALL, _call),
    ("video", "Video", _VIDEO, _video),
    ("stack", "Hosted stacks", _STACK, _stack),
)


def claims(entries: Sequence[Entry]) -> None:
    """Prints the ledger, and how many claims have each verdict."""
    from penstock.claims import Verdict, causes, counted
    from penstock.claims.counterexample import sentence

    styles = {Verdict.HOLDS: "green", Verdict.PARTLY: "yellow", Verdict.FAILS: "red"}
    rows: list[list[Cell]] = []
    for entry in entries:
        style = styles.get(Verdict(entry.verdict), "dim")
        verdict = f"{entry.verdict} {entry.seeds}" if entry.seeds not in ("", "1/1", "0/1") else entry.verdict
        rows.append([Styled(verdict, style), entry.id, f"{entry.section}, {entry.item}", entry.claim])
        rows.append(["", "", "", Styled(entry.reason, "dim")])
        if entry.cause:
            rows.append(["", "", "", Styled(f"{entry.cause}: {entry.because}", "dim")])
        if entry.nearest:
            rows.append(["", "", "", Styled(f"nearest: {entry.nearest}", "dim")])
        if entry.counterexample and entry.judged:
            rows.append(["", "", "", Styled(f"adversary: {sentence(entry.counterexample)}", "dim")])
    table("", ("verdict", "claim", "where", ""), rows, left=4)
    line("\n" + "; ".join(part for part in (counted(entries), causes(entries)) if part))
