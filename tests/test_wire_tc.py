"""`--on tc`: which words of `tc` a discipline becomes, what is refused and where, a run behind the kernel's queue."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from penstock import jar, testbed, wire
from penstock.engine import ScenarioError
from penstock.jar import qdiscs
from penstock.mistake import MistakeError
from penstock.scenario import Scenario
from penstock.wire import captures, kernel_queues, packets, plan, world

HEAD = """\
duration = "3s"
[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "10ms"
limit = "LIMIT"
"""
FLOWS = '[[flows]]\nkind = "bulk"\ncc = { name = "newreno", compat = "linux" }\ncount = 2\n'


def wanted(
    aqm: str, limit: str = "1000p", *, on: str = "tc", has: list[str] | None = None, more: str = ""
) -> plan.Plan:
    text = HEAD.replace("LIMIT", limit) + f"[aqm]\n{aqm}\n" + FLOWS + more
    return plan.read(Scenario(text, "home.toml"), None, on, ["reno"], has)


def words(aqm: str, limit: str = "1000p") -> str:
    """What `tc` is told of the queue, behind its handle."""
    return wanted(aqm, limit).kernel_queues[0][0].commands[0].partition(f"handle {kernel_queues.QUEUE} ")[2]


# Defaults are those of the RFCs, which the kernel shares: tc-codel(8), tc-fq_codel(8), tc-pie(8), tc-fq_pie(8).
@pytest.mark.parametrize(
    ("aqm", "limit", "expected"),
    [
        ('name = "droptail"', "33p", "pfifo limit 33"),
        ('name = "droptail"', "125kB", "bfifo limit 125000"),
        ('name = "codel"', "1000p", "codel limit 1000 target 5000us interval 100000us noecn"),
        (
            'name = "codel"\necn = true\nce_threshold = "1ms"\ncompat = "linux"',
            "50p",
            "codel limit 50 ce_threshold 1000us target 5000us interval 100000us ecn",
        ),
        (
            'name = "fq-codel"\nquantum = "300B"\nflows = 8',
            "10240p",
            "fq_codel limit 10240 drop_batch 64 flows 8 interval 100000us memory_limit 33554432 quantum 300 "
            "target 5000us ecn",
        ),
        (
            'name = "pie"\ntarget = "20ms"\nestimator = "departure-rate"',
            "1000p",
            "pie limit 1000 target 20000us tupdate 15000us alpha 2 beta 20 noecn nobytemode dq_rate_estimator",
        ),
        (
            'name = "fq-pie"\necn_threshold = 0.25\noverflow = "arrival"',
            "1000p",
            "fq_pie limit 1000 target 15000us tupdate 15000us alpha 2 beta 20 noecn nobytemode no_dq_rate_estimator "
            "flows 1024 quantum 1514 memory_limit 33554432 ecn_prob 25",
        ),
        (
            'name = "cake"\ntins = "besteffort"\nrtt = "50ms"\noverhead = 18',
            "1000p",
            "cake overhead 18 rtt 50000us besteffort triple-isolate noatm no-ack-filter egress",
        ),
        # burst 48 is the least number from which tc derives 2^-9, the power of two next to 0.002.
        (
            'name = "red"\ncompat = "linux"\necn = true',
            "100kB",
            "red limit 100000 min 5000 max 15000 avpkt 1000 burst 48 probability 0.1 bandwidth 10000000bit ecn",
        ),
    ],
)
def test_a_discipline_becomes_words_of_tc(aqm: str, limit: str, expected: str) -> None:
    kind, *rest = words(aqm, limit).split()
    assert (kind, sorted(rest)) == (expected.split()[0], sorted(expected.split()[1:]))


@pytest.mark.skipif(subprocess.run(["tc", "-V"], capture_output=True, check=False).returncode != 0, reason="no tc")
@pytest.mark.parametrize("name", kernel_queues.KINDS)
def test_tc_takes_the_words_of_each_discipline(name: str) -> None:
    """`tc` fails at words that it does not know before it asks the kernel, which may lack the discipline."""
    line = words(f'name = "{name}"' + ('\ncompat = "linux"' if name == "red" else ""))
    done = subprocess.run(
        ["tc", *f"qdisc add dev no-such-device root {line}".split()], capture_output=True, text=True, check=False
    )
    assert "Cannot find device" in done.stderr, done.stderr


def test_the_burst_of_red_gives_its_weight() -> None:
    """tc_red_eval_ewma: the least n with burst + 1 - min <= (1 - (1 - 2^-n)^burst) 2^n; min is 5 packets."""
    for burst, log in ((48, 9), (47, 8)):
        most = [(1 - (1 - 2.0**-n) ** burst) * 2**n for n in range(1, 32)]
        assert next(n for n, found in enumerate(most, 1) if burst + 1 - 5 <= found) == log
        assert kernel_queues._wlog(5, burst) == log


@pytest.mark.parametrize(
    ("aqm", "limit", "place", "told"),
    [
        ('name = "pink"', "1000p", "8:8", "no discipline of Linux; there are droptail, red, codel"),
        ('name = "codel"\nmtu = "1500B"', "1000p", "9:7", "mtu cannot be set in the kernel's codel"),
        ('name = "codel"', "125kB", "6:9", "in packets"),
        ('name = "droptail"', "70000p", "6:9", "at most 60000"),
        ('name = "pie"\nmax_burst = "100ms"', "1000p", "9:13", 'which has "150ms"'),
        ('name = "pie"\nalpha = 0.13', "1000p", "9:9", "multiples of 1/16 from 0 to 2"),
        ('name = "fq-pie"\noverflow = "fattest"', "1000p", "9:12", 'which has "arrival"'),
        ('name = "fq-codel"\nways = 8', "1000p", "9:8", "which has 1"),
        ('name = "red"', "1000p", "8:8", 'write compat = "linux"'),
        ('name = "red"\ncompat = "linux"\nscell_log = 3', "1000p", "10:13", "scell_log cannot be set"),
        ('name = "cake"\ntarget = "1ms"', "1000p", "9:10", "target cannot be set"),
    ],
)
def test_what_the_kernel_cannot_do_is_refused_at_its_key(aqm: str, limit: str, place: str, told: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        wanted(aqm, limit)
    assert str(refused.value).startswith("error: --on tc: ")
    assert f"home.toml:{place}\n" in str(refused.value)
    assert told in str(refused.value)


def test_what_this_kernel_lacks_is_refused_with_what_it_has() -> None:
    has = ["htb", "pfifo", "bfifo"]
    wanted('name = "droptail"', has=has)
    with pytest.raises(ScenarioError) as refused:
        wanted('name = "fq-codel"', has=has)
    assert "home.toml:8:8\n" in str(refused.value)
    for told in ("no fq_codel; it has htb, pfifo, bfifo", "modprobe sch_fq_codel", "tc qdisc add dev lo root fq_codel"):
        assert told in str(refused.value)
    with pytest.raises(ScenarioError, match="no htb; it has pfifo"):
        wanted('name = "droptail"', has=["pfifo"])
    with pytest.raises(ScenarioError, match="--on jar-tc: this kernel has no pie; it has no disciplines"):
        wanted('name = "pie"', on="jar-tc", has=[])


def test_the_shaper_has_the_rate_of_ip_packets_and_makes_up_for_lateness_in_real_time_alone() -> None:
    real, virtual = (wanted('name = "codel"', on=on).kernel_queues[0][0] for on in ("tc", "jar-tc"))
    assert real.lines(10e6, 1500)[:2] == [
        "qdisc add dev out root handle 1: htb default 1",
        "class add dev out parent 1: classid 1:1 htb rate 10000000bit burst 1250 cburst 1250 quantum 1500",
    ]
    assert virtual.shaped("change", 2e6, 1500).endswith("rate 2000000bit burst 1 cburst 1 quantum 1500")


def test_a_link_may_change_whatever_the_discipline_knows_of_its_rate() -> None:
    """PIE of the simulator would be told; the kernel's never is, so `told = false` is what it does anyway."""
    change = '[[changes]]\nlink = "bottleneck"\nat = "1s"\nrate = "2Mbit/s"\ntold = false\n'
    found = [one.values.get("rate") for one in wanted('name = "pie"', more=change).changes if one.at_s == 1]
    assert "2000000bit/s" in found


def test_a_gateway_of_budgets_is_where_there_is_bpf() -> None:
    more = '[cooperation]\nlink = "bottleneck"\n[tcp]\nc2ml = "on"\n'
    assert wanted('name = "droptail"', more=more).cooperation is not None
    with pytest.raises(ScenarioError, match=r"no gateway of \[cooperation\] in the jar"):
        wanted('name = "droptail"', on="jar-tc", more=more)


def test_the_emulator_drops_nothing_behind_the_kernel() -> None:
    found = wanted('name = "codel"', limit="50p")
    settings = plan.config(found, 0)
    assert "aqm" not in settings
    assert (settings["link"]["limit"], settings["link"]["reverse_limit"]) == ("100000p", "100000p")


@pytest.mark.parametrize(
    ("kind", "counts", "expected"),
    [
        ("pfifo", {}, (0, 9, 0)),
        ("codel", {"drop_overlimit": 2}, (0, 2, 7)),
        ("fq_pie", {"overlimit": 2, "dropped": 9}, (7, 2, 0)),
        ("red", {"early": 8, "pdrop": 1}, (8, 1, 0)),
        ("cake", {}, (0, 0, 9)),
    ],
)
def test_drops_are_divided_by_what_the_discipline_counts(
    kind: str, counts: dict[str, int], expected: tuple[int, int, int]
) -> None:
    listed: list[dict[str, Any]] = [{"handle": "1:", "drops": 9}, {"handle": "2:", "drops": 9, **counts}]
    found = kernel_queues.counted(kind, json.dumps(listed))
    assert (found["early"], found["overflow"], found["dequeue"]) == expected


def test_as_many_packets_as_the_kernel_says_found_no_room(tmp_path: Path) -> None:
    """Two wait when the packet of 3 ms comes, which leaves no more; one when that of 6 ms comes."""
    rows = ["forward,{},{},0,1500,sent", "forward,{},{},0,1500,drop_dequeue"]
    lines = [
        rows[0].format(4_000_000, 4_000_000),
        rows[0].format(5_000_000, 4_000_000),
        rows[1].format(7_000_000, 4_000_000),  # came at 3 ms
        "reverse,7000000,7000000,0,52,drop_dequeue",
        rows[0].format(8_000_000, 3_000_000),
        rows[1].format(9_000_000, 3_000_000),  # came at 6 ms
    ]
    file = tmp_path / "0.csv"
    file.write_text("\n".join(["queue,t_ns,waited_ns,flow,bytes,fate", *lines, ""]))
    packets.dropped_on_arrival(file, "forward", 1)
    assert file.read_text().splitlines()[1:] == [*lines[:2], "forward,3000000,0,0,1500,drop_overflow", *lines[3:]]


def test_an_old_jar_is_asked_for_its_disciplines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "linux"
    file.write_text('#!/bin/sh\necho \'{"version": "6.12.1-um", "controls": ["reno"], "disciplines": ["htb"]}\'\n')
    file.chmod(0o755)
    kernel = jar.opened(file, "PENSTOCK_JAR")
    scenario = Scenario(HEAD.replace("LIMIT", "9p") + FLOWS, "home.toml")
    with pytest.raises(ScenarioError, match="--on jar-tc: this kernel has no pfifo; it has htb"):
        wire.check(scenario, None, kernel, has_tc=True)


def possible() -> str:
    """Why nothing can be played here; empty if it can."""
    try:
        world.require()
        kernel_queues.require()
    except MistakeError as error:
        return str(error)
    has = kernel_queues.kinds() or []
    return "" if {"htb", "pfifo"} <= {*has} else f"this kernel has only {', '.join(has)}"


real = pytest.mark.skipif(bool(possible()), reason=possible() or "real packets")


@real
def test_a_kernel_is_asked_what_it_has() -> None:
    found = kernel_queues.kinds()
    assert found is not None and "pfifo" in found
    assert qdiscs.tried(["false"]) is None


@real
def test_flows_fill_the_queue_of_the_kernel() -> None:
    """Two flows and 20 packets: NewReno fills and overflows a queue above the bandwidth-delay product (16.7 packets).

    All of it is the kernel's: its limit bounds what waits, its counters are the drops, and packets of 1500 bytes leave
    at the rate that counts their IP headers. Beside 20 packets one may wait for the wire, behind the shaper, and a few
    where a busy machine runs the shaper late, which then makes up for it.
    """
    found = wire.play(Scenario(HEAD.replace("LIMIT", "20p") + FLOWS, "home.toml"), has_tc=True)
    [queue] = found.summary["bottlenecks"]
    assert found.wire is not None
    forward, reverse = found.wire["tc"]
    assert (forward["link"], forward["reverse"], reverse["reverse"]) == ("bottleneck", False, True)
    assert forward["commands"][2].endswith("pfifo limit 20")
    assert 0.7 < queue["utilization"] <= 1
    assert queue["throughput_bps"] <= 10e6 * 1.001
    assert queue["drops_overflow"] == forward["dropped"]["overflow"] > 0
    assert (queue["drops_aqm"], queue["marks"]) == (0, 0)
    assert 15 * 1500 <= queue["queue_bytes"]["max"] <= 25 * 1500
    assert 0 < queue["queue_delay_ms"]["mean"] < 22 * 1.2
    assert all(flow["delivered_bytes"] > 100_000 for flow in found.summary["flows"])
    assert not [*testbed.NAMED.glob(f"penstock-wire-{os.getpid()}-*")]


MARKED = """\
[[flows]]
kind = "bulk"
cc = { name = "newreno", compat = "linux" }
class = 40
[[flows]]
kind = "cbr"
rate = "100kbit/s"
class = 46
"""


def test_the_class_of_a_flow_is_the_codepoint_of_its_packets() -> None:
    head = HEAD.replace("LIMIT", "20p")
    found = plan.read(Scenario(head + MARKED, "home.toml"), None, "tc", ["reno"])
    assert [flow.class_ for flow in found.flows] == [40, 46]
    with pytest.raises(ScenarioError, match="a class is 0 to 63") as refused:
        plan.read(Scenario(head + MARKED.replace("46", "64"), "home.toml"), None, "tc", ["reno"])
    assert "home.toml:14:9\n" in str(refused.value)


@real
def test_packets_of_both_directions_have_their_codepoint(tmp_path: Path) -> None:
    """RFC 2474: the six higher bits of the second byte. Segments, their ACKs and handshakes have that of their flow."""
    file = tmp_path / "packets.pcapng"
    text = HEAD.replace("LIMIT", "20p").replace('"3s"', '"1s"') + MARKED
    wire.play(Scenario(text, "home.toml"), has_tc=True, packets=file)
    seen = set()
    for kind, body in captures._blocks(file):
        if kind == captures._PACKET:
            interface, length = struct.unpack_from("<I8xI", body)
            packet = body[20 : 20 + length]
            if packet[9] != socket.IPPROTO_ICMP:  # a datagram which comes when its receiver has ended
                seen.add((interface, packet[9], packet[1] >> 2))  # direction, protocol, codepoint
    assert seen == {(0, socket.IPPROTO_TCP, 40), (1, socket.IPPROTO_TCP, 40), (0, socket.IPPROTO_UDP, 46)}
