"""`--on wire`: what is refused and where, measures by hand, what a killed run leaves, a run beside the simulator."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import random
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import on_wire as real
from penstock import capture, datagrams, engine, jar, manual, rundir, testbed, wire
from penstock.engine import BrokenInvariant, ScenarioError, Stopped
from penstock.mistake import MistakeError
from penstock.scenario import Scenario
from penstock.wire import (
    announcing,
    calls,
    captures,
    cooperation,
    daemons,
    examples,
    jarred,
    kernel_queues,
    measure,
    network,
    packets,
    plan,
    position,
    routes,
    tcp,
    transfers,
    world,
)
from penstock.wire.packets import Queue

PREFIX = "penstock-wire-"

ROOT = Path(__file__).resolve().parents[1]
HEAD = """\
duration = "6s"
warmup = "1s"
[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "20ms"
limit = "1000p"
"""
FLOWS = '[[flows]]\nkind = "bulk"\n'
BUDGETS = '[tcp]\nc2ml = "on"\n[cooperation]\nlink = "bottleneck"\n'


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel with the usual controls that takes the program of rates, whatever this one does."""
    monkeypatch.setattr(tcp, "controls", lambda: ["reno", "cubic", "bbr"])
    monkeypatch.setattr(announcing, "lacks", lambda _world: "")


def wanted(text: str) -> plan.Plan:
    return plan.read(Scenario(text, "home.toml"))


# What the wire cannot do, with the line and the column of the value; lines count from the first of HEAD.
@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (HEAD + '[[flows]]\nkind = "synflood"\nper_second = 5\n', "9:8", "no synflood"),
        (HEAD + FLOWS + FLOWS + 'tcp = { sack = true, cc = "vegas" }\n', "12:27", "reno, cubic, bbr"),
        (HEAD + FLOWS + "tcp = { ecn_retransmits = true, ecn = true }\n", "10:27", "not ECN-capable"),
        (HEAD + FLOWS + "tcp = { ern = true, ern_ect1 = true, ecn = true }\n", "10:32", "cannot set ECT(1)"),
        (HEAD + FLOWS + "tcp = { accurate_ecn = true, ecn = true }\n", "10:24", "RFC 3168 alone"),
        (HEAD + "[tcp]\nprr = false\n" + FLOWS, "9:7", "prr = true"),
        (HEAD + '[tcp]\ncc = { name = "cubic", beta = 0.8 }\n' + FLOWS, "9:31", "no beta"),
        (HEAD + FLOWS + FLOWS + "tcp = { sack = false }\n", "12:16", "the same sack"),
        (HEAD + FLOWS + 'node = "a"\nweight = 2\n', "11:10", "weights"),
        (HEAD + 'access_rate = "5Mbit/s"\n' + FLOWS, "8:15", "slower than the bottleneck"),
        (HEAD + BUDGETS + 'lease = "90s"\n' + FLOWS, "12:9", "at most 60 s"),
        (HEAD + BUDGETS + 'advertise = "6s"\n' + FLOWS, "12:13", "at most 5 s"),
        (HEAD + BUDGETS + 'silent_from = "1s"\n' + FLOWS, "12:15", "until the end"),
        (HEAD + BUDGETS + 'sharing = "dybra"\nliteral = true\n' + FLOWS, "13:11", "literal = false"),
        (HEAD + BUDGETS + 'nodes = [{ name = "a", lie = "claims" }]\n' + FLOWS + 'node = "a"\n', "12:9", "do not lie"),
        (HEAD + '[tcp]\nc2ml = "literal"\n' + FLOWS, "9:8", "Figure 2.13"),
        ('profile = "ns-2.35"\n' + HEAD + FLOWS, "1:11", "another simulator"),
        (HEAD + '[tcp]\nprofile = "ns-3.37"\n' + FLOWS, "9:11", "another simulator"),
        (HEAD + FLOWS + FLOWS + 'tcp = { profile = "ns-2.35" }\n', "12:19", "another simulator"),
        (
            HEAD + '[tcp]\nprofile = "linux"\n' + FLOWS + FLOWS + 'tcp = { receive_buffer = "1MB" }\n',
            "14:26",
            "the same receive_buffer",
        ),
        (HEAD + '[tcp]\nscone = "20s"\n' + FLOWS, "9:9", "have no QUIC"),
        (HEAD + BUDGETS + '[aqm]\nname = "qrm"\n' + FLOWS, "13:8", "no discipline of budgets"),
        (HEAD + BUDGETS + FLOWS + "count = 65\n", "12:3", "up to 64"),
        (
            HEAD + BUDGETS + (FLOWS + 'node = "a"\n') + FLOWS + 'node = "a"\ntcp = { c2ml = "off" }\n',
            "12:3",
            "one c2ml",
        ),
        (
            HEAD
            + BUDGETS
            + '[[flows]]\nkind = "bulk"\nnode = "a"\ntcp = { ecn = true, ern = true }\n'
            + FLOWS
            + 'node = "a"\n',
            "12:3",
            "one ern",
        ),
    ],
)
def test_what_the_wire_cannot_do_is_refused_at_its_key(text: str, place: str, words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        wanted(text)
    assert f"home.toml:{place}\n" in str(refused.value)
    assert words in str(refused.value)


def test_the_place_of_a_key_is_found_by_the_parser_and_not_by_its_name() -> None:
    text = 'name = "kind"  # kind = 1\n[a]\nkind = 1\n[[b]]\nx = { "kind" = [2, 3], other = "kind" }\n[[b]]\n'
    assert position.find(text, ("a", "kind")) == (text.index("1\n[["), text.index("1\n[[") + 1)
    assert text[slice(*position.find(text, ("b", 1)))] == "b"
    assert position.find(text, ("b", 1))[0] == text.rindex("b")
    assert position.find(text, ("b", 1, "missing")) == position.find(text, ("b", 1))


@pytest.mark.usefixtures("kernel")
def test_the_page_says_of_each_example_whether_it_runs() -> None:
    page = manual.find("wire").text
    assert examples.table() in page, "renew it: tools/measure/wire-examples"


@pytest.mark.usefixtures("kernel")
def test_a_longer_way_is_what_is_longer_than_the_shortest() -> None:
    text = HEAD + 'access_delay = "1ms"\n' + FLOWS + FLOWS + 'access_delay = "5ms"\ncc = "bbr"\n'
    found = wanted(text)
    assert found.links[0].table["delay"] == "22000000ns"  # 20 ms and two access links
    assert [flow.extra_s for flow in found.flows] == [0.0, 0.004]
    assert [flow.sends["cc"] for flow in found.flows] == ["cubic", "bbr"]
    assert found.flows[0].sends["max_segment"] == 1448 + 12


GRAPH = """\
duration = "4s"
[topology]
kind = "graph"
access_delay = "1ms"
links = [
  { a = "x", b = "y", rate = "10Mbit/s", delay = "30ms", limit = "100p" },
  { a = "y", b = "z", rate = "10Mbit/s", delay = "5ms", limit = "100p", reverse_aqm = "pie", aqm = "codel" },
  { a = "z", b = "x", rate = "5Mbit/s", delay = "10ms", limit = "100p", aqm = "codel", name = "last" },
]
[[flows]]
kind = "bulk"
from = "x"
to = "y"
"""


@pytest.mark.usefixtures("kernel")
def test_routes_in_a_graph_are_the_paths_of_the_simulator() -> None:
    found = wanted(GRAPH)
    # Least delay is over z, 15 ms and not 30 ms: both links are crossed from their second ends.
    assert found.flows[0].path == ((2, True), (1, True))
    assert [(link.name, link.queues) for link in found.links] == [
        ("x-y", (None, None)),
        ("y-z", (0, 1)),
        ("last", (2, None)),
    ]
    assert found.queues == [(1, False), (1, True), (2, False)]
    left, right = "10.81.0.1", "10.200.0.1"
    assert {space: [line for line in lines if "route" in line] for space, lines in routes.commands(found).items()} == {
        # The host on the left is behind its access link, the fourth emulator.
        "far1": [f"route replace {right}/32 dev wire3l src {left}"],
        "router0": [f"route replace {right}/32 dev wire2r", f"route replace {left}/32 dev wire3r"],
        "router2": [f"route replace {right}/32 dev wire1r", f"route replace {left}/32 dev wire2l"],
        "router1": [f"route replace {left}/32 dev wire1l src {right}"],
    }


@pytest.mark.usefixtures("kernel")
def test_hosts_behind_the_gateway_are_nodes_and_know_the_way_to_it() -> None:
    text = GRAPH + '[tcp]\nc2ml = "on"\n[cooperation]\nlink = "y-z"\nsharing = "dybra"\n'
    text += 'floors = ["none", "none", "none", "100kbit/s"]\n'
    text += 'nodes = [{ name = "b", csi = "x-y", weight = 2, floor = "200kbit/s" }]\n'
    text += FLOWS + 'from = "y"\nto = "z"\nnode = "b"\n' + FLOWS + 'from = "y"\nto = "z"\nnode = "b"\n'
    text += '[[changes]]\nlink = "x-y"\nat = "2s"\nrate = "1Mbit/s"\n'
    found = wanted(text)
    budgets = found.cooperation
    assert budgets is not None
    assert (budgets.link, budgets.router, budgets.table["sharing"], budgets.table["lease"]) == (1, "y", "dybra", "10s")
    assert budgets.table["floors"] == ["none", "none", "none", "100kbit/s"]
    share = ("--class", "3", "--weight", "2", "--floor", "200kbit/s")
    assert budgets.nodes == (cooperation.Node("n0", (1, 2), True, 0, 0.002, share),)
    assert budgets.nodes[0].lead_s == pytest.approx(0.3 + 4 * 2 * 0.002)
    assert [budgets.node_of(flow) for flow in range(3)] == [None, *[budgets.nodes[0]] * 2]
    # Its hosts are behind access links: the gateway is at the other end of theirs.
    lines = {space: [line for line in lines if "10.79" in line] for space, lines in routes.commands(found).items()}
    far = f"far{found.groups.index(('y', 0.002)) + 1}"
    assert {space for space, found_ in lines.items() if found_} == {far, "router1"}
    assert lines["router1"] == ["addr replace 10.79.0.1/32 dev lo"]
    assert lines[far][0].startswith("route replace 10.79.0.1/32 dev wire")
    # What it can use changes in the run, so that its agent asks for it.
    keys = cooperation.usable_keys(budgets, budgets.nodes[0], found.links, "rate")
    assert keys == {"usable_command": ["cat", "rate"], "usable_every": "1s"}
    file = tomllib.loads(cooperation.agent_file(budgets.nodes[0], "a", "kept", "group", keys))
    assert (file["apply"], file["gateways"], file["cgroup"]) == ("kernel", ["10.79.0.1:7443"], "group")


@pytest.mark.usefixtures("kernel")
def test_a_node_that_ignores_its_budget_has_an_agent_that_changes_nothing() -> None:
    found = wanted(HEAD + BUDGETS + FLOWS + 'tcp = { c2ml = "off" }\n' + FLOWS).cooperation
    assert found is not None
    applies = [tomllib.loads(cooperation.agent_file(node, "a", "b", "c", {}))["apply"] for node in found.nodes]
    assert applies == ["nothing", "kernel"]
    told = tomllib.loads(cooperation.gateway_file(found, "g", "kept", 10e6))
    assert told["link"]["rate"] == "10000000bit/s"
    assert told["c2ml"]["sharing"] == "unweighted-fair"


@pytest.mark.usefixtures("kernel")
def test_a_node_announces_if_its_flows_do() -> None:
    found = wanted(HEAD + BUDGETS + FLOWS + "tcp = { ecn = true, ern = true }\n" + FLOWS).cooperation
    assert found is not None
    assert [node.announces for node in found.nodes] == [True, False]


def in_place_of_a_kernel(tmp_path: Path, does: str) -> jar.Jar:
    """A program that boots as the kernel of a jar does, and runs nothing."""
    file = tmp_path / "linux"
    booted = """echo '{"version": "6.12.1-um", "controls": ["reno", "dctcp"], "disciplines": []}'"""
    file.write_text(f"#!/bin/sh\n{booted}\n{does}\n")
    file.chmod(0o755)
    return jar.opened(file, "PENSTOCK_JAR")


def test_a_plan_for_the_jar_has_the_controls_of_its_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel = in_place_of_a_kernel(tmp_path, "true")
    scenario = Scenario(HEAD + FLOWS + 'cc = "cubic"\n', "home.toml")
    with pytest.raises(ScenarioError, match="--on jar: this kernel has no control cubic") as refused:
        wire.check(scenario, None, kernel)
    assert "home.toml:10:6\n" in str(refused.value)
    with pytest.raises(ScenarioError, match=r"no gateway of \[cooperation\] in the jar"):
        plan.read(Scenario(HEAD + BUDGETS + FLOWS, "home.toml"), None, "jar", ["cubic"])


@pytest.mark.usefixtures("kernel")
def test_a_jar_says_how_far_it_is_and_why_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "emulator", lambda: Path("/bin/true"))
    told: list[float] = []
    kernel = in_place_of_a_kernel(tmp_path, "echo at 1.5; echo panic")
    with pytest.raises(MistakeError, match=r"ended without a result: .*panic"):
        jarred.play(wanted(HEAD + FLOWS), tmp_path, kernel, lambda now, _end: told.append(now))
    assert told == [1.5]
    with pytest.raises(Stopped):
        jarred.play(wanted(HEAD + FLOWS), tmp_path, kernel, stop=lambda: True)


