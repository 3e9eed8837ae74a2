"""The compiled algorithms and their readable twins give every packet of random traces the same fate.

Trace `number` of an algorithm is always the same one. `PENSTOCK_TWIN_TRACES` says how many there are of each.
"""

from __future__ import annotations

import io
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from penstock import engine
from penstock.reference import (
    Arrival,
    Fate,
    Limit,
    an_aqm,
    ared,
    avq,
    blue,
    choke,
    cobalt,
    cobalt_linux,
    codel,
    dualpi2,
    dualpi2_linux,
    feng_red,
    fq,
    lindrop,
    lte_bearers,
    minstrel_pie,
    modified_codel,
    nonlinear_red,
    pi,
    pi2,
    pie,
    red,
    red_ern,
    red_linux,
    rem,
    sfb,
)
from penstock.reference.link import CE, NS_PER_S, Fifo
from penstock.reference.xoshiro import Xoshiro256PlusPlus

TRACES = int(os.environ.get("PENSTOCK_TWIN_TRACES", "100"))
MS = 1_000_000
OVER_MAX: tuple[Literal["drop", "mark", "linear"], ...] = ("drop", "mark", "linear")

Twin = Callable[..., list[Fate]]  # arrivals, rate, limit, parameters, uniform numbers and perhaps bits
Setup = tuple[Any, list[str]]
SetUp = Callable[[random.Random], Setup]
Maker = Callable[[int, Callable[[], float]], Fifo]


@dataclass(frozen=True)
class Pair:
    """A twin, and how trials of it are set up."""

    setup: SetUp
    replay: Twin
    drop: str  # what an AQM's drop is called
    draws: bool  # it draws random numbers
    marks: bool
    bits: bool  # it draws whole 64 bits as well


PAIRS: dict[str, Pair] = {}


def twin(
    name: str, replay: Twin, *, drop: str = "drop_early", draws: bool = False, marks: bool = True, bits: bool = False
) -> Callable[[SetUp], SetUp]:
    """Registers a setup for the algorithm of this name; what is after a slash tells several of one algorithm apart."""

    def register(setup: SetUp) -> SetUp:
        PAIRS[name] = Pair(setup, replay, drop, draws, marks, bits)
        return setup

    return register


@dataclass(frozen=True)
class Trial:
    """Arrivals and a queue, said to both: `params` to the twin, `settings` to the compiled part.

    What stands in `name` after a slash tells apart trials of one algorithm.
    """

    name: str
    seed: int
    rate_bps: int
    limit: Limit
    params: Any
    settings: list[str]
    arrivals: list[Arrival]

    @property
    def algorithm(self) -> str:
        """The name in the registry."""
        return self.name.partition("/")[0]

    def twin(self, seed: int) -> list[Fate]:
        """The fates by the twin, with the random numbers of `seed`."""
        stream, pair = Xoshiro256PlusPlus(seed, f"replay/{self.algorithm}"), PAIRS[self.name]
        more = {"bits": stream.bits} if pair.bits else {}
        params = self.params
        if isinstance(params, fq.Params) and not any(said.startswith("perturbation=") for said in self.settings):
            params = replace(params, key=stream.branch("hash").bits() >> 11)
        return pair.replay(self.arrivals, self.rate_bps, self.limit, params, stream.uniform, **more)

    def compiled(self, file: Path) -> list[Fate]:
        """The fates by the compiled part, which reads the trace from `file`."""
        rows = "".join(",".join(map(str, arrival)) + "\n" for arrival in self.arrivals)
        file.write_text("t_ns,flow,size,ecn,ern,ern_cwnd,ern_rtt_ms\n" + rows)
        kind, most = self.limit
        limit = f"{most}{'p' if kind == 'packets' else 'B'}"
        out = io.BytesIO()
        engine.replay(file, self.algorithm, f"{self.rate_bps}bit/s", limit, self.settings, self.seed, out)
        lines = [line.split(",") for line in out.getvalue().decode().splitlines()]
        fate, t_ns, ecn = (lines[0].index(column) for column in ("fate", "t_fate_ns", "ecn_out"))
        return [Fate(line[fate], int(line[t_ns]), int(line[ecn])) for line in lines[1:]]


def written(**settings: object) -> list[str]:
    """`key=value` as the command line has it."""
    return [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in settings.items()]


def coin(r: random.Random) -> bool:
    """Yes or no."""
    return r.random() < 0.5


@twin("codel", codel.replay, drop="drop_dequeue")
def codel_setup(r: random.Random) -> Setup:
    """The RFC's arithmetic and the kernel's."""
    options, settings = codel_options(r)
    linux = coin(r)
    if coin(r):
        most_ns, (selector, mask) = round(10 ** r.uniform(5, 7.5)), r.choice([(0, 0), (1, 3), (2, 2), (0, 1), (3, 3)])
        settings += written(ce_threshold=f"{most_ns}ns", ce_threshold_selector=selector, ce_threshold_mask=mask)
        options |= {"ce_threshold_ns": most_ns, "ce_selector": selector, "ce_mask": mask}
    return codel.Params(**options, linux=linux), settings + written(compat="linux" if linux else "source")


