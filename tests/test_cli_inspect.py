"""`list`, `replay`."""

from __future__ import annotations

import csv
import json
import re
import struct
from pathlib import Path

import pytest
from conftest import Command
from penstock import capture as captures
from penstock import columns
from penstock.mistake import MistakeError


def test_list_has_every_algorithm_with_its_parameters(penstock: Command) -> None:
    entries = json.loads(penstock("list", "--json").stdout)
    assert {"name", "kind", "about", "source", "parameters"} == entries[0].keys()
    assert "droptail" in [entry["name"] for entry in entries]
    for entry in entries:
        for parameter in entry["parameters"]:
            assert {"name", "default", "about"} == parameter.keys()
    assert "droptail" in penstock("list").stdout


def test_replay_prints_every_packet(penstock: Command, trace: Path) -> None:
    done = penstock("replay", trace, "--aqm", "droptail", "--rate", "8Mbit/s", "--limit", "1p", "--csv")
    assert done.returncode == 0, done.stderr
    # The first goes to the idle link at once, the second waits the millisecond that the first takes, the third
    # finds the one place taken.
    assert done.stdout.splitlines() == [
        "id,t_arr_ns,flow,size,fate,t_fate_ns,sojourn_ns,ecn_out",
        "0,0,1,1000,sent,0,0,0",
        "1,0,1,1000,sent,1000000,1000000,0",
        "2,0,2,1000,drop_overflow,0,0,0",
    ]


def test_replay_totals(penstock: Command, trace: Path) -> None:
    done = penstock("replay", trace, "--aqm", "droptail", "--rate", "8Mbit/s", "--limit", "10p", "--json")
    totals = json.loads(done.stdout)
    assert (totals["packets"], totals["sent"], totals["drop_overflow"]) == (3, 3, 0)
    assert totals["duration_s"] == 0.003
    assert totals["sojourn_ms"]["max"] == 2.0


