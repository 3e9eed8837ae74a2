"""The columns of tables of results. An experiment may add columns of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock import ecn
from penstock.fairness import jain
from penstock.mistake import MistakeError
from penstock.reproduce import tempest
from penstock.reproduce.base import Experiment
from penstock.reproduce.results import (
    Evidence,
    Measure,
    Outcome,
    delivered_mbytes,
    drops,
    goodput_mbps,
    known,
    rtt_ms,
    worst_jain,
)


@dataclass(frozen=True)
class Column:
    """One column: its heading, the format of its numbers, and the measure of one run."""

    heading: str
    form: str
    measure: Callable[[Outcome], float | None]

    def text(self, value: float | None) -> str:
        """Returns the text of a cell; `-` for a missing value."""
        return "-" if value is None or math.isnan(value) else self.form.format(value)


def _of(measure: Measure) -> Callable[[Outcome], float | None]:
    return lambda outcome: measure(outcome.summary)


def ends_s(outcome: Outcome) -> list[float | None]:
    """Returns the simulated time at which each transfer was complete; `None` for one that was not."""
    flows = outcome.summary["flows"]
    return [None if f["completion_s"] is None else f["start_s"] + f["completion_s"] for f in flows]


def last_end_s(outcome: Outcome) -> float | None:
    """Returns the simulated time at which the last transfer was complete; `None` if one was not."""
    ends = ends_s(outcome)
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def ended(outcome: Outcome) -> float:
    """Returns the number of complete transfers."""
    return float(sum(end is not None for end in ends_s(outcome)))


def throughput_mbps(percentile: float, warmup_s: int) -> Callable[[Outcome], float | None]:
    """Returns the measure of a percentile over seconds: the throughput of the first bottleneck with headers."""

    def measure(outcome: Outcome) -> float | None:
        if outcome.series is None:
            return None
        values = sorted(next(iter(outcome.series.queues.values()))[warmup_s:])
        return values[round(percentile / 100 * (len(values) - 1))] / 1e3

    return measure


def queue_max_kb(outcome: Outcome) -> float:
    """Returns the largest queue at any bottleneck, in kB."""
    return float(max(b["queue_bytes"]["max"] for b in outcome.summary["bottlenecks"])) / 1e3


def delay_ms(percentile: str) -> Measure:
    """Returns the measure of a percentile (or "mean") of sojourn times at the first bottleneck, in ms."""
    return lambda summary: known(summary["bottlenecks"][0]["queue_delay_ms"][percentile])


def marks(summary: dict[str, Any]) -> float:
    """Returns the number of packets that the first bottleneck marked."""
    return float(summary["bottlenecks"][0]["marks"])


def used_share(summary: dict[str, Any]) -> float:
    """Returns the utilization of the first bottleneck, from 0 to 1."""
    return float(summary["bottlenecks"][0]["utilization"])


def mean_queue_kb(summary: dict[str, Any]) -> float:
    """Returns the mean queue at the first bottleneck over time, in kB."""
    return float(summary["bottlenecks"][0]["queue_bytes"]["mean"]) / 1e3


def jain_of_all(summary: dict[str, Any]) -> float:
    """Returns Jain's index of the goodputs of all flows that began, including UDP."""
    return jain([float(flow["goodput_bps"]) for flow in summary["flows"] if flow["goodput_bps"] is not None])


def drop_share(summary: dict[str, Any]) -> float:
    """Returns the dropped packets as a part of all packets that arrived at the first bottleneck; NaN if none did."""
    dropped = drops(summary)
    arrived = dropped + float(summary["bottlenecks"][0]["packets_all"])
    return dropped / arrived if arrived else math.nan


def _use_to_end(outcome: Outcome) -> float:
    """Returns the utilization of the first bottleneck until the last transfer is complete."""
    duration_s = float(outcome.summary["duration_s"])
    return use(outcome) * duration_s / (last_end_s(outcome) or duration_s)


def goodput_all_mbps(outcome: Outcome) -> float:
    """Returns the mean goodput of all flows together after the warm-up, in Mbit/s."""
    return known(outcome.summary["goodput_1s_bps"]["mean"]) / 1e6


