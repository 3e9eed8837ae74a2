"""The one table of measures: what a number is called, its unit, its meaning, and where it is in `summary.json`.

From it come the columns of `results.parquet`, the choices of `--measure`, the order of `compare` and docs/reference/measures.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.fairness import jain
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

RUN, FLOWS, LINK = "run", "flows", "link"  # what a row is about: the whole run, an entry of [[flows]], a bottleneck
PARTS = (RUN, FLOWS, LINK)
HIGHER, LOWER = "higher", "lower"


@dataclass(frozen=True)
class Measure:
    """One number of a run, of a group of flows, or of a link."""

    part: str
    name: str
    unit: str
    about: str
    source: str  # path in summary.json; of a link or a flow, below its entry; "a+b" is a sum, "a/b" a ratio of sums
    better: str = ""  # HIGHER or LOWER, where that can be said
    over: str = ""  # how the values of the flows of a group become one: a name of `_OVER`
    only: str = ""  # key which a flow needs, such as "voip"; other flows have no such measure

    @property
    def key(self) -> str:
        """The name by which `--measure` chooses it."""
        return self.name if self.part == RUN else f"{self.part}.{self.name}"

    @cached_property
    def _paths(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        terms = (part.split("+") for part in self.source.split("/"))
        return tuple(tuple(tuple(path.split(".")) for path in paths) for paths in terms)

    def of(self, entry: Mapping[str, Any]) -> float | None:
        """Returns the number of one entry of the summary; `None` if it has none."""
        return None if self.only and not entry.get(self.only) else self._of(entry)

    def of_group(self, flows: Sequence[Mapping[str, Any]]) -> float | None:
        """Returns the number of a group of flows, all of which have the key `only`; `None` if there are none."""
        return _OVER[self.over]([self._of(flow) for flow in flows]) if flows else None

    @cached_property
    def _of(self) -> Callable[[Mapping[str, Any]], float | None]:
        """The function that takes the number from an entry; short paths, which most measures have, get short ones."""
        paths = self._paths
        if len(paths) == 2:
            return lambda entry: _ratio(_sum(entry, paths[0]), _sum(entry, paths[1]))
        if len(paths[0]) > 1 or len(paths[0][0]) > 2:
            return lambda entry: _sum(entry, paths[0])
        first, *rest = paths[0][0]
        if not rest:
            return lambda entry: entry.get(first)
        return lambda entry: entry[first].get(rest[0]) if first in entry else None


def _ratio(above: float | None, below: float | None) -> float | None:
    if above is None or below is None:
        return None
    return above / below if below else None  # of no packets there is no share


def _sum(entry: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> float | None:
    total = 0.0
    for path in paths:
        found: Any = entry
        for key in path:
            found = found.get(key) if found.__class__ is dict else None
        if found is None:
            return None
        total += found
    return total


def _known(values: Iterable[float | None]) -> float:
    return float(sum(value is not None for value in values))


def _index(values: Sequence[float]) -> float | None:
    """Returns Jain's index; `None` if nothing was delivered, of which there are no shares."""
    found = jain(values)
    return None if math.isnan(found) else found