@pytest.mark.usefixtures("kernel")
def test_the_program_in_the_jar_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "emulator", lambda: Path("/bin/true"))
    inside = Path(wire.__file__).with_name("inside.py")
    kernel = in_place_of_a_kernel(tmp_path, f"PATH=/nowhere {sys.executable} -I {inside} {tmp_path}")
    with pytest.raises(MistakeError, match=r"--on jar.*(root|needs ip)"):
        jarred.play(wanted(HEAD + FLOWS), tmp_path, kernel)


@pytest.mark.usefixtures("kernel")
def test_a_flow_in_reverse_has_the_routes_of_a_flow_forward() -> None:
    forward, reverse = (wanted(HEAD + FLOWS + more) for more in ("", 'direction = "reverse"\n'))
    assert (forward.flows[0].path, reverse.flows[0].path) == (((0, False),), ((0, True),))
    assert routes.commands(forward) == routes.commands(reverse)


@pytest.mark.usefixtures("kernel")
def test_the_way_back_has_the_rate_and_the_delay_of_its_own() -> None:
    """Access links, 1 ms together, are a part of both directions; queues of the kernel have the rates of theirs."""
    head = HEAD.replace('rate = "10Mbit/s"', 'rate = "10Mbit/s"\nreverse_rate = "2Mbit/s"\nreverse_delay = "5ms"')
    head = head.replace('limit = "1000p"', 'limit = "1000p"\naccess_delay = "500us"')
    found = wanted(head + FLOWS)
    settings = plan.config(found, 0)["link"]
    assert {key: settings[key] for key in ("rate", "reverse_rate", "delay", "reverse_delay")} == {
        "rate": "10Mbit/s",
        "reverse_rate": "2Mbit/s",
        "delay": "21000000ns",
        "reverse_delay": "6000000ns",
    }
    assert (found.links[0].rates_bps, found.links[0].delays_s) == ((10e6, 2e6), (0.021, 0.006))
    queues = plan.read(Scenario(head + FLOWS, "home.toml"), None, "tc", None, None).kernel_queues[0]
    rates = [
        queue.lines(rate, 1514)[1].split("htb rate ")[1].split()[0]
        for queue, rate in zip(queues, found.links[0].rates_bps, strict=True)
    ]
    assert rates == ["10000000bit", "2000000bit"]


