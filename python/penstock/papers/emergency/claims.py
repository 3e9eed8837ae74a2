"""Claims of document 002, section 2.1, on emergency networks: orbits, bearers, handovers, and relays into buildings."""

from __future__ import annotations

from typing import Any

from penstock.architecture import MEO, Orbit
from penstock.claims import checks
from penstock.claims.entering import contradicts, of
from penstock.claims.ledger import Claim, Comparison, Finding, Kind
from penstock.claims.words import CLOSE, FULL, MUCH, NEGLIGIBLE, POOR
from penstock.papers.emergency.columns import calls, upload_mbps
from penstock.papers.emergency.runs import FILE_MBIT, HOPS, MOVE_AT_S, ORBITS
from penstock.reproduce.results import Evidence

PACKET = 1500 / 1552  # payload of a full segment of a scenario's default, as a part of its packet
BUDGET_MS = 150.0  # ITU-T G.114: mouth to ear, for most conversations
PERIOD = (
    "at 8063 km Kepler's law gives 4.80 h, not 4; eight satellites that rise every 45 minutes pass in 6 h, and the "
    "earth turns meanwhile: 1 / (1/6 + 1/24) = 4.8 h. With 4 h, eight would rise every 36 minutes"
)

CLAIMS: list[Claim] = []
sums = of(CLAIMS, "emergency", "002", varies=False)
at = of(CLAIMS, "emergency", "002")


def _calls(run: Evidence, setting: str) -> list[dict[str, Any]]:
    return list(calls(run.runs("bearers", setting=setting)[0]))


def _round_trip(run: Evidence, setting: str, pair: int = 0) -> float:
    """The mean round trip of a call in both directions, in ms."""
    there, back = _calls(run, setting)[2 * pair : 2 * pair + 2]
    return float(there["delay_ms"]["mean"] + back["delay_ms"]["mean"])


def _lost(one: dict[str, Any]) -> float:
    return float(one["loss"])


# Orbits: 2.1.2.6.


@at("2.1.2.6", "in the text", "500 to 550, 200, below 100 ms", Kind.SET_UP)
def round_trips_by_orbit(run: Evidence) -> Finding:
    """A round trip over GEO takes 500 to 550 ms or more, over MEO 200 on average, over LEO less than 100."""
    geo, meo, leo = (_round_trip(run, f"orbit-{name}") for name in ORBITS)
    return checks.decide(
        [
            checks.at_least(geo, 500, "GEO", " ms"),
            checks.about(meo, 200, "MEO", " ms"),
            checks.at_most(leo, 100, "LEO", " ms"),
        ]
    )


@at("2.1.2.6", "Figure 2.4", "600 and 230 ms")
def whole_round_trips(run: Evidence) -> Finding:
    """From a terminal to a remote host a mean round trip takes about 600 ms over GEO, 230 over MEO."""
    said = {"geo": 600.0, "meo": 230.0}
    return checks.decide(
        checks.about(_round_trip(run, f"orbit-{name}", 1), paper, name.upper(), " ms") for name, paper in said.items()
    )


@sums("2.1.2.6", "O3b", "every 45 minutes", Kind.SET_UP)
def a_satellite_rises_every_45_minutes(run: Evidence) -> Finding:
    """For a place on the ground a new O3b satellite rises every 45 minutes."""
    del run
    return checks.decide([checks.close(MEO.handover_s / 60, 45, f"{MEO.satellites} satellites", " minutes")])


@sums("2.1.2.6", "O3b", "within 4 hours", because=contradicts(PERIOD))
def a_satellite_circles_within_four_hours(run: Evidence) -> Finding:
    """At 8063 km a satellite circles the earth within 4 hours."""
    del run
    return checks.decide([checks.at_most(Orbit(8063).period_s / 3600, 4, "one revolution", " h")])


