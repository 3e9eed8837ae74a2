"""The tests of Flent: their series, what they measure, and files that Flent's own command reads and plots."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from penstock import worlds
from penstock.adversary import subject
from penstock.engine import ScenarioError
from penstock.flent.running import DELAY_S, STEP_S, Setup, check, measure, scenario
from penstock.flent.tests import NAMES, find, mark
from penstock.mistake import MistakeError
from penstock.scenario import Scenario
from penstock.wire import plan, tcp

SHORT = Setup(seconds=5)
FLENT = Path(sys.executable).with_name("flent")


def measured(name: str, aqm: str, setup: Setup = SHORT, streams: int = 4) -> Any:
    return measure(find(name, streams), setup, subject.find(aqm))


def test_an_idle_link_has_the_round_trip_that_was_asked_for() -> None:
    """A call alone waits for nobody, and neither do pings before the connections begin."""
    call = measured("voip", "droptail").series
    assert set(call["VoIP::delay"]) == {20.0}
    assert set(call["VoIP::loss"]) == {0.0}
    pings = measured("tcp_1up", "droptail").series["Ping (ms) ICMP"]
    alone = pings[: round(DELAY_S / STEP_S)]
    assert set(alone) == {40.0}


def test_a_full_buffer_makes_a_ping_as_late_as_the_packets_before_it() -> None:
    """One upload fills 100 packets of 1500 B at 20 Mbit/s: 60 ms, and a ping waits 40 + 60 ms at most."""
    numbers = measured("tcp_1up", "droptail", Setup(seconds=20, limit="100p")).numbers
    assert 95 < numbers["ping_ms_p99"] <= 100
    assert 18 < numbers["upload_mbps"] < 20


def test_a_longer_way_adds_to_the_pings_of_its_host() -> None:
    series = measured("rtt_fair", "fq-codel").series
    first = {name: values[0] for name, values in series.items() if name.startswith("Ping (ms) ICMP")}
    assert list(first.values()) == pytest.approx([40.0, 80.0, 160.0, 320.0], abs=0.2)  # they wait for each other


@pytest.mark.parametrize("name", [name for name in NAMES if name != "tcp_upload_1000"])
def test_sums_and_means_are_those_of_the_connections(name: str) -> None:
    found = measured(name, "fq-codel")
    assert all(len(values) == len(found.xs) for values in found.series.values())
    for way in ("upload", "download"):
        mine = [one.series for one in find(name).streams if one.series.startswith(f"TCP {way}")]
        together = found.series.get(f"TCP {way} sum")
        if together is not None:
            for place, value in enumerate(together):
                each = [found.series[series][place] for series in mine]
                assert value == (pytest.approx(sum(each), abs=1e-4) if None not in each else None)


def test_streams_are_counted_and_a_wrong_name_gets_a_suggestion() -> None:
    assert scenario(find("tcp_nup", 7), SHORT, subject.find("pie")).count('kind = "bulk"') == 7
    with pytest.raises(MistakeError, match="did you mean rrul"):
        find("rull")


def test_series_have_the_codepoints_of_flents_marks() -> None:
    """RFC 2474 (CS1 is 8, CS5 40, CS6 48) and RFC 3246 (EF is 46); `marking` in the files of Flent's tests."""
    assert {
        name: mark(name) for name in ("TCP upload BE", "TCP upload BK", "TCP download CS5", "Ping (ms) UDP EF")
    } == {
        "TCP upload BE": 0,
        "TCP upload BK": 8,
        "TCP download CS5": 40,
        "Ping (ms) UDP EF": 46,
    }
    of_fair = [mark(one.series) for one in find("rtt_fair").streams]
    assert of_fair == [0] * 4 + [8] * 4
    assert [mark(name) for name in find("cubic_bbr").pings] == [0, 8, 48, 0]