@pytest.mark.usefixtures("kernel")
def test_hosts_of_the_profile_of_linux_have_windows_that_grow() -> None:
    found = wanted(HEAD + '[tcp]\nprofile = "linux"\n' + FLOWS)
    settings = found.flows[0].tcp
    assert settings is not None and (settings.control, settings.window_grows) == ("cubic", True)
    assert found.flows[0].sends["window"] is None
    assert found.sysctls["net.ipv4.tcp_rmem"] == "4096 131072 6291456"
    fixed = wanted(HEAD + FLOWS)
    assert fixed.flows[0].sends["window"] == 6_000_000 and "net.ipv4.tcp_rmem" not in fixed.sysctls


@pytest.mark.usefixtures("kernel")
def test_an_access_link_is_slow_by_the_direction_that_the_flow_has() -> None:
    head = HEAD.replace('rate = "10Mbit/s"', 'rate = "10Mbit/s"\nreverse_rate = "2Mbit/s"\naccess_rate = "4Mbit/s"')
    wanted(head + FLOWS + 'direction = "reverse"\n')
    with pytest.raises(ScenarioError, match="slower than the bottleneck"):
        wanted(head + FLOWS)


@pytest.mark.usefixtures("kernel")
def test_the_emulator_of_a_link_has_its_impairments() -> None:
    written = (
        'duplicate = 0.1, reverse_jitter = { by = "5ms", correlation = 0.5 }, gilbert = { to_bad = 0.1, to_good = 1 }'
    )
    tables = [link.table for link in wanted(GRAPH.replace('name = "last"', f'name = "last", {written}')).links]
    assert {key for table in tables[:2] for key in table} & network.IMPAIRMENTS == set()
    assert tables[2].keys() & network.IMPAIRMENTS == {"duplicate", "reverse_jitter", "gilbert"}
    assert tables[2]["duplicate"] == 0.1
    assert (tables[2]["reverse_jitter"]["by"], tables[2]["gilbert"]["to_good"]) == ("5ms", 1)


def test_a_datagram_that_comes_twice_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datagrams, "SO_RCVBUFFORCE", socket.SO_RCVBUF)
    with selectors.DefaultSelector() as ready, socket.socket(type=socket.SOCK_DGRAM) as sender:
        hosts = SimpleNamespace(buffer=bytearray(2048), ready=ready, now=lambda: 1.5)
        flow = {"keeps_delays": True, "window": 100_000, "to": "127.0.0.77"}
        receiver = datagrams.UdpReceiver(hosts, flow)
        for number in (0, 0, 2, 1, 2):
            sender.sendto(struct.pack("!Id", number, 1.25) + bytes(88), (flow["to"], datagrams.PORT))
            ready.select(timeout=5)[0][0].data(selectors.EVENT_READ)
    found = receiver.result()
    assert (found["packets"], found["bytes"]) == (3, 300)
    assert found["delays"] == [[0, 1.25, 0.25], [2, 1.25, 0.25], [1, 1.25, 0.25]]


