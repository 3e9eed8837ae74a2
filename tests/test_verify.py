"""`penstock verify tcp-linux`: what it measures, by hand; what it keeps and says; and a short run where that can be."""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from penstock import marked, testbed
from penstock.mistake import MistakeError
from penstock.verify import cases, compare, drawn, kernels, lab, page, real, selection, simulated, traffic
from penstock.verify.measure import Measures, Packets, measure, median, period_s
from penstock.wire import traffic as wire_traffic

HEADER = "queue,t_ns,waited_ns,flow,bytes,fate\n"
MS = 1_000_000


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="a fixed buffer needs root")
def test_the_send_buffers_of_kernels_have_the_size_that_was_asked_for() -> None:
    # Linux doubles what it is asked for, and never changes it again (socket(7)).
    asked = 3_000_000
    wire_flow = {"cc": "reno", "max_segment": 1448, "buffer": asked, "from": "127.0.0.1", "to": "127.0.0.1", "tos": 0}
    made = [
        traffic._connect({"cc": "reno", "buffer": asked, "address": "127.0.0.1", "port": 9}),
        wire_traffic._connected(wire_flow, 0),
    ]
    for connection in made:
        with connection:
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * asked


@pytest.mark.skipif(os.name != "posix", reason="asks the kernel")
def test_samples_count_what_waits_and_leave_it_there() -> None:
    # A read may make the kernel acknowledge: flows without SACK were a second faster out of a long recovery.
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as sender:
        connection, _ = listener.accept()
        with connection:
            assert traffic._unread(connection) == 0
            sender.sendall(bytes(5000))
            while connection.recv(5000, socket.MSG_PEEK | socket.MSG_WAITALL) != bytes(5000):
                pass
            assert [traffic._unread(connection) for _ in range(2)] == [5000, 5000]


