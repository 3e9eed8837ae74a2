"""Disciplines that go by the length of the queue, or by what flows tell, and their readable twins."""

from __future__ import annotations

import random
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from penstock.reference import (
    Arrival,
    an_aqm,
    ared,
    avq,
    blue,
    choke,
    feng_red,
    lindrop,
    nonlinear_red,
    pi,
    red,
    red_ern,
    red_linux,
    rem,
    sfb,
)
from twin_settings import MS, coin, written
from twin_trials import PAIRS, Setup, check_draws, check_fates, names, twin

OVER_MAX: tuple[Literal["drop", "mark", "linear"], ...] = ("drop", "mark", "linear")


def with_rates(r: random.Random, arrivals: list[Arrival]) -> list[Arrival]:
    """The same arrivals, of which many tell a rate: all bits with and without the option, windows of all sizes."""

    def rate(arrival: Arrival) -> Arrival:
        cwnd = r.choice([0, 536, 10_720, 65_535, 65_536, round(2 ** r.uniform(8, 31)) % 2_147_450_881])
        rtt_ms = r.choice([0, 1, 39, 40, 79, 80, 159, 160, 319, 320, 4095, r.randint(1, 700)])
        return arrival._replace(ern=r.choice([0, 1, 2, 3, 3, 3, 3]), cwnd=cwnd, rtt_ms=rtt_ms)

    return [rate(arrival) if coin(r) else arrival for arrival in arrivals]


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


@twin("red-ern", red_ern.replay, draws=True, tells=with_rates)
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


@pytest.mark.parametrize("name", names(__name__))
def test_every_packet_has_the_fate_that_the_twin_gives_it(name: str, tmp_path: Path) -> None:
    check_fates(name, tmp_path)


@pytest.mark.parametrize("name", [name for name in names(__name__) if PAIRS[name].draws])
def test_the_random_numbers_are_those_of_the_seed(name: str, tmp_path: Path) -> None:
    check_draws(name, tmp_path)
