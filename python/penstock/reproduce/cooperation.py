"""Cooperative control: C²ML, QRM and DyBRA of document 002, and PINK beside them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from penstock.reproduce.settings import Listed, Setting
from penstock.reproduce.variants import Variant

Flow = dict[str, Any]

# The receiver's and the sender's options of a current host.
MODERN = Variant(
    "modern-tcp",
    "SACK and PRR",
    aqms=("plain", "droptail", "red", "codel", "green"),
    tcp={"sack": True, "prr": True},
    settings=("five-1", "mix"),
)
CCS = ("newreno", "cubic", "bic", "highspeed", "hybla", "noordwijk")
NODES = (2, 4, 8, 16)
FRIENDS = ("cubic", "noordwijk", "newreno", "hybla", "highspeed", "bic")
DYBRA_CCS = ("newreno", "westwood", "highspeed", "cubic", "noordwijk")
GOOD = 12  # of the 16 nodes of `cooperation` that obey, or keep their channel
COOPERATION = {"link": "bottleneck"}
ON: dict[str, Any] = {"tcp.c2ml": "on", "cooperation": COOPERATION}
SCHEMES: dict[str, dict[str, Any]] = {
    "plain": {"aqm.name": "droptail"},
    "c2ml": {"aqm.name": "droptail", **ON},
}
# Noordwijk's reference: an ACK per segment, 20 segments in a burst.
NOORDWIJK: dict[str, Any] = {"tcp.cc": "noordwijk", "tcp.ack_every_segment": True, "tcp.initial_window": 20}
# "Standard" buffers hold the bandwidth-delay product.
BUFFERS = {"large": "4MB", "standard": "75kB"}
USERS, SIZES = (32, 64, 128), {"1.5": 1.5, "5": 5.0, "10": 10.0}
RATES = (1, 2, 4)  # Mbit/s; section 2.2.2.1 has 1 to 4
SHORT_RATE = 4
# What else section 2.2.4.4 does not say of TCP.
TCP_OPTIONS: dict[str, dict[str, Any]] = {
    "window-1": {"tcp.initial_window": 1},
    "threshold-64kB": {"tcp.initial_ssthresh": "65535B"},
    "no-threshold": {"tcp.initial_ssthresh": "1GB"},
    "no-options": {"tcp.timestamps": False, "tcp.limited_transmit": False},
    "buffers-128kB": {"tcp.receive_buffer": "131072B", "tcp.send_buffer": "131072B"},
    "sack": {"tcp.sack": True, "tcp.prr": True},
    "figure-2-13": {"tcp.c2ml": "literal"},
}


def _control(cc: str) -> dict[str, Any]:
    return NOORDWIJK if cc == "noordwijk" else {"tcp.cc": cc}


def _files() -> Iterator[Setting]:
    """Tables 2.1 to 2.6, Figures 2.20 to 2.27."""
    for cc in CCS:
        yield Setting(f"files-{cc}", f"5 MB each, {cc}", ("plain", "c2ml"), _control(cc), NODES, (2, 16))
    for cc in CCS:
        same = {**_control(cc), "tcp.ack_every_segment": True}
        yield Setting(f"same-{cc}", f"5 MB each, {cc}, an ACK for each segment", ("c2ml",), same, NODES, (2, 16))


def _three() -> Iterator[Setting]:
    """Figures 2.14 to 2.17: 1 Mbit/s, standard buffers, a node every 10 s."""
    shared: dict[str, Any] = {"topology.rate": "1Mbit/s", "topology.limit": "75kB", "duration": "200s"}
    step: Flow = {"kind": "transfer", "size": "5MB", "count": 3, "start_step": "10s"}
    for cc in ("newreno", "cubic", "noordwijk"):
        yield Setting(
            f"three-{cc}", f"three nodes, {cc}", ("plain", "c2ml"), {**shared, **_control(cc), "flows": [step]}
        )
    far = [{"kind": "transfer", "size": "5MB", "start": f"{10 * i}s", "access_delay": f"{50 * i}ms"} for i in range(3)]
    yield Setting("three-rtts", "three nodes, RTTs 600 to 800 ms", ("plain", "c2ml"), {**shared, "flows": far})


def _fair() -> Iterator[Setting]:
    """Figures 2.18 and 2.19: five minutes of bulk flows at 1 Mbit/s."""
    for buffer, limit in BUFFERS.items():
        for cc in ("newreno", "cubic", "bic", "noordwijk", "highspeed"):
            change = {
                "topology.rate": "1Mbit/s",
                "topology.limit": limit,
                "duration": "300s",
                "warmup": "10s",
                "flows": [{"kind": "bulk", "count": 2}],
                **_control(cc),
            }
            yield Setting(f"fair-{buffer}-{cc}", f"{buffer} buffers, {cc}", ("plain", "c2ml"), change, NODES, (4,))


def _friends() -> Iterator[Setting]:
    """Figures 2.28 and 2.29: six controls, each 3 s after the one before."""
    flows = [
        {"kind": "bulk", "start": f"{3 * i}s", "cc": cc, "tcp": {"ack_every_segment": cc == "noordwijk"}}
        for i, cc in enumerate(FRIENDS)
    ]
    for buffer, limit in {"large": "4MB", "standard": "150kB"}.items():
        change = {"topology.limit": limit, "duration": "120s", "warmup": "20s", "flows": flows}
        yield Setting(f"friends-{buffer}", f"six controls, {buffer} buffers", ("plain", "c2ml"), change)


def short_transfers(users: int, megabytes: float, background: bool) -> list[Flow]:
    """Twice as many connections as users, each of a random user, opened within 30 s.

    Ten bulk flows make transfers 5, 3 and 1 % longer from Table 2.7 to 2.8 (32, 64 and 128 users, 1.5 MB), as one more
    node with a budget would. Ten nodes would make it 36, 18 and 9 %. So they are sockets of one.
    """
    draw = random.Random(f"{users} {megabytes}")
    flows: list[Flow] = [
        {
            "kind": "transfer",
            "size": f"{round(megabytes * 1000)}kB",
            "start": f"{round(draw.uniform(0, 30), 3)}s",
            "node": f"user{draw.randrange(users)}",
        }
        for _ in range(2 * users)
    ]
    return flows + ([{"kind": "bulk", "count": 10, "node": "background"}] if background else [])


def _short_at(rate: int, users: int, megabytes: float, background: bool = False) -> dict[str, Any]:
    """On a link of this many Mbit/s, for six times as long as all would take at the full rate."""
    seconds = round(6 * 2 * users * megabytes * 8 * 1.104 / rate) + 60
    shared: dict[str, Any] = {"topology.rate": f"{rate}Mbit/s", "topology.access_rate": f"{rate}Mbit/s"}
    shared["output.series"] = False  # no figure has them, and they would be nearly all there is to store
    return {**shared, "duration": f"{seconds}s", "flows": short_transfers(users, megabytes, background)}


def _short() -> Iterator[Setting]:
    """Tables 2.7 and 2.8. The rate is not said; 4 Mbit/s is the most of section 2.2.2.1."""
    for background in (False, True):
        for users in USERS:
            for name, megabytes in SIZES.items():
                change = _short_at(SHORT_RATE, users, megabytes, background)
                label = f"{users} users, {name} MB{', background' if background else ''}"
                key = f"short-{users}-{name}{'-background' if background else ''}"
                quick = key in ("short-32-1.5", "short-32-1.5-background", "short-128-1.5")
                yield Setting(key, label, ("plain", "c2ml"), change, quick=quick, flows=2 * users)


def _open_ends() -> Iterator[Setting]:
    """32 users and 1.5 MB, with what section 2.2.4.4 leaves open: control, buffer, rate, options of TCP."""
    ways = ("plain", "c2ml")
    for rate in RATES:
        sizes = {"large": "4MB", "standard": f"{75 * rate}kB"}
        for cc, (buffer, limit) in itertools.product(CCS, sizes.items()):
            change = {**_short_at(rate, 32, 1.5), **_control(cc), "topology.limit": limit}
            label = f"32 users, 1.5 MB, {cc}, {buffer} buffers, {rate} Mbit/s"
            yield Setting(f"open-{cc}-{buffer}-{rate}", label, ways, change, quick=rate == SHORT_RATE, flows=64)
    for name, options in TCP_OPTIONS.items():
        change = {**_short_at(SHORT_RATE, 32, 1.5), **options}
        yield Setting(f"open-{name}", f"32 users, 1.5 MB, {name}", ways, change, quick=False, flows=64)


def _halves() -> Setting:
    """The most connections, whose shares are the fewest segments, with segments of half the size."""
    change = {**_short_at(SHORT_RATE, 128, 1.5), "tcp.mss": "250B"}
    return Setting("half-segments", "128 users, 1.5 MB, segments of 250 B", ("plain", "c2ml"), change, flows=256)


C2ML = Listed(
    name="c2ml",
    title="C²ML on a satellite link",
    source="document 002, section 2.2.4",
    figures={
        "c2ml_ends": "Tables 2.1 to 2.6",
        "c2ml_queue": "Figures 2.20 to 2.24",
        "c2ml_fairness": "Figures 2.18 and 2.19",
        "c2ml_three": "Figures 2.14 to 2.17",
        "c2ml_friends": "Figure 2.28",
    },
    columns=("last_end", "ended", "queue_max", "delay_mean", "jain", "use_to_end"),
    aqms=("plain", "c2ml"),
    quick="fewer nodes, and of the short transfers 32 and 128 users with 1.5 MB at 4 Mbit/s",
    variants=(
        Variant(
            "figure-2-13",
            "Figure 2.13 to the letter: windows of payload, from the current round trip time",
            aqms=("c2ml",),
            tcp={"c2ml": "literal"},
        ),
        # With a window of 16 segments, a single one that waits 200 ms for its ACK counts.
        Variant(
            "ack-40ms", "delayed ACKs after 40 ms instead of 200", aqms=("c2ml",), tcp={"delayed_ack_timeout": "40ms"}
        ),
    ),
    keeps_series=True,
    settings=(*_files(), *_three(), *_fair(), *_friends(), *_short(), *_open_ends(), _halves()),
    per_aqm=SCHEMES,
)

# QRM. Attackers are registered nodes whose TCP heeds no budget.
ATTACKED = ("droptail", "red", "codel", "green", "qrm")
DISGUISED: Flow = {"kind": "bulk", "start_spread": "2s", "tcp": {"c2ml": "off"}}
ATTACKERS = (1, 2, 4, 8, 16)


def _nodes(good: int, attackers: int) -> list[Flow]:
    flows: list[Flow] = [{"kind": "bulk", "count": good, "start_spread": "2s"}]
    return flows + ([{**DISGUISED, "count": attackers}] if attackers else [])


def _attacks() -> Iterator[Setting]:
    yield Setting("five", "five nodes obey", ("plain", "droptail", "qrm"), {"flows": _nodes(5, 0)})
    yield Setting("five-1", "one of five attacks", ATTACKED, {"flows": _nodes(4, 1)})
    for n in (2, 4, 8, 16, 32):
        quick = n in (2, 32)
        yield Setting(f"one-{n}", f"one of {n} attacks", ATTACKED, {"flows": _nodes(n - 1, 1)}, quick=quick, flows=n)
    for a in ATTACKERS:
        quick = a in (1, 16)
        yield Setting(f"many-{a}", f"{a} of 32 attack", ATTACKED, {"flows": _nodes(32 - a, a)}, quick=quick, flows=32)
    flood: Flow = {"kind": "cbr", "rate": "40Mbit/s", "node": "flood"}
    syns: Flow = {"kind": "synflood", "per_second": 20_000}
    stranger = {**COOPERATION, "nodes": [{"name": "flood", "lie": "silent"}]}
    for name, label, change in (
        ("flood", "UDP of twice the rate from a node", {"flows": [*_nodes(4, 0), flood]}),
        ("syns", "forged SYNs of half the rate", {"flows": [*_nodes(4, 0), syns]}),
        ("stranger", "the same UDP, not registered", {"flows": [*_nodes(4, 0), flood], "cooperation": stranger}),
    ):
        yield Setting(name, label, ("droptail", "codel", "qrm"), change, flows=5)


QRM = Listed(
    name="qrm",
    title="QRM against nodes that do not obey",
    source="document 002, section 3.1.5",
    figures={
        "qrm_worst": "Figures 3.18 and 3.19",
        "qrm_queue": "Figures 3.20 and 3.21",
        "qrm_seconds": "Figures 3.3, 3.7, 3.9 to 3.11 and 3.15",
    },
    columns=("worst_good", "goodput_good", "rtt_good", "queue_max", "queue_mean", "drops"),
    aqms=("plain", *ATTACKED),
    quick="fewer numbers of nodes and attackers",
    variants=(
        Variant(
            "start-together",
            "all nodes starting at the same instant",
            aqms=ATTACKED,
            by_path={"flows.0.start_spread": "0s"},
            settings=("five-1", "many-1", "many-16"),
        ),
        MODERN,
        Variant(
            "resets",
            "the paper's counter that a timer resets",
            aqms=("qrm",),
            aqm={"account": "window"},
            settings=("five-1", "many-1", "many-16", "flood"),
        ),
    ),
    keeps_series=True,
    settings=tuple(_attacks()),
    # Theorem 2 as it stands: no tolerance, and a run in which the queue is longer fails. 702 + 2 ms and the time that
    # segments of the handshake take on the access link are 704.1 ms at 20 Mbit/s.
    per_aqm={
        "plain": {"aqm.name": "droptail"},
        **dict.fromkeys(ATTACKED, ON),
        "qrm": {**ON, "aqm.tolerance": 0.0, "invariants.max_queue": "1761kB"},
    },
)


# DyBRA.
def clients(n: int, ccs: tuple[str, ...]) -> dict[str, Any]:
    """Each client with a link of its own to the gateway; of every two with the same control one has a bad time."""
    links: list[dict[str, Any]] = [
        {
            "name": "bottleneck",
            "a": "gw",
            "b": "far",
            "rate": "20Mbit/s",
            "delay": "350ms",
            "limit": "875kB",
            "aqm": {"name": "droptail"},
        }
    ]
    flows: list[Flow] = []
    changes: list[dict[str, Any]] = []
    special: list[dict[str, str]] = []
    order = [*range(0, n, 2), *range(1, n, 2)]  # those that stay good come first
    for i in order:
        node, cc = f"c{i}", ccs[i // 2 % len(ccs)]
        link = f"{node}-gw"
        links.append({"name": link, "a": node, "b": "gw", "rate": "20Mbit/s", "delay": "5ms", "limit": "100000p"})
        tcp = {"ack_every_segment": cc == "noordwijk"}
        flows.append({"kind": "bulk", "node": node, "from": node, "to": "far", "cc": cc, "tcp": tcp})
        if i % 2:
            changes += [
                {"link": link, "at": at, "rate": rate} for at, rate in (("15s", "500kbit/s"), ("45s", "20Mbit/s"))
            ]
            special.append({"name": node, "csi": link})
    return {"topology.links": links, "flows": flows, "changes": changes, "cooperation.nodes": special}


SCALE = (4, 10, 20, 40)


def _clients() -> Iterator[Setting]:
    yield Setting("mix", "ten clients, five controls", ("plain", "c2ml", "dybra"), clients(10, DYBRA_CCS), flows=10)
    for n in SCALE:
        quick = n in (4, 40)
        change = clients(n, ("cubic",))
        yield Setting(f"cubic-{n}", f"{n} clients, CUBIC", ("plain", "dybra"), change, quick=quick, flows=n)


DYBRA = Listed(
    name="dybra",
    title="DyBRA with channels that change",
    source="document 002, section 2.3.3",
    figures={
        "dybra_seconds": "Figures 2.34 and 2.35",
        "dybra_friends": "Figure 2.36",
        "dybra_scale": "Figure 2.37",
    },
    columns=("sent_mb", "queue_mean", "queue_max", "jain_good", "drops"),
    aqms=("plain", "c2ml", "dybra"),
    quick="fewer numbers of clients",
    variants=(
        Variant(
            "letter",
            "Figures 2.31 to 2.33 to the letter",
            aqms=("dybra",),
            by_path={"cooperation.literal": True},
        ),
        MODERN,
        Variant(
            "options",
            "timestamps, limited transmit and no first threshold",
            aqms=("plain", "c2ml", "dybra"),
            tcp={"timestamps": True, "limited_transmit": True, "initial_ssthresh": "1GB"},
            settings=("mix",),
        ),
        # Who loses when the queue overflows is a matter of chance; with several seeds this shows how much.
        Variant(
            "starts-spread",
            "starts spread over 200 ms",
            aqms=("plain", "c2ml", "dybra"),
            by_path={f"flows.{i}.start_spread": "200ms" for i in range(10)},
            settings=("mix",),
        ),
        # ns-3's sockets; 128 KiB per 710 ms are 1.5 Mbit/s, less than DyBRA gives.
        Variant(
            "buffers-128kB",
            "socket buffers of 131072 B",
            aqms=("plain", "c2ml", "dybra"),
            tcp={"receive_buffer": "131072B", "send_buffer": "131072B"},
            settings=("mix",),
        ),
    ),
    keeps_series=True,
    settings=tuple(_clients()),
    per_aqm={
        # A gateway that nobody hears: nodes are told nothing.
        "plain": {"aqm.name": "droptail", "cooperation.link": "bottleneck", "cooperation.silent_from": "0s"},
        "c2ml": {"aqm.name": "droptail", "tcp.c2ml": "on", "cooperation.link": "bottleneck"},
        "dybra": {
            "aqm.name": "droptail",
            "tcp.c2ml": "on",
            "cooperation.link": "bottleneck",
            "cooperation.sharing": "dybra",
        },
    },
)

# One table of all.
WAYS: dict[str, dict[str, Any]] = {
    "plain": {"aqm.name": "droptail", "cooperation.silent_from": "0s"},
    "pink": {"cooperation.silent_from": "0s"},
    "c2ml": {"aqm.name": "droptail", "tcp.c2ml": "on"},
    "dybra": {"aqm.name": "droptail", "tcp.c2ml": "on", "cooperation.sharing": "dybra"},
    "c2ml-qrm": {"aqm.name": "qrm", "tcp.c2ml": "on"},
    "pink-qrm": {"aqm.name": "pink", "aqm.queue": "qrm", "cooperation.silent_from": "0s"},
}
DELAYS = tuple(5 + 16 * i for i in range(16))  # ms, one way, to the gateway


def _sixteen() -> list[Flow]:
    ends = [{"node": f"c{i}", "from": f"c{i}", "to": "far"} for i in range(16)]
    return [{"kind": "bulk", "start_spread": "2s", **end} for end in ends]


def _situations() -> Iterator[Setting]:
    even: dict[str, Any] = {"flows": _sixteen()}
    far = {f"topology.links.{i + 1}.delay": f"{delay}ms" for i, delay in enumerate(DELAYS)}
    ways = tuple(WAYS)
    yield Setting("clean", "16 nodes obey", ways, even, flows=16)
    yield Setting("rtts", "RTTs of 610 to 1090 ms", ways, {**even, **far}, flows=16)
    bad = range(GOOD, 16)
    changes = [
        {"link": f"c{i}-gw", "at": at, "rate": rate}
        for i in bad
        for at, rate in (("30s", "300kbit/s"), ("90s", "20Mbit/s"))
    ]
    special = [{"name": f"c{i}", "csi": f"c{i}-gw"} for i in bad]
    yield Setting(
        "channel",
        "four channels fall to 0.3 Mbit/s for 60 s",
        ways,
        {**even, "changes": changes, "cooperation.nodes": special},
        flows=16,
    )
    flows = _sixteen()
    for i in bad:
        flows[i]["tcp"] = {"c2ml": "off"}
    flows[15] = {"kind": "cbr", "rate": "30Mbit/s", "node": "c15", "from": "c15", "to": "far"}
    attack = {**even, "flows": flows, "topology.links.16.rate": "100Mbit/s"}
    yield Setting("attack", "three disobey, one floods", ways, attack, flows=16)


WAYS_COMPARED = Listed(
    name="cooperation",
    title="Cooperation, PINK and QRM side by side",
    source="document 002, chapters 2 and 3",
    figures={"ways": ""},
    columns=("goodput_good", "jain_good", "use", "queue_mean", "queue_max", "drops"),
    aqms=tuple(WAYS),
    quick="nothing",
    variants=(),
    settings=tuple(_situations()),
    per_aqm=WAYS,
)

ALL_COOPERATION = (C2ML, QRM, DYBRA, WAYS_COMPARED)
