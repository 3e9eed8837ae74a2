"""What the claims on the modular architecture and HFS share.

The document shows curves and few numbers. What an eye would read from them is a constant beside the claims. Its setup
can be read in several ways: claims are judged by the one under which its numbers fit each other
(docs/algorithms/hfs.md), and tell what the others give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.claims.ledger import Comparison, Finding, judge
from penstock.papers._shared import hfs, schedulers
from penstock.reproduce import tempest
from penstock.reproduce.results import Evidence

ENOUGH = 100  # packets: the recommended Q
SLOT_MS = schedulers.PACKET_MS

Read = Callable[[dict[str, Any]], float | None]


def value(run: Evidence, alg: str, setting: str, read: Read) -> float:
    """The median over seeds."""
    return run.median_or_zero(alg, setting, lambda outcome: read(outcome.summary))


def throughput(run: Evidence, alg: str, setting: str) -> float:
    """The normalized throughput, the median over seeds."""
    return value(run, alg, setting, lambda summary: tempest.value(summary, "throughput"))


def buffers(run: Evidence) -> list[int]:
    """The numbers of packets that the second layer may hold, as far as they were run."""
    return [q for q in hfs.BUFFERS if f"q-{q}" in run.settings]


def said(parts: list[Comparison]) -> Finding:
    """A finding that quotes its first comparisons."""
    return judge("; ".join(part.text for part in parts[:4]), parts)
