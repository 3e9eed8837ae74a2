"""Elements that see the segments of both directions, and their readable twins, in made-up conversations."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from conversations import Kind
from penstock.reference import green, red_ern
from penstock.reference.ack import Fact, pink, qrm
from penstock.reference.ack.pink_default import DefaultPink, PinkBeforeQrm
from penstock.reference.ack.weir import PARTS, Weir
from penstock.reference.red_ern_estimated import Estimated
from twin_settings import MS, coin, written
from twin_steps import Trial, check, element, names


@element("green")
def green_trial(r: random.Random) -> Trial:
    """Constants and windows small and large."""
    params = green.Params(
        c=r.choice([0.93, 1.22, r.uniform(0.01, 2)]),
        window_ns=r.choice([1, 100, 1000, 5000]) * MS,
        rtt_ns=r.choice([1, 100, 700]) * MS,
        ecn=coin(r),
    )
    settings = written(c=params.c, window=f"{params.window_ns}ns", rtt=f"{params.rtt_ns}ns", ecn=params.ecn)

    def facts(r: random.Random, flow: int) -> list[Fact]:
        return [(0, "flow-gone", flow, 0)] if coin(r) else []

    return Trial(lambda limit, rate, uniform: green.Green(limit, params, rate, uniform), settings, Kind(facts=facts))


@element("red-ern/estimated")
def red_ern_estimated_trial(r: random.Random) -> Trial:
    """Thresholds that a few flows cross, and rates that weigh little or all."""
    low = r.randint(1, 5)
    high = low + r.randint(1, 20)
    params = red_ern.Params(
        low,
        high,
        max_p=r.choice([0.1, 1.0, r.uniform(0.001, 1)]),
        weight=r.choice([0.002, 0.5, 1.0]),
        gentle=coin(r),
        rate_weight=r.choice([0.02, 1.0, r.uniform(0.001, 1)]),
        last_period_ns=r.choice([320, 640]) * MS,
        ecn=coin(r),
    )
    settings = written(
        rates="estimated",
        min_threshold=f"{low}p",
        max_threshold=f"{high}p",
        max_probability=params.max_p,
        weight=params.weight,
        gentle=params.gentle,
        rate_weight=params.rate_weight,
        last_period=f"{params.last_period_ns}ns",
        ecn=params.ecn,
    )
    gone = r.choice([0, 0.5])
    kind = Kind(facts=lambda r, flow: [(0, "flow-gone", flow, 0)] if r.random() < gone else [])
    return Trial(lambda limit, rate, uniform: Estimated(limit, params, rate, uniform), settings, kind)


def qrm_conversations(r: random.Random) -> Kind:
    """Flows and nodes that come and go, with budgets that a gateway tells or without."""
    owners, budgets, rest, nodes = coin(r), coin(r), coin(r), r.choice([2, 4])

    def facts(r: random.Random, flow: int) -> list[Fact]:
        told: list[Fact] = [(0, "flow-gone", flow, 0)] if r.random() < 0.3 else []
        node = r.randrange(nodes) if owners else flow
        if owners and r.random() < 0.9:
            told.append((0, "owner", flow, node))
        if budgets and r.random() < 0.8:
            rate_bps = 0 if r.random() < 0.2 else round(10 ** r.uniform(5, 8))
            told.append((0, "budget", r.choice([node, node, r.randrange(nodes)]), rate_bps))
        if rest and r.random() < 0.3:
            told.append((0, "rest", 0, round(10 ** r.uniform(4, 8))))
        return told if r.random() < 0.9 else [*told, (0, "gone", node, 0)]

    return Kind(facts=facts, flows=r.choice([3, 8]))


@element("qrm")
def qrm_trial(r: random.Random) -> Trial:
    """Both accounts; told budgets that change, or even parts of link or told rest; nodes with several flows."""
    params = qrm.Params(
        tolerance=r.choice([0, 0.05, r.uniform(0, 10)]),
        slack=r.choice([0, 4500, 100_000]),
        window=coin(r),
        rtt_ns=r.choice([1, 100, 700]) * MS,
        max_lan_ns=r.choice([1, 5, 500]) * MS,
        syn_rate=r.choice([1, 2, 100]),
        idle_ns=r.choice([20, 1000, 10_000]) * MS,
    )
    settings = written(
        tolerance=params.tolerance,
        slack=f"{params.slack}B",
        account="window" if params.window else "bucket",
        rtt=f"{params.rtt_ns}ns",
        max_lan=f"{params.max_lan_ns}ns",
        syn_rate=params.syn_rate,
        idle=f"{params.idle_ns}ns",
    )
    return Trial(lambda limit, rate, _: qrm.Qrm(limit, params, rate), settings, qrm_conversations(r))


def pink_trial(r: random.Random, params: pink.Params, form: type[pink.Pink] = pink.Pink) -> Trial:
    """Any c, timeouts that are reached, a reserve."""
    params = replace(
        params,
        c=r.choice([0.95, 1.0, r.uniform(0.01, 1)]),
        reserve_bps=r.choice([0, 0, 100_000]),
        sampling=r.choice(["always", "after-drop", "off"]) if params.sampling == "off" else params.sampling,
        idle_ns=r.choice([1, 2, 60]) * 1000 * MS,
        silent_ns=r.choice([1, 3]) * 1000 * MS,
    )
    settings = written(
        c=params.c,
        reallocation=params.reallocation,
        shrink=params.shrink,
        window=params.window,
        sampling=params.sampling,
        idle_timeout=f"{params.idle_ns}ns",
        silent_timeout=f"{params.silent_ns}ns",
    )
    if params.reserve_bps:
        settings += written(reserve=f"{params.reserve_bps}bit/s")
    gone = r.choice([0, 0.5])
    kind = Kind(
        flows=r.choice([1, 4, 12]), facts=lambda r, flow: [(0, "flow-gone", flow, 0)] if r.random() < gone else []
    )
    return Trial(lambda limit, rate, _: form(limit, params, rate), settings, kind)


@element("pink/paper")
def pink_paper_trial(r: random.Random) -> Trial:
    """Eq. (1) and (2) in bytes, which move right edges to the left or not."""
    return pink_trial(
        r, pink.Params(reallocation=r.choice(["paper", "off"]), shrink=r.choice(["immediate", "advance"]))
    )


@element("pink/segments")
def pink_segments_trial(r: random.Random) -> Trial:
    """Whole segments, half a share in the first flight, growth as ACKs arrive."""
    reallocation: pink.Reallocation = r.choice(["paper", "off"])
    shrink: pink.Shrink = r.choice(["immediate", "advance", "advance"])
    return pink_trial(r, pink.Params(reallocation=reallocation, shrink=shrink, window="dither"))


@element("pink/steady")
def pink_steady_trial(r: random.Random) -> Trial:
    """Windows that step together."""
    reallocation: pink.Reallocation = r.choice(["paper", "off"])
    return pink_trial(r, pink.Params(reallocation=reallocation, shrink="advance", window="steady"), DefaultPink)


@element("pink")
def pink_default_trial(r: random.Random) -> Trial:
    """The default, and what flows use with windows that dither."""
    window: pink.Window = r.choice(["steady", "steady", "dither"])
    return pink_trial(r, pink.Params(reallocation="demand", shrink="advance", window=window), DefaultPink)


@element("pink/qrm")
def pink_before_qrm_trial(r: random.Random) -> Trial:
    """The default before QRM: nodes of several flows, with told budgets that change or with even parts."""
    one = pink_trial(r, pink.Params(reallocation="demand", shrink="advance", window="steady"), PinkBeforeQrm)
    return replace(one, settings=[*one.settings, "queue=qrm"], sees=qrm_conversations(r))


def weir_trial(r: random.Random, without: frozenset[str]) -> Trial:
    """Hosts with one flow and several, flows of none or that pass to other hosts, and rates that are told wrongly."""
    owners, gone, nodes = r.random() < 0.8, r.choice([0, 0.5]), r.choice([1, 2, 4])
    wrong = r.choice([0, 0, 0.3])

    def facts(r: random.Random, flow: int) -> list[Fact]:
        told: list[Fact] = [(0, "flow-gone", flow, 0)] if r.random() < gone else []
        if owners and r.random() < 0.9:
            told.append((0, "owner", flow, 2**32 - 1 if r.random() < 0.1 else r.randrange(nodes)))
        if r.random() < wrong:
            told.append((0, "rate", 0, round(10 ** r.uniform(5, 8))))
        return told

    settings = [f"without={json.dumps(sorted(without))}"] if without else []
    return Trial(
        lambda limit, rate, uniform: Weir(limit, rate, uniform, without),
        settings,
        Kind(r.choice([1, 4, 12, 25]), r.choice([500, 500, 1500]), facts, (0, 1, 2), unseen=r.choice([0, 0.2, 0.7])),
    )


@element("weir")
def weir_default_trial(r: random.Random) -> Trial:
    """All parts."""
    return weir_trial(r, frozenset())


@element("weir/parts")
def weir_parts_trial(r: random.Random) -> Trial:
    """Without one part, or without several."""
    return weir_trial(r, frozenset(r.sample(PARTS, r.choice([1, 1, 1, 2, 4]))))


SHOWS = {
    "weir": ("sent", "rewritten", "drop_overflow", "drop_dequeue", "marked"),
    "green": ("sent", "drop_early", "drop_overflow", "marked"),
    "red-ern": ("sent", "drop_early", "drop_overflow", "marked"),
    "qrm": ("sent", "drop_early", "drop_overflow"),
    "pink": ("sent", "rewritten", "drop_overflow"),
}


@pytest.mark.parametrize("name", names(__name__))
def test_an_element_and_its_twin_treat_every_segment_alike(name: str) -> None:
    check(name, SHOWS[name.partition("/")[0]])