@pytest.mark.usefixtures("kernel")
def test_each_link_of_a_graph_has_its_changes() -> None:
    found = wanted(GRAPH + '[[changes]]\nlink = "last"\nat = "2s"\nrate = "1Mbit/s"\ndirection = "forward"\n')
    assert [(one.link, one.at_s, one.values.get("rate")) for one in found.changes if one.at_s] == [
        (2, 2.0, "1000000bit/s")
    ]


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ('name = "last"', "scone = true", "8:96", "no advice"),
        ('to = "y"\n', 'to = "y"\nnode = "a"\n', "14:8", "on the left of all links"),
        ('access_delay = "1ms"', 'access_rate = "4Mbit/s"', "4:15", "slower than the bottleneck"),
    ],
)
def test_what_the_wire_cannot_do_in_a_graph_is_refused_at_its_key(old: str, new: str, place: str, words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        wanted(GRAPH.replace(old, new))
    assert f"home.toml:{place}\n" in str(refused.value)
    assert words in str(refused.value)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(("head", "place"), [(HEAD + FLOWS, "7:9"), (GRAPH, "6:66")])
def test_a_key_of_links_that_the_wire_does_not_know_is_refused(
    head: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "KEYS", network.KEYS - {"limit"})
    with pytest.raises(ScenarioError, match="the emulator has no `limit`") as refused:
        wanted(head)
    assert f"home.toml:{place}\n" in str(refused.value)


SESSIONS = (
    HEAD
    + """\
[[flows]]
kind = "web"
per_second = 4
max_size = "60kB"
start = "1s"
stop = "4s"
[[flows]]
kind = "http"
size = "9kB"
first = "2kB"
idle = "1500ms"
connection = "same"
"""
)


@pytest.mark.usefixtures("kernel")
def test_sessions_have_the_waits_and_sizes_that_the_simulator_draws() -> None:
    web, http = (flow.sends for flow in wanted(SESSIONS).flows)
    assert (web["waits"], web["same"], http["waits"], http["same"]) == (False, False, True, True)
    # 6 s: the first at once, then one after each idle time, if transfers took no time.
    assert http["transfers"] == [(0.0, 2000), *[(1.5, 9000)] * 3]
    ran = engine.run(SESSIONS).summary["flows"][0]["transfers"]
    waits, sizes = zip(*web["transfers"], strict=True)
    begun = [size for at, size in zip(itertools.accumulate(waits), sizes, strict=True) if at < 3]
    assert (len(begun), sum(begun)) == (ran["started"], ran["bytes"]), "all were complete"


@pytest.mark.usefixtures("kernel")
def test_a_flow_has_as_many_transfers_as_ports() -> None:
    with pytest.raises(ScenarioError, match="up to 31000"):
        wanted(HEAD + '[[flows]]\nkind = "web"\nper_second = 9000\n')


def test_transfers_are_judged_by_when_their_last_byte_came() -> None:
    sent = {"transfers": [[5000, 1.0, 1.1], [20_000, 2.0, 2.3], [15_000, 3.0, 3.1], [9, 4.0, None]], "failed": 1}
    found = transfers.judge("web", sent)
    assert (found["started"], found["count"], found["failed"], found["bytes"]) == (4, 3, 1, 40_000)
    assert found["completion_ms"]["mean"] == pytest.approx(500 / 3)
    assert [(one["from_bytes"], one["count"], one["mean_bytes"]) for one in found["by_size"]] == [
        (0, 1, 5000),
        (10_000, 2, 17_500),
    ]
    assert "by_size" not in transfers.judge("http", sent)


def test_what_a_host_needs_to_announce_rates_is_missed_at_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(text: str, world: str = "wire") -> str:
        with pytest.raises(ScenarioError) as error:
            plan.read(Scenario(text, "home.toml"), None, world, ["cubic"])
        return str(error.value)

    general, own = HEAD + "[tcp]\necn = true\nern = true\n" + FLOWS, HEAD + FLOWS + "tcp = { ecn = true, ern = true }\n"
    said = refused(general, "jar")
    assert "home.toml:10:7\n" in said
    assert "no BPF" in said
    monkeypatch.setattr(testbed, "hierarchy", lambda: None)
    said = refused(own)
    assert "home.toml:10:27\n" in said
    assert "mount -t cgroup2" in said


def test_a_kernel_that_refuses_the_program_of_rates_is_asked_by_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\n[ "$*" = "announce --check" ] && echo "error: this kernel is too old" >&2 && exit 1\n')
    agent.chmod(0o755)
    monkeypatch.setenv("PENSTOCK_AGENT", str(agent))
    monkeypatch.setattr(testbed, "hierarchy", lambda: tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert announcing.lacks("wire") == "this kernel is too old"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert announcing.lacks("wire") == "", "only root could tell"


def test_metrics_of_routes_say_what_sockets_cannot() -> None:
    text = HEAD + "[tcp]\necn = true\ninitial_window = 4\nack_every_segment = true\n" + FLOWS
    settings = wanted(text).flows[0].tcp
    assert settings is not None
    assert tcp.metrics(settings, sender=True) == ["initcwnd", "4", "features", "ecn"]
    assert tcp.metrics(settings, sender=False) == ["quickack", "1"]


@pytest.mark.usefixtures("kernel")
def test_an_orbit_becomes_steps_of_the_delay() -> None:
    orbit = 'orbit = { altitude_km = 780, satellites = 11, latitude = 20, step = "1s", served = "295s" }'
    text = HEAD + FLOWS + f'[[changes]]\nlink = "bottleneck"\n{orbit}\n'
    found = wanted(text)
    rows = engine.simulate(Scenario(text, "home.toml")).tables["link_changes"].to_pylist()
    forward = [row for row in rows if not row["reverse"]]
    changed = [forward[0], *(b for a, b in itertools.pairwise(forward) if a["delay_s"] != b["delay_s"])]
    delays = [(row["t_s"], f"{row['delay_s'] * 1e9:.0f}ns") for row in changed]
    ours = [(change.at_s, change.values["delay"]) for change in found.changes if "delay" in change.values]
    assert ours == delays
    assert len(ours) > 2


MS = 1_000_000


def test_a_queue_is_measured_from_its_packets(tmp_path: Path) -> None:
    # (left at ms, waited ms, bytes, fate); the run begins at 10 ms of the file and lasts 100 ms.
    rows = [
        (5, 5, 1500, "sent"),  # before the run
        (10, 0, 1500, "sent"),
        (30, 20, 1000, "sent"),  # waited from 0 to 20 ms of the run
        (40, 20, 500, "drop_dequeue"),  # from 10 to 30
        (50, 0, 700, "drop_overflow"),
        (70, 0, 60, "sent"),
        (115, 5, 1500, "sent"),  # after the run
    ]
    lines = [f"forward,{t * MS},{w * MS},0,{size},{fate}\n" for t, w, size, fate in rows]
    file = tmp_path / "packets.csv"
    file.write_text("queue,t_ns,waited_ns,flow,bytes,fate\n" + "".join(lines) + f"reverse,{20 * MS},0,0,60,sent\n")
    queue = Queue.read(file, "forward", 0.010, 0.100)
    assert (queue.sent_packets, queue.sent_bytes, queue.data_packets) == (3, 2560, 2)
    assert queue.dropped_bytes == 1200
    assert queue.most_bytes == 1500
    assert queue.mean_bytes == pytest.approx((1000 * 20 + 500 * 20) / 100)
    assert sorted(queue.waited_ms.tolist()) == pytest.approx([0, 0, 20])
    bps, most, mean, delay = queue.second(0.0, 0.05)
    assert bps == pytest.approx(2500 * 8 / 0.05)
    assert most == 1500
    assert mean == pytest.approx((1000 * 20 + 500 * 20) / 50)
    assert delay == pytest.approx(10)


def test_packets_of_several_links_become_one_file_of_the_run(tmp_path: Path) -> None:
    head = "queue,t_ns,waited_ns,flow,bytes,fate\n"
    (tmp_path / "0.csv").write_text(f"{head}forward,{20 * MS},0,0,60,sent\nreverse,{50 * MS},5,0,60,sent\n")
    (tmp_path / "1.csv").write_text(f"{head}forward,{8 * MS},0,0,60,drop_overflow\n")
    links = [("a", tmp_path / "0.csv", 0.010), ("b", tmp_path / "1.csv", -0.012)]  # the second clock began later
    assert packets.joined(links).decode() == (
        f"{head}a,{10 * MS},0,0,60,sent\nb,{20 * MS},0,0,60,drop_overflow\na-reverse,{40 * MS},5,0,60,sent\n"
    )
    assert packets.joined(links[:1]) == (tmp_path / "0.csv").read_bytes()


def _emulator_capture(rows: list[tuple[int, int, bytes]]) -> bytes:
    """A capture as `penstock-emulate --pcapng` writes it, of (interface, time in ns, bytes of the packet)."""

    def block(kind: int, body: bytes) -> bytes:
        length = len(body) + 12
        return struct.pack("<II", kind, length) + body + struct.pack("<I", length)

    def interface(name: bytes) -> bytes:
        named = struct.pack("<HH", 2, 7) + name + b"\0"
        return block(1, struct.pack("<HHI", 101, 0, 128) + named + struct.pack("<HHB3xI", 9, 1, 9, 0))

    section = block(0x0A0D0D0A, struct.pack("<IHHQ", 0x1A2B3C4D, 1, 0, 2**64 - 1))
    packets = [struct.pack("<IIIII", at, t >> 32, t & 0xFFFFFFFF, len(b), len(b)) + b for at, t, b in rows]
    return b"".join([section, interface(b"forward"), interface(b"reverse"), *(block(6, body) for body in packets)])


def test_captures_of_several_links_become_one_in_the_order_of_time(tmp_path: Path) -> None:
    """The reader of the lab tells packets apart by their sizes: 28, 32 and 36 bytes of IPv4."""
    day = 1_700_000_000 * 1_000_000_000
    ip = {n: bytes.fromhex(f"450000{n:02x}000000004011000001010101020202{n:02x}") + bytes(n - 20) for n in (28, 32, 36)}
    (tmp_path / "0").write_bytes(_emulator_capture([(0, day, ip[28]), (1, day + 30, ip[32])]))
    (tmp_path / "1").write_bytes(_emulator_capture([(0, day + 10, ip[36])]))
    links = [("a", tmp_path / "0"), ("b", tmp_path / "1")]

    def joined(*wanted: str) -> tuple[bytes, Any]:
        (tmp_path / "all.pcapng").write_bytes(captures.joined(links, wanted))
        return (tmp_path / "all.pcapng").read_bytes(), capture.read(tmp_path / "all.pcapng").columns

    content, columns = joined()
    assert [name in content for name in (b"a-reverse", b"b-reverse", b"forward")] == [True, True, False]
    assert columns["t_ns"].tolist() == [0, 10, 30]
    assert columns["size"].tolist() == [28, 36, 32]
    assert columns["interface"].tolist() == [0, 2, 1], "a, b, a-reverse"
    content, columns = joined("a-reverse", "b")
    assert columns["size"].tolist() == [36, 32]
    assert columns["interface"].tolist() == [1, 0]


@pytest.mark.parametrize(("r", "mos"), [(93.2, 4.41), (90, 4.34), (80, 4.03), (70, 3.60), (60, 3.10), (50, 2.58)])
def test_ratings_give_the_scores_of_g107(r: float, mos: float) -> None:
    assert calls.mos(r) == pytest.approx(mos, abs=0.011)


def test_a_call_counts_what_is_missing_up_to_the_last_that_came() -> None:
    found = calls.judge(10, [(0, 0.0, 0.010), (1, 0.02, 0.026), (3, 0.06, 0.010)])
    assert (found["received"], found["lost"]) == (3, 1)
    # |16| and |-16| ms: J = 1, then 1 + 15/16 (RFC 3550 A.8).
    assert found["jitter_ms"] == {"mean": pytest.approx((1 + 1.9375) / 2), "max": 1.9375, "last": 1.9375}


# Owners.


def test_a_frame_is_played_if_all_of_it_came_in_time() -> None:
    # Frames of 2, 3, 1 and 2 packets: the first is late, of the second a packet is missing, the last is on its way.
    arrived = [[0, 0.0, 0.05], [1, 0.0, 0.2], [2, 0.04, 0.05], [4, 0.04, 0.06], [5, 0.08, 0.1], [6, 0.12, 0.1]]
    found = calls.judge_video([0, 2, 5, 6], 8, arrived, 0.15)
    frames = found["frames"]
    assert {key: frames[key] for key in ("sent", "played", "late", "lost")} == {
        "sent": 4,
        "played": 1,
        "late": 1,
        "lost": 1,
    }
    assert (frames["delay_ms"]["max"], frames["delay_ms"]["p50"]) == (200.0, 150.0)
    assert (found["sent"], found["received"], found["lost"]) == (8, 6, 1)


@pytest.mark.usefixtures("kernel")
def test_what_sources_of_datagrams_are_told() -> None:
    video = '[[flows]]\nkind = "video"\nrate = "1Mbit/s"\n'
    calls_ = '[[flows]]\nkind = "voip"\ntalk_spurts = true\n'
    found = wanted(HEAD + video + calls_)
    told = found.flows[0].sends
    # 5 kB per frame; 25 frames of which one is five times as large: 29 shares.
    assert told["sizes"] == [pytest.approx(5000 * 25 / 29 * 5), pytest.approx(5000 * 25 / 29)]
    assert (told["body"], told["packet"], told["deadline_s"]) == (1188, 1228, 0.15)
    assert found.flows[1].sends["mean_on_s"] == pytest.approx(1.004)
    assert found.flows[1].sends["mean_off_s"] == pytest.approx(1.587)


@pytest.mark.usefixtures("kernel")
@pytest.mark.usefixtures("kernel")
def test_datagrams_are_counted_up_to_the_last_one_that_arrived() -> None:
    """The second was lost, between its neighbours; whether others were sent after the third nobody knows."""
    found: Any = SimpleNamespace(received={0: {"bytes": 7}, 1: {"delays": [[2, 0.4, 0.03], [0, 0.0, 0.02]]}})
    plan_ = wanted(HEAD + FLOWS + '[[flows]]\nkind = "cbr"\nrate = "1Mbit/s"\n')
    table = measure._datagrams(plan_, found)["datagrams"]
    columns = {name: np.frombuffer(data, form).tolist() for name, (form, data) in table.items()}
    assert columns["flow"] == [1, 1, 1]
    assert columns["number"] == [0, 1, 2]
    assert columns["sent_s"] == [0.0, 0.2, 0.4]
    assert columns["delay_ms"] == pytest.approx([20.0, math.nan, 30.0], nan_ok=True)


def test_invariants_are_checked_when_a_run_on_the_wire_is_over() -> None:
    plan_ = wanted(HEAD + FLOWS + '[invariants]\nmax_queue = "9kB"\nno_drops = true\n')
    summary = plan_.empty
    queue = summary["bottlenecks"][0]
    queue["queue_bytes"]["max"] = 9000
    measure.check_invariants(plan_, summary)
    queue["queue_bytes"]["max"] = 9001
    with pytest.raises(BrokenInvariant, match="9001 bytes"):
        measure.check_invariants(plan_, summary)
    queue["drops_aqm"] = 2
    with pytest.raises(BrokenInvariant, match="2 packets were dropped"):
        measure.check_invariants(plan_, summary)


def test_only_what_a_dead_maker_marked_is_removed() -> None:
    mark = testbed.mark("wire")
    assert not testbed.is_dead(f"{mark}-left"), "this process lives"
    pid, start, ns = mark.removeprefix(PREFIX).split("-")
    assert testbed.is_dead(f"{PREFIX}{pid}-{int(start) - 1}-{ns}-left"), "another process has the number since"
    assert testbed.is_dead(f"{PREFIX}4194305-1-{ns}-left"), "no process has a number above the largest"
    assert not testbed.is_dead(f"{PREFIX}4194305-1-{int(ns, 16) + 1:x}-left"), "its maker is in another container"
    for name in (
        "left",
        "penstock-verify-1-left",
        f"penstock-{pid}-{start}-{ns}",
        f"{PREFIX}left",
        f"my-{PREFIX}4194305-1-{ns}",
    ):
        assert not testbed.is_dead(name)


def test_only_the_programs_of_a_dead_maker_are_ended() -> None:
    own = testbed.mark("wire")
    dead = f"{PREFIX}4194305-1-{own.rpartition('-')[2]}"
    started = [
        ("setpriv", f"/tmp/{dead}-x/0.toml"),
        ("setpriv", f"/tmp/{own}-x/0.toml"),
        ("less", f"/tmp/{dead}-x/0.toml"),
    ]
    running = [
        subprocess.Popen([name, "-c", "sleep 60; :", "x", marked], executable="/bin/sh", start_new_session=True)
        for name, marked in started
    ]
    try:
        testbed.remove_leftovers()
        assert running[0].wait(10) == -signal.SIGKILL
        assert [one.poll() for one in running[1:]] == [None, None]
    finally:
        for one in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()


def left() -> list[str]:
    """What marked runs have made, and the processes which have it in their command lines."""
    commands = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(entry.read_bytes())
        except OSError:
            continue
    running = [command.decode(errors="replace") for command in commands if PREFIX.encode() in command]
    folders = [folder for folder in (testbed.NAMED, testbed.CONTROL, testbed.hierarchy()) if folder is not None]
    return [path.name for folder in folders for path in folder.glob(f"{PREFIX}*")] + running


SHORT = HEAD + '[aqm]\nname = "codel"\n[tcp]\ncc = { name = "newreno", compat = "linux" }\nrack = true\n'
SHORT += FLOWS + 'count = 4\nstart_spread = "100ms"\n'


def budgets_possible() -> str:
    """Why the daemons of `[cooperation]` cannot run here; empty if they can."""
    try:
        daemons.require()
    except MistakeError as error:
        return str(error)
    return ""


# RED-ERN drops early what belongs to no flow that announces, and marks others. Of the two flows with ECN one announces.
ANNOUNCED = (
    HEAD.replace("10Mbit", "4Mbit")
    + """\
[aqm]
name = "red-ern"
weight = 0.02
max_probability = 0.3
[tcp]
cc = { name = "newreno", compat = "linux" }
rack = true
ecn = true
[[flows]]
kind = "bulk"
tcp = { ern = true }
[[flows]]
kind = "bulk"
"""
)


def announcing_possible() -> str:
    """Why no host here can announce its rate; empty if it can."""
    try:
        return announcing.lacks("wire")
    except MistakeError as error:
        return str(error)


# Two nodes at first: one with a file and a file later, which leaves and comes back, and one that stays; a third joins.
SHARED = (
    HEAD.replace("10Mbit", "2Mbit").replace("20ms", "50ms")
    + BUDGETS.replace("[tcp]", '[tcp]\nmss = "500B"')
    + """\
lease = "3s"
[[flows]]
kind = "transfer"
size = "100kB"
node = "a"
[[flows]]
kind = "transfer"
size = "50kB"
start = "3s"
node = "a"
[[flows]]
kind = "bulk"
node = "b"
[[flows]]
kind = "bulk"
start = "2s"
[[changes]]
link = "bottleneck"
at = "4s"
rate = "1Mbit/s"
"""
)


@real
@pytest.mark.parametrize(
    ("text", "later_s", "on"),
    [
        (SHORT, 0, "wire"),
        (SHORT, 0.1, "wire"),
        (SHORT, 0.4, "wire"),
        (SHORT.replace("codel", "droptail"), 0.4, "tc"),
        (SHARED, None, "wire"),
        (ANNOUNCED, 0.4, "wire"),
    ],
)
def test_a_killed_run_leaves_nothing_after_the_next_start(
    text: str, later_s: float | None, on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text == SHARED and (why := budgets_possible()):
        pytest.skip(why)
    if text == ANNOUNCED and (why := announcing_possible()):
        pytest.skip(why)
    if on == "tc" and not {"htb", "pfifo"} <= {*(kernel_queues.kinds() or [])}:
        pytest.skip("this kernel has no queues for it")
    if later_s is None:
        later_s = random.uniform(0, 3)
    (tmp_path / "home.toml").write_text(text)
    temporary = Path(tempfile.mkdtemp(prefix="w", dir="/tmp"))  # short: the path of a socket has 108 characters
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    mine = subprocess.Popen([sys.executable, "-m", "penstock", "run", "home.toml", "--on", on], cwd=tmp_path)
    try:
        end = time.monotonic() + 60
        while not any(testbed.NAMED.glob(f"{PREFIX}{mine.pid}-*")) and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(later_s)
    finally:
        mine.send_signal(signal.SIGKILL)
        mine.wait()
    assert [name for name in left() if f"-{mine.pid}-" in name], "killed while it had made something"
    end = time.monotonic() + 10
    while [name for name in left() if f"-{mine.pid}-" in name] and time.monotonic() < end:
        testbed.remove_leftovers()  # what the run had just started may end a moment after it
        time.sleep(0.02)
    assert not [name for name in left() if f"-{mine.pid}-" in name]
    temporary.rmdir()  # it is empty: there is no directory without a mark either


@real
def test_a_run_on_the_wire_agrees_with_the_simulator(tmp_path: Path) -> None:
    """Within the goals for a run: goodput within 3 %, mean queueing delay within 10 % or 0.5 ms. The best of three."""
    ours = engine.run(SHORT).summary
    apart: list[Any] = []
    for _ in range(3):
        found = wire.play(Scenario(SHORT, "home.toml"), packets=tmp_path / "packets.pcapng")
        assert found.wire is not None
        compared = _compared(found.summary, ours)
        if not compared:
            break
        apart.append((compared, found.wire["disturbed_by"]))
    else:
        pytest.fail(f"three runs apart: {apart}")
    # The capture is longer than the run, by handshakes before it and by what waits at its end.
    columns = capture.read(tmp_path / "packets.pcapng").columns
    (queue,) = found.summary["bottlenecks"]
    assert columns["dropped"].sum() >= queue["drops_overflow"] + queue["drops_aqm"] > 0
    assert (columns["interface"] == 0).sum() >= queue["packets_all"]
    rundir.write(found, tmp_path / "run", {"on": "wire"})
    assert _keys(found.summary) == _keys(ours), "the same keys in both worlds"
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["wire"]["kernel"] == os.uname().release
    assert manifest["wire"]["sysctls"]["net.ipv4.tcp_sack"] == "1"
    assert {file.stem for file in (tmp_path / "run").glob("*.parquet")} >= {"flow_seconds", "queue_seconds"}
    with pytest.raises(rundir.RunDirError, match="never repeat"):
        rundir.rerun(tmp_path / "run")
    assert not [name for name in left() if f"-{os.getpid()}-" in name]


OPTIONS, ERN = 20, (253, 6)


def option_of_rate(tcp_segment: bytes) -> bytes | None:
    """The option 253 of a segment: window in 16 bits, shift in 4, round trip in ms in 12 (docs/reference/tcp.md)."""
    left = tcp_segment[OPTIONS : (tcp_segment[12] >> 4) * 4]
    while left and left[0]:
        length = 1 if left[0] == 1 else left[1]
        if tuple(left[:2]) == ERN:
            return left[2:6]
        left = left[length:]
    return None


def sent_from_the_left(file: Path) -> list[tuple[int, bytes]]:
    """The TCP segments that hosts on the left sent, in the capture of a run: the last number of the address, and all
    from the header of TCP on."""
    found, content, at = [], file.read_bytes(), 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == 6:  # enhanced packet block
            packet = content[at + 28 : at + 28 + struct.unpack_from("<I", content, at + 20)[0]]
            if packet[13] < 200:
                found.append((packet[15], packet[(packet[0] & 15) * 4 :]))
        at += length
    return found


@real
@pytest.mark.skipif(bool(announcing_possible()), reason=announcing_possible() or "a program in the kernel")
def test_hosts_announce_their_rates_and_red_ern_marks_by_them(tmp_path: Path) -> None:
    file = tmp_path / "packets.pcapng"
    found = wire.play(Scenario(ANNOUNCED, "home.toml"), packets=file)
    first, second = found.summary["flows"]
    assert (first["ecn_used"], second["ecn_used"]) == (True, True)
    (queue,) = found.summary["bottlenecks"]
    assert queue["marks"] > 0, "only flows that announce are marked"
    sent = sent_from_the_left(file)
    told = [(host, option_of_rate(segment)) for host, segment in sent]
    assert {host for host, option in told if option} == {1}, "the second flow announces nothing"
    rates = [option for _, option in told if option and any(option)]
    between = sum(1 for _, option in told if option == bytes(4))
    windows = [int.from_bytes(one[:2]) << (one[2] >> 4) for one in rates]
    round_trips = [int.from_bytes(one[2:]) & 0xFFF for one in rates]
    assert all(40 <= ms < 1000 for ms in round_trips), "two ways of 20 ms, and the queue"
    assert all(window % 1448 == 0 for window in windows), "whole segments, as the kernel counts them"
    # At most one in each round trip, of which none is shorter than 40 ms; most segments are between two rates.
    assert 20 < len(rates) <= 6 / 0.040
    assert between > 2 * len(rates)
    # One that overtook another is none, so what counts is that its number was there before.
    numbers: set[bytes] = set()
    for one in (one for host, one in sent if host == 1 and len(one) > (one[12] >> 4) * 4):
        assert one[4:8] not in numbers or not any(option_of_rate(one) or b""), (
            "a retransmission has no rate: it cannot be marked and would be dropped"
        )
        numbers.add(one[4:8])
    assert len(numbers) > 500, "the capture has the data of segments"
    assert not [name for name in left() if f"-{os.getpid()}-" in name]


@real
@pytest.mark.skipif(bool(budgets_possible()), reason=budgets_possible() or "real daemons")
def test_nodes_share_a_link_by_the_budgets_of_the_real_gateway() -> None:
    """Joins, leaves and the rate are those of the simulator; use of the link within 5 % of its, the best of three."""
    ours = engine.run(SHARED).summary
    apart: list[Any] = []
    for _ in range(3):
        found = wire.play(Scenario(SHARED, "home.toml"))
        used = [one["bottlenecks"][0]["utilization"] for one in (found.summary, ours)]
        if abs(used[0] / used[1] - 1) < 0.05:
            break
        apart.append(used)
    else:
        pytest.fail(f"three runs apart: {apart}")
    told, simulated = found.summary["cooperation"], ours["cooperation"]
    assert told.keys() == simulated.keys()
    for key in ("clients", "granted_bps", "bandwidth_bps", "joined", "left", "lapsed", "forged", "ignored"):
        assert told[key] == simulated[key], key
    assert (told["joined"], told["left"], told["bandwidth_bps"]) == (4, 2, 1_000_000)
    assert found.wire is not None
    agents = found.wire["cooperation"]["agents"]
    assert {name: agent["starts"] for name, agent in agents.items()} == {"n0": 2, "n1": 1, "n2": 1}
    assert not any(agent["failed"] or agent["lost_sessions"] for agent in agents.values())
    # Each change of the number of nodes and of the rate is a new budget.
    assert agents["n1"]["changes"] >= 4
    assert found.summary["bottlenecks"][0]["drops_overflow"] == 0
    assert not [name for name in left() if f"-{os.getpid()}-" in name]


@real
@pytest.mark.skipif(bool(budgets_possible()), reason=budgets_possible() or "real daemons")
def test_a_run_whose_gateway_dies_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "home.toml").write_text(SHARED)
    command = [sys.executable, "-m", "penstock", "run", "home.toml", "--on", "wire"]
    mine = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    name = f"-{mine.pid}-"
    end = time.monotonic() + 60
    while not (agents := [path for path in testbed.CONTROL.glob("*-n2.sock") if name in path.name]):
        assert mine.poll() is None, mine.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    assert agents, "the third node has joined, at 2 s"
    for entry in Path("/proc").glob("[0-9]*"):
        told = _read(entry / "cmdline").decode(errors="replace").split("\0")
        if Path(told[0]).name == "penstock-gateway" and name in told[-2]:
            os.kill(int(entry.name), signal.SIGKILL)
    _, said = mine.communicate(timeout=60)
    assert mine.returncode != 0
    assert "-g.sock does not answer" in said, "it was told of the change of the rate"
    assert not [one for one in left() if name in one]


LOT = """\
duration = "3s"
[topology]
kind = "parking-lot"
hops = [
  { rate = "2Mbit/s", delay = "10ms", limit = "100p", aqm = "codel" },
  { rate = "4Mbit/s", delay = "20ms", limit = "100p", aqm = "pie" },
]
[tcp]
cc = { name = "newreno", compat = "linux" }
rack = true
[[flows]]
kind = "http"
size = "9kB"
idle = "200ms"
from = "r0"
to = "r2"
[[flows]]
kind = "cbr"
rate = "1Mbit/s"
from = "r1"
to = "r2"
"""
ASKED = 'echo "I am $PENSTOCK_HOST"; getent hosts s1; ip -o route get 10.200.0.1; sleep 977 & sleep 976\n'


@real
def test_two_links_sessions_and_a_shell_agree_with_the_simulator(tmp_path: Path) -> None:
    """Goodput within 3 %, mean queueing delay within 10 % or 0.5 ms. The best of three."""
    (tmp_path / "lot.toml").write_text(LOT)
    ours = engine.run(LOT).summary
    command = [sys.executable, "-m", "penstock", "run", "lot.toml", "--on", "wire", "--shell", "c0", "--out", "run"]
    apart: list[Any] = []
    for _ in range(3):
        done = subprocess.run(
            command,
            cwd=tmp_path,
            input=ASKED,
            env={**os.environ, "SHELL": "/bin/sh"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "I am c0" in done.stdout
        assert "10.200.0.2" in done.stdout, "the shell knows hosts by name"
        assert "dev wire0l src 10.80.0.1" in done.stdout, "it is behind the first link"
        found = json.loads((tmp_path / "run" / "summary.json").read_text())
        if not (compared := _apart(found, ours)):
            break
        apart.append(compared)
    else:
        pytest.fail(f"three runs apart: {apart}")
    assert _keys(found) == _keys(ours), "the same keys in both worlds"
    assert not [entry for entry in Path("/proc").glob("[0-9]*/cmdline") if b"sleep\x0097" in _read(entry)]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _apart(there: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """What is outside of the goals, of each link and of the transfers."""
    found = []
    for a, b in zip(there["bottlenecks"], ours["bottlenecks"], strict=True):
        found += _compared({"bottlenecks": [a]}, {"bottlenecks": [b]})
    a, b = (one["flows"][0]["transfers"] for one in (there, ours))
    if (a["started"], a["count"]) != (b["started"], b["count"]):
        found.append(f"transfers {a['started']}, {a['count']} / {b['started']}, {b['count']}")
    if abs(a["completion_ms"]["mean"] - b["completion_ms"]["mean"]) > 5:
        found.append(f"took {a['completion_ms']} / {b['completion_ms']}")
    return found


def _compared(there: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """What is outside of the goals."""
    (a,), (b,) = there["bottlenecks"], ours["bottlenecks"]
    found = []
    if abs(a["goodput_bps"] / b["goodput_bps"] - 1) > 0.03:
        found.append(f"goodput {a['goodput_bps']} / {b['goodput_bps']}")
    delays = a["queue_delay_ms"]["mean"], b["queue_delay_ms"]["mean"]
    if abs(delays[0] - delays[1]) > max(0.5, 0.1 * delays[1]):
        found.append(f"delay {delays[0]} / {delays[1]}")
    return found


def _keys(tree: Any, path: str = "") -> set[str]:
    if isinstance(tree, dict):
        return {inner for key, value in tree.items() if key != "algorithm" for inner in _keys(value, f"{path}.{key}")}
    return {inner for value in tree for inner in _keys(value, path)} if isinstance(tree, list) else {path}
