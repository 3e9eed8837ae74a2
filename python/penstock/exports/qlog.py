"""A qlog file for each TCP connection of a run, with samples of its congestion control as events.

Source: draft-ietf-quic-qlog-main-schema (version 0.4), `QlogFile`, `Trace` and `Event`;
draft-ietf-quic-qlog-quic-events, `recovery:metrics_updated` and `recovery:congestion_state_updated`. Times are
milliseconds since the start of the run. An event has only the values that have changed.

DIFFERENCE: what the drafts have no field for has a field of its own in the event, beside `data`:
`retransmitted_segments` and `timeouts`, the numbers so far (test_exports.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penstock import tcp_trace

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = "0.4"
# Columns of the table `tcp_trace`, and what the draft calls them.
_METRICS = {
    "cwnd_bytes": "congestion_window",
    "ssthresh_bytes": "ssthresh",
    "srtt_ms": "smoothed_rtt",
    "in_flight_bytes": "bytes_in_flight",
    "pacing_bps": "pacing_rate",
}
_COUNTED = ("retransmitted_segments", "timeouts")


def files(summary: Mapping[str, Any], table: pa.Table, flows: tuple[int, ...]) -> dict[str, dict[str, Any]]:
    """Returns a log for each of these flows, by the names of their files; `table` is the `tcp_trace` of the run."""
    about = {flow["id"]: flow for flow in summary["flows"]}
    return {f"flow-{flow}.qlog": _file(summary, about[flow], tcp_trace.of_flow(table, flow)) for flow in flows}


def _file(summary: Mapping[str, Any], flow: Mapping[str, Any], rows: pa.Table) -> dict[str, Any]:
    trace = {
        "title": f"flow {flow['id']}",
        "description": f"{flow['kind']}, {flow['cc']}: states at regular times, not single packets",
        "common_fields": {"protocol_type": ["TCP"], "time_format": "relative", "reference_time": 0},
        "vantage_point": {"name": f"sender of flow {flow['id']}", "type": "client"},
        "events": list(events(rows.to_pylist())),
    }
    title = f"{summary['name']}, seed {summary['seed']}"
    return {"qlog_version": VERSION, "qlog_format": "JSON", "title": title, "traces": [trace]}


def events(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields the events of one connection: what has changed since the sample before."""
    known: dict[str, Any] = {}
    state: str | None = None
    for row in rows:
        time = round(row["t_s"] * 1e3, 6)
        if row["state"] != state:
            old = {"old": state} if state else {}
            yield {"time": time, "name": "recovery:congestion_state_updated", "data": {**old, "new": row["state"]}}
            state = row["state"]
        if row["state"] == "closed":
            continue
        data = {name: row[column] for column, name in _METRICS.items() if row[column] is not None}
        counted = {name: row[name] for name in _COUNTED}
        changed = {name: value for name, value in data.items() if known.get(name) != value}
        also = {name: value for name, value in counted.items() if known.get(name, 0) != value}
        if changed:
            yield {"time": time, "name": "recovery:metrics_updated", "data": changed, **also}
            known |= changed | also
