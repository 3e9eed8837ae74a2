"""The runs of `fq-pie`: the document's tests."""

from __future__ import annotations

from typing import Any

from penstock.papers._shared.flow_queueing import SETTINGS, UDP_RATE, Streaming

KIND = Streaming


def _send(tree: dict[str, Any], mbps: float) -> None:
    for flow in tree["flows"]:
        if flow.get("rate") == UDP_RATE:
            flow["rate"] = f"{round(mbps * 1e6)}bit/s"


UNSAID = {"udp_rate": _send}  # how parameters of fit.toml are set that no path can name

__all__ = ["KIND", "SETTINGS", "UNSAID"]
