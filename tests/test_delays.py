"""Distributions of delays over seeds, beside the exact ones of every packet; and packets as Parquet."""

from __future__ import annotations

import math
from pathlib import Path

import penstock
import pytest
from conftest import Command
from penstock import columns
from penstock.experiments import delays
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
    assert swept.frame("delays")["error"].unique().tolist() == [0.016, 0.011]
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
