"""Disciplines that go by the time that packets wait, and their readable twins."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from penstock.reference import (
    cobalt,
    cobalt_linux,
    codel,
    dualpi2,
    dualpi2_linux,
    minstrel_pie,
    modified_codel,
    pi2,
    pie,
)
from twin_settings import MS, coin, written
from twin_trials import PAIRS, Setup, check_draws, check_fates, names, twin


@twin("codel", codel.replay, drop="drop_dequeue")
def codel_setup(r: random.Random) -> Setup:
    """The RFC's arithmetic, and the kernel's before and since Linux 7.0."""
    options, settings = codel_options(r)
    compat = r.choice(["source", "source", "linux", "linux-7.0"])
    if coin(r):
        most_ns, (selector, mask) = round(10 ** r.uniform(5, 7.5)), r.choice([(0, 0), (1, 3), (2, 2), (0, 1), (3, 3)])
        settings += written(ce_threshold=f"{most_ns}ns", ce_threshold_selector=selector, ce_threshold_mask=mask)
        options |= {"ce_threshold_ns": most_ns, "ce_selector": selector, "ce_mask": mask}
    params = codel.Params(**options, linux=compat != "source", ends_when_empty=compat == "linux-7.0")
    return params, settings + written(compat=compat)


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


@pytest.mark.parametrize("name", names(__name__))
def test_every_packet_has_the_fate_that_the_twin_gives_it(name: str, tmp_path: Path) -> None:
    check_fates(name, tmp_path)


@pytest.mark.parametrize("name", [name for name in names(__name__) if PAIRS[name].draws])
def test_the_random_numbers_are_those_of_the_seed(name: str, tmp_path: Path) -> None:
    check_draws(name, tmp_path)
