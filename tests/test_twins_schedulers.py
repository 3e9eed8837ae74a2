"""Disciplines of several queues, and their readable twins.

`test_schedulers.py` has the schedulers alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from penstock.reference import cobalt, cobalt_linux, codel, fq, hfs, lte_bearers, minstrel_pie, pie
from penstock.reference.ack import ACK, Segment, Step
from penstock.reference.sched.drr import Drr
from penstock.reference.sched.qfq_plus import QfqPlus
from penstock.reference.sched.wf2q_plus import Wf2qPlus
from test_twins_delays import cobalt_options, codel_setup, minstrel_pie_setup, pie_setup
from twin_settings import MS, coin, written
from twin_steps import Trial, check, element
from twin_steps import names as stepped
from twin_trials import PAIRS, Maker, Setup, check_draws, check_fates, names, twin


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
    """One key for both parts: that of the AQM, if it has one."""
    its = any(setting.startswith("compat=") for setting in aqm)
    return [setting for setting in queues if not (its and setting.startswith("compat="))] + aqm


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


def packets(flows: int, stations: int, changes: float) -> Callable[[random.Random, int], list[Step]]:
    """Arrivals in phases of several loads, bursts and gaps, and channels that change now and then."""

    def steps(r: random.Random, rate_bps: int) -> list[Step]:
        t_ns, load, made = 0, 1.0, list[Step]()
        for _ in range(r.choice([50, 600])):
            if r.random() < 0.02:
                load = r.choice([0.3, 0.9, 1.2, 3.0])
            if r.random() < changes:
                made.append((t_ns, "channel", r.randrange(stations + 1), r.choice([0, 0, 10**6, r.randrange(10**6)])))
            size = r.choice([40, 500, 1500, 1500, r.randint(1, 2500)])
            t_ns += r.choice([0, round(r.expovariate(load * rate_bps / size / 8e9)), size * 8 * 10**9 // rate_bps])
            made.append(Segment(t_ns, False, r.randrange(flows), ACK, 0, 0, 0, 65535, size=size))
        return made

    return steps


def modular_trial(r: random.Random, qos: hfs.Make, mac: hfs.Make, *, changes: float) -> Trial:
    """Weights, limits and Q of any size. `max_packet` must be said for the weights of an exponential policy to fit."""
    kinds = r.choice([(7,), (1, 1, 1, 4), tuple(r.choice([1, 2, 20]) for _ in range(r.choice([2, 9])))])
    in_bytes, limit_in_bytes = coin(r), coin(r)
    params = hfs.Params(
        qos,
        mac,
        kinds,
        stations=r.choice([1, 3, 8]),
        buffer=("bytes", r.choice([0, 1000, 20_000])) if in_bytes else ("packets", r.choice([0, 1, 10, 100])),
        class_limit=("bytes", r.choice([3000, 30_000])) if limit_in_bytes else ("packets", r.choice([1, 10, 100])),
        weighting=r.choice(["constant", "linear", "exponential", "analogical"]),
        max_packet=r.choice([1500, 1700]),
    )
    unit = {"packets": "p", "bytes": "B"}
    settings = written(
        flows=len(kinds),
        weights=",".join(f"{weight}::1" for weight in kinds),
        stations=params.stations,
        buffer=f"{params.buffer[1]}{unit[params.buffer[0]]}",
        class_limit=f"{params.class_limit[1]}{unit[params.class_limit[0]]}",
        weighting=params.weighting,
        max_packet=f"{params.max_packet}B",
    )
    return Trial(
        lambda limit, rate_bps, _: hfs.Modular(limit, params, rate_bps),
        settings,
        packets(len(kinds), params.stations, changes),
    )


@element("hfs")
def hfs_trial(r: random.Random) -> Trial:
    """QFQ+ twice. The twin of QFQ+ has no changes of weights; they are in the other forms."""
    return modular_trial(r, QfqPlus, QfqPlus, changes=0)


@element("hfs-drr")
def hfs_drr_trial(r: random.Random) -> Trial:
    """QFQ+ and DRR."""
    return modular_trial(r, QfqPlus, Drr, changes=0.05)


@element("double-drr")
def double_drr_trial(r: random.Random) -> Trial:
    """DRR twice."""
    return modular_trial(r, Drr, Drr, changes=0.05)


@element("double-wf2q-plus")
def double_wf2q_plus_trial(r: random.Random) -> Trial:
    """WF²Q+ twice."""
    return modular_trial(r, Wf2qPlus, Wf2qPlus, changes=0.05)


@pytest.mark.parametrize("name", names(__name__))
def test_every_packet_has_the_fate_that_the_twin_gives_it(name: str, tmp_path: Path) -> None:
    check_fates(name, tmp_path)


@pytest.mark.parametrize("name", [name for name in names(__name__) if PAIRS[name].draws])
def test_the_random_numbers_are_those_of_the_seed(name: str, tmp_path: Path) -> None:
    check_draws(name, tmp_path)


@pytest.mark.parametrize("name", stepped(__name__))
def test_every_packet_of_two_layers_has_the_fate_that_the_twin_gives_it(name: str) -> None:
    check(name, ("sent", "drop_overflow"))