def throughput_all_mbps(outcome: Outcome) -> float:
    """Returns the throughput of the first bottleneck with headers over the whole run, in Mbit/s."""
    return float(outcome.summary["bottlenecks"][0]["throughput_bps"]) / 1e6


def packet_bytes(outcome: Outcome) -> float:
    """Returns the mean size of the packets that the first bottleneck sent, in bytes; NaN if it sent none."""
    bottleneck = outcome.summary["bottlenecks"][0]
    sent = float(bottleneck["throughput_bps"]) / 8 * float(outcome.summary["duration_s"])
    return float(bottleneck.get("bytes_all", sent)) / (int(bottleneck["packets"]) or math.nan)


def queue_packets(outcome: Outcome) -> float:
    """Returns the mean queue at the first bottleneck, in packets of the mean size."""
    return float(outcome.summary["bottlenecks"][0]["queue_bytes"]["mean"]) / packet_bytes(outcome)


def queue_delay_ms(outcome: Outcome) -> float:
    """Returns the mean sojourn time at the first bottleneck, in ms."""
    return known(outcome.summary["bottlenecks"][0]["queue_delay_ms"]["mean"])


def queue_swing_ms(outcome: Outcome) -> float:
    """Returns the difference of the 90th and 10th percentiles of sojourn times at the first bottleneck, in ms."""
    delay = outcome.summary["bottlenecks"][0]["queue_delay_ms"]
    return known(delay["p90"]) - known(delay["p10"])


def own_drops(outcome: Outcome) -> float | None:
    """Returns the share of drops by the AQM among all drops at the first bottleneck; `None` without drops."""
    bottleneck = outcome.summary["bottlenecks"][0]
    early, late = int(bottleneck["drops_aqm"]), int(bottleneck["drops_overflow"])
    return early / (early + late) if early + late else None


def fairness_of(kind: str) -> Callable[[Outcome], float | None]:
    """Returns the measure of Jain's index of the flows of one kind that began; goodputs count from their starts."""

    def measure(outcome: Outcome) -> float | None:
        flows = [flow for flow in outcome.summary["flows"] if flow["kind"] == kind and flow["goodput_bps"] is not None]
        return jain([float(flow["goodput_bps"]) for flow in flows]) if flows else None

    return measure


def use(outcome: Outcome) -> float:
    """Returns the utilization of the first bottleneck over the whole run, from 0 to 1."""
    return float(outcome.summary["bottlenecks"][0]["utilization"])


