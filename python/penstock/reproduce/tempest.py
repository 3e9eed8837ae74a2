"""Packet schedulers in TEMPEST: document 002, section 4.3.3. A run is not a simulation but a test of one scheduler.

A run's flags are those of `penstock tempest`. Times depend on the machine, so claims compare them as ratios, and such
runs go one at a time. Everything else is the same on every machine.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from penstock import engine
from penstock.reproduce.base import Case, Experiment
from penstock.reproduce.variants import Variant
from penstock.scenario import Scenario

WIRED_TESTED = ("fifo", "drr", "wf2q-plus", "qfq", "qfq-plus")
# Names of what is not one scheduler alone: the guarantees' scheduler and the radio's.
DOUBLE = {"hfs": ("qfq-plus", "qfq-plus"), "hfs-drr": ("qfq-plus", "drr")}
INTEGRATED = ("w2f2q",)
OF_DOUBLE, OF_INTEGRATED = ("qmac", "qcount", "wdistr", "flowsetsmac"), ("intgr_th",)


def mode_flags(name: str) -> dict[str, str]:
    """The mode and the scheduler or schedulers of one name."""
    if name in DOUBLE:
        qos, mac = DOUBLE[name]
        return {"mode": "double", "qos": qos, "mac": mac}
    return {"mode": "integrated" if name in INTEGRATED else "single", "alg": name}


@dataclass(frozen=True)
class Test:
    """Runs that share flags."""

    name: str
    label: str
    algs: tuple[str, ...]
    flags: Mapping[str, str]
    flows: int  # what tables call the number of flows
    quick: bool = True  # part of the quick form


@dataclass(frozen=True)
class Changed(Variant):
    """Other flags for the schedulers of two layers or that see the channel."""

    flags: Mapping[str, str] = field(default_factory=dict)

    def apply(self, tree: dict[str, Any]) -> None:
        """Changes the flags that the mode has."""
        tree["tempest"].update(_of_mode(self.flags, tree["tempest"]["mode"]))


def _of_mode(flags: Mapping[str, str], mode: str) -> dict[str, str]:
    """Without the flags of other modes."""
    foreign = (*(OF_DOUBLE if mode != "double" else ()), *(OF_INTEGRATED if mode != "integrated" else ()))
    return {key: value for key, value in flags.items() if key not in foreign}


@dataclass(frozen=True)
class Tempest(Experiment):
    """Tests times schedulers."""

    tests: tuple[Test, ...] = ()
    shared: Mapping[str, str] = field(default_factory=dict)
    quick_flags: Mapping[str, str] = field(default_factory=dict)

    def cases(self, quick: bool, seeds: int) -> Iterator[Case]:
        """All runs, in the order of the tests."""
        for seed in range(1, seeds + 1):
            for test in self.tests:
                if test.quick or not quick:
                    yield from (Case(alg, test.flows, seed, setting=test.name) for alg in test.algs)

    def variant_cases(self, seeds: int) -> Iterator[Case]:
        """Each variant for every run of the quick form that it can touch."""
        for variant in self.variants:
            for case in self.cases(True, seeds):
                if case.aqm in variant.aqms:
                    yield replace(case, variant=variant.name)

    def tree(self, case: Case, quick: bool) -> dict[str, Any]:
        """The flags of one run."""
        mode = mode_flags(case.aqm)
        given = {**self.shared, **self.test(case.setting).flags, **(self.quick_flags if quick else {})}
        flags = _of_mode(given, mode["mode"])
        name = f"{self.name}-{case.setting}-{case.aqm}"
        return {"name": name, "tempest": {**flags, **mode, "seed": str(case.seed)}}

    def test(self, name: str) -> Test:
        """The test of that name."""
        return next(test for test in self.tests if test.name == name)

    def run(
        self,
        scenario: Scenario,
        seed: int | None,
        *,
        on_progress: Callable[[float, float], None],
        stop: Callable[[], bool],
    ) -> engine.Result:
        """Tests the scheduler; the seed is among the flags, and a run is too short to be stopped."""
        del seed, stop
        result = engine.tempest_result(scenario, tomllib.loads(scenario.text)["tempest"])
        on_progress(1.0, 1.0)
        return result

    @property
    def settings_in_order(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(test.name for test in self.tests)

    def label(self, setting: str) -> str:
        """What a table calls it."""
        return self.test(setting).label

    @cached_property
    def template(self) -> dict[str, Any]:
        """The flags that all runs share."""
        return {"name": self.name, "tempest": dict(self.shared)}

    def cc_of(self, case: Case, quick: bool) -> str:
        """There is no congestion control."""
        del case, quick
        return ""

    def duration_s(self, case: Case, quick: bool) -> float:
        """A part of the progress: all runs count alike."""
        del case, quick
        return 1.0

    def extent(self, summaries: Sequence[Mapping[str, Any]]) -> str:
        """How many events each run had."""
        events = sorted({int(summary["events"]) for summary in summaries})
        return f"{events[0]:,} events" if len(events) == 1 else f"{events[0]:,} to {events[-1]:,} events"


def _sets(text: str) -> int:
    """How many flows these sets have; `k` is a thousand."""
    return sum(int(part.split("::")[1].replace("k", "000")) for part in text.split(","))


FLOW_SETS = {
    "1k-w1": "1::1k",
    "1k-wmix": "1::500,2::250,8::125",
    "32k-w1": "1::32k",
    "32k-wmix": "1::16k,2::8k,8::4k",
}
PATTERNS = {"smooth": "0", "bursty": "2"}
TIME = Tempest(
    name="tempest-time",
    title="What a scheduler costs",
    source="document 002, section 4.3.3.1, Tables 4.1 and 4.2",
    figures={"tempest_smooth": "002, Figure 4.18", "tempest_bursty": "002, Figure 4.19"},
    columns=("tempest_ns", "tempest_harness", "tempest_alone"),
    aqms=WIRED_TESTED,
    quick="four fifths of the events",
    variants=(),
    one_at_a_time=True,
    tests=tuple(
        Test(f"{pattern}-{name}", f"{pattern}, {name}", WIRED_TESTED, {"burst": burst, "flowsets": sets}, _sets(sets))
        for pattern, burst in PATTERNS.items()
        for name, sets in FLOW_SETS.items()
    ),
    shared={"n": "10M", "qmin": "0", "qmax": "30n", "measure": "time", "repeat": "5"},
    quick_flags={"n": "2M", "repeat": "2"},
)

COUNTS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000)
GROWING = ("fifo", "drr", "wf2q-plus", "kps", "qfq-plus")
GROWTH = Tempest(
    name="tempest-growth",
    title="The cost of a scheduler over the number of flows",
    source="document 002, section 4.3.3.1, Table 4.3",
    figures={"tempest_growth": "002, Figure 4.20"},
    columns=("tempest_ns", "tempest_harness", "tempest_alone"),
    aqms=GROWING,
    quick="four fifths of the events",
    variants=(),
    one_at_a_time=True,
    tests=tuple(Test(f"n-{n}", f"{n:,} flows", GROWING, {"flowsets": f"1::{n}"}, n) for n in COUNTS),
    shared={"n": "10M", "qmin": "4n", "qmax": "30n", "burst": "1", "measure": "time", "repeat": "5"},
    quick_flags={"n": "2M", "repeat": "2"},
)

# An assumption on the arrivals: a burst is what a flow waits behind most.
SMOOTH = "smooth arrivals"

WEIGHTS = (1, 5, 10, 50, 100, 500, 1000)
OTHERS = 100  # flows of weight 1 beside it
FAIR = ("wf2q-plus", "drr", "qfq", "qfq-plus")
FAIRNESS = Tempest(
    name="tempest-fairness",
    title="What a scheduler guarantees to a flow of growing weight",
    source="document 002, section 4.3.3.2, Table 4.4",
    figures={"tempest_bwfi": "002, Figure 4.21", "tempest_delay": "002, Figure 4.22"},
    columns=("tempest_bwfi", "tempest_top_bwfi", "tempest_top_lag", "tempest_top_delay", "tempest_rfi"),
    aqms=FAIR,
    quick="nineteen twentieths of the events",
    variants=(Changed("smooth", SMOOTH, FAIR, flags={"burst": "0"}),),
    tests=tuple(Test(f"w-{w}", f"weight {w}", FAIR, {"flowsets": f"1::{OTHERS},{w}::1"}, OTHERS + 1) for w in WEIGHTS),
    shared={"n": "5M", "qmin": "15n", "qmax": "25n", "burst": "2", "qsing": "1", "measure": "fairness"},
    quick_flags={"n": "250k"},
)

STATIONS = 20
GOOD_LOSS = 0.2
BUFFERS = (1, 5, 10, 20, 50, 100, 150, 200, 250)
EMERGENCY = {"qmin": "0", "qmax": "300", "flowsets": "20::20,10::20,1::60", "burst": "1", "flowsmac": str(STATIONS)}
PACKET_MS = 1700 * 8 / 54e3
WIRED = "wired"


def _over_q(*algs: str) -> tuple[Test, ...]:
    return tuple(Test(f"q-{q}", f"Q = {q}", algs, {"qmac": str(q)}, 100) for q in BUFFERS)


# What the document leaves open and what its result hangs on. Losses that range "linearly from 10^0 to 10^-4" may do so
# in their exponent, as here, or in themselves. `-intgr_th 80` is a weight where section 4.3.2.6 defines it, a chance of
# 8 %, and a chance of 80 % in the text about Table 4.6. docs/algorithms/hfs.md has what speaks for which.
LAYERED = (*DOUBLE, "hfs-wf2q-plus")
SEE = ("drr", "wf2q-plus", "qfq-plus", *INTEGRATED, *LAYERED)
STEPS = Changed("steps", "losses in equal steps from 1 to 0.0001", SEE, reading=True, flags={"ploss": "steps"})
CHANCE = Changed("chance", "a threshold of 80 % to arrive", INTEGRATED, reading=True, flags={"intgr_th": "80%"})
STEPS_CHANCE = Changed(
    "steps-chance",
    "losses in equal steps and a threshold of 80 % to arrive",
    SEE,
    reading=True,
    flags={"ploss": "steps", "intgr_th": "80%"},
)
BOTH = Changed(
    "both", "thresholds that count what waits in both layers", LAYERED, reading=True, flags={"qcount": "both"}
)
DOUBLED = Changed("doubled", "weights of stations doubled from one to the next", LAYERED, flags={"wdistr": "2"})
TEN_EACH = Changed("ten-each", "ten packets of each flow waiting at most", SEE, flags={"qmax": "10n", "qsing": "1"})

T_WFI = Tempest(
    name="tempest-twfi",
    title="What a scheduler of two layers guarantees",
    source="document 002, section 4.3.3.2, Table 4.5",
    figures={"tempest_twfi": "002, Figure 4.23"},
    columns=("tempest_good_twfi", "tempest_top_twfi", "tempest_throughput"),
    aqms=("drr", "wf2q-plus", "hfs"),
    quick="nine tenths of the events",
    variants=(DOUBLED, STEPS, BOTH, TEN_EACH, Changed("smooth", SMOOTH, SEE, flags={"burst": "0"})),
    tests=(Test(WIRED, "no second layer", ("drr", "wf2q-plus"), {}, 100), *_over_q("hfs")),
    shared={"n": "1M", **EMERGENCY, "measure": "fairness"},
    quick_flags={"n": "100k"},
)

THROUGHPUT = Tempest(
    name="tempest-throughput",
    title="What a scheduler makes of a lossy channel",
    source="document 002, section 4.3.3.3, Table 4.6",
    figures={"tempest_throughput": "002, Figure 4.24"},
    columns=("tempest_throughput", "tempest_good_twfi"),
    aqms=("w2f2q", "hfs", "hfs-drr"),
    quick="most of the events",
    variants=(STEPS, CHANCE, STEPS_CHANCE, BOTH, DOUBLED, TEN_EACH),
    tests=(Test("integrated", "no second layer", INTEGRATED, {}, 100), *_over_q("hfs", "hfs-drr")),
    shared={"n": "10M", **EMERGENCY, "intgr_th": "80", "measure": "fairness"},
    quick_flags={"n": "200k"},
)

ALL_TEMPEST = (TIME, GROWTH, FAIRNESS, T_WFI, THROUGHPUT)


# What theory says, in packets of one size.


def weight_sum(sets: str) -> int:
    """Of all flows."""
    return sum(int(part.split("::")[0] or 1) * _sets(part) for part in sets.split(","))


def t_wfi_bound_ms(alg: str, weight: int, sets: str = EMERGENCY["flowsets"]) -> float:
    """Worst-case T-WFI of a flow of this weight, as section 4.3.3.2 has it; the least weight is 1."""
    total = weight_sum(sets)
    if alg == "drr":
        return (total + total / weight + _sets(sets) - 1) * PACKET_MS
    return 2 * total / weight * PACKET_MS


QFQ_B_WFI = 5.0  # "circa 5 packets"
AGGREGATE = 8  # M, the default of QFQ+ in the document's source [99], in Linux and here


def b_wfi_bound(alg: str, weight: int) -> float | None:
    """Worst-case B-WFI in packets of the flow of growing weight; none where section 4.3.3.2 gives no number."""
    total = OTHERS + weight
    if alg == "drr":  # its T-WFI bound times the flow's part of the link
        return weight + 1 + weight / total * OTHERS
    if alg == "qfq-plus":  # what aggregates of M classes add to QFQ's
        return QFQ_B_WFI + 2 * (AGGREGATE - 1) * weight / total + 3
    return {"wf2q-plus": 1.0, "qfq": QFQ_B_WFI}.get(alg)


def losses(law: str = "powers") -> list[float]:
    """Of each station, from 1 to 0.0001: in equal steps of the exponent, or in equal `steps`."""
    parts = [i / (STATIONS - 1) for i in range(STATIONS)]
    return [1 + (1e-4 - 1) * x for x in parts] if law == "steps" else [10 ** (-4 * x) for x in parts]


def good_throughput(law: str = "powers", threshold: float = 0.08) -> float:
    """What arrives when only stations above the threshold are served, each alike. A weight of 80 is 0.08."""
    good = [1 - loss for loss in losses(law) if 1 - loss > threshold]
    return sum(good) / len(good)


def blind_throughput(law: str = "powers") -> float:
    """What arrives when the channel is not looked at."""
    return sum(1 - loss for loss in losses(law)) / STATIONS


def waiting_bound_ms(qmax: int, weight: int, sets: str = EMERGENCY["flowsets"]) -> float:
    """T-WFI of one layer when each dequeue phase sends all that waits: no packet waits for more than `qmax`."""
    return (qmax - weight_sum(sets) / weight) * PACKET_MS


# What is measured.


def top(summary: Mapping[str, Any], key: str, most_loss: float = 1.0) -> float | None:
    """The worst among the flows of the largest weight whose stations lose no more than this."""
    flows = summary["flows_detail"]
    most = max((flow["weight"] for flow in flows), default=0)
    chosen = [flow for flow in flows if flow["weight"] == most and (flow.get("loss") or 0.0) <= most_loss]
    return max((float(flow[key]) for flow in chosen if flow[key] is not None), default=None)


def good(summary: Mapping[str, Any], key: str) -> float | None:
    """The same of stations in "intermediate conditions" and better: at most a fifth is lost (section 4.2.5.2)."""
    return top(summary, key, most_loss=GOOD_LOSS)


def value(summary: Mapping[str, Any], key: str) -> float | None:
    """A number of the report, or of the worst of all flows."""
    found = summary[key] if key in summary else (summary["worst"] or {}).get(key)
    return None if found is None else float(found)