@at("2.1.2.6", "O3b", "make-before-break")
def satellites_change_without_a_loss(run: Evidence) -> Finding:
    """The handover from satellite to satellite is seamless: no packet of a call is lost and none waits long."""
    parts = []
    for name in ("meo", "leo"):
        both = _calls(run, f"orbit-{name}")[:2]
        lost, sent = (sum(int(one[key]) for one in both) for key in ("lost", "sent"))
        parts.append(Comparison(lost == 0, f"{name.upper()}: {lost} of {sent} lost"))
        least = min(float(one["delay_ms"]["p10"]) for one in both)
        most = max(float(one["delay_ms"]["max"]) for one in both)
        parts.append(Comparison(most <= MUCH * least, f"{name.upper()}: {least:.0f} ms, {most:.0f} at most"))
    return checks.decide(parts)


@at("2.1.2.6", "in the text", "very specific TCP for GEO; CUBIC for MEO and LEO")
def cubic_is_good_enough_but_for_geo(run: Evidence) -> Finding:
    """In two minutes CUBIC fills a link of 20 Mbit/s over MEO and LEO, and leaves it poorly used over GEO."""
    used = {name: (run.cell_value(("bearers", 1, f"file-{name}"), upload_mbps) or 0.0) / FILE_MBIT for name in ORBITS}
    parts = [Comparison(used["geo"] < POOR * PACKET, f"GEO {used['geo']:.1%} of the link, payload")]
    parts += [Comparison(used[n] >= FULL * PACKET, f"{n.upper()} {used[n]:.1%}") for n in ("meo", "leo")]
    return checks.decide(parts)


# Bearers: 2.1.2.2.


@at("2.1.2.2", "bearers", "the necessary QoS for the voice call")
def bearers_keep_responders_calls(run: Evidence) -> Finding:
    """In a busy cell calls with a guaranteed bearer lose nothing and wait as long as alone, in one queue not."""
    alone = max(float(one["delay_ms"]["p99"]) for one in _calls(run, "calm"))
    parts = []
    for setting, kept in (("busy", True), ("one-queue", False)):
        some = _calls(run, setting)[:10]  # five responders, both directions
        wait, lost = max(float(one["delay_ms"]["p99"]) for one in some), max(map(_lost, some))
        good = wait <= (1 + CLOSE) * alone and lost <= NEGLIGIBLE
        parts.append(
            Comparison(
                good == kept,
                f"{run.experiment.label(setting)}: {wait:.0f} ms (p99), alone {alone:.0f}; {lost:.1%} lost",
            )
        )
    return checks.decide(parts)


@at("2.1.2.2", "bearers", "voice and text at least")
def people_in_distress_have_voice(run: Evidence) -> Finding:
    """Behind the files of responders civilians can still call: their bearers lose at most 1 % of a call."""
    some = _calls(run, "busy")[10:]
    parts = [Comparison(_lost(one) <= NEGLIGIBLE, f"{_lost(one):.1%} of a call lost") for one in some]
    return checks.decide(sorted(parts, key=lambda part: part.holds))


# Handovers: 2.1.2.4.

MOVES = ("x2", "s1-meo", "s1-geo")


def _movers(run: Evidence, setting: str) -> list[dict[str, Any]]:
    """Returns both directions of the call of the host that moves; all other calls begin after the move."""
    flows = run.runs("bearers", setting=setting)[0].summary["flows"]
    return [flow["voip"] for flow in flows if flow["kind"] == "voip" and flow["start_s"] < MOVE_AT_S]


@at("2.1.2.4", "X2 and S1", "no loss of packets at all")
def a_lossless_handover_loses_nothing(run: Evidence) -> Finding:
    """Lossless handovers, by X2 and by S1, lose no packet: what is lost in the air is of a seamless call."""
    parts = []
    for setting in MOVES:
        lost = int(run.runs("bearers", setting=setting)[0].summary["handovers"]["lost_in_air"])
        of_call = sum(int(one["lost"]) for one in _movers(run, setting)) if setting == "x2" else 0
        parts.append(
            Comparison(lost == of_call, f"{run.experiment.label(setting)}: {lost} lost, {of_call} of the call")
        )
    return checks.decide(parts)


