"""What responsive and unresponsive flows get while an unresponsive stream is on, and while it is off."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from penstock.fairness import jain
from penstock.papers._shared.flow_queueing import CALL, PHASES_S
from penstock.reproduce.columns import Column
from penstock.reproduce.results import Outcome
from penstock.reproduce.seconds import series_of

BEGIN_S = 10  # slow start is over
RECOVERY_S = 10  # after the stream has stopped


def of_kind(outcome: Outcome, *kinds: str) -> list[int]:
    """The flows of these kinds."""
    return [i for i, flow in enumerate(outcome.summary["flows"]) if flow["kind"] in kinds]


def phases(outcome: Outcome) -> list[range]:
    """The seconds in which the stream is on, one range for each time; none without a stream."""
    if not of_kind(outcome, "cbr"):
        return []
    end_s = series_of(outcome).seconds
    return [range(start, min(stop, end_s)) for start, stop in PHASES_S if start < end_s]


def on_seconds(outcome: Outcome) -> list[int]:
    """All of them."""
    return [second for phase in phases(outcome) for second in phase]


def off_seconds(outcome: Outcome) -> list[int]:
    """Those without the stream, once flows have begun or recovered."""
    busy = {second for phase in phases(outcome) for second in range(phase.start, phase.stop + RECOVERY_S)}
    return [second for second in range(BEGIN_S, series_of(outcome).seconds) if second not in busy]


def mean_mbps(outcome: Outcome, flow: int, seconds: Sequence[int]) -> float:
    """Payload of one flow."""
    return statistics.fmean(series_of(outcome).flows[flow][k] for k in seconds) / 1e3


def rates_mbps(outcome: Outcome, seconds: Sequence[int]) -> list[float]:
    """Payload of each TCP flow."""
    return [mean_mbps(outcome, flow, seconds) for flow in of_kind(outcome, "bulk")]


def tcp_seconds_mbps(outcome: Outcome, seconds: Iterable[int]) -> list[float]:
    """Payload of all TCP flows together, of each second."""
    flows = [series_of(outcome).flows[flow] for flow in of_kind(outcome, "bulk")]
    return [sum(flow[k] for flow in flows) / 1e3 for k in seconds]


def tcp_off_mbps(outcome: Outcome) -> float | None:
    """Payload of all TCP flows together without the stream."""
    if not phases(outcome):
        return None
    return statistics.fmean(tcp_seconds_mbps(outcome, off_seconds(outcome)))


def tcp_on_mbps(outcome: Outcome) -> float | None:
    """The same while the stream is on."""
    seconds = on_seconds(outcome)
    return statistics.fmean(tcp_seconds_mbps(outcome, seconds)) if seconds else None


def udp_on_mbps(outcome: Outcome) -> float | None:
    """Payload of the stream while it is on."""
    seconds = on_seconds(outcome)
    if not seconds:
        return None
    return sum(mean_mbps(outcome, flow, seconds) for flow in of_kind(outcome, "cbr"))


def jain_on(outcome: Outcome) -> float | None:
    """Jain's index of all TCP flows and the stream while it is on; of all TCP flows where there is none."""
    seconds = on_seconds(outcome)
    if seconds:
        return jain([*rates_mbps(outcome, seconds), udp_on_mbps(outcome) or 0.0])
    return None if outcome.case.setting == CALL else jain(rates_mbps(outcome, off_seconds(outcome)))


def tcp_jain(outcome: Outcome) -> float:
    """Jain's index of the TCP flows alone over the whole run."""
    return jain(rates_mbps(outcome, range(BEGIN_S, series_of(outcome).seconds)))


def queue_delay_ms(outcome: Outcome, percentile: str = "mean") -> float:
    """Of all packets of all flows at the bottleneck."""
    return float(outcome.summary["bottlenecks"][0]["queue_delay_ms"][percentile])


def call_base_ms() -> float:
    """One way without a queue: three links' delays; sending 200 B takes 0.02 ms."""
    return 32.5 + 2 * 5


def _call(outcome: Outcome) -> dict[str, Any] | None:
    found = of_kind(outcome, "voip")
    return outcome.summary["flows"][found[0]]["voip"] if found else None


def call_delay_ms(outcome: Outcome, measure: str = "p90") -> float | None:
    """Of a call's packets in the queue; percentiles are of the way of 42.5 ms and come in steps of about 1 ms."""
    call = _call(outcome)
    delay = None if call is None else call["delay_ms"][measure]
    return None if delay is None else max(0.0, float(delay) - call_base_ms())


def call_jitter_ms(outcome: Outcome) -> float | None:
    """RFC 3550's, the mean over the call."""
    call = _call(outcome)
    return None if call is None else float(call["jitter_ms"]["mean"])


def call_loss(outcome: Outcome) -> float | None:
    """Lost packets of a call."""
    call = _call(outcome)
    return None if call is None or call["loss"] is None else float(call["loss"])


COLUMNS = {
    "tcp_off": Column("TCP Mbit/s, UDP off", "{:.2f}", tcp_off_mbps),
    "tcp_on": Column("TCP Mbit/s, UDP on", "{:.2f}", tcp_on_mbps),
    "udp_on": Column("UDP Mbit/s", "{:.2f}", udp_on_mbps),
    "jain_on": Column("Jain of all", "{:.3f}", jain_on),
    "call_delay": Column("call ms p90", "{:.2f}", call_delay_ms),
    "call_jitter": Column("jitter ms", "{:.2f}", call_jitter_ms),
    "call_loss": Column("call loss", "{:.2%}", call_loss),
}
