"""Distributions of delays over seeds, beside the exact ones of every packet; and packets as Parquet."""

from __future__ import annotations

import math
from pathlib import Path

import penstock
import pytest
from conftest import Command
from penstock import columns
from penstock.experiments import delays
from penstock.experiments.runner import Quiet
from penstock.mistake import MistakeError
from penstock.units import significant


def exact(values: list[float], share: float) -> float:
    """The value at or below which this share of all values is."""
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]


def test_quantiles_over_seeds_are_those_of_all_packets(scenario: Path, tmp_path: Path) -> None:
    """The twin takes each packet of each seed from the table of packets, which the sketches do not use."""
    swept = penstock.sweep(scenario, vary={"aqm.name": ["droptail", "codel"]}, seeds=3, delays=True, out=tmp_path / "s")
    for point in swept.points:
        waited: list[float] = []
        for seed in (1, 2, 3):
            file = tmp_path / f"{point.index}-{seed}.parquet"
            penstock.run(point.scenario.text, seed, file)
            table = columns.from_parquet(file.read_bytes())
            rows = zip(*(table[name].to_pylist() for name in ("fate", "waited_ns")), strict=True)
            waited += [ns / 1e6 for fate, ns in rows if fate in ("sent", "marked")]
        links = [one for one in delays.distributions(swept.delays) if (one.point, one.part) == (point.index, "link")]
        assert sum(links[0].counts) == len(waited)
        for share in (0.5, 0.9, 0.99, 1.0):
            truth = exact(waited, share)
            assert truth - 1e-6 <= links[0].quantile(share) <= truth * (1 + delays.ERROR["link"]) + 1e-3
    nine = {(row["point"], row["name"]): row["ms"] for row in swept.quantiles(0.9).to_pylist()}
    assert nine[0, "bottleneck"] > 1.3 * nine[1, "bottleneck"], "drop-tail waits longer"
    assert (0, "bulk cubic") in nine


def test_a_sweep_of_seeds_is_drawn_with_a_line_for_each_point(scenario: Path, tmp_path: Path) -> None:
    vary = {"aqm.name": ["droptail", "codel"]}
    swept = penstock.sweep(scenario, vary=vary, seeds=2, delays=True, out=tmp_path / "s")
    [axis] = penstock.plot.cdf(swept, "rtt").axes
    assert [line.get_label() for line in axis.lines] == ["aqm.name=droptail", "aqm.name=codel"]
    assert swept.frame("delays")["error"].unique().tolist() == [0.008, 0.01]
    plain = penstock.sweep(scenario, vary=vary, seeds=2, out=tmp_path / "s")
    with pytest.raises(MistakeError, match="run the sweep with --delays"):
        penstock.plot.cdf(plain)


def test_the_command_keeps_them_and_other_runs_are_not_reused(
    request: pytest.FixtureRequest, scenario: Path, tmp_path: Path
) -> None:
    command: Command = request.getfixturevalue("penstock")
    penstock.sweep(scenario, seeds=2, out=tmp_path / "one")
    assert not (tmp_path / "one" / "delays.parquet").exists()
    assert command("sweep", scenario, "--seeds", "2", "--delays", "--out", "one", "--json").returncode == 0
    first = (tmp_path / "one" / "delays.parquet").read_bytes()
    penstock.sweep(scenario, seeds=2, delays=True, jobs=1, out=tmp_path / "two")
    assert (tmp_path / "two" / "delays.parquet").read_bytes() == first


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (0.5234, "0.523"), (9.996, "10.00"), (27.04, "27.0"), (129.4, "129"), (1294.0, "1,290")],
)
def test_numbers_have_as_many_digits_as_are_known(value: float, text: str) -> None:
    assert significant(value) == text


APPLICATIONS = """
[[flows]]
kind = "voip"
count = 2
[[flows]]
kind = "web"
per_second = 4
mean_size = "5kB"
direction = "reverse"
[[flows]]
kind = "video"
rate = "300kbit/s"
"""


