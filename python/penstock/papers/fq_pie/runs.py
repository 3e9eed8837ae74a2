"""The runs of `fq-pie`: the document's tests."""

from __future__ import annotations

from penstock.papers._shared.flow_queueing import SETTINGS, Streaming

KIND = Streaming

__all__ = ["KIND", "SETTINGS"]
