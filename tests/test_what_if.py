"""`what-if`: what is read from a capture, the answer, and captures that do not decide."""

from __future__ import annotations

import json
import re
import struct
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command, commands
from penstock import capture as captures
from penstock import engine, report
from penstock.cli import app
from penstock.engine import TraceError
from penstock.mistake import MistakeError
from penstock.scenario import Scenario
from penstock.units import number
from penstock.what_if import answer, decision, doubts, gateway, lines, link, model, others, truth, truth_page
from penstock.what_if.link import Rate
from penstock.what_if.outcome import Outcome, Range
from penstock.what_if.streams import Samples, streams, unwrapped
from typer.testing import CliRunner

CASE = truth.Case("dsl", "four transfers", "datagrams")
SYN, ACK, FIN = 2, 16, 1


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four transfers and datagrams on a link of 4 Mbit/s with a queue of 75 kB, as the gateway sees them."""
    place = tmp_path_factory.mktemp("what-if") / "capture.pcap"
    truth.capture(CASE, place)
    return place


def pcap(frames: list[tuple[float, bytes, int]]) -> bytes:
    """A capture of IP packets: time in milliseconds, headers, size."""
    file = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)
    for t_ms, header, size in frames:
        ns = round(t_ms * 1e6)
        file += struct.pack("<IIII", ns // 10**9, ns % 10**9, len(header), size) + header
    return file


def segment(
    out: bool, flags: int, seq: int, ack: int, stamps: tuple[int, int], payload: int = 0, window: int = 500
) -> Any:
    """A TCP segment from 10.0.0.1:1000 to 20.0.0.2:80, or back: its headers and its size."""
    ends, ports = (bytes([10, 0, 0, 1]), bytes([20, 0, 0, 2])), (1000, 80)
    if not out:
        ends, ports = ends[::-1], ports[::-1]
    options = struct.pack(">BBBBII", 1, 1, 8, 10, *stamps)
    if flags & SYN:
        options += struct.pack(">BBHBBBB", 2, 4, 1400, 1, 3, 3, 4)
    size = 40 + len(options) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0, 64, 6, 0) + b"".join(ends)
    tcp = struct.pack(">HHIIBBHHH", *ports, seq % 2**32, ack % 2**32, (20 + len(options)) * 4, flags, window, 0, 0)
    return ip + tcp + options, size


def test_numbers_that_count_modulo_2_to_the_32_are_unwrapped() -> None:
    values = np.array([2**32 - 2, 3, 2**32 - 1, 2**31 - 2, 2**32 - 5])
    assert unwrapped(values, 2**32 - 10).tolist() == [8, 13, 9, 2**31 + 8, 2**32 + 5]


def test_a_stream_is_read_by_hand(tmp_path: Path) -> None:
    """The sender is 10 ms before the capture, the receiver 20 ms behind it; the second of three segments was lost."""
    isn, peer = 2**32 - 500, 900
    frames = [
        (0, segment(True, SYN, isn, 0, (1, 0))),
        (40, segment(False, SYN | ACK, peer, isn + 1, (7, 1))),
        (60, segment(True, ACK, isn + 1, peer + 1, (2, 7), 1000)),
        (62, segment(True, ACK, isn + 2001, peer + 1, (2, 7), 1000)),
        (100, segment(False, ACK, peer + 1, isn + 1001, (8, 2))),
        (103, segment(False, ACK, peer + 1, isn + 1001, (9, 2))),
        (125, segment(True, ACK, isn + 1001, peer + 1, (3, 9), 1000)),
        (165, segment(False, ACK, peer + 1, isn + 3001, (10, 3))),
        (5000, segment(True, ACK, isn + 3001, peer + 1, (4, 10), 4)),
        (5040, segment(False, ACK | FIN, peer + 1, isn + 3005, (11, 4))),
        (5060, segment(True, ACK | FIN, isn + 3005, peer + 1, (5, 11))),
    ]
    (tmp_path / "hand.pcap").write_bytes(pcap([(t, *rest) for t, rest in frames]))
    read = captures.read(tmp_path / "hand.pcap")
    (one,) = streams(read, captures.directions(read).less, 100)
    assert (one.size_bytes, one.segments, one.again, one.again_bytes, one.mss) == (3004, 4, 1, 1000, 1000)
    assert (one.opens, one.has_begin, one.window_bytes) == (True, True, 500 << 4)
    assert [(burst.start_s, burst.size_bytes, burst.is_complete) for burst in one.bursts] == [
        (0.06, 3000, True),
        (5.0, 4, True),
    ]
    assert len(one.twice) == 0, "what was sent again had not passed"
    # SYN, first segment, and the last; the others wait for what was lost.
    assert one.away.x.tolist() == pytest.approx([0.040, 0.040, 0.040])
    # From the SYN-ACK to the first segment. The segment that was sent again does not count, and a pause is long.
    assert one.home.x.tolist() == pytest.approx([0.020, 4.835])


def test_what_passes_twice_was_lost_behind_the_place(tmp_path: Path) -> None:
    """Of four segments the second was lost before the place, the third behind it, and the second again as well."""
    frames = [(0, segment(True, SYN, 9, 0, (1, 0))), (40, segment(False, SYN | ACK, 99, 10, (7, 1)))]
    sent = ((60, 10), (62, 2010), (63, 3010), (120, 1010), (121, 2010), (300, 1010))
    frames += [(t, segment(True, ACK, seq, 100, (2, 7), 1000)) for t, seq in sent]
    frames.append((340, segment(False, ACK, 100, 4010, (8, 2))))
    (tmp_path / "twice.pcap").write_bytes(pcap([(t, *rest) for t, rest in frames]))
    read = captures.read(tmp_path / "twice.pcap")
    (one,) = streams(read, captures.directions(read).less, 100)
    assert one.twice.tolist() == pytest.approx([0.062, 0.120])
    assert (one.again, one.marks, one.capable) == (3, 0, False)


def test_a_frame_may_hold_several_segments(tmp_path: Path) -> None:
    frames = [
        (0, segment(True, SYN, 9, 0, (1, 0))),
        (40, segment(False, SYN | ACK, 99, 10, (7, 1))),
        (50, segment(True, ACK, 10, 100, (2, 7), 3 * 1388)),
        (90, segment(False, ACK, 100, 10 + 3 * 1388, (8, 2))),
    ]
    (tmp_path / "joined.pcap").write_bytes(pcap([(t, *rest) for t, rest in frames]))
    read = captures.read(tmp_path / "joined.pcap")
    (one,) = streams(read, captures.directions(read).less, 100)
    # The ends have agreed on 1400 bytes, of which timestamps take 12.
    assert (one.mss, one.segments, one.segments_per_ack) == (1388, 3, 3)


def test_an_empty_capture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").write_bytes(pcap([]))
    with pytest.raises(TraceError, match="no IP packet in its 0 frames"):
        model.observe(tmp_path / "empty.pcap")


def test_a_capture_of_a_host_with_offloads_shows_what_the_wire_shows(tmp_path: Path) -> None:
    """The same packets, as they are and joined as GRO joins them: rate, queue and losses differ by less than 15 %."""
    [case] = [line for line in lines.lines() if (line.kind, line.name) == ("joined", "uploads")]
    seen = {}
    for joined in (False, True):
        file = tmp_path / f"{joined}.pcap"
        truth.capture(replace(case, joined=joined), file)
        seen[joined] = model.observe(file)
    wire, host = seen[False], seen[True]
    assert "joined frames" not in wire.read
    assert re.search(r"split [\d,]+ joined frames into [\d,]+ packets, spread at 20 Mbit/s", host.read)
    assert (host.packets, host.loss) == (wire.packets, wire.loss)
    assert host.rate.bps == pytest.approx(20e6, rel=0.01)
    assert host.goodput_bps == pytest.approx(wire.goodput_bps, rel=0.01)
    for share in (0.5, 0.9, 0.99):
        assert host.queue.quantile(share) == pytest.approx(wire.queue.quantile(share), rel=0.15)
    assert host.limit_bytes == pytest.approx(wire.limit_bytes, rel=0.15)


def test_the_spacing_of_packets_is_the_rate() -> None:
    """Half of the time 1500 B each 1.2 ms, that is 10 Mbit/s; then one each 10 ms."""
    t = np.concatenate([np.arange(1000) * 0.0012, 1.2 + np.arange(120) * 0.01])
    size = np.full(len(t), 1500.0)
    rate = link.spacing(t, size)
    assert rate.bps == pytest.approx(10e6, rel=1e-6)
    assert rate.is_spacing
    assert rate.full == pytest.approx(4 / 9)
    acks = np.full(len(t), 52.0)
    assert not link.spacing(t, acks).is_spacing
    burst = np.sort(np.concatenate([t[:1000], t[:200] + 0.0001]))
    assert not link.spacing(burst, np.full(1200, 1500.0)).is_spacing


def test_a_stream_that_never_saw_the_queue_empty_is_compared_with_one_that_did() -> None:
    t = np.arange(0, 10, 0.01)
    waits = 0.05 * (1 - np.cos(t)) / 2
    late = t > 2
    halves = [Samples(t, 0.020 + waits), Samples(t[late], 0.070 + np.maximum(waits[late], 0.01))]
    found = link._bases(halves, link.NOTHING)
    assert found == pytest.approx([0.020, 0.070], abs=1e-3)


def test_packets_that_are_missing_are_counted_if_the_others_are_regular() -> None:
    t = np.arange(1000) * 0.02 + 0.003 * np.sin(np.arange(1000))
    arrived = np.arange(1000) % 7 != 3
    assert others._every(t[arrived]) == pytest.approx(0.02, rel=1e-3)
    assert others._every(np.sort(np.random.default_rng(1).uniform(0, 20, 900))) is None


def test_what_is_read_is_what_was_simulated(capture: Path) -> None:
    seen = model.observe(capture)
    assert seen.rate.bps == pytest.approx(4e6, rel=1e-3)
    assert seen.queue.at_home
    assert seen.limit_bytes == pytest.approx(75_000, rel=0.05)
    # Twice the link's 15 ms, 1 ms at the receiver, and 5, 15, 25 and 35 ms at the senders.
    assert sorted(seen.queue.base_s) == pytest.approx([0.042, 0.062, 0.082, 0.102], abs=4e-3)
    assert seen.goodput_bps == pytest.approx(3.82e6, rel=0.02)
    scenario = model.scenario(seen)
    kinds = [flow["kind"] for flow in scenario["flows"]]
    assert sorted(kinds) == ["bulk"] * 4 + ["cbr"]


def test_the_order_of_disciplines_is_foretold(tmp_path: Path) -> None:
    row = truth.judge(CASE, tmp_path / "capture.pcap")
    assert (row.verdict, row.control, row.wrong) == ("recommended", "cubic-linux without HyStart", [])
    for what in ("goodput", "delay"):
        assert max(map(abs, row.errors(what))) < truth_page.WITHIN
    assert "right in 1 of 1" in truth_page.summary([row])
    assert truth_page.page([row]).count("\n| dsl") == 1


def test_the_page_tells_the_whole_comparison() -> None:
    page = (Path(__file__).parents[1] / "docs" / "what-if.md").read_text()
    assert page.count("\n| dsl") == page.count("\n| cable") == page.count("\n| fibre") == 10


def test_a_capture_before_the_bottleneck_is_known_by_the_other_half(tmp_path: Path) -> None:
    on = {"from": "lan", "to": "isp"}
    fast = {"a": "lan", "b": "gw", "rate": "100Mbit/s", "delay": "1ms", "aqm": "droptail", "reverse_aqm": "droptail"}
    slow = {"a": "gw", "b": "isp", "rate": "8Mbit/s", "delay": "10ms", "limit": "100kB", "bottleneck": False}
    links = [fast | {"name": "lan", "limit": "1000p"}, slow]
    flows = [{"kind": "bulk", "count": 3, "start_step": "1s", **on}]
    topology = {"kind": "graph", "access_rate": "1Gbit/s", "access_delay": "1ms", "links": links}
    scenario = {"duration": "15s", "topology": topology, "tcp": {"cc": "cubic-linux"}, "flows": flows}
    engine.run(scenario, pcapng=tmp_path / "before.pcapng")
    seen = model.observe(tmp_path / "before.pcapng")
    assert not seen.queue.at_home
    assert seen.rate.bps == pytest.approx(8e6, rel=0.02)
    assert seen.limit_bytes == pytest.approx(100_000, rel=0.1)
    assert list(doubts.of_capture(seen)) == []


def test_what_does_not_decide_is_told(penstock: Command, capture: Path, tmp_path: Path) -> None:
    whole = captures.read(capture)
    data = capture.read_bytes()
    records, at = [], 24
    while at < len(data):
        length = 16 + struct.unpack_from("<I", data, at + 8)[0]
        records.append(data[at : at + length])
        at += length
    less = captures.directions(whole).less
    seconds = whole.seconds
    link_of_20 = truth.Case("cable", "one transfer", "calls").scenario()
    link_of_20["flows"] = [{"kind": "web", "per_second": 3, "max_size": "100kB", "from": "gateway", "to": "provider"}]
    engine.run(link_of_20, pcapng=tmp_path / "idle.pcapng")

    def written(name: str, keep: Any) -> str:
        (tmp_path / name).write_bytes(
            data[:24] + b"".join(one for one, kept in zip(records, keep, strict=True) if kept)
        )
        return name

    quic = [
        (
            float(n),
            struct.pack(
                ">BBHHHBBH4s4sHHHH", 69, 0, 1200, 0, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x14\0\0\1", 9, 443, 1180, 0
            ),
            1200,
        )
        for n in range(6000)
    ]
    (tmp_path / "quic.pcap").write_bytes(pcap(quic))
    for name, told in (
        (written("short.pcap", seconds < 4), "it is 4.0 s long; 5 s are the least"),
        (written("one.pcap", ~less), "it has one direction only"),
        ("quic.pcap", "100% of its bytes are QUIC"),
        (written("udp.pcap", whole.columns["flags"] == 0), "no TCP connection with more than 3 kB"),
        ("idle.pcapng", "hardly a queue"),
    ):
        found = answer.ask(model.observe(tmp_path / name)).to_json()
        assert (found["verdict"], found["discipline"], found["candidates"]) == ("cannot-tell", None, [])
        assert told in found["because"][0], name
    done = penstock("what-if", "one.pcap", "--write", "gateway.toml")
    assert done.returncode == 1
    assert "cannot tell" in done.stdout
    assert "gateway.toml: not written" in done.stderr
    assert not (tmp_path / "gateway.toml").exists()


def test_a_discipline_in_place_is_found(tmp_path: Path) -> None:
    """CoDel waits 34 ms (p90) here; no candidate is shorter by a fifth, so the link is right as it is."""
    engine.run(CASE.scenario("codel"), pcapng=tmp_path / "codel.pcapng")
    found = answer.ask(model.observe(tmp_path / "codel.pcapng"), ("fq-codel", "fq-pie"), seeds=2)
    assert (found.verdict, found.discipline) == ("leave", "codel"), found.because
    assert any(note.startswith("the queue is not drop-tail") for note in found.notes)
    assert [one.discipline for one in found.outcomes] == ["codel", "fq-codel", "fq-pie"]


def test_marks_of_a_discipline_are_seen_behind_it_and_before_it(tmp_path: Path) -> None:
    tree = CASE.scenario() | {"tcp": {"cc": "cubic-linux", "ecn": True}}
    for name, place in (("link", "behind"), ("far", "before")):
        links = [dict(tree["topology"]["links"][0]) | {"aqm": {"name": "codel", "ecn": True}}]
        far = {
            "a": "provider",
            "b": "end",
            "name": "far",
            "rate": "2Mbit/s",
            "delay": "1ms",
            "aqm": {"name": "codel", "ecn": True},
        }
        links += [far | {"reverse_aqm": "droptail", "bottleneck": False}] if place == "before" else []
        flows = [{**flow, "to": "end" if place == "before" else "provider"} for flow in tree["flows"]]
        seen = tree | {"duration": "8s", "topology": tree["topology"] | {"links": links}, "flows": flows}
        engine.run(seen, pcapng=tmp_path / f"{name}.pcapng")
        found = model.observe(tmp_path / f"{name}.pcapng")
        assert found.marks >= 3, place
        assert any(stream.capable for stream in found.main)
    assert model.observe(tmp_path / "link.pcapng").queue.at_home


def test_datagrams_above_the_rate_are_told(tmp_path: Path) -> None:
    """A stream of 6 Mbit/s into 4: behind the queue it has 4, and how much it sends is not to be seen."""
    tree = CASE.scenario() | {"duration": "8s"}
    tree["flows"] = [tree["flows"][0], {"kind": "cbr", "rate": "6Mbit/s", "start": "3s", **lines.ON}]
    engine.run(tree, pcapng=tmp_path / "above.pcapng")
    found = answer.ask(model.observe(tmp_path / "above.pcapng"))
    assert found.verdict == "cannot-tell" and "datagrams fill the link" in found.because[0]


def test_losses_behind_the_queue_are_those_of_the_model(tmp_path: Path) -> None:
    """Three transfers of which the wire loses 1, 3 and 0 %."""
    tree = CASE.scenario() | {"duration": "15s"}
    tree["topology"]["links"][0] |= {"stations": [0.01, 0.03, 0.0], "rate": "20Mbit/s"}
    tree["flows"] = [{"kind": "bulk", "count": 3, **lines.ON}]
    engine.run(tree, pcapng=tmp_path / "lossy.pcapng")
    seen = model.observe(tmp_path / "lossy.pcapng")
    shares = sorted(seen.lost_of(stream) / stream.segments for stream in seen.main)
    assert shares == pytest.approx([0.0, 0.01, 0.03], abs=0.007)
    [only] = model.scenario(seen)["topology"]["links"]
    assert sorted(only["stations"][:3]) == pytest.approx([0.0, 0.01, 0.03], abs=0.007)
    assert Scenario.load(model.scenario(seen)).text.count("class = ") == 3


def test_the_answer_becomes_a_gateway_file_and_a_scenario_to_run(
    penstock: Command, capture: Path, tmp_path: Path
) -> None:
    done = penstock("what-if", capture, "--aqm", "fq-codel", "--seeds", "2", "--write", "gateway.toml")
    assert done.returncode == 0, done.stderr
    assert "recommended: fq-codel" in done.stdout
    text = (tmp_path / "gateway.toml").read_text()
    asked = tomllib.loads(text)
    # The gateway's hosts have private addresses, so the asked direction is the upload.
    assert asked["link"]["reverse_rate"] == "3.8Mbit/s"
    chosen = asked["reverse_discipline"]
    assert (chosen["name"], chosen["target"]) == ("fq-codel", "5ms")
    assert asked["discipline"] == {"name": "droptail"}
    assert "# fq-codel: the queueing delay falls from" in text
    # Both tables are those of the grammar that scenarios have.
    place = tmp_path / "runs" / "what-if-capture"
    scenario = tomllib.loads((place / "scenario.toml").read_text())
    [only] = scenario["topology"]["links"]
    only |= {"aqm": chosen, "rate": asked["link"]["reverse_rate"], "limit": asked["link"]["reverse_limit"]}
    scenario |= {"duration": "2s"}
    assert engine.run(scenario).summary["bottlenecks"][0]["aqm"] == "fq-codel"
    again = engine.run(place / "scenario.toml").summary
    found = json.loads((place / "answer.json").read_text())
    assert again["duration_s"] == pytest.approx(found["capture_shows"]["duration_s"], abs=1e-3)
    assert [one["discipline"] for one in found["candidates"]] == ["droptail", "fq-codel"]
    assert any("[tcp]" in note and found["control"] in note for note in found["notes"])


def test_the_lines_of_the_page_run(monkeypatch: pytest.MonkeyPatch, capture: Path, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "capture.pcap").write_bytes(capture.read_bytes())
    for line in commands("what-if"):
        seeds = ("--seeds", "1") if line[0] == "what-if" else ()
        given = ["4Mbit/s" if word == "10Mbit/s" else word for word in line]
        done = CliRunner().invoke(app, [*given, *seeds])
        assert done.exit_code == 0, (line, done.output)
    assert (tmp_path / "gateway.toml").is_file()


def test_what_if_refuses_what_cannot_be(capture: Path, trace: Path) -> None:
    for arguments, told in (
        ((capture, "--layer", "overhead=44"), "--layer is what --write writes"),
        ((capture, "--write", "x.toml", "--layer", "link_layer=pppoe-ptn"), 'did you mean "pppoe-ptm"?'),
        ((capture, "--aqm", "fq-codle"), "did you mean fq-codel?"),
        ((capture, "--aqm", "cubic"), "--aqm cubic"),
        ((capture, "--rate", "10"), "'10' is no rate"),
        ((capture, "--direction", "both"), "there is more and less"),
        (("nowhere.pcap",), "nowhere.pcap"),
        ((trace,), "a CSV file has no hosts"),
    ):
        done = CliRunner().invoke(app, ["what-if", *map(str, arguments)])
        assert isinstance(done.exception, MistakeError | engine.TraceError), done.output
        assert told in str(done.exception)


def outcome(name: str, carried: float, worse: float, own: float | None = None, spread: float = 0.0) -> Outcome:
    """What carries so much of both directions, with these p90 delays of the worse direction and of its own queue."""

    def of(value: float) -> Range:
        return Range(value, value * (1 - spread), value * (1 + spread))

    delay = {quantile: of(worse if own is None else own) for quantile in ("p50", "p90", "p99")}
    none = Range.of([0])
    shares = Range.of([carried])
    return Outcome(name, Range.of([carried]), delay, none, none, none, none, delay, shares, of(worse))


def best(*outcomes: Outcome) -> tuple[str, str]:
    found = decision.decide(outcomes)
    return found.verdict, found.best.discipline


def test_the_decision_weighs_what_both_directions_carry_and_the_longer_delay() -> None:
    now = outcome("droptail", 1.0, 50)
    assert best(now, outcome("a", 0.96, 20), outcome("b", 0.94, 5)) == ("recommended", "a")
    assert best(now, outcome("a", 0.90, 5), outcome("b", 0.90, 60)) == ("leave", "droptail")
    assert best(now, outcome("a", 1.0, 41)) == ("leave", "droptail")
    assert best(outcome("droptail", 1.0, 4.0), outcome("a", 1.0, 2.1)) == ("leave", "droptail")
    assert best(outcome("droptail", 1.0, 4.0), outcome("a", 1.0, 1.9)) == ("recommended", "a")
    # As near as 1.5 ms or a tenth, what carries more is better; of those alike that with the shorter queue of its own.
    assert best(now, outcome("a", 1.0, 10.0, 9), outcome("b", 1.2, 10.9, 5)) == ("recommended", "b")
    assert best(now, outcome("a", 1.0, 30, 9), outcome("b", 1.0, 30, 5)) == ("recommended", "b")
    # The delay of the worse direction stays, and its own queue is short: the other direction decides the delay.
    assert best(outcome("droptail", 1.0, 50, 50), outcome("a", 1.0, 50, 5)) == ("recommended", "a")
    assert best(outcome("droptail", 1.0, 50, 50), outcome("a", 1.1, 50, 50)) == ("recommended", "a")
    because = decision.decide([now, outcome("a", 0.9, 5)]).because
    assert because[1:] == ["a has 5.0 ms, but costs 10% of what both directions carry"]
    may = outcome("may", 1.0, 5)
    unsure = Outcome(**{**vars(may), "carried": Range(0.96, 0.9, 1.0)})
    assert best(now, unsure) == ("leave", "droptail"), "it may cost more than is allowed"


def test_an_advice_stands_if_other_senders_do_not_speak_against_it() -> None:
    now = outcome("droptail", 1.0, 50)
    assert decision.stands("a", [now, outcome("a", 0.96, 20), outcome("b", 1.0, 18)])
    assert not decision.stands("a", [now, outcome("a", 0.96, 30), outcome("b", 1.0, 18)]), (
        "b is shorter by more than a fifth"
    )
    assert not decision.stands("a", [now, outcome("a", 0.8, 60), outcome("b", 1.0, 55)]), (
        "it carries less, and waits longer"
    )
    assert not decision.stands("droptail", [now, outcome("a", 1.0, 18)])
    wide, narrow = outcome("a", 1.0, 40, spread=0.4), outcome("a", 1.0, 20, spread=0.1)
    sure = [decision.is_sure(decision.decide([now, one]), [now, one]) for one in (wide, narrow)]
    assert sure == [False, True]


def test_a_row_of_the_truth_judges_the_advice() -> None:
    carried = {truth.AS_IT_IS: 1.0, "a": 0.97, "b": 0.9, "c": 0.96}
    worse = {truth.AS_IT_IS: 50.0, "a": 10.0, "b": 5.0, "c": 20.0}

    def row(verdict: str, discipline: str = "", **delays: float) -> truth.Row:
        nothing: dict[str, Range] = {}
        return truth.Row(
            CASE, verdict, discipline, ("why",), "", nothing, nothing, carried, {**worse, **delays}, nothing, nothing
        )

    assert row("recommended", "a").best == "a", "b costs too much, and a beats c in both"
    told = [("recommended", "a"), ("recommended", "c"), ("leave", ""), ("cannot-tell", "")]
    assert [truth_page.verdict(row(*one)) for one in told] == ["right", "not the best", "not the best", "cannot tell"]
    assert truth_page.verdict(row("recommended", "b", b=60.0)) == "harms"
    assert truth_page.judged([row(*one) for one in told]).startswith(
        "Of 4 advices 1 are right, 2 are not the best, 0 harm; 1"
    )


def test_frames_are_joined_as_network_cards_do() -> None:
    out = [segment(True, ACK, seq, 7, (2, 7), 1000) for seq in (10, 1010, 2010, 5010)]
    frames = [(n * 100_000, size, header) for n, (header, size) in enumerate(out)]
    joined = truth._joined(frames)
    assert [(t, size) for t, size, _ in joined] == [(200_000, 3052), (300_000, 1052)]
    assert struct.unpack_from(">H", joined[0][2], 2)[0] == 3052
    apart = [(n * 2_000_000, size, header) for n, (header, size) in enumerate(out)]
    assert truth._joined(apart) == apart


ONE_EACH_WAY = next(line for line in lines.lines() if line.name == "5/20 Mbit/s, one each way")


def test_an_asymmetric_line_with_bulk_both_ways_gets_a_discipline_for_its_upload(tmp_path: Path) -> None:
    """The queue of the upload holds up the ACKs of the download: without it both directions carry more than now."""
    place = tmp_path / "home.pcap"
    truth.capture(ONE_EACH_WAY, place)
    seen = model.observe(place)
    assert seen.uploads is True and seen.queue.at_home
    assert seen.rate.bps == pytest.approx(5e6, rel=0.01)
    assert seen.back_bps == pytest.approx(20e6, rel=0.02)
    found = answer.ask(seen, ("droptail", "fq-codel"), seeds=2)
    assert (found.verdict, found.discipline) == ("recommended", "fq-codel"), found.because
    now, then = found.outcomes
    assert then.carried.median > 1.15 * now.carried.median
    tables = gateway._tables(found)
    assert tables["reverse_discipline"]["name"] == "fq-codel" and tables["discipline"] == {"name": "droptail"}
    assert tables["link"]["reverse_rate"].startswith("4.7") and tables["link"]["rate"].startswith("19")
    # 1500 B take 1530 + 24 B of VDSL2 with PPPoE: the rates of the line are higher than those of packets by that.
    line = gateway._tables(found, ("link_layer=pppoe-ptm", "mpu=64"))["link"]
    assert (line["link_layer"], line["mpu"]) == ("pppoe-ptm", 64)
    for key in ("rate", "reverse_rate"):
        assert number(line[key]) == pytest.approx(number(tables["link"][key]) * 1554 / 1500, rel=1e-3)


def test_a_rate_that_is_asked_for_is_taken(capture: Path) -> None:
    seen = model.observe(capture, 8e6)
    assert seen.rate.bps == 8e6
    assert any("full in 0%" in text for text in doubts.of_capture(seen))
    assert Scenario.load(model.scenario(seen)).text.count("8000000bit/s") == 1
    assert Rate(1.0, 0.3, 0.06, 1.0).is_spacing is False


def test_the_page_of_an_answer_has_its_decision_its_reasons_and_all_candidates(tmp_path: Path) -> None:
    def of(median: float) -> dict[str, float]:
        return {"median": median, "low": 0.9 * median, "high": 1.1 * median}

    candidates: list[dict[str, Any]] = [
        {
            "discipline": name,
            "goodput_bps": of(9e6),
            "delay_ms": {"p50": of(delay), "p90": of(2 * delay), "p99": of(3 * delay)},
            "drops": of(10),
            "drop_share": of(0.01),
            "sent_again": of(0.02),
        }
        for name, delay in (("droptail", 100.0), ("fq-codel", 4.0))
    ]
    shows: dict[str, Any] = {
        "duration_s": 60.0,
        "packets": 1000,
        "rate_bps": 10**7,
        "full": 0.9,
        "taken": None,
        "limit_bytes": None,
    }
    shows |= {"goodput_bps": 9 * 10**6, "queue_delay_ms": None, "sent_again": 0.01, "transfers": 3, "datagrams": 1}
    answer: dict[str, Any] = {
        "capture": "home.pcap",
        "verdict": "recommended",
        "discipline": "fq-codel",
        "because": ["the <delay> falls"],
    }
    answer |= {"notes": ["a note"], "capture_shows": shows, "control": "newreno", "seeds": 5, "candidates": candidates}
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    page = report.remake(tmp_path).read_text(encoding="utf-8")
    for told in (
        "What if home.pcap",
        "the &lt;delay&gt; falls",
        "a note",
        "fq-codel",
        "droptail",
        "newreno",
        "range of 5 seeds",
    ):
        assert told in page
    charts = [json.loads(text) for text in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page)]
    delays = next(chart for chart in charts if "queueing delay" in chart["title"])
    assert [(line["name"], line["y"]) for line in delays["lines"]] == [
        ("droptail", [100, 200, 300]),
        ("fq-codel", [4, 8, 12]),
    ]
    cannot = {**answer, "verdict": "cannot-tell", "discipline": None, "control": None, "candidates": []}
    (tmp_path / "answer.json").write_text(json.dumps(cannot))
    assert "cannot tell" in report.remake(tmp_path).read_text(encoding="utf-8")