COLUMNS = {
    "goodput": Column("goodput Mbit/s p50", "{:.2f}", _of(goodput_mbps("p50"))),
    "goodput_all": Column("goodput Mbit/s mean", "{:.2f}", goodput_all_mbps),
    "rtt": Column("RTT ms p50", "{:.1f}", _of(rtt_ms("p50"))),
    "rtt90": Column("RTT ms p90", "{:.1f}", _of(rtt_ms("p90"))),
    "rtt_min": Column("RTT ms min", "{:.1f}", _of(rtt_ms("min"))),
    "jain": Column("worst Jain", "{:.3f}", _of(worst_jain)),
    "jain_mean": Column("mean Jain", "{:.3f}", lambda outcome: known(outcome.summary["jain"]["mean_1s"])),
    "drops": Column("drops", "{:,.0f}", _of(drops)),
    "delivered": Column("MB", "{:.1f}", _of(delivered_mbytes)),
    "last_end": Column("last end s", "{:.1f}", last_end_s),
    "ended": Column("ended", "{:.0f}", ended),
    "queue_max": Column("longest queue kB", "{:.1f}", queue_max_kb),
    "throughput": Column("throughput Mbit/s p50", "{:.2f}", throughput_mbps(50, 20)),
    "use": Column("link in use", "{:.1%}", use),
    "throughput_all": Column("throughput Mbit/s mean", "{:.2f}", throughput_all_mbps),
    "queue_packets": Column("queue packets mean", "{:.1f}", queue_packets),
    "queue_delay": Column("queueing ms mean", "{:.1f}", queue_delay_ms),
    "queue_swing": Column("queueing ms p10 to p90", "{:.1f}", queue_swing_ms),
    "own_drops": Column("drops by the discipline", "{:.1%}", own_drops),
    "fairness": Column("Jain of bulk flows", "{:.3f}", fairness_of("bulk")),
    "queue_mean": Column("mean queue kB", "{:.1f}", _of(mean_queue_kb)),
    "delay_mean": Column("queue ms mean", "{:.1f}", _of(delay_ms("mean"))),
    "delay_50": Column("queue ms p50", "{:.1f}", _of(delay_ms("p50"))),
    "delay_90": Column("queue ms p90", "{:.1f}", _of(delay_ms("p90"))),
    "jain_all": Column("Jain, all flows", "{:.3f}", _of(jain_of_all)),
    "drop_share": Column("dropped", "{:.2%}", _of(drop_share)),
    "use_to_end": Column("link in use", "{:.1%}", _use_to_end),
    "rtt99": Column("RTT ms p99", "{:.1f}", _of(rtt_ms("p99"))),
    "marks": Column("marks", "{:,.0f}", _of(marks)),
    "tempest_ns": Column("ns/packet", "{:.1f}", lambda o: tempest.value(o.summary, "ns_per_packet")),
    "tempest_alone": Column("of this the scheduler", "{:.1f}", lambda o: tempest.value(o.summary, "ns_scheduler")),
    "tempest_harness": Column("the harness", "{:.1f}", lambda o: tempest.value(o.summary, "ns_harness")),
    "tempest_bwfi": Column("B-WFI packets", "{:.2f}", lambda o: tempest.value(o.summary, "b_wfi_packets")),
    "tempest_twfi": Column("T-WFI ms", "{:.1f}", lambda o: tempest.value(o.summary, "t_wfi_ms")),
    "tempest_rfi": Column("RFI packets", "{:,.0f}", lambda o: tempest.value(o.summary, "rfi")),
    "tempest_throughput": Column("throughput", "{:.3f}", lambda o: tempest.value(o.summary, "throughput")),
    "tempest_top_bwfi": Column("B-WFI, top weight", "{:.2f}", lambda o: tempest.top(o.summary, "b_wfi_packets")),
    "tempest_top_lag": Column("since idle", "{:.2f}", lambda o: tempest.top(o.summary, "lag_packets")),
    "tempest_top_twfi": Column("T-WFI ms, top weight", "{:.2f}", lambda o: tempest.top(o.summary, "t_wfi_ms")),
    "tempest_top_delay": Column("delay, top weight", "{:,.0f}", lambda o: tempest.top(o.summary, "max_delay_dequeues")),
}


@dataclass(frozen=True)
class Row:
    """One row of a table: the cell of the experiment, and the texts of the columns."""

    aqm: str
    flows: int
    setting: str
    cells: tuple[str, ...]


def asks_for_ecn(run: Evidence) -> bool:
    """Returns true if a flow of any run asked for ECN: the table of results then says how many go on without it."""
    return any(ecn.asking(outcome.summary) for outcome in (*run.outcomes, *run.variants))


def headings(run: Evidence) -> list[str]:
    """Returns the headings of the experiment's columns, and one more where flows ask for ECN."""
    return [column.heading for column in of(run.experiment)] + (["flows without ECN"] if asks_for_ecn(run) else [])


def rows(run: Evidence, of_all: Evidence | None = None) -> list[Row]:
    """Returns the rows of the experiment's table of results. `run` may be a part of `of_all`, whose columns it has."""
    chosen, with_ecn = of(run.experiment), asks_for_ecn(of_all or run)

    def cells(cell: tuple[str, int, str]) -> tuple[str, ...]:
        texts = tuple(c.text(run.cell_value(cell, c.measure)) for c in chosen)
        aqm, flows, setting = cell
        return (*texts, ecn.share(o.summary for o in run.runs(aqm, flows, setting))) if with_ecn else texts

    return [Row(*cell, cells(cell)) for cell in run.cells]


def of(experiment: Experiment) -> list[Column]:
    """Returns the columns that an experiment names; raises `MistakeError` for an unknown name."""
    there: dict[str, Column] = {**COLUMNS, **experiment.defined("columns", "COLUMNS", {})}
    for name in experiment.columns:
        if name not in there:
            raise MistakeError(f"{experiment.name}: no column {name!r}; there are: {', '.join(there)}")
    return [there[name] for name in experiment.columns]