@pytest.mark.skipif(os.name != "posix", reason="asks the kernel")
@pytest.mark.parametrize("size", [None, 5000])
def test_receivers_of_the_wire_count_what_waits_and_leave_it_there(
    size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as sender:
        monkeypatch.setattr(wire_traffic, "_listening", lambda _flow, _waiting: listener)
        hosts = wire_traffic.Hosts(time.monotonic())
        receiver = wire_traffic.TcpReceiver(hosts, {"size": size, "window": 100_000})
        sender.sendall(bytes(2000))
        while receiver._taken < 2000:
            hosts.run(hosts.now() + 0.01)
        # The first bytes are read at once; of a flow without end the next ones do not suffice to wake the receiver.
        sender.sendall(bytes(3000))
        while receiver.bytes < 5000:
            hosts.run(hosts.now() + 0.01)
        assert receiver._connection is not None
        with receiver._connection as connection:
            # As the kernel does when a segment comes that is larger than all before it (`tcp_measure_rcv_mss`).
            clamp = (socket.IPPROTO_TCP, wire_traffic._TCP_WINDOW_CLAMP)
            connection.setsockopt(*clamp, 200_000)
            receiver.sample()
            assert connection.getsockopt(*clamp) == 100_000
            assert receiver.bytes == 5000
            if size is None:
                assert connection.recv(5000, socket.MSG_PEEK | socket.MSG_DONTWAIT) == bytes(3000)
            else:  # the last bytes of a transfer end it, before the FIN
                while receiver.result()["ended_s"] is None:
                    hosts.run(hosts.now() + 0.01)
                ended = receiver.result()["ended_s"]
                sender.shutdown(socket.SHUT_WR)
                hosts.run(hosts.now() + 0.05)
                assert receiver.result() == {"bytes": 5000, "ended_s": ended}


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="a fixed buffer needs root")
@pytest.mark.parametrize("control", ["reno", "cubic"])
def test_receivers_have_controls_that_need_them(control: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without DCTCP a receiver repeats a mark until CWR comes (RFC 3168), and DCTCP halves as Reno does. Not every
    # kernel has it, so another control stands for it; one of the two is not the kernel's default.
    assert wire_traffic._RECEIVED == ("dctcp",)
    monkeypatch.setattr(wire_traffic, "_RECEIVED", (control,))
    address = f"127.{1 + os.getpid() % 250}.{os.getpid() // 250 % 250}.{len(control)}"
    with wire_traffic._listening({"cc": control, "window": 100_000, "to": address, "tos": 0}, 1) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0") == control.encode()


def test_the_goodput_ends_with_the_sample_at_the_end() -> None:
    # 1 Mbit each 0.15 s, at once; the last sample comes 2 ms late.
    samples = [[5.0 + 0.1 * n, int(0.1 * n / 0.15) * 125_000.0] for n in range(30)]
    samples.append([8.002, 20 * 125_000.0])
    samples.append([8.1, 20 * 125_000.0])
    assert real._goodput_mbps(samples, 0.0, 3.0) == pytest.approx(20 / 3.002)


def packets(tmp_path: Path, rows: list[tuple[int, int, int, str]]) -> Packets:
    """Of (ms, ms waited, flow, fate)."""
    file = tmp_path / "packets.csv"
    lines = [f"forward,{t * MS},{waited * MS},{flow},1500,{fate}\n" for t, waited, flow, fate in rows]
    file.write_text(HEADER + "".join(lines) + "reverse,0,0,0,1500,sent\nforward,0,0,0,52,sent\n")
    return Packets.read(file, "forward")


def test_only_data_of_the_queue_counts_from_its_first_packet_on(tmp_path: Path) -> None:
    read = packets(tmp_path, [(5, 1, 0, "sent"), (7, 3, 0, "drop_overflow"), (9, 5, 1, "sent")])
    assert read.t_s.tolist() == pytest.approx([0, 0.002, 0.004])
    found = measure(read, 9.6, 40)
    assert found.queue_mean_ms == pytest.approx(3)
    assert found.loss == pytest.approx(1 / 3)
    assert read.between(0.001, 0.003).dropped.tolist() == [True]


def test_drops_within_one_and_a_half_round_trips_are_one_event(tmp_path: Path) -> None:
    # With 100 ms: flow 0 at 0 (and 140), 1000, 2000; flow 1 at 500 (and 600), 1500, 2500, 3500.
    drops = [(0, 0), (140, 0), (500, 1), (600, 1), (1000, 0), (1500, 1), (2000, 0), (2500, 1), (3500, 1)]
    rows = [(t, 0, flow, "drop_early") for t, flow in drops]
    assert period_s(packets(tmp_path, rows), 0.1) == pytest.approx(1.0)  # (2 s + 3 s) / (2 + 3)
    assert period_s(packets(tmp_path, rows[:6]), 0.1) is None, "too few to speak of"


def test_a_median_is_of_each_number_and_needs_most_of_the_runs() -> None:
    runs = [Measures(g, q, 0, 0, p) for g, q, p in ((1, 9, None), (2, 5, 3.0), (3, 7, 4.0))]
    assert median(runs) == Measures(2, 7, 0, 0, 3.5)
    assert median([runs[0], runs[0], runs[1]]).period_s is None


def row(kernel: float, ours: tuple[float, ...]) -> compare.Row:
    """A row of which only the goodput is told."""
    seeds = tuple(Measures(value, 10, 20, 0.01, 2.0) for value in ours)
    return compare.Row(cases.CASES[0], Measures(kernel, 10, 20, 0.01, 2.0), median(seeds), seeds, False, 60)


@pytest.mark.parametrize(
    ("kernel", "ours", "word"),
    [(10, (9.9, 9.9, 9.9), "ok"), (10, (9.0, 9.5, 10.5), "seeds"), (10, (9.0, 9.5, 9.6), "apart")],
)
def test_a_gap_is_judged_by_its_goal_and_then_by_the_seeds(kernel: float, ours: tuple[float, ...], word: str) -> None:
    assert row(kernel, ours).gaps["goodput_mbps"].word == word


def test_the_table_is_written_between_its_marks(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(f"before\n{marked.BEGIN}\nold\n{marked.END}\nafter\n")
    page.write(file, [row(10, (9.0, 9.5, 9.6))], "about")
    text = file.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| 10.00 / 9.50 | -5.0% apart |" in text
    file.write_text("no marks")
    with pytest.raises(MistakeError, match="once each"):
        page.write(file, [], "about")


def test_cases_are_chosen_by_their_words() -> None:
    assert len(cases.CASES) == 3 * 2 * 3 * 2
    assert [case.name for case in cases.chosen(cases.CASES, ["reno,codel,4,10M-40ms"])] == ["reno-10M-40ms-codel-4"]
    assert len(cases.chosen(cases.CASES, ["reno", "bbr,4"])) == 12 + 6
    with pytest.raises(MistakeError, match="vegas"):
        cases.chosen(cases.CASES, ["vegas"])


def test_tail_drop_has_a_bandwidth_delay_product() -> None:
    # 10 Mbit/s x 40 ms = 50 kB, 50 Mbit/s x 20 ms = 125 kB; packets of 1500 B.
    assert [path.bdp_packets for path in cases.PATHS] == [33, 83]
    tree = simulated.scenario(cases.CASES[0], 10).text
    assert 'limit = "33p"' in tree
    assert 'delay = "20ms"' in tree


PATH = cases.Case("reno", cases.Path(10, 100), "droptail", 2, number=7, limit_packets=50, begin_s=0.0)


def drawn_row(kernel: Measures, ours: Measures) -> compare.Row:
    return compare.Row(PATH, kernel, ours, (ours,), False, 2.0, (kernel,))


def measures(goodput: float = 9.0, queue: float = 20.0, loss: float = 0.01, drops: float = 100) -> Measures:
    return Measures(goodput, queue, 2 * queue, loss, None, drops)


@pytest.mark.parametrize(
    ("kernel", "ours", "missed"),
    [
        (measures(), measures(), []),
        # Goodput within 2 %.
        (measures(goodput=10), measures(goodput=9.81), []),
        (measures(goodput=10), measures(goodput=9.79), ["goodput"]),
        # The queue within 10 % or 1 ms.
        (measures(queue=40), measures(queue=43.9), []),
        (measures(queue=40), measures(queue=44.1), ["queue"]),
        (measures(queue=2), measures(queue=2.9), []),
        # Loss within a factor of two, unless both have fewer drops than ten.
        (measures(loss=0.01), measures(loss=0.021), ["loss"]),
        (measures(loss=0.021), measures(loss=0.01), ["loss"]),
        (measures(loss=0.001, drops=3), measures(loss=0.003, drops=9), []),
        (measures(loss=0.0, drops=0), measures(loss=0.003, drops=10), ["loss"]),
        (measures(goodput=10, queue=40), measures(goodput=9, queue=20), ["goodput", "queue"]),
    ],
)
def test_the_bar_of_drawn_paths(kernel: Measures, ours: Measures, missed: list[str]) -> None:
    assert drawn_row(kernel, ours).missed == missed


def test_a_miss_within_the_range_of_the_seeds_is_told() -> None:
    seeds = tuple(measures(goodput=goodput, queue=20) for goodput in (9.0, 9.2, 10.1))
    row = compare.Row(PATH, measures(goodput=10, queue=30), median(seeds), seeds, False, 2.0)
    assert (row.missed, row.within_seeds) == (["goodput", "queue"], ["goodput"])
    assert page.drawn_cells(row)[-1] == "apart: goodput (seeds), queue"
    assert "others" not in page.drawn_summary([row])
    only = compare.Row(PATH, measures(goodput=10), median(seeds), seeds, False, 2.0)
    assert "drawn paths: 0 of 1 within the bar; 1 of the others no further apart than the seeds;" in page.drawn_summary(
        [only]
    )


def test_the_paths_of_a_seed_are_the_same_for_everybody() -> None:
    paths = drawn.paths("0.1.0")
    # As the page of the release 0.1.0 has them.
    assert [path.name for path in paths[:2]] == [
        "00-reno-4M-14ms-pink-16-nosack",
        "01-cubic-4M-645ms-pie-9-loss0.0033",
    ]
    assert [path.number for path in paths] == list(range(64))
    assert paths != drawn.paths("0.1.1")


def test_paths_are_drawn_from_all_there_is() -> None:
    paths = [path for seed in range(20) for path in drawn.paths(str(seed))]
    assert {path.control for path in paths} == set(cases.CONTROLS)
    assert {path.aqm for path in paths} == set(drawn.DISCIPLINES)
    assert all(2 <= path.path.rate_mbps <= 100 and 10 <= path.path.rtt_ms <= 700 for path in paths)
    assert all(1 <= path.flows <= 40 and path.loss <= 0.01 for path in paths)
    # Of 1280 paths, parts of 1/8 and 1/4 have standard deviations of 12 and 15; the bounds are four of them.
    assert 112 <= sum(not path.sack for path in paths) <= 208
    assert 258 <= sum(path.loss > 0 for path in paths) <= 382
    assert not any(path.ecn for path in paths if path.aqm in ("droptail", "pink"))


def test_both_sides_of_a_path_have_the_same_network() -> None:
    case = replace(PATH, aqm="codel", sack=False, ecn=True, loss=0.002)
    starts = case.starts_s(3)
    assert starts[0] == 0
    assert starts == case.starts_s(4) != replace(case, number=8).starts_s(3), "they belong to the path"
    there = real.wanted(case, Path("emulate"), 3, starts)
    assert there["emulator"][1:3] == ["--rate", "10Mbit/s"]
    assert {"--set=ecn=true", "--loss=0.002", "50ms", "50p"} <= set(there["emulator"])
    assert there["sysctls"] == {"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_ecn": "1"}
    assert there["send"]["starts_s"] == starts
    here = simulated.scenario(case, 10, 3).text
    for key in ("sack = false", "rack = false", "ecn = true", "loss = 0.002", 'limit = "50p"', 'delay = "50ms"'):
        assert key in here
    assert f'start = "{starts[1] * 1e6:.0f}us"' in here
    assert 'cc = "cubic"' in simulated.scenario(case, 10, 3, "cubic").text


@pytest.mark.parametrize(
    ("text", "found"), [("0-3", [0, 1, 2, 3]), ("5,2,5", [2, 5]), ("0-1,63", [0, 1, 63]), ("none", [])]
)
def test_pieces_of_the_paths_are_chosen_by_number(text: str, found: list[int]) -> None:
    assert drawn.numbers(text) == found


@pytest.mark.parametrize("text", ["", "64", "3-1", "a", "1-2-3", "-1"])
def test_numbers_that_no_path_has_are_refused(text: str) -> None:
    with pytest.raises(MistakeError, match="from 0 to 63"):
        drawn.numbers(text)


def test_options_choose_between_the_table_and_the_paths() -> None:
    def numbers(**wanted: Any) -> tuple[int, int]:
        found = selection.cases(selection.Wanted(**wanted))
        return sum(not case.drawn for case in found), sum(case.drawn for case in found)

    assert numbers() == (36, 64)
    assert numbers(paths="none") == (36, 0)
    assert numbers(paths="0-15") == (0, 16)
    assert numbers(quick=True) == (6, 0)
    assert numbers(only=("reno,codel,4,10M-40ms",)) == (1, 0)
    (path,) = selection.cases(selection.Wanted(paths="3", control="vegas", seconds=12))
    assert (path.control, path.end_s) == ("vegas", 12)


def test_the_history_keeps_what_other_seeds_gave(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    marks = [mark for name in ("paths", "seeds") for mark in marked.marks(name)]
    table = "| seed | kernel | paths | within the bar | the others |\n|---|---|---|---|---|"
    file.write_text(f"{marks[0]}\n{marks[1]}\n{marks[2]}\n{table}\n| 0.0.9 | Linux 6 | 64 | 50 | 1 |\n{marks[3]}\n")
    apart = drawn_row(measures(goodput=10), measures(goodput=9))
    for rows in ([apart], [drawn_row(measures(), measures()), apart]):
        page.write_drawn(file, rows, "about", "0.1.0", "Linux 6")
    assert marked.between(file, "seeds")[2:] == [
        "| 0.0.9 | Linux 6 | 64 | 50 | 1 |",
        "| 0.1.0 | Linux 6 | 2 | 1 | 07 |",
    ]
    assert "drawn paths: 1 of 2 within the bar; missed: goodput 1, queue 0, loss 0." in file.read_text()


JAR = """#!/bin/sh
for word in "$@"; do case $word in JAR_DIRECTORY=*) out=${word#*=} ;; esac; done
echo booted
"""


def jar(tmp_path: Path, does: str) -> kernels.Jar:
    """A program in place of a kernel."""
    file = tmp_path / "linux"
    file.write_text(JAR + does)
    file.chmod(0o755)
    return kernels.Jar(file)


def test_a_jar_says_which_kernel_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = jar(tmp_path, """echo '{"version": "6.12.1-um", "controls": ["reno"]}'""")
    assert made.label == "Linux 6.12.1 in virtual time"
    assert made.controls == ["reno"]


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("echo Kernel panic", "Kernel panic"),
        ("""echo '{"error": "no ip"}' > $out/recorded.json""", "in the jar: no ip"),
    ],
)
def test_a_jar_that_fails_says_why(tmp_path: Path, does: str, said: str) -> None:
    with pytest.raises(testbed.LabError, match=said):
        jar(tmp_path, does).record({}, tmp_path, lambda _: None)
    with pytest.raises(MistakeError, match="tools/pack/jar"):
        kernels.Jar(tmp_path / "nothing")


def test_it_says_why_it_does_not_run(penstock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "root" in str(testbed.impossible())
    monkeypatch.undo()
    if os.geteuid() != 0:
        assert "SKIPPED" in penstock("verify", "tcp-linux").stdout


def test_a_short_run_beside_the_kernel(penstock: Any, tmp_path: Path) -> None:
    if reason := testbed.impossible():
        pytest.skip(reason)
    try:
        emulator = lab.find_emulator(None)
    except MistakeError as missing:
        pytest.skip(str(missing))
    told = ("--only", "reno,10M-40ms,droptail,1", "--seconds", "5", "--emulator", emulator, "--out", tmp_path, "--json")
    before = set(Path("/run/netns").glob("penstock-verify-*"))
    ran = penstock("verify", "tcp-linux", *told)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert [row["case"] for row in found["rows"]] == ["reno-10M-40ms-droptail-1"]
    for side in ("kernel", "simulator"):
        # 1448 of 1500 bytes are payload; what fills the gap of a loss from before the five seconds counts in them.
        assert 5 < found["rows"][0][side]["goodput_mbps"] < 1.02 * 10 * 1448 / 1500
    assert set(Path("/run/netns").glob("penstock-verify-*")) == before
    again = penstock("verify", "tcp-linux", *told)
    assert json.loads(again.stdout)["rows"] == found["rows"] or found["rows"][0]["disturbed"]