@twin("red", red.replay, draws=True)
def red_setup(r: random.Random) -> Setup:
    """Every option; thresholds in the unit of the average and in the other one."""
    mean, in_bytes, said_in_bytes = r.choice([300, 500, 1000, 1500]), coin(r), coin(r)
    low = r.randint(1, 20) * (mean if said_in_bytes else 1)
    high = low + r.randint(1, 40) * (mean if said_in_bytes else 1)

    def averaged(said: int) -> float:
        # A quotient, not a product with the inverse: the average can be exactly at a threshold.
        if in_bytes == said_in_bytes:
            return said
        return said / mean if said_in_bytes else said * mean

    options = {option: coin(r) for option in ("byte_drop", "gentle", "wait", "ecn")}
    max_p = r.choice([0.02, 0.1, 1.0, r.uniform(0.001, 1)])
    weight = r.choice([0.002, 0.5, 1.0, 10 ** r.uniform(-3, 0)])
    more: dict[str, Any] = {"over_max": r.choice(OVER_MAX), "least_waiting": r.choice([0, 2, 10])}
    params = red.Params(averaged(low), averaged(high), max_p, weight, mean, in_bytes, **(options | more))
    unit = "B" if said_in_bytes else "p"
    return params, written(
        min_threshold=f"{low}{unit}",
        max_threshold=f"{high}{unit}",
        max_probability=max_p,
        weight=weight,
        **more,
        mean_packet=f"{mean}B",
        mode="bytes" if in_bytes else "packets",
        **options,
    )


@twin("an-aqm", an_aqm.replay, draws=True)
def an_aqm_setup(r: random.Random) -> Setup:
    """Strong controllers among others, so that p moves within a trace; learning that reaches the bounds of weights."""
    interval_ns = r.choice([6_250_000, r.randint(500_000, 50_000_000)])
    strength = 10 ** r.uniform(0, 3)
    a = min(1.0, 1.822e-5 * strength)
    params = an_aqm.Params(
        target_ratio=r.choice([0.3, r.uniform(0.01, 1)]),
        interval_ns=interval_ns,
        a=a,
        b=a * r.choice([0.9967, r.uniform(0, 0.9)]),
        learning=r.choice([0, 0.1, 10 ** r.uniform(-1, 3)]),
        mean_packet=r.choice([500, 1000, 1500]),
        ecn=coin(r),
    )
    settings = asdict(params) | {"interval": f"{interval_ns}ns", "mean_packet": f"{params.mean_packet}B"}
    del settings["interval_ns"]
    return params, written(**settings)


@twin("ared", ared.replay, draws=True)
def ared_setup(r: random.Random) -> Setup:
    """Targets that give the least thresholds and larger ones; adaptations rare and frequent."""
    target_ms, interval_ms = r.randint(1, 60), r.choice([1, 20, 100, 500])
    max_p = r.choice([0.01, 0.1, 0.5, r.uniform(0.01, 0.5)])
    mean, ecn, wait = r.choice([500, 1000, 1500]), coin(r), coin(r)
    slope: Literal["current", "initial"] = r.choice(["current", "initial"])
    params = ared.Params(target_ms / 1000, interval_ms * MS, max_p, mean, ecn, wait, slope, r.choice([0, 2, 10]))
    return params, written(
        least_waiting=params.least_waiting,
        gentle_slope=slope,
        target=f"{target_ms}ms",
        interval=f"{interval_ms}ms",
        max_probability=max_p,
        mean_packet=f"{params.mean_packet}B",
        ecn=params.ecn,
        wait=params.wait,
    )


@twin("lindrop", lindrop.replay)
def lindrop_setup(r: random.Random) -> Setup:
    """Averages that reach both ends of f; spacings from dense to the document's."""
    avg_min = r.choice([0, 0, r.uniform(0, 10)])
    dr_min = r.choice([1, 5, r.uniform(1, 20)])
    dr_max = dr_min * r.choice([2, 100, 200_000])
    params = lindrop.Params(
        avg_min=avg_min,
        avg_max=avg_min + r.choice([5, 50, 150, r.uniform(1, 500)]),
        n_pu=r.choice([0.98, r.uniform(0.5, 0.999)]),
        n_pd=r.choice([1.05, r.uniform(1.001, 1.5)]),
        dr_init=r.choice([dr_min, dr_max, r.uniform(dr_min, dr_max)]),
        dr_min=dr_min,
        dr_max=dr_max,
        weight=r.choice([0.002, 10 ** r.uniform(-4, 0)]),
        mean_packet=r.choice([500, 1000, 1500]),
        ecn=coin(r),
    )
    return params, written(**asdict(params) | {"mean_packet": f"{params.mean_packet}B"})


