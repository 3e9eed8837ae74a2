"""The numbers by which sides are judged (`verdict`), of each run, from the tables of sweeps.

A direction of a dumbbell whose queue is not measured counts by what its flows delivered. A transfer that did not end,
and pages none of which came, count as if they had taken the whole run: they took longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.experiments import verdict
from penstock.experiments.measures import FLOWS, LINK, RUN
from penstock.experiments.results import Sweep
from penstock.scenario import tree
from penstock.units import number

Row = Mapping[str, Any]
_COLUMNS = (
    "point", "seed", "part", "name", "flows", "mos", "video_played", "transfer_p50_ms", "transfers",
    "transfers_started", "completion_p50_s", "delivered_bytes", "duration_s", "goodput_bps", "throughput_bps",
    "utilization", "queue_delay_p90_ms", "drops", "packets",
)  # fmt: skip
_MS = 1e3


class Runs:
    """The rows of the runs of a point, by seed."""

    def __init__(self, sweep: Sweep, point: int, rows: Sequence[Row]) -> None:
        self._tables = tree(sweep.points[point].scenario.text)
        self._by_seed: dict[int, list[Row]] = {}
        for row in rows:
            self._by_seed.setdefault(row["seed"], []).append(row)

    def seeds(self) -> list[int]:
        """Returns the seeds, in their order."""
        return list(self._by_seed)

    def ended(self) -> set[str]:
        """Returns the groups of flows that have an end and came to it in some run."""
        rows = (row for of in self._by_seed.values() for row in of)
        return {row["name"] for row in rows if row["part"] == FLOWS and row["completion_p50_s"] is not None}

    def values(self, seeds: Sequence[int], ended: set[str]) -> dict[str, list[float | None]]:
        """Returns each quantity over seeds; `ended` are the groups whose flows have an end."""
        found = [self._of_run(self._by_seed.get(seed, []), ended) for seed in seeds]
        return {one.key: [of_run.get(one.key) for of_run in found] for one in verdict.QUANTITIES}

    def _of_run(self, rows: Sequence[Row], ended: set[str]) -> dict[str, float | None]:
        [run] = [row for row in rows if row["part"] == RUN] or [{}]
        flows, links = ([row for row in rows if row["part"] == part] for part in (FLOWS, LINK))
        duration = run.get("duration_s") or 0.0
        paged = [row for row in flows if row["transfers_started"]]
        return {
            verdict.CALLS.key: _mean(flows, lambda row: row["mos"]),
            verdict.PLAYED.key: _mean(flows, lambda row: row["video_played"]),
            verdict.PAGES.key: _mean(paged, lambda row: row["transfer_p50_ms"] or _MS * duration),
            verdict.CAME.key: _share(paged, ("transfers",), ("transfers_started",)),
            verdict.TRANSFERS.key: _mean(
                [row for row in flows if row["name"] in ended], lambda row: row["completion_p50_s"] or duration
            ),
            verdict.CARRIED.key: self._carried(flows, links, duration),
            verdict.DELAY.key: max(
                (of for row in links if (of := row["queue_delay_p90_ms"]) is not None), default=None
            ),
            verdict.DROPPED.key: _share(links, ("drops",), ("drops", "packets")),
        }

    def _carried(self, flows: Sequence[Row], links: Sequence[Row], duration: float) -> float | None:
        """Returns the goodputs of the measured links, each as a share of its rate; that of the way back is added."""
        shares = [_of_link(row) for row in links]
        if not shares or None in shares:
            return None
        return math.fsum(share for share in shares if share is not None) + self._back(flows, len(links), duration)

    def _back(self, flows: Sequence[Row], links: int, duration: float) -> float:
        topology = self._tables.get("topology", {})
        if links != 1 or topology.get("kind") != "dumbbell" or not duration:
            return 0.0
        entries = self._tables.get("flows", [])
        back = {f"{place} {one.get('kind')}" for place, one in enumerate(entries) if one.get("direction") == "reverse"}
        try:
            rate = number(topology.get("reverse_rate", topology.get("rate")))
        except ValueError:
            return 0.0
        return math.fsum(8 * (row["delivered_bytes"] or 0) for row in flows if row["name"] in back) / duration / rate


def _of_link(row: Row) -> float | None:
    if not row["goodput_bps"]:
        return None if row["goodput_bps"] is None else 0.0
    if not row["throughput_bps"] or not row["utilization"]:
        return None
    return float(row["goodput_bps"] * row["utilization"] / row["throughput_bps"])


def _mean(rows: Sequence[Row], of: Callable[[Row], float | None]) -> float | None:
    """Returns the mean over the flows of groups that have a value."""
    known = [(row["flows"] or 1.0, value) for row in rows if (value := of(row)) is not None]
    flows = math.fsum(count for count, _ in known)
    return math.fsum(count * value for count, value in known) / flows if known else None


def _share(rows: Sequence[Row], above: Sequence[str], below: Sequence[str]) -> float | None:
    listed = [[row[name] for name in names] for row in rows for names in (above, below)]
    if any(value is None for values in listed for value in values):
        return None
    total = math.fsum(row[name] for row in rows for name in below)
    return math.fsum(row[name] for row in rows for name in above) / total if total else None


def by_point(sweep: Sweep) -> dict[int, Runs]:
    """Returns the runs of each point of a sweep."""
    found: dict[int, list[Row]] = {}
    for row in sweep.results.select(list(_COLUMNS)).to_pylist():
        found.setdefault(row["point"], []).append(row)
    return {point: Runs(sweep, point, rows) for point, rows in found.items()}
