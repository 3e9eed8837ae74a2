"""The scenarios of `examples/` run, and show what their comments say."""

from __future__ import annotations

import contextlib
import io
import re
import statistics
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import penstock
import pytest
from penstock import chance, engine
from penstock.architecture import Orbit

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PRESETS = EXAMPLES.parent / "web" / "playground" / "presets"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.toml"))
FAMILIES = [
    *("lindrop", "red-ern", "modified-codel", "cobalt", "pie", "minstrel-pie", "pi2", "dualpi2", "pink"),
    *("fq-codel", "fq-cobalt", "fq-pie", "fq-minstrel-pie", "fq", "cake"),
]


def tree(name: str) -> dict[str, Any]:
    """The file, to change it."""
    return tomllib.loads((EXAMPLES / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def ran(name: str) -> engine.Result:
    """Its run."""
    return penstock.run(EXAMPLES / f"{name}.toml")


def queue(result: engine.Result) -> dict[str, Any]:
    """The first bottleneck."""
    found: dict[str, Any] = result.summary["bottlenecks"][0]
    return found


def mbps(result: engine.Result, kind: str = "bulk", cc: str = "") -> list[float]:
    """Goodput of the flows of a kind, and of a congestion control."""
    return [f["goodput_bps"] / 1e6 for f in result.summary["flows"] if f["kind"] == kind and f["cc"].startswith(cc)]


def test_the_rates_of_links_are_what_their_program_writes(tmp_path: Path) -> None:
    words = [sys.executable, str(EXAMPLES / "rates" / "make.py"), str(tmp_path)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_text(encoding="utf-8") for path in (EXAMPLES / "rates").glob("*.csv")}
    scenario = tree("changing-link")
    for name in written:
        scenario["changes"] = [{"link": "bottleneck", "table": str(tmp_path / name)}]
        assert engine.run({**scenario, "duration": "2s", "warmup": "0s"}).summary["duration_s"] == 2.0


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_and_says_what_it_shows(name: str) -> None:
    text = (EXAMPLES / f"{name}.toml").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert tree(name)["name"] == name
    assert f"`{name}.toml`" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert queue(ran(name))["utilization"] > 0.5


@pytest.mark.parametrize(
    "path",
    [*(EXAMPLES / f"{name}.toml" for name in NAMES), *sorted(PRESETS.glob("*.toml"))],
    ids=lambda path: path.stem,
)
def test_seeds_have_an_influence(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name in ("made-up-cell.mahi", "rates/starlink-up.csv"):
        text = text.replace(f'"{name}"', f'"{EXAMPLES / name}"')
    short = re.sub(r"(?m)^warmup = .*\n", "", re.sub(r'(?m)^duration = "\w+"', 'duration = "4s"', text))
    assert chance.different(chance.mark(penstock.run(short, seed=seed).summary) for seed in (1, 2)) == 2


def test_each_family_has_one() -> None:
    used = {bottleneck["aqm"] for name in NAMES for bottleneck in ran(name).summary["bottlenecks"]}
    assert used >= set(FAMILIES)
    kinds = {flow["kind"] for name in NAMES for flow in ran(name).summary["flows"]}
    assert kinds >= {"bulk", "cbr", "http", "web", "voip", "video"}


def test_lindrop_decides_on_the_drops_of_few_flows() -> None:
    assert queue(ran("lindrop-long-path"))["drops_aqm"] > 10 * queue(ran("lindrop-long-path"))["drops_overflow"]
    many = tree("lindrop-long-path")
    many["flows"][0]["count"] = 400
    assert queue(penstock.run(many))["drops_overflow"] > 10 * queue(penstock.run(many))["drops_aqm"]


def test_red_ern_halves_the_lead_of_the_near() -> None:
    plain = tree("red-ern-two-distances")
    plain["aqm"] |= {"name": "red", "ecn": True}
    plain["tcp"]["ern"] = False
    told, untold = (mbps(result) for result in (ran("red-ern-two-distances"), penstock.run(plain)))
    leads = [sum(rates[:10]) / sum(rates[10:]) for rates in (told, untold)]
    assert leads[0] < 3 < leads[1]


@pytest.mark.parametrize(("name", "other"), [("modified-codel-streams", "codel"), ("minstrel-pie-udp", "pie")])
def test_it_delays_less_than_what_it_comes_from(name: str, other: str) -> None:
    base = tree(name)
    base["aqm"]["name"] = other
    ours, theirs = (queue(result)["queue_delay_ms"]["p50"] for result in (ran(name), penstock.run(base)))
    assert ours < theirs / 2


def test_pie_is_at_its_target_and_minstrel_pie_at_its_lower_bound() -> None:
    assert queue(ran("pie"))["queue_delay_ms"]["p50"] == pytest.approx(15, abs=2.5)
    assert queue(ran("minstrel-pie-udp"))["queue_delay_ms"]["p50"] == pytest.approx(5, abs=1)


def test_pie_swings_in_overload_where_its_probability_is_held_below_1_and_its_delays_are_old() -> None:
    def delays(**aqm: str) -> tuple[float, float]:
        other = tree("pie-overload")
        other["aqm"] |= aqm
        found = queue(penstock.run(other))["queue_delay_ms"]
        return found["p10"], found["p90"]

    low, high = delays()
    assert high - low > 500
    for held in ({"estimator": "departure-rate"}, {"compat": "linux"}):
        low, high = delays(**held)
        assert high < 60, held


def test_cobalt_has_its_queue_back_after_the_stream() -> None:
    table = ran("cobalt-flood").tables["queue_seconds"]
    delays = table["queue_delay_ms_mean"].to_pylist()
    assert statistics.fmean(delays[25:]) < 15 < statistics.fmean(delays[10:20])


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("-home")])
def test_a_call_does_not_know_of_the_others(name: str) -> None:
    (call,) = (flow["voip"] for flow in ran(name).summary["flows"] if flow["kind"] == "voip")
    # 15 ms of the path and its hosts, its own 200 B, and at most a round of five others.
    assert call["delay_ms"]["p90"] < 15 + 2 * 1.45 + 6 * 1.2
    assert call["mos"] > 4
    rates = mbps(ran(name))
    assert max(rates) < 1.2 * min(rates)


def test_cake_is_fair_to_hosts_and_keeps_tins_apart() -> None:
    result = ran("cake-household")
    *desk, phone, backup = mbps(result)
    assert 0.85 < sum(desk) / phone < 1.2, "six flows of one host get what one flow of another gets"
    assert 18 / 16 * 0.85 < backup < 18 / 16 * 1.15, "the tin of bulk has a sixteenth"
    (call,) = (flow["voip"] for flow in result.summary["flows"] if flow["kind"] == "voip")
    assert call["delay_ms"]["p99"] < 15 + 1.5, "a packet on the link, and one before the shaper"
    tins = queue(result)["algorithm"]["tins"]
    assert [tin["dropped"] for tin in tins][2] == 0
    assert all(tin["sent"] > 1000 for tin in tins)


@pytest.mark.parametrize("name", ["pi2-prague-and-cubic", "dualpi2-prague-and-cubic"])
def test_scalable_and_classic_senders_share_a_link(name: str) -> None:
    cubic, prague = (statistics.fmean(mbps(ran(name), cc=cc)) for cc in ("cubic-linux", "prague"))
    assert 0.5 < prague / cubic < 2
    if name.startswith("dualpi2"):
        classic, scalable = (ran(name).summary["flows"][i]["rtt_ms"]["p50"] for i in (0, 2))
        assert classic - scalable > 10


def test_dctcp_is_a_classic_sender_to_pi2() -> None:
    other = tree("pi2-prague-and-cubic")
    other["flows"][1]["tcp"]["cc"] = "dctcp"
    result = penstock.run(other)
    assert min(mbps(result, cc="dctcp")) > 5 * max(mbps(result, cc="cubic-linux"))


def test_dctcp_flows_share_a_step_with_every_seed() -> None:
    for seed in range(1, 21):
        result = penstock.run(EXAMPLES / "dctcp-step.toml", seed=seed)
        assert result.summary["jain"]["overall"] > 0.95, seed
        link = queue(result)
        assert link["marks"] > 1000
        assert link["drops_aqm"] + link["drops_overflow"] == 0
        assert link["utilization"] > 0.98
        # 40 packets of 1500 B wait 0.48 ms.
        assert link["queue_delay_ms"]["p50"] == pytest.approx(0.4, abs=0.1)
        assert all((flow["ecn_asked"], flow["ecn_used"]) == (1, 1) for flow in result.summary["flows"])


@pytest.mark.parametrize("cc", ["dctcp", "prague"])
def test_by_the_rules_of_the_paper_a_step_drops(cc: str) -> None:
    step = tree("dctcp-step")
    step["tcp"]["cc"] = cc
    step["aqm"] |= {"compat": "source", "gentle": False}
    dropped = queue(penstock.run(step))
    assert dropped["drops_aqm"] > 100
    assert dropped["queue_bytes"]["max"] <= 41 * 1500


def test_applications_tell_what_people_feel() -> None:
    flows = ran("applications").summary["flows"]

    def of(kind: str, part: str) -> list[dict[str, Any]]:
        return [flow[part] for flow in flows if flow["kind"] == kind]

    assert all(pages["count"] > 100 and pages["by_size"] for pages in of("web", "transfers"))
    assert all(sessions["count"] > 1 for sessions in of("http", "transfers"))
    assert all(call["mos"] > 3 for call in of("voip", "voip"))
    assert all(video["frames"]["played"] > 0 for video in of("video", "video"))


def test_the_changing_link_changes() -> None:
    rates = ran("changing-link").tables["queue_seconds"]["throughput_bps"].to_pylist()
    slow = [rates[k] / 1e6 for k in range(12, 20)]
    assert max(slow) < 5.1
    assert max(rates) > 25e6


def forward(name: str, column: str) -> list[float]:
    """What became of the bottleneck, from its first end to its second."""
    rows = ran(name).tables["link_changes"].to_pylist()
    return [row[column] for row in rows if not row["reverse"]]


def test_the_way_over_the_satellite_follows_its_orbit() -> None:
    orbit = Orbit(780, satellites=11, latitude=20)
    delays = [delay * 1e3 for delay in forward("leo-pass", "delay_s")]
    assert min(delays) == pytest.approx(orbit.delay_ms(orbit.handover_s / 2), abs=0.01)
    assert max(delays) == pytest.approx(orbit.delay_ms(0), abs=0.1)
    upload, call = ran("leo-pass").summary["flows"]
    assert upload["rtt_ms"]["min"] == pytest.approx(2 * min(delays), abs=1)
    assert call["voip"]["delay_ms"]["p99"] > call["voip"]["delay_ms"]["p50"] + max(delays) - min(delays)


def test_the_cell_is_as_its_trace() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[-1]
    with contextlib.redirect_stdout(io.StringIO()) as written:
        exec(program, {})
    assert written.getvalue() == (EXAMPLES / "made-up-cell.mahi").read_text()
    rates = ran("cellular-trace").tables["queue_seconds"]["throughput_bps"].to_pylist()
    # A packet or so goes in the outage, which ends in the middle of a second.
    assert max(rates[12], rates[32], rates[52]) <= 24_000
    sent, chances = sum(rates), 3 * len(written.getvalue().splitlines()) * 12_000
    assert 0.95 * chances < sent <= chances


def test_shadows_hurt_cubic_more_than_bbr() -> None:
    cubic, bbr = (mbps(ran("shadowed-satellite"), cc=cc)[0] for cc in ("cubic-linux", "bbr"))
    assert bbr > 1.5 * cubic
    assert set(forward("shadowed-satellite", "rate_bps")) == {8_000_000, 2_000_000}


def test_pink_gives_others_what_a_flow_cannot_use() -> None:
    off = tree("pink-reallocation")
    for link in off["topology"]["links"]:
        link["aqm"]["reallocation"] = "off"
    ours, theirs = (sum(mbps(result)) for result in (ran("pink-reallocation"), penstock.run(off)))
    assert ours > theirs + 0.25


def test_a_full_house_waits_least_behind_pink() -> None:
    def with_aqm(name: str) -> dict[str, Any]:
        return penstock.run({**tree("full-house"), "aqm": {"name": name}}).summary

    droptail, fq_codel, pink = map(with_aqm, ("droptail", "fq-codel", "pink"))
    (queue,) = pink["bottlenecks"]
    assert queue["drops_overflow"] + queue["drops_aqm"] == 0
    # 100 ms of propagation, 0.2 ms at 100 Mbit/s, and 1.2 ms for a packet at 10 Mbit/s; a full queue adds 250 packets.
    assert pink["rtt_ms"]["p90"] < 1.1 * 101.4 < fq_codel["rtt_ms"]["p10"]
    assert fq_codel["rtt_ms"]["p90"] < droptail["rtt_ms"]["p10"] < 101.4 + 250 * 1.2
    assert pink["jain"]["overall"] > 0.99 and queue["utilization"] > 0.99


def test_bearers_keep_calls_and_responders_from_civilians() -> None:
    def people(result: engine.Result) -> tuple[list[float], float]:
        flows = result.summary["flows"]
        calls = [flow["voip"]["delay_ms"]["p90"] for flow in flows if flow["kind"] == "voip"]
        frames = [flow["video"]["frames"] for flow in flows if flow["kind"] == "video"]
        return calls, min(one["played"] / one["sent"] for one in frames)

    plain = tree("lte-cell")
    plain["aqm"] = {"name": "droptail"}
    calls, video = people(ran("lte-cell"))
    # 46.25 ms of the path and its hosts, and a packet of somebody else.
    assert max(calls) < 46.25 + 2
    assert video > 0.99
    calls, video = people(penstock.run(plain))
    assert min(calls) > 2 * 46.25
    assert video < 0.9
    civilians = mbps(ran("lte-cell"))
    assert max(civilians) < 1.1 * min(civilians)


def test_a_call_survives_each_handover() -> None:
    flows, counted = ran("handover").summary["flows"], ran("handover").summary["handovers"]
    up, down = (flow["voip"] for flow in flows[:2])
    assert counted["moves"] == 3 * 3
    assert counted["lost_in_air"] > 0, "of the seamless one"
    assert up["lost"] + down["lost"] <= 3
    # Upwards a packet waits for 27.5 ms at most. Downwards, over S1, it goes to the core and back.
    assert up["delay_ms"]["max"] < up["delay_ms"]["p50"] + 30
    assert down["delay_ms"]["max"] == pytest.approx(down["delay_ms"]["p50"] + 300, abs=15)
    lossless = tree("handover")
    lossless["handovers"][0]["procedure"] = "x2-lossless"
    assert penstock.run(lossless).summary["handovers"]["lost_in_air"] == 0


def test_sessions_share_what_their_node_may_use() -> None:
    def shares(result: engine.Result) -> tuple[float, float]:
        file, *sessions = (flow["goodput_bps"] / 1e6 for flow in result.summary["flows"])
        return file, sum(sessions)

    off = tree("cooperating-sessions")
    off["tcp"]["c2ml"] = "off"
    file, sessions = shares(ran("cooperating-sessions"))
    # 2 Mbit/s each, of which 500 of 552 bytes are payload; windows are whole segments, and sessions pause.
    assert 1.5 < file < 1.82
    assert 1.2 < sessions < 1.82
    assert queue(ran("cooperating-sessions"))["drops_overflow"] == 0
    plain = penstock.run(off)
    assert shares(plain)[0] < 1.4
    assert queue(plain)["queue_delay_ms"]["p50"] > 5 * queue(ran("cooperating-sessions"))["queue_delay_ms"]["p50"]


def test_who_leaves_the_gateway_leaves_its_budget_to_others() -> None:
    result = ran("roaming-cooperation")
    rows = [row for row in result.tables["flow_seconds"].to_pylist() if row["flow"] == 0]

    def stays(begin: int, end: int) -> float:
        rates: list[float] = [row["goodput_bps"] / 1e6 for row in rows if begin < row["t_s"] <= end]
        return statistics.mean(rates)

    # Of 4 Mbit/s 1000 of 1052 bytes are payload; windows are whole segments.
    whole = 4000 / 1052
    for begin, end in [(5, 20), (20, 40), (62, 80)]:
        assert 0.9 < stays(begin, end) / (whole / 2) < 1.01, "half, and not less when the other one moves"
    assert 0.97 < stays(42, 60) / whole < 1.01
    counted = result.summary["cooperation"]
    assert [counted[key] for key in ("joined", "left", "lapsed", "clients")] == [3, 1, 0, 2]
    assert queue(result)["drops_overflow"] == 0
    assert queue(result)["queue_delay_ms"]["p50"] < 5
    assert result.summary["flows"][2]["transfers"]["failed"] == 0


def test_flows_of_quic_keep_to_their_part_and_lose_nothing() -> None:
    result = ran("scone")
    told, rates = queue(result)["scone"], [flow["advised_bps"] for flow in result.summary["flows"]]
    assert queue(result)["drops_overflow"] == 0 and told["lowered"] == told["seen"] and told["busy"] == 8
    assert rates == [2_238_721] * 8  # the highest signal that is not above an eighth of 20 Mbit/s
    seconds = result.frame("queue_seconds").set_index("t_s")
    assert seconds.loc[125:200, "queue_delay_ms_mean"].max() < 10
    without = tree("scone")
    del without["topology"]["scone"]
    assert queue(penstock.run(without))["drops_overflow"] > 1000
