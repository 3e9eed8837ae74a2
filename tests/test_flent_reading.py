"""Results of Flent are read with the numbers that its own command prints, and stand beside runs in one table."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from conftest import Command
from penstock.flent import reading
from penstock.flent.tests import find
from penstock.mistake import MistakeError

FLENT = Path(sys.executable).with_name("flent")
LENGTH, TOTAL, STEP = 4.0, 14.0, 0.2
TESTS = ("rrul", "tcp_nup", "tcp_4down", "rtt_fair", "voip")


def contents(name: str, seed: int = 1) -> dict[str, Any]:
    """A file in the format of Flent, with gaps, raw values at other times than steps, and a mean that netperf told."""
    rng = random.Random(seed)
    test = find(name)
    names = [*(one.series for one in test.streams), *test.pings]
    names += ["VoIP::delay", "VoIP::loss"] if test.call else []
    xs = [round(STEP * step, 1) for step in range(round(TOTAL / STEP))]

    def value() -> float | None:
        return None if rng.random() < 0.1 else rng.uniform(1, 90)

    def rows(count: int) -> list[dict[str, float]]:
        return [{"t": 946684800.0 + rng.uniform(0, TOTAL), "val": rng.uniform(1, 90)} for _ in range(count)]

    meta: dict[str, Any] = {one: {"UNITS": "ms" if one.startswith("Ping") else "Mbits/s"} for one in names}
    raw = {one: rows(73) for one in names[::2]}
    if test.streams:
        meta[names[0]]["MEAN_VALUE"] = 12.345678
    if test.call:
        raw = {"VoIP": [{"t": row["t"], "val": 1.0, "delay": row["val"], "loss": 0.0} for row in rows(50)]}
    return {
        "version": 4,
        "metadata": {
            "NAME": name,
            "TITLE": "measured",
            "TIME": "2000-01-01T00:00:00.000000Z",
            "T0": "2000-01-01T00:00:00.000000Z",
            "LENGTH": LENGTH,
            "TOTAL_LENGTH": TOTAL,
            "STEP_SIZE": STEP,
            "TEST_PARAMETERS": {},
            "SERIES_META": meta,
        },
        "x_values": xs,
        "results": {one: [value() for _ in xs] for one in names},
        "raw_values": raw,
    }


def write(path: Path, tree: dict[str, Any]) -> Path:
    path.write_bytes(gzip.compress(json.dumps(tree).encode()))
    return path


@pytest.mark.parametrize("name", TESTS)
def test_numbers_are_those_that_flents_command_prints(name: str, tmp_path: Path) -> None:
    file = write(tmp_path / f"{name}.flent.gz", contents(name))
    done = subprocess.run(
        [FLENT, "-f", "summary", "-i", file], check=True, capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    printed = {}
    for line in done.stdout.splitlines():
        if found := re.match(r" (\S.*?) +: +(\S+) +(\S+) +(\S+) .*?(\d+)$", line):
            printed[found[1]] = found.groups()[1:]
    told = reading.read(file)
    # Flent adds series that it computes of those in the file.
    assert set(printed) >= set(told.series)
    for series in told.series:
        mean, median, p99, points = printed[series]
        one = told.statistics(series)
        ours = [f"{value:.2f}" for value in (one.mean, one.median, one.p99) if value is not None]
        assert (ours, one.points) == ([mean, median, p99], int(points)), series


def test_rates_and_pings_are_those_of_the_time_in_which_connections_send(tmp_path: Path) -> None:
    tree = contents("tcp_nup")
    names = [name for name in tree["results"] if name.startswith("TCP upload")]
    within = [5 <= x < 9 for x in tree["x_values"]]
    for rank, name in enumerate(names):
        tree["results"][name] = [float(rank + 1) if inside else None for inside in within]
    tree["results"]["Ping (ms) ICMP"] = [40.0 if inside else 7.0 for inside in within]
    numbers = reading.read(write(tmp_path / "a.flent.gz", tree)).measured().numbers
    assert (numbers["upload_mbps"], numbers["ping_ms_p50"], numbers["ping_loss"]) == (1 + 2 + 3 + 4, 40.0, 0.0)
    assert numbers["upload_jain"] == pytest.approx(100 / (4 * 30))


def test_older_formats_tell_round_trips_of_udp_in_a_second(tmp_path: Path) -> None:
    """Flent before format 4 kept what netperf's UDP_RR says; 25 round trips in a second are 40 ms each."""
    tree = contents("rrul") | {"version": 3}
    tree["raw_values"] = {"Ping (ms) UDP EF": [{"t": 946684801.0, "val": 25.0, "dur": 0.2}]}
    assert reading.read(write(tmp_path / "a.flent.gz", tree)).statistics("Ping (ms) UDP EF").median == 40.0


def test_a_measurement_stands_beside_runs_in_one_table(penstock: Command, tmp_path: Path) -> None:
    file = write(tmp_path / "real.flent.gz", contents("tcp_nup"))
    out = tmp_path / "both"
    told = json.loads(penstock("suite", "tcp_nup", "fq-codel", file, "-l", "2", "-o", out, "--json").stdout)
    assert set(told["disciplines"]) == {"fq-codel", "real.flent.gz"}
    assert told["disciplines"]["real.flent.gz"]["drops"] is None
    assert (out / "report.html").exists()
    assert [one.name for one in out.glob("*.flent.gz")] == ["tcp_nup.fq_codel.flent.gz"]
    sides = json.loads(penstock("compare", file, out, "--json").stdout)["flent"]
    assert [side["test"] for side in sides] == ["tcp_nup", "tcp_nup"]
    assert sides[0]["series"]["TCP upload::1"]["mean"] == 12.345678
    shown = penstock("compare", file, out).stdout
    assert "measured" in shown
    assert "TCP upload::1" in shown


def test_a_series_is_drawn_over_time_and_as_a_distribution(tmp_path: Path) -> None:
    tree = contents("tcp_nup")
    file = write(tmp_path / "a.flent.gz", tree)
    values = tree["results"]["Ping (ms) ICMP"]
    [line] = penstock.plot.flent(file, "Ping (ms) ICMP").axes[0].lines
    drawn = np.asarray(line.get_xydata())
    assert [x for x, y in drawn if y == y] == [
        x for x, y in zip(tree["x_values"], values, strict=True) if y is not None
    ]
    [steps] = penstock.plot.flent([file], "Ping (ms) ICMP", cdf=True).axes[0].lines
    assert [x for x, _ in np.asarray(steps.get_xydata())] == sorted(value for value in values if value is not None)
    with pytest.raises(MistakeError, match="did you mean"):
        penstock.plot.flent(file, "Ping (ms) ICPM")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "which are JSON"),
        (b"\x1f\x8b\x08", "cannot be read"),
        (b"[1]", "formats 1 to 4"),
        (b'{"version": 5}', "formats 1 to 4"),
        (b'{"version": 4, "metadata": {}, "x_values": [1]}', "`raw_values` is missing|`results` is missing"),
        (b'{"version": 4, "metadata": {}, "x_values": [1], "results": {"a": []}}', "equally many"),
        (b'{"version": 4, "metadata": {}, "x_values": [1], "results": {"a": ["x"]}}', "equally many"),
        (b"[" * 100_000, "which are JSON"),
    ],
)
def test_what_is_no_file_of_flent_is_refused_with_the_reason(data: bytes, told: str, tmp_path: Path) -> None:
    file = tmp_path / "a.flent.gz"
    file.write_bytes(data)
    with pytest.raises(MistakeError, match=told):
        reading.read(file)