def test_only_a_discipline_that_reads_marks_is_given_them() -> None:
    text = {aqm: scenario(find("rrul"), SHORT, subject.find(aqm)) for aqm in ("cake", "cake tins=besteffort", "pie")}
    assert text["cake"].count("class = 46") == 2 + 2  # a connection in each direction, request and answer
    assert "class" not in text["cake tins=besteffort"]
    assert "class" not in text["pie"]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel with the usual controls, whatever this one has."""
    monkeypatch.setattr(tcp, "controls", lambda: ["reno", "cubic", "bbr"])


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("name", "aqm", "on", "cc", "told"),
    [
        ("rrul", "fq-codel", "wire", "vegas", "this kernel has no control vegas"),
        ("rrul", "pink", "tc", "cubic", "pink is no discipline of Linux"),
        ("rrul", f"{Path(__file__).parent}/suites/bad_aqms.py:Naps", "wire", "cubic", "classes in Python"),
    ],
)
def test_what_a_kernel_cannot_do_is_refused_by_name_and_line(name: str, aqm: str, on: str, cc: str, told: str) -> None:
    with pytest.raises(ScenarioError, match=told) as refused:
        check(find(name), Setup(cc=cc, on=on), subject.find(aqm))
    assert re.search(r"--> .*\.toml:\d+:\d+\n", str(refused.value))


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("name", NAMES)
def test_kernels_have_room_for_every_test_and_need_no_emulator_for_its_hosts(name: str) -> None:
    """Links are those of the test and the longer ways of `rtt_fair`; no host is behind an access link with a delay."""
    found = find(name)
    text = scenario(found, Setup(on="wire"), subject.find("fq-codel"))
    planned = plan.read(Scenario(text, "flent.toml"), None, "wire")
    assert len(planned.flows) == len(found.streams) + 2 * len(found.pings) + found.call
    assert (len(planned.links), planned.groups) == (5 if name == "rtt_fair" else 2, ())
    plan.read(Scenario(text, "flent.toml"), None, "tc", disciplines=["htb", "pfifo", "fq_codel"])


def real() -> str:
    """Why nothing can be played here; empty if it can."""
    try:
        worlds.require("wire")
    except MistakeError as error:
        return str(error)
    return ""


@pytest.mark.skipif(bool(real()), reason=real() or "real packets")
def test_a_test_on_the_wire_has_the_goodput_and_the_pings_of_real_hosts(penstock: Command, tmp_path: Path) -> None:
    """A Reno flow and a buffer of 20 packets at 2 Mbit/s, which take 6 ms each. A busy machine makes packets late only.

    The round trip of an idle ping is 40 ms and 4 times 64 B on links of 2 Mbit/s; one behind a full buffer waits for 20
    packets, and for one that is being sent at each of both links.
    """
    words = ("tcp_1up", "droptail", "-l", "3", "--rate", "2Mbit/s", "--limit", "20p", "--cc", "newreno")
    done = penstock("suite", *words, "--on", "wire", "--json", "-o", str(tmp_path))
    told = json.loads(done.stdout)
    numbers = told["disciplines"]["droptail"]
    assert told["setup"]["on"] == "wire"
    assert 1.2 < numbers["upload_mbps"] < 2 * 1448 / 1500 * 1.02
    file = tmp_path / "tcp_1up.droptail.flent.gz"
    kept = json.loads(gzip.decompress(file.read_bytes()))
    assert "measured by Penstock" in kept["metadata"]["NOTE"]
    assert not kept["metadata"]["TIME"].startswith("2000-")
    pings = kept["results"]["Ping (ms) ICMP"]
    idle, busy = pings[: round(DELAY_S / STEP_S)], pings[round((DELAY_S + 1) / STEP_S) : round((DELAY_S + 3) / STEP_S)]
    first = min(one for one in idle if one is not None)
    assert 40 + 4 * 64 * 8 / 2e3 <= first < 60
    assert first + 60 < max(one for one in busy if one is not None)
    picture = tmp_path / "picture.png"
    run = [str(FLENT), "-i", str(file), "-p", "totals", "-o", str(picture)]
    shown = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert not re.search(r"ERROR|WARN", shown.stderr), shown.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("name", "plot"), [("rrul", "all_scaled"), ("tcp_nup", "totals"), ("voip", "voip_delay")])
def test_flent_plots_the_files(name: str, plot: str, penstock: Command, tmp_path: Path) -> None:
    done = penstock("suite", name, "fq-codel", "-l", "5", "--json", "-o", str(tmp_path))
    assert json.loads(done.stdout)["disciplines"]["fq-codel"], done.stderr
    assert (tmp_path / "report.html").is_file()
    file = tmp_path / f"{name}.fq_codel.flent.gz"
    picture = tmp_path / "picture.png"
    told = subprocess.run(
        [FLENT, "-i", file, "-p", plot, "-o", picture], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert not re.search(r"ERROR|WARN", told.stderr), told.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert json.loads(gzip.decompress(file.read_bytes()))["version"] == 4


def test_the_same_command_writes_the_same_bytes(penstock: Command, tmp_path: Path) -> None:
    for place in ("a", "b"):
        penstock("suite", "tcp_1up", "pie", "-l", "5", "-o", str(tmp_path / place))
    first, second = (sorted((tmp_path / place).iterdir()) for place in ("a", "b"))
    assert [one.name for one in first] == [one.name for one in second]
    assert all(one.read_bytes() == two.read_bytes() for one, two in zip(first, second, strict=True))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("cubic",), "is a congestion control"),
        (("pie", "--rate", "20"), "such as 20Mbit/s"),
        (("pie", "--rtt", "0ms"), "above 0"),
        (("pi5",), "did you mean"),
    ],
)
def test_mistakes_say_what_is_allowed(words: tuple[str, ...], told: str, penstock: Command, tmp_path: Path) -> None:
    done = penstock("suite", "rrul", *words, "-o", str(tmp_path))
    assert done.returncode == 2
    assert told in done.stderr
