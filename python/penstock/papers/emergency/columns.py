"""Columns of the table of results that only `emergency` has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.reproduce.columns import Column
from penstock.reproduce.results import Outcome, known


def calls(outcome: Outcome) -> Iterator[dict[str, Any]]:
    """Yields what the summary says of each call, in the order of flows."""
    return (flow["voip"] for flow in outcome.summary["flows"] if flow["kind"] == "voip")


def call_delay_ms(outcome: Outcome) -> float | None:
    """Returns the mean delay of the first call, in ms, one way."""
    return next((known(call["delay_ms"]["mean"]) for call in calls(outcome)), None)


def call_lost(outcome: Outcome) -> float | None:
    """Returns the largest share of packets that a call lost."""
    return max((known(call["loss"]) for call in calls(outcome)), default=None)


def call_mos(outcome: Outcome) -> float | None:
    """Returns the mean opinion score of the worst call."""
    return min((known(call["mos"]) for call in calls(outcome)), default=None)


def upload_mbps(outcome: Outcome) -> float | None:
    """Returns the goodput of all files together, in Mbit/s."""
    files = [flow["goodput_bps"] for flow in outcome.summary["flows"] if flow["kind"] == "bulk"]
    return sum(map(known, files)) / 1e6 if files else None


COLUMNS = {
    "call_delay": Column("call ms", "{:.1f}", call_delay_ms),
    "call_lost": Column("worst call lost", "{:.2%}", call_lost),
    "call_mos": Column("worst MOS", "{:.2f}", call_mos),
    "upload": Column("files Mbit/s", "{:.2f}", upload_mbps),
}
