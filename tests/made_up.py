"""Results made by hand, to test what judges and draws them. Every value can be set for a discipline and flow count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.reproduce import Case, Evidence, Outcome
from penstock.reproduce.experiments import find

Values = dict[str, float]


def summary(flows: int, duration_s: float = 300.0, **given: float) -> dict[str, Any]:
    """A summary with the members that claims and figures read. `goodput` and `rtt` set all percentiles."""
    goodput, rtt = given.get("goodput", 9.0), given.get("rtt", 120.0)
    percentiles = ("p10", "p50", "p90")
    return {
        "duration_s": duration_s,
        "goodput_1s_bps": {p: given.get(f"goodput_{p}", goodput) * 1e6 for p in percentiles},
        "rtt_ms": {"min": given.get("rtt_min", 107.0), **{p: given.get(f"rtt_{p}", rtt) for p in percentiles}},
        "jain": {"overall": 1.0, "mean_1s": 1.0, "worst_1s": given.get("jain", 0.9)},
        "bottlenecks": [
            {
                "packets": 1000,
                "drops_overflow": given.get("drops", 0),
                "drops_aqm": 0,
                "dropped_bytes": given.get("drops", 0) * 1052,
            }
        ],
        "flows": [
            {"delivered_bytes": given.get("delivered_mb", goodput * duration_s / 8) * 1e6 / flows} for _ in range(flows)
        ],
    }


def evidence(
    name: str = "pink-dsl",
    values: Callable[[str, int], Values] = lambda _aqm, _flows: {},
    counts: tuple[int, ...] = (4, 64),
    aqms: tuple[str, ...] = find("pink-dsl").aqms,
    seeds: int = 1,
    variants: Mapping[str, Callable[[str, int], Values]] | None = None,
) -> Evidence:
    """The results of an experiment whose runs measured `values(aqm, flows)`, and those of its variants likewise."""
    outcomes = tuple(
        Outcome(Case(aqm, n, seed), "newreno", summary(n, **values(aqm, n)), cpu_s=1.0)
        for aqm in aqms
        for n in counts
        for seed in range(1, seeds + 1)
    )
    experiment = find(name)
    given = variants or {}
    varied = tuple(
        Outcome(case, "newreno", summary(case.flows, **given[case.variant](case.aqm, case.flows)), cpu_s=1.0)
        for case in experiment.variant_cases(seeds)
        if case.variant in given and case.aqm in aqms
    )
    return Evidence(experiment, False, outcomes, {"penstock": "0.1.0"}, varied)