def test_replay_keeps_a_page_that_says_open_loop_and_all_packets(
    penstock: Command, trace: Path, tmp_path: Path
) -> None:
    link = ("--aqm", "droptail", "--rate", "8Mbit/s", "--limit", "1p")
    done = penstock("replay", trace, *link, "--out", "kept", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["report"] == "kept/report.html"
    page = (tmp_path / "kept" / "report.html").read_text(encoding="utf-8")
    assert "A replay is open loop" in page
    texts = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    charts = {chart["title"]: chart for chart in map(json.loads, texts)}
    # As in the rows of --csv: one packet is sent at once, one waits 1 ms, and one finds no room.
    assert charts["Longest queue"]["lines"][0]["y"][0] == 1
    assert [(line["name"], sum(line["y"])) for line in charts["Drops"]["lines"]] == [("no room", 1)]
    delays = charts["Distribution of the time in the queue"]["lines"][0]
    assert (delays["x"], delays["y"]) == ([0.01, 1], [0.5, 1])
    rates = charts["Arrivals and departures"]["lines"]
    width = charts["Longest queue"]["lines"][0]["x"][0]
    assert [round(sum(line["y"]) * width * 1e6) for line in rates] == [24_000, 16_000], "bits that come and leave"
    packets = columns.from_parquet((tmp_path / "kept" / "packets.parquet").read_bytes())
    assert packets["fate"].to_pylist() == ["sent", "sent", "drop_overflow"]
    (tmp_path / "kept" / "report.html").unlink()
    assert penstock("runs", "report", "kept").returncode == 0
    assert (tmp_path / "kept" / "report.html").read_text(encoding="utf-8") == page
    assert "give one of them" in penstock("replay", trace, *link, "--out", "kept", "--csv").stderr


def test_replay_knows_hosts_by_their_addresses(penstock: Command, tmp_path: Path) -> None:
    """Host 1 sends from nine ports in turn and host 2 from one, each all that the link can carry."""
    file = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 101)
    for tick in range(2000):
        for host, port in ((1, 1000 + tick % 9), (2, 1000)):
            ip = struct.pack(
                ">BBHHHBBH4s4s", 0x45, 0, 1000, 0, 0, 64, 17, 0, bytes([10, 0, 0, host]), bytes([10, 0, 0, 9])
            )
            packet = ip + struct.pack(">HHHH", port, 53, 980, 0)
            file += struct.pack("<IIII", tick // 1000, tick % 1000 * 1000, len(packet), 1000) + packet
    (tmp_path / "hosts.pcap").write_bytes(file)

    def sent(*nodes: str) -> tuple[int, int]:
        done = penstock(
            "replay", "hosts.pcap", "--aqm", "qrm", "--rate", "8Mbit/s", "--limit", "1000p", "--csv", *nodes
        )
        assert done.returncode == 0, done.stderr
        flows = [row["flow"] for row in csv.DictReader(done.stdout.splitlines()) if row["fate"] == "sent"]
        return len(flows) - flows.count("1"), flows.count("1")  # the second flow to appear is that of host 2

    # 2 ms each at half of the rate, over 1999 ms and the 105 ms of an account: 1052 packets, all but two.
    assert all(1050 <= packets <= 1053 for packets in sent())
    assert sent() == sent("--nodes", "source")
    # All packets go to one host, which has the whole link: 1999 and 105 packets of 1 ms.
    assert 2102 <= sum(sent("--nodes", "destination")) <= 2105
    # Ten nodes: 10 ms each are 210 packets, and at most nine more in the first 9 ms, when there are fewer.
    assert 208 <= sent("--nodes", "none")[1] <= 220


def test_replay_refuses_what_cannot_be(penstock: Command, trace: Path, tmp_path: Path) -> None:
    link = ("--rate", "8Mbit/s", "--limit", "10p")
    (tmp_path / "no.csv").write_text("hello\n")
    cases = [
        ((trace, "--aqm", "droptial", *link), 'did you mean "droptail"'),
        ((trace, "--aqm", "droptail", "--rate", "8", "--limit", "10p"), "rate: "),
        ((trace, "--aqm", "droptail", "--rate", "8Mbit/s", "--limit", "0p"), "limit: "),
        ((trace, "--aqm", "droptail", *link, "--set", "target"), "write key=value"),
        ((trace, "--aqm", "droptail", *link, "--set", "target=5ms"), "target"),
        ((trace, "--aqm", "droptail", *link, "--csv", "--json"), "stdout"),
        ((trace, "--aqm", "qrm", *link, "--nodes", "both"), "none of source, destination, none"),
        (("no.csv", "--aqm", "droptail", *link), "no.csv: "),
        (("nowhere.pcap", "--aqm", "droptail", *link), "nowhere.pcap"),
    ]
    for arguments, told in cases:
        done = penstock("replay", *arguments)
        assert done.returncode == 2, arguments
        assert told in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""


def test_replay_gives_a_control_its_events(penstock: Command, tmp_path: Path) -> None:
    script = tmp_path / "events.csv"
    script.write_text("t_us,event,segments,rtt_us\n0,ack,1,100000\n10,loss,11,0\n20,recovered,0,0\n")
    done = penstock("replay", "--cc", "newreno", script)
    assert done.returncode == 0, done.stderr
    # RFC 5681: a segment more in slow start; half of the 11 in flight after the loss.
    assert done.stdout.splitlines() == [
        "t_us,event,cwnd_segments,ssthresh_segments,pacing_bps,srtt_us,rto_us",
        "0,ack,11.000,,,100000,300000",
        "10,loss,11.000,5.500,,100000,300000",
        "20,recovered,5.500,5.500,,100000,300000",
    ]
    kept = penstock("replay", "--cc", "newreno", "--set", "beta=0.7", script)
    assert [row.split(",")[3] for row in kept.stdout.splitlines()[2:]] == ["7.700", "7.700"]
    for setting, told in (("bete=1", "did you mean `beta`?"), ("beta=2", "below 1"), ("beta=x", "beta=x")):
        done = penstock("replay", "--cc", "newreno", "--set", setting, script)
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_replay_knows_the_endpoint_and_the_kernels_forms(penstock: Command, tmp_path: Path) -> None:
    script = tmp_path / "events.csv"
    script.write_text("t_us,event,segments,rtt_us\n0,ack,3,100000\n10,loss,0,0\n20,recovered,0,0\n")
    setup = ("--mss", "1000", "--initial-window", "7", "--initial-ssthresh", "8")
    by_options = penstock("replay", "--cc", "reno", "--preset", "linux", *setup, script)
    # One segment of slow start up to 8, two towards the next one; half of 8 after the loss.
    assert [row.split(",")[2:4] for row in by_options.stdout.splitlines()[1:]] == [
        ["8.000", "8.000"],
        ["8.000", "4.000"],
        ["4.000", "4.000"],
    ], by_options.stderr
    keys = [f"{key}={value}" for key, value in (("mss", 1000), ("initial_window", 7), ("initial_ssthresh", 8))]
    given = [word for key in (*keys, "compat=linux") for word in ("--set", key)]
    assert penstock("replay", "--cc", "newreno", *given, script).stdout == by_options.stdout
    rows = penstock(
        "replay", "--cc", "cubic", "--preset", "linux", "--no-hystart", "--state", script
    ).stdout.splitlines()
    assert rows[0].endswith(",rto_us,state")
    assert "hystart: None" in rows[1]
    for arguments, told in (
        (("--cc", "bbr", "--preset", "linux"), "'bbr' has no Linux form here"),
        (("--cc", "bic", "--preset", "bsd"), "--preset bsd: there is linux"),
        (("--cc", "newreno", "--hystart"), "unknown field `hystart`"),
        (("--cc", "newreno", "--set", "mss=0"), "mss is"),
        (("--aqm", "red", "--mss", "1000"), "need --cc"),
    ):
        done = penstock("replay", *arguments, script)
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_replay_takes_a_clock_and_random_numbers(penstock: Command, trace: Path, tmp_path: Path) -> None:
    link = ("--aqm", "red", "--rate", "8Mbit/s", "--limit", "10p", "--csv")
    plain = penstock("replay", trace, *link)
    (tmp_path / "none.txt").write_text("# no packet waits long enough for RED to draw\n")
    given = penstock("replay", trace, *link, "--draws", "none.txt", "--clock-offset", "1s")
    assert (given.returncode, given.stdout) == (0, plain.stdout), given.stderr
    (tmp_path / "wrong.txt").write_text("1\n-1\n")
    for arguments, told in (
        (("--draws", "wrong.txt"), "wrong.txt: draws line 2"),
        (("--draws", "nowhere.txt"), "nowhere.txt"),
        (("--clock-offset", "soon"), "clock offset: "),
        (("--clock-offset", "2000000s"), "more than a million seconds"),
    ):
        done = penstock("replay", trace, *link, *arguments)
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_replay_refuses_events_that_cannot_be(penstock: Command, tmp_path: Path) -> None:
    script = tmp_path / "events.csv"
    script.write_text("t_us,event,segments,rtt_us\n0,nak,1,5\n")
    cases = [
        ((script, "--cc", "newrebo"), 'did you mean "newreno"?'),
        ((script, "--cc", "newreno", "--aqm", "red"), "--cc goes with --set"),
        ((script, "--rate", "8Mbit/s"), "missing: --aqm, --limit"),
        (("nowhere.csv", "--cc", "newreno"), "nowhere.csv"),
        ((script, "--cc", "newreno"), "line 2: event is"),
    ]
    for arguments, told in cases:
        done = penstock("replay", *arguments)
        assert done.returncode == 2, arguments
        assert told in done.stderr
        assert "Traceback" not in done.stderr


def _capture(packets: list[tuple[int, int, int]], *, ethernet: bool = False) -> bytes:
    """A pcap file with a UDP packet of 1000 bytes each millisecond: sender, its port, receiver.

    Host 1 has the address 10.0.0.1; those from 100 on are public, 20.0.0.100 and so on.
    """
    file = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 1 if ethernet else 101)
    for tick, (source, port, destination) in enumerate(packets):
        ends = [bytes([20, 0, 0, host] if host >= 100 else [10, 0, 0, host]) for host in (source, destination)]
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 1000, 0, 0, 64, 17, 0, *ends)
        ports = (port, 53) if source < destination else (53, port)
        frame = ip + struct.pack(">HHHH", *ports, 980, 0)
        if ethernet:
            frame = bytes(6) + bytes([source % 2]) * 6 + b"\x08\x00" + frame
        file += struct.pack("<IIII", tick // 1000, tick % 1000 * 1000, len(frame), len(frame) + 972) + frame
    return file


# Three packets of two flows go one way, two come back.
BOTH_WAYS = [(1, 1000, 100), (100, 1000, 1), (3, 2000, 102), (1, 1000, 100), (100, 1000, 1)]
LINK = ("--aqm", "droptail", "--rate", "80Mbit/s", "--limit", "10p")


def test_replay_tells_directions_apart(penstock: Command, tmp_path: Path) -> None:
    (tmp_path / "ip.pcap").write_bytes(_capture(BOTH_WAYS))
    (tmp_path / "ethernet.pcap").write_bytes(_capture(BOTH_WAYS, ethernet=True))
    (tmp_path / "host.pcap").write_bytes(_capture([(1, 1000, 2), (2, 1000, 1), (3, 2000, 2), (1, 1000, 2)]))
    (tmp_path / "pairs.pcap").write_bytes(_capture([(1, 1000, 2), (2, 1000, 1), (1, 1000, 2), (4, 1, 5), (3, 1, 6)]))
    for name, packets, how in (
        ("ip.pcap", (3, 2), "by private and public addresses"),
        ("ethernet.pcap", (3, 2), "by the two Ethernet addresses that send"),
        ("host.pcap", (3, 1), "by the host 10.0.0.2, an end of every flow"),
        ("pairs.pcap", (4, 1), "by the bytes of each flow: the way of its data, and that of its ACKs"),
    ):
        found = captures.directions(captures.read(tmp_path / name))
        assert (found.packets, found.how) == (packets, how)
        assert found.bytes == tuple(1000 * n for n in packets)
    done = penstock("replay", "ip.pcap", *LINK, "--json")
    totals = json.loads(done.stdout)
    assert (totals["packets"], totals["left_out"], totals["open_loop"]) == (3, 2, True)
    assert totals["directions"]["told_apart"] == "by private and public addresses"
    assert "holds two directions, told apart by private and public addresses: 3 packets with 3,000 B" in done.stderr
    (tmp_path / "one.pcap").write_bytes(_capture([(1, 1000, 100), (3, 2000, 102)]))
    done = penstock("replay", "one.pcap", *LINK, "--json")
    told = "one.pcap: read 2 packets with 2,000 B from 2 frames\n"
    assert (json.loads(done.stdout)["directions"], done.stderr) == (None, told)


def test_replay_takes_flows_hosts_and_ports(penstock: Command, tmp_path: Path) -> None:
    (tmp_path / "ip.pcap").write_bytes(_capture(BOTH_WAYS))
    (tmp_path / "table.csv").write_text("t_ns,flow,size,ecn\n0,70,1000,0\n1000000,8,1000,0\n2000000,70,1000,0\n")
    ip, table = captures.read(tmp_path / "ip.pcap"), captures.read(tmp_path / "table.csv")

    def kept(capture: captures.Capture, *given: object) -> list[int]:
        return list(captures.Selection(*given).of(capture)[0].nonzero()[0])  # type: ignore[arg-type]

    assert [kept(ip, way) for way in ("", "more", "less", "both")] == [[0, 2, 3], [0, 2, 3], [1, 4], [0, 1, 2, 3, 4]]
    assert kept(ip, "", [1]) == kept(ip, "", [], [], [2000]) == [2]
    assert kept(ip, "", [], ["10.0.0.1"]) == kept(ip, "", [], ["20.0.0.100/31"]) == [0, 3]
    assert kept(ip, "both", [0, 1], ["10.0.0.1"]) == [0, 1, 3, 4]
    assert kept(table, "", [70]) == [0, 2]
    for capture, given, told in (
        (ip, ("", [2]), "--flow 2: .*ip.pcap has the flows 0 to 1"),
        (ip, ("", [], ["10.0.0.300"]), "neither an address nor a prefix"),
        (ip, ("", [], ["192.0.2.1"]), "no packet is left of 5: --host 192.0.2.1"),
        (ip, ("up",), "--direction up: there is more, less and both"),
        (table, ("", [], [], [53]), "a CSV file has no hosts"),
        (table, ("", [7]), "has the flows 8, 70"),
    ):
        with pytest.raises(MistakeError, match=told):
            kept(capture, *given)
    done = penstock("replay", "ip.pcap", *LINK, "--csv", "--flow", "1", "--direction", "both")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [(row["id"], row["t_arr_ns"], row["flow"]) for row in rows] == [("0", "2000000", "1")]
    done = penstock("replay", "table.csv", "--cc", "newreno", "--flow", "7")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--cc goes with" in done.stderr


def test_replay_reads_what_is_whole_of_a_capture_that_was_cut(penstock: Command, tmp_path: Path) -> None:
    whole = _capture(BOTH_WAYS)
    (tmp_path / "cut.pcap").write_bytes(whole[:-1])
    done = penstock("replay", "cut.pcap", *LINK, "--json")
    assert done.returncode == 0
    totals = json.loads(done.stdout)
    what = "the file ends within a packet: 27 of 28 bytes are there"
    assert totals["notes"]["cut_short"] == {"packet": 5, "byte": 24 + 4 * (16 + 28), "what": what}
    assert totals["packets"] + totals["left_out"] == 4
    assert "cut.pcap was cut short within packet 5, at byte 200; the 4 packets before are read" in done.stderr
    (tmp_path / "whole.pcap").write_bytes(whole)
    assert captures.read(tmp_path / "whole.pcap").notes["cut_short"] is None
    said = penstock("replay", "whole.pcap", *LINK).stdout
    assert "open loop" in said
    assert "penstock what-if" in said