def variant_setup(r: random.Random, most_max_p: float) -> tuple[dict[str, Any], list[str]]:
    """What the variants of RED in packets have in common."""
    mean, low = r.choice([500, 1000, 1500]), r.randint(1, 20)
    high = low + r.randint(1, 40)
    max_p = r.choice([0.02, 0.1, most_max_p, r.uniform(0.001, most_max_p)])
    weight = r.choice([0.002, 0.5, 1.0, 10 ** r.uniform(-3, 0)])
    options = {option: coin(r) for option in ("gentle", "wait", "ecn")}
    said = written(min_threshold=f"{low}p", max_threshold=f"{high}p", max_probability=max_p, weight=weight, **options)
    params = {"min_threshold": low, "max_threshold": high, "max_p": max_p, "weight": weight, "mean_packet": mean}
    return params | options, [*said, f"mean_packet={mean}B"]


@twin("feng-red", feng_red.replay, draws=True)
def feng_red_setup(r: random.Random) -> Setup:
    """Factors large and small, so that both bounds of max_p are reached."""
    params, said = variant_setup(r, 1.0)
    params |= {"alpha": r.choice([3, r.uniform(1, 20)]), "beta": r.choice([2, r.uniform(1, 20)])}
    return feng_red.Params(**params), said + written(alpha=params["alpha"], beta=params["beta"])


@twin("nonlinear-red", nonlinear_red.replay, draws=True)
def nonlinear_red_setup(r: random.Random) -> Setup:
    """The largest max_p is 2/3."""
    params, said = variant_setup(r, 0.6666)
    return nonlinear_red.Params(**params), said


@twin("red/linux", red_linux.replay, draws=True)
def red_linux_setup(r: random.Random) -> Setup:
    """Thresholds in bytes up to the limits of 32 bits; each W said as itself or as a number near it."""
    wlog = r.choice([1, 2, 5, 9, r.randint(1, 12)])
    low = r.randint(1, 30_000)
    high = min(low + r.choice([1, r.randint(1, 60_000)]), (1 << 31 - wlog) - 1)
    max_p = r.choice([0.02, 0.1, 1.0, r.uniform(0.001, 1)])
    params = red_linux.Params(low, high, wlog, max_p, mean_packet=r.choice([500, 1000, 1500]), ecn=coin(r))
    told: dict[str, Any] = {}
    if coin(r):
        told["bandwidth_bps"] = r.choice([10_000_000, round(10 ** r.uniform(5, 9))])
    if coin(r):
        told["scell_log"] = r.randint(0, 31)
    params = replace(params, **told)
    return params, written(
        **({"bandwidth": f"{told['bandwidth_bps']}bit/s"} if "bandwidth_bps" in told else {}),
        **({"scell_log": told["scell_log"]} if "scell_log" in told else {}),
        compat="linux",
        min_threshold=f"{low}B",
        max_threshold=f"{high}B",
        max_probability=max_p,
        weight=2.0 ** -(wlog + r.choice([0, 0.4, -0.4])),
        mean_packet=f"{params.mean_packet}B",
        ecn=params.ecn,
    )


def counted(r: random.Random, mean: int) -> tuple[float, bool, str]:
    """A queue length in packets, whether it is said in bytes, and how it is said."""
    packets, in_bytes = r.choice([1, 5, 20, 50]), coin(r)
    said = packets * r.choice([500, mean]) if in_bytes else packets
    return (said / mean if in_bytes else packets), in_bytes, f"{said}{'B' if in_bytes else 'p'}"


@twin("pi", pi.replay, draws=True)
def pi_setup(r: random.Random) -> Setup:
    """From the paper's coefficients to ones that swing between 0 and 1."""
    mean, strength = r.choice([300, 500, 1500]), 10 ** r.uniform(0, 4)
    reference, in_bytes, said = counted(r, mean)
    a = 1.822e-5 * strength
    params = pi.Params(
        a, a * r.choice([0.0, 0.9, 0.9967]), reference, r.randint(1, 30_000) * 1000, in_bytes, mean, coin(r)
    )
    return params, written(
        a=params.a,
        b=params.b,
        reference=said,
        interval=f"{params.interval_ns}ns",
        mean_packet=f"{mean}B",
        ecn=params.ecn,
    )


@twin("rem", rem.replay, draws=True)
def rem_setup(r: random.Random) -> Setup:
    """Prices slow and fast, with and without an average of the input."""
    mean = r.choice([300, 1000, 1500])
    target, in_bytes, said = counted(r, mean)
    params = rem.Params(
        gamma=10 ** r.uniform(-3, -1),
        phi=r.choice([1.001, 1.01, r.uniform(1.001, 2)]),
        alpha=r.choice([0.0, 0.1, 1.0]),
        target=target,
        interval_ns=r.randint(100, 30_000) * 1000,
        weight=r.choice([1.0, 0.5, 0.02]),
        mean_packet=mean,
        in_bytes=in_bytes,
        ecn=coin(r),
    )
    return params, written(
        gamma=params.gamma,
        phi=params.phi,
        alpha=params.alpha,
        target=said,
        interval=f"{params.interval_ns}ns",
        weight=params.weight,
        mean_packet=f"{mean}B",
        ecn=params.ecn,
    )