def test_what_people_feel_adds_up_to_the_summary(scenario: Path) -> None:
    """Numbers of packets and pages, means and largest values, which the summary has exactly."""
    text = scenario.read_text().replace('"5s"', '"25s"') + APPLICATIONS
    result = penstock.run(text)
    flows = result.summary["flows"]
    calls = result.tables["call_delays"].to_pydict()
    assert set(calls["flow"]) == {2, 3}, "each flow has its own"
    for flow in (2, 3):
        rows = [(ms, n) for of, ms, n in zip(*calls.values(), strict=True) if of == flow]
        told = flows[flow]["voip"]
        assert sum(n for _, n in rows) == told["received"]
        mean = sum(ms * n for ms, n in rows) / told["received"]
        assert mean == pytest.approx(told["delay_ms"]["mean"], rel=delays.ERROR[delays.CALL_DELAYS])
        assert rows[-1][0] == pytest.approx(told["delay_ms"]["max"], rel=delays.ERROR[delays.CALL_DELAYS])
    pages = result.tables["page_times"].to_pydict()
    told = flows[4]["transfers"]
    assert sum(pages["pages"]) == told["count"] > 50
    mean = sum(ms * n for ms, n in zip(pages["took_ms"], pages["pages"], strict=True)) / told["count"]
    assert mean == pytest.approx(told["completion_ms"]["mean"], rel=delays.ERROR[delays.PAGE_TIMES])
    scores = result.tables["call_scores"].to_pydict()
    assert scores["flow"].count(2) + scores["flow"].count(3) == len(scores["flow"])
    assert sum(scores["parts"]) == 4, "two calls of 25 s have two parts each"
    assert all(1 <= mos <= 4.5 for mos in scores["mos"])
    gaps = result.tables["gaps"].to_pydict()
    played = flows[5]["video"]["frames"]["played"]
    assert sum(n for flow, n in zip(gaps["flow"], gaps["gaps"], strict=True) if flow == 5) == played - 1
    talked = sum(ms * n for flow, ms, n in zip(*gaps.values(), strict=True) if flow == 2) / 1e3
    assert talked == pytest.approx(25, rel=0.02), "the gaps of a call last as long as the call"


def test_what_people_feel_is_kept_over_seeds_and_drawn(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(scenario.read_text() + APPLICATIONS)
    swept = penstock.sweep(scenario, seeds=3, delays=True, out=tmp_path / "s")
    found = {(one.part, one.name): one for one in delays.distributions(swept.delays)}
    assert {("call delay", "voip"), ("page time", "web cubic"), ("gap", "video"), ("gap", "voip")} <= found.keys()
    received = sum(
        flow["voip"]["received"]
        for seed in (1, 2, 3)
        for flow in penstock.run(scenario, seed).summary["flows"]
        if "voip" in flow
    )
    assert sum(found["call delay", "voip"].counts) == received
    for of in ("call_delay", "page_time", "gap", "rtt"):
        assert penstock.plot.cdf(swept, of).axes[0].lines
    result = penstock.run(scenario)
    assert [line.get_label() for line in penstock.plot.cdf(result, "call_delay").axes[0].lines] == [
        "flow 2 (voip)",
        "flow 3 (voip)",
    ]


def test_a_run_with_distributions_does_for_one_without(scenario: Path, tmp_path: Path) -> None:
    class Counted(Quiet):
        told = (-1, -1, -1.0)

        def begin(self, runs: int, reused: int, simulated_s: float) -> None:
            self.told = runs, reused, simulated_s

    first, again, other = Counted(), Counted(), Counted()
    penstock.sweep(scenario, seeds=3, delays=True, out=tmp_path / "s", watcher=first)
    plain = penstock.sweep(scenario, seeds=3, out=tmp_path / "s", watcher=again)
    assert (first.told[:2], again.told[:2]) == ((3, 0), (3, 3))
    alone = penstock.sweep(scenario, seeds=3, out=tmp_path / "t", watcher=other)
    assert plain.results.equals(alone.results)
    assert other.told[:2] == (3, 0)
