"""`penstock verify tcp-linux`: what it measures, by hand; what it keeps and says; and a short run where that can be."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from penstock import marked
from penstock.mistake import MistakeError
from penstock.verify import cases, compare, lab, page, simulated
from penstock.verify.measure import Measures, Packets, measure, median, period_s

HEADER = "queue,t_ns,waited_ns,flow,bytes,fate\n"
MS = 1_000_000


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


def test_it_says_why_it_does_not_run(penstock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "root" in str(lab.impossible())
    monkeypatch.undo()
    if os.geteuid() != 0:
        assert "SKIPPED" in penstock("verify", "tcp-linux").stdout


def test_a_short_run_beside_the_kernel(penstock: Any, tmp_path: Path) -> None:
    if reason := lab.impossible():
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