@twin("avq", avq.replay)
def avq_setup(r: random.Random) -> Setup:
    """Slow and fast adaptation; a virtual capacity from nothing to all."""
    params = avq.Params(
        alpha=r.choice([0.15, 10 ** r.uniform(-2, 2)]),
        gamma=r.choice([0.98, 1.0, r.uniform(0.1, 1)]),
        initial=r.choice([0.0, 0.8, 1.0]),
        mean_packet=r.choice([300, 1000, 1500]),
        adapt_on_drop=coin(r),
        ecn=coin(r),
    )
    return params, written(
        alpha=params.alpha,
        gamma=params.gamma,
        initial=params.initial,
        mean_packet=f"{params.mean_packet}B",
        adapt_on_drop=params.adapt_on_drop,
        ecn=params.ecn,
    )


@twin("choke", choke.replay, drop="drop_dequeue", draws=True)
def choke_setup(r: random.Random) -> Setup:
    """RED in packets, with thresholds in packets and in bytes."""
    mean, in_bytes = r.choice([300, 500, 1000, 1500]), coin(r)
    low = r.randint(1, 20) * (mean if in_bytes else 1)
    high = low + r.randint(1, 80) * (mean if in_bytes else 1)
    params = red.Params(
        min_threshold=low / mean if in_bytes else low,
        max_threshold=high / mean if in_bytes else high,
        max_p=r.choice([0.02, 1.0, r.uniform(0.001, 1)]),
        weight=r.choice([0.002, 0.5, 1.0, 10 ** r.uniform(-3, 0)]),
        mean_packet=mean,
        gentle=coin(r),
        ecn=coin(r),
    )
    unit = "B" if in_bytes else "p"
    return params, written(
        min_threshold=f"{low}{unit}",
        max_threshold=f"{high}{unit}",
        max_probability=params.max_p,
        weight=params.weight,
        mean_packet=f"{mean}B",
        gentle=params.gentle,
        ecn=params.ecn,
    )


@twin("blue", blue.replay, draws=True)
def blue_setup(r: random.Random) -> Setup:
    """Steps small and large, frozen for shorter and longer than a packet's time; each kind of threshold."""
    increment, in_bytes = 10 ** r.uniform(-3, -0.3), coin(r)
    threshold = r.choice([None, r.choice([1, 10, 50]) * (1000 if in_bytes else 1)])
    params = blue.Params(
        increment=increment,
        decrement=increment * r.choice([0.1, 0.5, 1.0]),
        freeze_ns=r.randint(1, 100_000) * 1000,
        threshold=threshold,
        in_bytes=in_bytes,
        ecn=coin(r),
    )
    settings = written(
        increment=params.increment,
        decrement=params.decrement,
        freeze_time=f"{params.freeze_ns}ns",
        ecn=params.ecn,
    )
    if threshold is not None:
        settings.append(f"threshold={threshold}{'B' if in_bytes else 'p'}")
    return params, settings