def _begun(of: Callable[[list[float]], float | None]) -> Callable[[Sequence[float | None]], float | None]:
    """Returns a function of the goodputs of those flows that began; `None` if none did."""

    def over(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return of(known) if known else None

    return over


def _complete(of: Callable[[list[float]], float | None]) -> Callable[[Sequence[float | None]], float | None]:
    """Returns a function that gives `None` if a flow has no value: the mean of the others would flatter."""

    def over(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return of(known) if len(known) == len(values) else None

    return over


def _percentile(part: float) -> Callable[[Sequence[float | None]], float | None]:
    """Returns the function of a percentile by rank, in which a flow without a value counts as the largest."""

    def over(values: Sequence[float | None]) -> float | None:
        ordered = sorted(math.inf if value is None else value for value in values)
        found = ordered[max(1, math.ceil(part * len(ordered))) - 1]
        return None if math.isinf(found) else found

    return over


_OVER: Mapping[str, Callable[[Sequence[float | None]], float | None]] = {
    "number": lambda values: float(len(values)),
    "known": _known,
    "sum": _complete(math.fsum),
    "mean": _complete(lambda values: math.fsum(values) / len(values)),
    "lowest": _complete(min),
    "median": _percentile(0.5),
    "p90": _percentile(0.9),
    "begun sum": _begun(math.fsum),
    "begun mean": _begun(lambda values: math.fsum(values) / len(values)),
    "begun lowest": _begun(min),
    "begun highest": _begun(max),
    "begun jain": _begun(_index),
}

_SENDERS = "cc"  # only TCP has round trip times of its own


def _percentiles(part: str, name: str, unit: str, about: str, path: str, **more: str) -> tuple[Measure, ...]:
    words = {
        "mean": "mean",
        "p10": "10th percentile",
        "p50": "median",
        "p90": "90th percentile",
        "p99": "99th percentile",
    }
    return tuple(
        Measure(part, f"{name}_{p}_{unit}", unit, f"{word} {about}", f"{path}.{p}", **more) for p, word in words.items()
    )


# fmt: off
MEASURES: tuple[Measure, ...] = (
    Measure(RUN, "goodput_bps", "bit/s", "payload of all flows together that applications got per second, after the warm-up, mean over seconds", "goodput_1s_bps.mean", HIGHER),
    Measure(RUN, "goodput_p10_bps", "bit/s", "the same: 10th percentile of seconds", "goodput_1s_bps.p10", HIGHER),
    Measure(RUN, "goodput_p50_bps", "bit/s", "the same: median of seconds", "goodput_1s_bps.p50", HIGHER),
    Measure(RUN, "rtt_min_ms", "ms", "smallest round trip time of all TCP flows", "rtt_ms.min", LOWER),
    *_percentiles(RUN, "rtt", "ms", "of the round trip times of all TCP flows together", "rtt_ms", better=LOWER),
    Measure(RUN, "jain", "", "Jain's index of the goodputs of all TCP flows, each over its own time", "jain.overall", HIGHER),
    Measure(RUN, "jain_mean", "", "Jain's index of a second, mean over seconds after the warm-up", "jain.mean_1s", HIGHER),
    Measure(RUN, "jain_worst", "", "Jain's index of the worst second after the warm-up", "jain.worst_1s", HIGHER),
    Measure(RUN, "duration_s", "s", "simulated time", "duration_s"),
    Measure(RUN, "events", "", "events that the simulator handled", "events"),
    Measure(LINK, "utilization", "", "bits sent as a part of what the link could send", "utilization", HIGHER),
    Measure(LINK, "throughput_bps", "bit/s", "bits sent per second, with headers", "throughput_bps", HIGHER),
    Measure(LINK, "goodput_bps", "bit/s", "payload that the flows over this link delivered per second", "goodput_bps", HIGHER),
    *_percentiles(LINK, "queue_delay", "ms", "of the queueing delays of packets that were sent", "queue_delay_ms", better=LOWER),
    Measure(LINK, "queue_delay_max_ms", "ms", "largest queueing delay", "queue_delay_ms.max", LOWER),
    Measure(LINK, "queue_mean_bytes", "B", "bytes waiting, mean over time", "queue_bytes.mean", LOWER),
    Measure(LINK, "queue_max_bytes", "B", "largest number of bytes waiting", "queue_bytes.max", LOWER),
    Measure(LINK, "packets", "", "packets of any kind sent", "packets_all"),
    Measure(LINK, "drops", "", "packets dropped, by the AQM or for lack of room", "drops_overflow+drops_aqm", LOWER),
    Measure(LINK, "drops_overflow", "", "packets dropped for lack of room", "drops_overflow", LOWER),
    Measure(LINK, "drops_aqm", "", "packets dropped by the AQM", "drops_aqm", LOWER),
    Measure(LINK, "drop_share", "", "dropped packets as a part of those that were dropped or sent", "drops_overflow+drops_aqm/drops_overflow+drops_aqm+packets_all", LOWER),
    Measure(LINK, "marks", "", "packets marked CE", "marks"),
    Measure(LINK, "mark_share", "", "marked packets as a part of those that were sent", "marks/packets_all"),
    Measure(LINK, "lost", "", "packets lost on the wire behind the queue", "lost"),
    Measure(FLOWS, "flows", "", "number of flows of the group", "id", over="number"),
    Measure(FLOWS, "goodput_bps", "bit/s", "payload delivered per second of the time a flow was active, sum over the flows that began", "goodput_bps", HIGHER, "begun sum"),
    Measure(FLOWS, "goodput_mean_bps", "bit/s", "the same, mean over the flows that began", "goodput_bps", HIGHER, "begun mean"),
    Measure(FLOWS, "goodput_lowest_bps", "bit/s", "the same, of the slowest flow", "goodput_bps", HIGHER, "begun lowest"),
    Measure(FLOWS, "goodput_highest_bps", "bit/s", "the same, of the fastest flow", "goodput_bps", HIGHER, "begun highest"),
    Measure(FLOWS, "jain", "", "Jain's index of the goodputs of the flows that began", "goodput_bps", HIGHER, "begun jain"),
    Measure(FLOWS, "delivered_bytes", "B", "payload delivered, sum over the flows", "delivered_bytes", HIGHER, "sum"),
    Measure(FLOWS, "completed", "", "flows that delivered all they had", "completion_s", HIGHER, "known"),
    Measure(FLOWS, "completion_mean_s", "s", "time from the start of a flow until all was delivered, mean; none if a flow was not complete", "completion_s", LOWER, "mean"),
    Measure(FLOWS, "completion_p50_s", "s", "the same, median; a flow that was not complete counts as the slowest", "completion_s", LOWER, "median"),
    Measure(FLOWS, "completion_p90_s", "s", "the same, 90th percentile", "completion_s", LOWER, "p90"),
    Measure(FLOWS, "retransmits", "", "segments sent again, sum over the flows", "retransmits", LOWER, "sum", _SENDERS),
    Measure(FLOWS, "timeouts", "", "retransmission timeouts, sum over the flows", "timeouts", LOWER, "sum", _SENDERS),
    Measure(FLOWS, "ecn_lost", "", "connections that asked for ECN and go on without", "ecn_lost", LOWER, "sum", _SENDERS),
    Measure(FLOWS, "rtt_min_ms", "ms", "smallest round trip time, lowest of the flows", "rtt_ms.min", LOWER, "lowest", _SENDERS),
    Measure(FLOWS, "rtt_mean_ms", "ms", "mean round trip time, mean over the flows", "rtt_ms.mean", LOWER, "mean", _SENDERS),
    Measure(FLOWS, "rtt_p50_ms", "ms", "median round trip time of a flow (to 1.6 %), mean over the flows", "rtt_ms.p50", LOWER, "mean", _SENDERS),
    Measure(FLOWS, "rtt_p90_ms", "ms", "90th percentile of the round trip times of a flow (to 1.6 %), mean over the flows", "rtt_ms.p90", LOWER, "mean", _SENDERS),
    Measure(FLOWS, "rtt_p99_ms", "ms", "99th percentile of the round trip times of a flow (to 1.6 %), mean over the flows", "rtt_ms.p99", LOWER, "mean", _SENDERS),
    Measure(FLOWS, "transfers_started", "", "transfers begun by `http` and `web`, sum over the flows", "transfers.started", "", "sum", "transfers"),
    Measure(FLOWS, "transfers", "", "transfers that were complete, sum over the flows", "transfers.count", HIGHER, "sum", "transfers"),
    Measure(FLOWS, "transfers_failed", "", "transfers that failed, sum over the flows", "transfers.failed", LOWER, "sum", "transfers"),
    Measure(FLOWS, "transfer_mean_ms", "ms", "mean time of a complete transfer, mean over the flows", "transfers.completion_ms.mean", LOWER, "mean", "transfers"),
    Measure(FLOWS, "transfer_p50_ms", "ms", "median time of a complete transfer, mean over the flows", "transfers.completion_ms.p50", LOWER, "mean", "transfers"),
    Measure(FLOWS, "transfer_p90_ms", "ms", "90th percentile of the times of complete transfers, mean over the flows", "transfers.completion_ms.p90", LOWER, "mean", "transfers"),
    Measure(FLOWS, "mos", "", "mean opinion score of a call (E-model, 1 to 4.5), mean over the calls", "voip.mos", HIGHER, "mean", "voip"),
    Measure(FLOWS, "mos_lowest", "", "the same, of the worst call", "voip.mos", HIGHER, "lowest", "voip"),
    Measure(FLOWS, "r", "", "transmission rating R of a call, mean over the calls", "voip.r", HIGHER, "mean", "voip"),
    Measure(FLOWS, "call_loss", "", "part of a call's packets that was lost, mean over the calls", "voip.loss", LOWER, "mean", "voip"),
    Measure(FLOWS, "call_late", "", "part of a call's packets that came too late, mean over the calls", "voip.late", LOWER, "mean", "voip"),
    Measure(FLOWS, "call_delay_p50_ms", "ms", "median one-way delay of a call's packets, mean over the calls", "voip.delay_ms.p50", LOWER, "mean", "voip"),
    Measure(FLOWS, "call_delay_p99_ms", "ms", "99th percentile of the one-way delays of a call's packets, mean over the calls", "voip.delay_ms.p99", LOWER, "mean", "voip"),
    Measure(FLOWS, "call_jitter_ms", "ms", "mean jitter of a call (RFC 3550), mean over the calls", "voip.jitter_ms.mean", LOWER, "mean", "voip"),
    Measure(FLOWS, "video_loss", "", "part of a video's packets that was lost, mean over the videos", "video.loss", LOWER, "mean", "video"),
    Measure(FLOWS, "video_played", "", "part of a video's frames that was played in time, mean over the videos", "video.frames.played/video.frames.sent", HIGHER, "mean", "video"),
    Measure(FLOWS, "video_delay_p99_ms", "ms", "99th percentile of the delays of a video's frames, mean over the videos", "video.frames.delay_ms.p99", LOWER, "mean", "video"),
)
# fmt: on

BY_PART: Mapping[str, tuple[Measure, ...]] = {
    part: tuple(measure for measure in MEASURES if measure.part == part) for part in PARTS
}
BY_KEY: Mapping[str, Measure] = {measure.key: measure for measure in MEASURES}
COLUMNS: tuple[str, ...] = tuple(dict.fromkeys(measure.name for measure in MEASURES))
DEFAULT = ("goodput_bps", "rtt_p90_ms", "jain", "link.queue_delay_p90_ms", "link.drop_share")


def find(key: str) -> Measure:
    """Returns a measure by its key; a name that only one part has needs no part. Raises `MistakeError` if unknown."""
    if key in BY_KEY:
        return BY_KEY[key]
    named = [measure for measure in MEASURES if measure.name == key]
    if len(named) == 1:
        return named[0]
    if named:
        raise MistakeError(f"the measure {key!r} is one of several: {', '.join(measure.key for measure in named)}")
    raise MistakeError(
        f"there is no measure {key!r}; {did_you_mean(key, BY_KEY)}`penstock docs measures` lists all {len(BY_KEY)}"
    )


def shown(value: float | None, unit: str) -> str:
    """Returns a number for tables, with a unit that suits it; "-" if there is none."""
    if value is None or math.isnan(value):
        return "-"
    if unit == "bit/s":
        return f"{value / 1e6:.4g} Mbit/s"
    if unit == "B":
        return f"{value / 1e3:.4g} kB"
    return f"{value:.4g} {unit}".rstrip()
