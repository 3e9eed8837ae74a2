"""Flows that asked for ECN and go on without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Why a connection lost ECN: the values of `ecn_lost_why`, in words.
REASONS = {
    "syn-retransmitted": "a SYN was retransmitted, and a retransmitted SYN does not offer ECN (RFC 3168 §6.1.1.1)",
    "declined": "the peer did not agree",
}
_SHORT = {"syn-retransmitted": "lost: SYN retransmitted", "declined": "lost: declined"}
_NAMED = 8  # numbers of flows that a warning names

Summary = Mapping[str, Any]


def asking(summary: Summary) -> list[Mapping[str, Any]]:
    """Returns the flows of a run with connections that asked for ECN."""
    flows = summary.get("flows")
    # The summary of a run of tempest has the number of flows.
    return [flow for flow in flows if flow.get("ecn_asked")] if isinstance(flows, list) else []


def without(summary: Summary) -> list[Mapping[str, Any]]:
    """Returns the flows of a run that asked for ECN and have connections which go on without it."""
    return [flow for flow in asking(summary) if flow["ecn_lost"]]


def text(flow: Mapping[str, Any]) -> str:
    """Says in a cell of a table whether a flow uses ECN; `-` if it did not ask, or has no connection yet."""
    asked, lost = flow.get("ecn_asked", 0), flow.get("ecn_lost", 0)
    if lost:
        return _SHORT[flow["ecn_lost_why"]] if asked == 1 else f"lost by {lost:,} of {asked:,}"
    return "yes" if flow.get("ecn_used") else "-"


def warning(summary: Summary) -> str:
    """Returns the warning about a run in which flows lost ECN; an empty text without such flows."""
    flows = without(summary)
    if not flows:
        return ""
    named = ", ".join(str(flow["id"]) for flow in flows[:_NAMED]) + (", ..." if len(flows) > _NAMED else "")
    return f"warning: {share([summary])} flows with ecn = true go on without ECN ({named}): {_why(flows)}"


def warning_of(summaries: Sequence[Summary]) -> str:
    """Returns the warning about an experiment in which flows lost ECN; an empty text without such flows."""
    flows = [flow for summary in summaries for flow in without(summary)]
    return f"warning: {share(summaries)} flows with ecn = true went on without ECN: {_why(flows)}" if flows else ""


def _why(flows: Iterable[Mapping[str, Any]]) -> str:
    reasons = {flow["ecn_lost_why"] for flow in flows}
    return "; ".join(words for reason, words in REASONS.items() if reason in reasons)


def share(summaries: Iterable[Summary]) -> str:
    """Returns how many of the flows that asked for ECN go on without it in these runs; `-` if none asked."""
    runs = list(summaries)
    asked, lost = (sum(len(flows(run)) for run in runs) for flows in (asking, without))
    return f"{lost:,} of {asked:,}" if asked else "-"
