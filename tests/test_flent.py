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
from penstock.adversary import subject
from penstock.flent.running import DELAY_S, STEP_S, Setup, measure, scenario
from penstock.flent.tests import NAMES, find
from penstock.mistake import MistakeError

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
