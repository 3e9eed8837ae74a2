"""Traces of driven connections as qlog: a JSON text sequence (RFC 7464) with the states and the windows of the control.

Schema: draft-ietf-quic-qlog-main-schema (`urn:ietf:params:qlog:file:sequential`), with the events of recovery of
draft-ietf-quic-qlog-quic-events. The connections are of TCP; the events mean the same there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_SEPARATOR = "\x1e"
_EVENTS = "urn:ietf:params:qlog:events:quic-12"
# Variables of BBR that stand beside the metrics of the schema, which allows others.
_MORE = ("max_bw", "bw_shortterm", "inflight_longterm", "inflight_shortterm", "extra_acked", "round_count")


@dataclass
class Trace:
    """What is seen of one connection: each change of its state, and its metrics once a round and at each change."""

    events: list[dict[str, Any]] = field(default_factory=list)
    state: str = ""
    round: str = ""

    def note(self, now_s: float, seen: Mapping[str, str]) -> None:
        """Takes the variables of the control at a time."""
        state, count = seen.get("state", ""), seen.get("round_count", "")
        if state != self.state:
            data = {"old": self.state, "new": state} if self.state else {"new": state}
            self._add(now_s, "congestion_state_updated", data)
        elif count == self.round:
            return
        self.state, self.round = state, count
        self._add(now_s, "recovery_metrics_updated", _metrics(seen))

    def text(self, title: str, description: str) -> str:
        """Returns the file."""
        header = {
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": title,
            "description": description,
            "trace": {
                "common_fields": {
                    "time_format": "relative_to_epoch",
                    "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
                },
                "vantage_point": {"name": "sender", "type": "client"},
                "event_schemas": [_EVENTS],
            },
        }
        records = (json.dumps(one, separators=(",", ":")) for one in (header, *self.events))
        return "".join(f"{_SEPARATOR}{record}\n" for record in records)

    def _add(self, now_s: float, name: str, data: Mapping[str, Any]) -> None:
        self.events.append({"time": round(now_s * 1e3, 6), "name": f"quic:{name}", "data": data})


def _metrics(seen: Mapping[str, str]) -> dict[str, Any]:
    """Returns what is finite of the metrics: times in ms, volumes in bytes, the pacing rate in bit/s."""

    def number(name: str) -> float:
        try:
            return float(seen.get(name, "nan"))
        except ValueError:
            return math.nan

    values = {
        "min_rtt": number("min_rtt") * 1e3,
        "congestion_window": number("cwnd"),
        "pacing_rate": number("pacing_rate") * 8,
        **{name: number(name) for name in _MORE},
    }
    told = {name: value for name, value in values.items() if math.isfinite(value)}
    return {name: round(value, 6) if name == "min_rtt" else round(value) for name, value in told.items()}
