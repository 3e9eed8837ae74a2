"""`penstock tcp-trace`: windows over time in files, in numbers and in a picture."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import penstock as lab
import pytest
from conftest import Command
from penstock import columns
from penstock.engine import Watch, simulate
from penstock.mistake import MistakeError
from penstock.plots.tcp_trace import _spells
from penstock.scenario import Scenario

CODEL = """\
name = "watched"
duration = "20s"

[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "20ms"

[aqm]
name = "codel"

[tcp]
cc = "newreno"

[[flows]]
kind = "bulk"
count = 2

[[flows]]
kind = "voip"
"""
COLUMNS = [
    "t_s",
    "flow",
    "state",
    "cwnd_bytes",
    "ssthresh_bytes",
    "srtt_ms",
    "pacing_bps",
    "in_flight_bytes",
    "retransmitted_segments",
    "timeouts",
]


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    path = tmp_path / "watched.toml"
    path.write_text(CODEL)
    return path


def test_files_numbers_and_picture(penstock: Command, watched: Path, tmp_path: Path) -> None:
    done = penstock("tcp-trace", watched, "--flows", "1", "--interval", "20ms", "-o", "out", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    flows, queues = (
        columns.from_parquet((tmp_path / "out" / f"{name}.parquet").read_bytes())
        for name in ("tcp_trace", "queue_trace")
    )
    assert flows.column_names == COLUMNS
    assert queues.column_names == ["t_s", "queue", "queue_bytes", "dropped_packets", "marked_packets"]
    assert len(flows) == len(queues) == 1000, "20 s in steps of 20 ms"
    assert set(flows["flow"].to_pylist()) == {1}
    assert (tmp_path / "out" / "tcp_trace.png").read_bytes().startswith(b"\x89PNG")
    [flow] = told["flows"]
    assert (flow["flow"], flow["cc"], flow["samples"], told["directory"]) == (1, "newreno", 1000, "out")
    assert sum(flow["states"].values()) == pytest.approx(1)
    assert flow["pacing_bps"] is None, "NewReno does not pace"
    assert flow["cwnd_bytes"]["max"] == max(flows["cwnd_bytes"].to_pylist())
    assert told["queues"][0]["dropped_packets"] == queues["dropped_packets"][-1].as_py() > 0


def test_the_drops_of_codel_are_seen_in_the_windows() -> None:
    result = simulate(Scenario(CODEL, "watched.toml"), watch=Watch(interval="10ms"))
    assert result.watched == (0, 1), "the call has no connection"
    flows, queues = (result.tables[name].to_pylist() for name in ("tcp_trace", "queue_trace"))
    drops = [row["dropped_packets"] for row in queues]
    assert drops[-1] == sum(result.summary["bottlenecks"][0][key] for key in ("drops_aqm", "drops_overflow"))
    for flow in (0, 1):
        rows = [row for row in flows if row["flow"] == flow]
        entered = [i for i, (a, b) in enumerate(pairwise(rows)) if b["state"] == "recovery" != a["state"]]
        assert len(entered) > 5, "CoDel keeps dropping"
        for i in entered:
            # A loss is known after a round trip: 40 ms and a queue of at most twice that in these seconds.
            since = max(0, i - 30)
            assert drops[i + 1] > drops[since]
            # Half of the flight, which is the window and at most two segments of limited transmit.
            assert 2 * rows[i + 1]["ssthresh_bytes"] <= max(4 * 1448, rows[i + 1]["cwnd_bytes"] + 2 * 1448)


def test_a_traced_run_has_the_same_summary() -> None:
    scenario = Scenario(CODEL, "watched.toml")
    assert simulate(scenario, watch=Watch((0,), "7ms")).summary == simulate(scenario).summary


def test_a_pace_is_there_for_controls_that_pace() -> None:
    result = simulate(Scenario(CODEL.replace("newreno", "bbr"), "watched.toml"), watch=Watch((0,), "100ms"))
    paces = [pace for pace in result.tables["tcp_trace"]["pacing_bps"].to_pylist() if pace is not None]
    # Two BBR flows share 10 Mbit/s: what each believes to have is less than all of the link, with a gain of 1.25.
    assert paces
    assert max(paces[50:]) < 1.25 * 10.5e6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--flows", "2"), "flow 2 is voip"),
        (("--flows", "9"), "there is no flow 9; they are 0 to 2"),
        (("--flows", "a,b"), "numbers of flows with commas between"),
        (("--interval", "0ms"), "interval"),
        (("--interval", "5"), 'write "5ms"'),
        (("--interval", "1ns"), "at most 20000000 are taken"),
    ],
)
def test_what_cannot_be_traced_is_said(penstock: Command, watched: Path, arguments: tuple[str, ...], said: str) -> None:
    done = penstock("tcp-trace", watched, *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert said in done.stderr


def test_flows_without_connections_cannot_be_traced() -> None:
    text = CODEL.replace('kind = "bulk"\ncount = 2', 'kind = "cbr"\nrate = "1Mbit/s"')
    with pytest.raises(MistakeError, match="no flow has a TCP connection that lasts"):
        simulate(Scenario(text, "watched.toml"), watch=Watch())


def test_spells_by_hand() -> None:
    assert _spells([1.0, 2.0, 3.0, 4.0], ["a", "a", "b", "a"]) == [(1.0, 3.0, "a"), (3.0, 4.0, "b"), (4.0, 4.0, "a")]


def test_ecn_comes_with_the_controls_that_need_it() -> None:
    tree = {"duration": "2s", "topology": {"kind": "dumbbell", "rate": "10Mbit/s", "delay": "5ms"}}
    found = lab.run(
        {**tree, "tcp": {"cc": "dctcp"}, "aqm": {"name": "codel", "ecn": True}, "flows": [{"kind": "bulk"}]}
    )
    assert found.summary["bottlenecks"][0]["marks"] > 0
    with pytest.raises(lab.ScenarioError, match="prague goes by marks: set it to true or leave it out"):
        lab.run({**tree, "tcp": {"cc": "prague", "ecn": False}, "flows": [{"kind": "bulk"}]})