@at("2.1.2.4", "X2 and S1", "totally transparent for the user")
def a_handover_is_hardly_heard(run: Evidence) -> Finding:
    """A call of a minute with a handover, by X2 or S1, is as good as one without, in the mean opinion score."""
    parts = []
    for setting in MOVES:
        moved, still = (min(float(one["mos"]) for one in _movers(run, name)) for name in (setting, f"{setting}-stays"))
        parts.append(checks.alike(("moved", moved), ("not moved", still), run.experiment.label(setting)))
    return checks.decide(parts)


@at("2.1.2.4", "X2 beside S1", "S1 between vehicles", Kind.OWN)
def s1_forwards_over_two_satellites(run: Evidence) -> Finding:
    """What waits at the old cell comes late: over X2 by less than 30 ms, over S1 by two satellites more."""
    parts = []
    for setting in MOVES:
        still, most = (
            max(float(one["delay_ms"]["max"]) for one in _movers(run, n)) for n in (f"{setting}-stays", setting)
        )
        label, late = run.experiment.label(setting), most - still
        if setting == "x2":
            parts.append(checks.at_most(late, 30, label, " ms"))
        else:
            parts.append(
                checks.about(late, _round_trip(run, f"orbit-{setting.removeprefix('s1-')}"), label, " ms late")
            )
    return checks.decide(parts)


# Topologies: 2.1.2.3 and 2.1.2.7.


@at("2.1.2.3", "in the text", "two additional satellite hops")
def vehicles_without_a_bridge_talk_over_two_satellites(run: Evidence) -> Finding:
    """Without a link between two vehicles a call between them takes two satellite hops more."""
    hop = _round_trip(run, "orbit-geo") / 2
    apart, bridge = (float(_calls(run, setting)[0]["delay_ms"]["mean"]) for setting in ("apart", "bridge"))
    return checks.decide([checks.close(apart - bridge, 2 * hop, "longer, one way", " ms")])


@at("2.1.2.7", "in the text", "connectivity indoor through multiple hops")
def relays_reach_into_a_building(run: Evidence) -> Finding:
    """Over up to six relays a call from a building loses nothing and waits one cell longer for each."""
    parts = []
    for orbit in ("meo", "geo"):
        delays = []
        for hops in HOPS:
            one = _calls(run, f"chain-{orbit}-{hops}")[0]
            parts.append(Comparison(one["lost"] == 0, f"{orbit.upper()}, {hops} relays: {one['lost']} lost"))
            delays.append(float(one["delay_ms"]["mean"]))
        per_hop = (delays[-1] - delays[0]) / (len(delays) - 1)
        parts.append(checks.about(per_hop, 6.25, f"{orbit.upper()}, for each relay", " ms"))
    return checks.decide(sorted(parts, key=lambda part: (part.holds, "lost" in part.text)))


@at("2.1.2.7", "in the text, with ITU-T G.114", "not in the paper", Kind.OWN)
def a_voice_budget_allows_relays_over_meo(run: Evidence) -> Finding:
    """150 ms from mouth to ear leave room for six relays over MEO, and none over GEO."""
    parts = []
    for hops in HOPS:
        one, other = (float(_calls(run, f"chain-{orbit}-{hops}")[0]["delay_ms"]["p99"]) for orbit in ("meo", "geo"))
        parts.append(Comparison(one <= BUDGET_MS < other, f"{hops} relays: MEO {one:.0f}, GEO {other:.0f} ms"))
    return checks.decide(parts)


@at("2.1.2.6", "voice, with ITU-T G.107", "not in the paper", Kind.OWN)
def voice_is_good_over_meo_and_fair_over_geo(run: Evidence) -> Finding:
    """A call has a mean opinion score above 4 over MEO and LEO, and below over GEO."""
    parts = []
    for name, good in (("geo", False), ("meo", True), ("leo", True)):
        score = float(_calls(run, f"orbit-{name}")[2]["mos"])
        parts.append(Comparison((score > 4.0) == good, f"{name.upper()} {score:.2f}"))
    return checks.decide(parts)
