"""Captures as people have them: what is read of them, what is left out, and the one line that says so."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Command
from penstock import capture
from penstock.engine import TraceError

ETHERNET, PPPOE, SLL2 = 1, b"\x88\x64\x11\0\0\x07\x05\xa2\0\x21", 276
HOST, SERVER = bytes([192, 168, 1, 20]), bytes([198, 51, 100, 9])
OUT, BACK = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2])
LINK = ("--aqm", "codel", "--rate", "10Mbit/s", "--limit", "1000p")

Frame = tuple[int, bytes, int]  # microseconds, bytes, length on the wire


def segment(source: bytes, destination: bytes, seq: int, ack: int, payload: int, mss: int = 0) -> tuple[bytes, int]:
    """The headers of a segment between ports 40000 and 443, and the size of the packet."""
    options = struct.pack(">BBH", 2, 4, mss) if mss else b""
    ports = (40000, 443) if source < destination else (443, 40000)
    size = 40 + len(options) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0x4000, 64, 6, 0) + source + destination
    flags = 2 if mss else 16
    return ip + struct.pack(">HHIIBBHHH", *ports, seq, ack, (20 + len(options)) * 4, flags, 500, 0, 0) + options, size


def write(path: Path, link: int, frames: Sequence[Frame]) -> Path:
    file = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, link)
    for us, data, length in frames:
        file += struct.pack("<IIII", us // 10**6, us % 10**6, len(data), length) + data
    path.write_bytes(gzip.compress(file) if path.suffix == ".gz" else file)
    return path


def transfer(kind: bytes, count: int = 200) -> list[Frame]:
    """Data of 1,400 B each millisecond on Ethernet, and an ACK for every second packet, 20 ms later."""
    frames = []
    for number in range(count):
        data, size = segment(HOST, SERVER, 1 + 1400 * number, 1, 1400)
        frames.append((1000 * number, OUT + kind + data, len(OUT) + len(kind) + size))
        if number % 2:
            ack, size = segment(SERVER, HOST, 1, 1 + 1400 * (number + 1), 0)
            frames.append((1000 * number + 20_000, BACK + kind + ack, len(BACK) + len(kind) + size))
    return sorted(frames, key=lambda frame: frame[0])


@pytest.mark.parametrize("name", ["a.pcap", "a.pcap.gz"])
@pytest.mark.parametrize("kind", [b"\x08\0", PPPOE, b"\x81\0\0\x07" + PPPOE, b"\x88\x47\0\x01\x01\x40"])
def test_a_flow_is_the_same_in_every_encapsulation(kind: bytes, name: str, tmp_path: Path) -> None:
    found = capture.read(write(tmp_path / name, ETHERNET, transfer(kind)))
    both = capture.directions(found)
    assert (both.packets, both.bytes) == ((200, 100), (200 * 1440, 100 * 40))
    assert capture.told(found) == "read 300 packets with 292,000 B from 300 frames"


def test_a_router_sees_each_packet_twice(penstock: Command, tmp_path: Path) -> None:
    """Cooked frames, version 2, of `-i any`: received at one interface, and sent at the other 30 us later."""
    frames: list[Frame] = []
    for us, data, length in transfer(b""):
        ways = ((2, 0), (3, 4)) if data.startswith(OUT) else ((3, 0), (2, 4))
        for later, (interface, kind) in zip((0, 30), ways, strict=True):
            header = struct.pack(">HHIHBB8s", 0x0800, 0, interface, 1, kind, 6, b"")
            frames.append((us + later, header + data[12:], length + 8))
    file = write(tmp_path / "any.pcap", SLL2, sorted(frames, key=lambda frame: frame[0]))
    done = penstock("replay", file, *LINK, "--json")
    told = json.loads(done.stdout)
    assert told["directions"]["more"] == {"packets": 200, "bytes": 200 * 1440}
    assert told["directions"]["less"] == {"packets": 100, "bytes": 100 * 40}
    assert (told["notes"]["frames"], told["notes"]["copies"]) == (600, 300)
    assert told["read"] in done.stderr
    assert "left out 300 copies of packets that were seen before" in told["read"]


def test_a_clock_that_was_set_back_makes_no_burst(penstock: Command, tmp_path: Path) -> None:
    plain = transfer(b"\x08\0")
    half = len(plain) // 2
    stepped = [(us + 3_600_000_000, data, size) for us, data, size in plain[:half]] + plain[half:]
    results = []
    for name, frames in (("plain", plain), ("stepped", stepped)):
        done = penstock("replay", write(tmp_path / f"{name}.pcap", ETHERNET, frames), *LINK, "--json")
        results.append((json.loads(done.stdout), done.stderr))
    (right, _), (found, told) = results
    assert "the clock was set once, by 3600 s back: the 150 packets behind keep their distances" in told
    assert found["sojourn_ms"]["p99"] == pytest.approx(right["sojourn_ms"]["p99"], rel=0.05)
    assert found["packets"] == right["packets"] == 200


@pytest.mark.parametrize("mss", [1360, 1460])
def test_joined_frames_are_split_at_the_agreed_size_and_spread_at_the_links_rate(mss: int, tmp_path: Path) -> None:
    """A frame of 40 segments every 48 ms, as GRO makes them: the link takes 1.2 ms for each of them."""
    data, payload = [], 40 * mss
    for end, (source, destination) in enumerate([(HOST, SERVER), (SERVER, HOST)]):
        header, size = segment(source, destination, 0, 0, 0, mss=(mss, 1460)[end])
        data.append((end * 1000, (BACK if end else OUT) + b"\x08\0" + header, 14 + size))
    for number in range(50):
        header, size = segment(HOST, SERVER, 1 + payload * number, 1, payload)
        data.append((48_000 * (number + 1), OUT + b"\x08\0" + header, 14 + size))
    found = capture.read(write(tmp_path / "gro.pcap", ETHERNET, data))
    sent = found.column("payload") > 0
    assert sent.sum() == 50 * 40
    assert set(found.column("payload")[sent]) == {mss}
    assert set(found.column("size")[sent]) == {mss + 40}
    gaps = (found.column("t_ns")[sent][1:] - found.column("t_ns")[sent][:-1]) / 1e6
    assert gaps == pytest.approx([1.2] * (50 * 40 - 1), abs=0.01)
    rate = 8 * 40 * (mss + 40) / 0.048
    assert f"split 50 joined frames into 2,000 packets, spread at {rate / 1e6:.4g} Mbit/s" in capture.told(found)


def test_large_packets_of_a_link_that_carries_them_stay_whole(tmp_path: Path) -> None:
    frames = []
    for number in range(20):
        header, size = segment(HOST, SERVER, 1 + 8960 * number, 1, 8960)
        frames.append((1000 * number, OUT + b"\x08\0" + header, 14 + size))
    assert len(capture.read(write(tmp_path / "jumbo.pcap", ETHERNET, frames))) == 20


@pytest.mark.parametrize(
    ("link", "frame", "told"),
    [
        (105, b"\0" * 40, "2 of link type 105 (IEEE 802.11)"),
        (ETHERNET, OUT + b"\x88\x63" + b"\0" * 40, "2 of PPPoE discovery"),
        (ETHERNET, OUT + b"\x08\x06" + b"\0" * 40, "2 of ARP"),
    ],
)
def test_a_capture_of_nothing_that_can_be_read_is_an_error(
    link: int, frame: bytes, told: str, penstock: Command, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.pcap", link, [(0, frame, len(frame))] * 2)
    with pytest.raises(TraceError, match="there is no IP packet in its 2 frames"):
        capture.read(file)
    done = penstock("replay", file, *LINK)
    assert done.returncode != 0
    assert told in done.stderr
    (tmp_path / "head.csv").write_text("t_ns,flow,size,ecn\n")
    done = penstock("replay", tmp_path / "head.csv", *LINK)
    assert done.returncode != 0
    assert "no rows below its header" in done.stderr