@twin("sfb", sfb.replay, draws=True, bits=True)
def sfb_setup(r: random.Random) -> Setup:
    """Few bins and many, steps so large that flows come into the penalty box, hashes that change often and never."""
    bin_size, rehash_ms = r.choice([1, 2, 5, 20]), r.choice([0, 5, 50, 500, 600_000])
    params = sfb.Params(
        levels=r.choice([1, 2, 8]),
        bins=r.choice([2, 4, 16, 64]),
        bin_size=bin_size,
        bin_limit=bin_size + r.choice([1, 5, 50]),
        increment=10 ** r.uniform(-3, 0),
        decrement=10 ** r.uniform(-4, 0),
        rehash_ns=rehash_ms * MS,
        warmup_ns=r.choice([0, rehash_ms // 5, rehash_ms]) * MS,
        penalty_rate=r.choice([0.0, 10.0, 1000.0]),
        penalty_burst=r.choice([1, 20]),
        ecn=coin(r),
    )
    settings = asdict(params) | {"rehash": f"{params.rehash_ns}ns", "warmup": f"{params.warmup_ns}ns"}
    del settings["rehash_ns"], settings["warmup_ns"]
    return params, written(**settings)


@twin("red-ern", red_ern.replay, draws=True)
def red_ern_setup(r: random.Random) -> Setup:
    """Thresholds that are crossed both ways, categories that are updated often and rarely, both identifications."""
    low = r.randint(1, 20)
    high = low + r.randint(1, 40)
    max_p = r.choice([0.02, 0.1, 1.0, r.uniform(0.001, 1)])
    weight = r.choice([0.002, 0.5, 1.0, 10 ** r.uniform(-3, 0)])
    rate_weight = r.choice([0.02, 0.02, 1.0, r.uniform(0.001, 1)])
    last_ms = r.choice([320, 640, 5000])
    over_max = r.choice(OVER_MAX)
    params = red_ern.Params(
        low, high, max_p, weight, r.choice([500, 1000]), coin(r), rate_weight, last_ms * MS, coin(r), coin(r), over_max
    )
    return params, written(
        over_max=over_max,
        min_threshold=f"{low}p",
        max_threshold=f"{high}p",
        max_probability=max_p,
        weight=weight,
        mean_packet=f"{params.mean_packet}B",
        gentle=params.gentle,
        rate_weight=rate_weight,
        last_period=f"{last_ms}ms",
        identify="ect1" if params.by_ect1 else "bits",
        ecn=params.ecn,
    )


def with_rates(r: random.Random, arrivals: list[Arrival]) -> list[Arrival]:
    """The same arrivals, of which many tell a rate: all bits with and without the option, windows of all sizes."""

    def rate(arrival: Arrival) -> Arrival:
        cwnd = r.choice([0, 536, 10_720, 65_535, 65_536, round(2 ** r.uniform(8, 31)) % 2_147_450_881])
        rtt_ms = r.choice([0, 1, 39, 40, 79, 80, 159, 160, 319, 320, 4095, r.randint(1, 700)])
        return arrival._replace(ern=r.choice([0, 1, 2, 3, 3, 3, 3]), cwnd=cwnd, rtt_ms=rtt_ms)

    return [rate(arrival) if coin(r) else arrival for arrival in arrivals]


def some_tupdate_ns(r: random.Random) -> int:
    """From 1 to 30 ms, now and then the least there is."""
    return 100_000 if r.random() < 0.03 else round(10 ** r.uniform(6, 7.5))


def pie_options(r: random.Random) -> tuple[dict[str, Any], list[str]]:
    """What PIE in either arithmetic and Minstrel PIE have in common."""
    target_ns, tupdate_ns = round(10 ** r.uniform(5, 7.5)), some_tupdate_ns(r)
    options = {"bytemode": r.random() < 0.2, "ecn": r.random() < 0.9}
    by_rate = coin(r)
    settings = written(target=f"{target_ns}ns", tupdate=f"{tupdate_ns}ns", **options)
    settings += written(estimator="departure-rate" if by_rate else "timestamps")
    return {"target_ns": target_ns, "tupdate_ns": tupdate_ns, "by_rate": by_rate, **options}, settings


def rfc_pie_options(r: random.Random) -> tuple[dict[str, Any], list[str]]:
    """Every option of the RFC's arithmetic; probabilities that move at once and slowly."""
    shared, settings = pie_options(r)
    options = {
        "alpha": r.choice([0.125, 10 ** r.uniform(-2, 2)]),
        "beta": r.choice([1.25, 10 ** r.uniform(-1, 2)]),
        "derandomize": coin(r),
        "ecn_threshold": r.choice([0.1, 1.0, 1.0, 1.0, r.random()]),
    }
    burst_ns, high_ns = r.choice([0, 10 * MS, 150 * MS]), r.choice([MS, 50 * MS, 250 * MS])
    mean, threshold = r.choice([100, 1000, 1500]), r.choice([3000, 16384, 65536])
    settings += written(max_burst=f"{burst_ns}ns", high_delay=f"{high_ns}ns", **options)
    settings += written(mean_packet=f"{mean}B", dq_threshold=f"{threshold}B")
    times = {"max_burst_ns": burst_ns, "high_delay_ns": high_ns}
    return {**shared, **options, **times, "mean_packet": mean, "dq_threshold": threshold}, settings


@twin("pie", pie.replay, draws=True)
def pie_setup(r: random.Random) -> Setup:
    """The RFC's arithmetic and the kernel's."""
    if coin(r):
        options, settings = rfc_pie_options(r)
        return pie.Params(**options), settings
    options, settings = pie_options(r)
    alpha, beta = r.choice([1, 2, 32]) / 16, r.randint(1, 32) / 16
    settings += written(compat="linux", alpha=alpha, beta=beta)
    return pie.Params(**options, alpha=alpha, beta=beta, linux=True), settings


@twin("minstrel-pie", minstrel_pie.replay, draws=True)
def minstrel_pie_setup(r: random.Random) -> Setup:
    """Every option of PIE, and any least target."""
    options, settings = rfc_pie_options(r)
    least_ns = r.randint(1, options["target_ns"])
    return minstrel_pie.Params(**options, min_target_ns=least_ns), settings + written(min_target=f"{least_ns}ns")


@twin("pi2", pi2.replay, draws=True)
def pi2_setup(r: random.Random) -> Setup:
    """Every option."""
    target_ns, tupdate_ns = round(10 ** r.uniform(5, 7.5)), some_tupdate_ns(r)
    gains: dict[str, Any] = {gain: 10 ** r.uniform(-1, 2) for gain in ("alpha", "beta")}
    gains["coupling"] = r.choice([1.0, 2.0, 3.5])
    by_rate, threshold, mean, ecn = coin(r), r.choice([3000, 16384, 65536]), r.choice([100, 1000, 1500]), coin(r)
    sizes: dict[str, Any] = {"mean_packet": mean, "dq_threshold": threshold}
    params = pi2.Params(target_ns=target_ns, tupdate_ns=tupdate_ns, by_rate=by_rate, ecn=ecn, **sizes, **gains)
    settings = written(target=f"{target_ns}ns", tupdate=f"{tupdate_ns}ns", ecn=ecn, **gains)
    settings += written(estimator="departure-rate" if by_rate else "timestamps")
    return params, settings + written(mean_packet=f"{mean}B", dq_threshold=f"{threshold}B")


@twin("dualpi2", dualpi2.replay, drop="drop_dequeue")
def dualpi2_setup(r: random.Random) -> Setup:
    """Gains that are given and gains that follow from the round trip time."""
    target_ns, rtt_max_ns = round(10 ** r.uniform(5, 7.5)), round(10 ** r.uniform(6, 8.5))
    step, weight = r.choice([{}, {"th_len": 0}, {"th_len": 3}]), r.choice([1, 10, 50, 99])
    tupdate_ns = min(target_ns, rtt_max_ns // 3)
    rtt_max = rtt_max_ns / 1e9
    gains: dict[str, Any] = {"alpha": 0.1 * (tupdate_ns / 1e9) / (rtt_max * rtt_max), "beta": 0.3 / rtt_max}
    settings = written(target=f"{target_ns}ns", rtt_max=f"{rtt_max_ns}ns", classic_weight=weight, **step)
    if coin(r):
        tupdate_ns = some_tupdate_ns(r)
        gains = {"alpha": 10 ** r.uniform(-1, 2), "beta": 10 ** r.uniform(-1, 2)}
        settings += written(tupdate=f"{tupdate_ns}ns", **gains)
    ramp = {"min_th": round(10 ** r.uniform(5, 7)), "range": r.choice([0, round(10 ** r.uniform(5, 7))])}
    settings += written(**{key: f"{value}ns" for key, value in ramp.items()})
    times = {"min_th_ns": ramp["min_th"], "range_ns": ramp["range"]}
    return dualpi2.Params(target_ns, tupdate_ns, **gains, **times, **step, classic_weight=weight), settings


@twin("dualpi2/linux", dualpi2_linux.replay, drop="drop_dequeue", draws=True)
def dualpi2_linux_setup(r: random.Random) -> Setup:
    """Every option of the kernel; gains from its defaults to ones that swing between 0 and 1."""
    times = {"target": round(10 ** r.uniform(5, 7.5)), "tupdate": some_tupdate_ns(r)}
    params = dualpi2_linux.Params(
        times["target"],
        times["tupdate"],
        alpha=r.choice([41, r.randint(1, 10_000)]),
        beta=r.choice([819, r.randint(1, 10_000)]),
        coupling=r.choice([1, 2, 5]),
        step_ns=round(10 ** r.uniform(5, 7)),
        step_packets=r.choice([None, 0, 5]),
        min_qlen_step=r.choice([0, 0, 3]),
        drop_early=r.random() < 0.3,
        drop_overload=coin(r),
        any_ect=r.random() < 0.3,
        memory_limit=r.choice([None, 20_000, 500_000]),
        classic_weight=r.choice([1, 10, 50, 99]),
        mtu=r.choice([100, 1514]),
    )
    kept = ("coupling", "min_qlen_step", "drop_early", "drop_overload", "any_ect", "classic_weight")
    settings = written(compat="linux", **{key: getattr(params, key) for key in kept})
    settings += written(alpha=params.alpha / 256, beta=params.beta / 256, mtu=f"{params.mtu}B")
    settings += written(**{key: f"{ns}ns" for key, ns in {**times, "step_thresh": params.step_ns}.items()})
    if params.step_packets is not None:
        settings += written(step_packets=params.step_packets)
    if params.memory_limit is not None:
        settings += written(memory_limit=f"{params.memory_limit}B")
    return params, settings


def codel_options(r: random.Random) -> tuple[dict[str, Any], list[str]]:
    """Any target below any interval."""
    target_ns = round(10 ** r.uniform(5, 7.5))
    interval_ns = round(target_ns * r.uniform(1.1, 30))
    mtu, ecn = r.choice([1, 576, 1514, 9000]), coin(r)
    settings = written(target=f"{target_ns}ns", interval=f"{interval_ns}ns", mtu=f"{mtu}B", ecn=ecn)
    return {"target_ns": target_ns, "interval_ns": interval_ns, "mtu": mtu, "ecn": ecn}, settings


@twin("modified-codel", modified_codel.replay, drop="drop_dequeue")
def modified_codel_setup(r: random.Random) -> Setup:
    """As CoDel."""
    options, settings = codel_options(r)
    return modified_codel.Params(**options), settings


def cobalt_options(r: random.Random) -> Setup:
    """Probabilities that move at once and slowly; overflows at the tail and at the head."""
    options, settings = codel_options(r)
    steps: dict[str, Any] = {
        step: r.choice([1 / 256, 1 / 4096, 0.3, r.uniform(1e-6, 1)]) for step in ("increment", "decrement")
    }
    head_drop = r.choice([None, False, True])
    settings += written(**steps, **({} if head_drop is None else {"head_drop": head_drop}))
    freeze_ns = r.choice([None, MS, 100 * MS])
    if freeze_ns is not None:
        settings += written(freeze=f"{freeze_ns}ns")
    return cobalt.Params(**options, **steps, freeze_ns=freeze_ns, head_drop=head_drop), settings


@twin("cobalt", cobalt.replay, drop="drop_dequeue", draws=True)
def cobalt_setup(r: random.Random) -> Setup:
    """Floating point."""
    params, settings = cobalt_options(r)
    return params, settings + written(compat="source")


@twin("cobalt/linux", cobalt_linux.replay, drop="drop_dequeue", draws=True)
def cobalt_linux_setup(r: random.Random) -> Setup:
    """The kernel's numbers."""
    params, settings = cobalt_options(r)
    return params, settings + written(compat="linux")


def flow_queueing(r: random.Random, make: Maker, linux: bool) -> Setup:
    """Few queues, so that flows meet, and many; limits that are reached by one flow and by all."""
    flows = r.choice([1, 2, 4, 8, 1024])
    ways = r.choice([way for way in (1, 2, 4, 8) if flows % way == 0])
    fattest, key = coin(r), r.choice([None, None, None, r.getrandbits(53)])  # None: from a stream of its own
    options = {"flows": flows, "ways": ways, "drop_batch": r.choice([1, 5, 64])}
    quantum, memory_limit = r.choice([256, 300, 1514, 9000]), r.choice([9000, 50_000, 32 << 20])
    settings = written(quantum=f"{quantum}B", memory_limit=f"{memory_limit}B", **options)
    settings += written(overflow="fattest" if fattest else "arrival", compat="linux" if linux else "source")
    if key is not None:
        settings += written(perturbation=key)
    memory = {"quantum": quantum, "memory_limit": memory_limit}
    return fq.Params(make, **options, **memory, fattest=fattest, key=key or 0, linux=linux), settings


def with_compat_once(queues: list[str], aqm: list[str]) -> list[str]:
    """One key for both parts."""
    return queues + [setting for setting in aqm if not setting.startswith("compat=")]


@twin("fq-codel", fq.replay, drop="drop_dequeue", draws=True)
def fq_codel_setup(r: random.Random) -> Setup:
    """CoDel in the RFC's and the kernel's arithmetic."""
    aqm, settings = codel_setup(r)
    params, queues = flow_queueing(r, lambda *_: codel.make(fq.LIMITLESS, aqm), aqm.linux)
    return params, with_compat_once(queues, settings)


@twin("fq-cobalt", fq.replay, drop="drop_dequeue")
def fq_cobalt_setup(r: random.Random) -> Setup:
    """COBALT in both arithmetics."""
    aqm, settings = cobalt_options(r)
    linux = coin(r)
    made = cobalt_linux.LinuxCobalt if linux else cobalt.Cobalt
    params, queues = flow_queueing(r, lambda rate_bps, uniform: made(fq.LIMITLESS, aqm, rate_bps, uniform), linux)
    return params, with_compat_once(queues, settings)


def with_few_updates(setup: Setup) -> Setup:
    """At least 10 ms between updates: each of the twin's queues makes them all. Marks up to any probability: a queue of
    one flow, with so few updates, seldom has a small one."""
    aqm, settings = setup
    changed = {"ecn": True} | ({} if "compat=linux" in settings else {"ecn_threshold": 1.0})
    few = replace(aqm, tupdate_ns=max(aqm.tupdate_ns, 10 * MS), **changed)
    replaced = ("tupdate", *changed)
    others = [setting for setting in settings if setting.split("=")[0] not in replaced]
    return few, others + written(tupdate=f"{few.tupdate_ns}ns", **changed)


@twin("fq-pie", fq.replay, draws=True)
def fq_pie_setup(r: random.Random) -> Setup:
    """PIE in both arithmetics."""
    aqm, settings = with_few_updates(pie_setup(r))
    params, queues = flow_queueing(r, lambda _, uniform: pie.make(fq.LIMITLESS, aqm, uniform), aqm.linux)
    return params, with_compat_once(queues, settings)


@twin("fq-minstrel-pie", fq.replay)
def fq_minstrel_pie_setup(r: random.Random) -> Setup:
    """Minstrel PIE."""
    aqm, settings = with_few_updates(minstrel_pie_setup(r))
    params, queues = flow_queueing(
        r, lambda _, uniform: minstrel_pie.MinstrelPie(fq.LIMITLESS, aqm, uniform), linux=False
    )
    return params, with_compat_once(queues, settings)


@twin("lte-bearers", lte_bearers.replay, drop="drop_overflow", marks=False)
def lte_bearers_setup(r: random.Random) -> Setup:
    """Any bearers, of which several may have one priority; rates of which some are met and some cannot be."""

    def bearer() -> tuple[int, int | None]:
        qci = r.choice(list(lte_bearers.QCIS))
        guarantees, _ = lte_bearers.QCIS[qci]
        return qci, round(10 ** r.uniform(3, 8)) if guarantees or coin(r) else None

    bearers = tuple(bearer() for _ in range(r.choice([1, 2, 4, 8])))
    params = lte_bearers.Params(bearers, r.choice([1, 50, 100, 1000]) * MS, r.choice([256, 300, 1514, 9000]))
    told = ",".join(f"{qci}" if rate is None else f"{qci}:{rate}bit/s" for qci, rate in bearers)
    return params, written(bearers=told, bucket=f"{params.bucket_ns}ns", quantum=f"{params.quantum}B")


def some_arrivals(r: random.Random, rate_bps: int) -> list[Arrival]:
    """Phases of several loads, with bursts at one instant, gaps from a packet's time to seconds, all ECN fields."""
    usual, gaps = r.choice([0.5, 0.95, 1.1, 1.5, 3.0]), r.choice([0, 0.001, 0.01])
    load, t_ns, arrivals = usual, r.choice([0, NS_PER_S]), []
    for _ in range(r.choice([50, 1500, 4000])):
        if r.random() < 0.01:
            load = r.choice([0.05, usual, 2 * usual])
        if r.random() < gaps:
            t_ns += r.choice([MS, 100 * MS, NS_PER_S])
        size = r.choice([40, 100, 500, 1000, 1500, 1500, r.randint(1, 9000)])
        gap_ns = size * 8 * NS_PER_S / rate_bps / load
        # A third comes at the pace of the link, so that arrivals and departures meet at one instant.
        pace = r.randrange(6)
        t_ns += round(gap_ns if pace < 2 else r.expovariate(1 / gap_ns)) if pace < 5 else 0
        arrivals.append(Arrival(t_ns, r.randrange(8), size, r.choice([0, 0, 1, 2, 3])))
    return arrivals


def trial(name: str, number: int) -> Trial:
    """The trial of this number."""
    r = random.Random(f"{name}/{number}")
    rate_bps = r.choice([200_000, 1_000_000, 3_333_333, 10_000_000, round(10 ** r.uniform(5, 9))])
    in_packets: Limit = ("packets", r.choice([1, 20, 100, 1000]))
    in_bytes: Limit = ("bytes", r.choice([9000, 100_000, 1_000_000]))
    limit = r.choice([in_packets, in_bytes])
    params, settings = PAIRS[name].setup(r)
    seed, arrivals = r.getrandbits(64), some_arrivals(r, rate_bps)
    if name == "red-ern":
        arrivals = with_rates(r, arrivals)
    return Trial(name, seed, rate_bps, limit, params, settings, arrivals)


def first_difference(one: Trial, got: list[Fate], expected: list[Fate]) -> str:
    """What a person needs to follow it by hand."""
    pairs = zip(got, expected, strict=False)
    at = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(got), len(expected)))
    setup = f"{one.name} seed {one.seed} at {one.rate_bps} bit/s, limit {one.limit}, {' '.join(one.settings)}"
    return f"{setup}: packet {at} is {got[at : at + 1]}, by the twin {expected[at : at + 1]}"


def compare(name: str, number: int, file: Path) -> Counter[str]:
    """How many packets of this trial had which fate; fails if the twin gives one another. `file` is for the trace."""
    one = trial(name, number)
    got, expected = one.compiled(file), one.twin(one.seed)
    assert len(got) == len(one.arrivals)
    assert got == expected, f"trace {number}: {first_difference(one, got, expected)}"
    seen: Counter[str] = Counter()
    for fate, arrival in zip(got, one.arrivals, strict=True):
        seen[fate.name] += 1
        seen["marked"] += fate.ecn == CE != arrival.ecn
    return seen


@pytest.mark.parametrize("name", PAIRS)
def test_every_packet_has_the_fate_that_the_twin_gives_it(name: str, tmp_path: Path) -> None:
    seen = sum((compare(name, number, tmp_path / "trace.csv") for number in range(TRACES)), Counter[str]())
    # Agreement about traces on which nothing happens would say little.
    if TRACES >= 100:
        for kind in ("sent", *(["marked"] if PAIRS[name].marks else []), "drop_overflow", PAIRS[name].drop):
            assert seen[kind] > 1000, seen


@pytest.mark.parametrize("name", [name for name, pair in PAIRS.items() if pair.draws])
def test_the_random_numbers_are_those_of_the_seed(name: str, tmp_path: Path) -> None:
    differ = 0
    for number in range(30):
        one = trial(name, number)
        differ += one.compiled(tmp_path / "trace.csv") != one.twin(one.seed ^ 1)
    assert differ >= 5, "the twin with the numbers of another seed must be told apart"
