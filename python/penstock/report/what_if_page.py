"""The page of an answer of `what-if`: the decision, what was foretold of each discipline, what the capture shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.report.kit.model import Section, Table, Tile
from penstock.report.tidy import Measure, Tidy
from penstock.report.tidy_page import table_page

_VERDICTS = {"recommended": "recommended", "leave": "leave it as it is", "cannot-tell": "cannot tell"}
_DELAY = Measure(
    "delay",
    "queueing delay",
    "ms",
    "Time in the queue of the bottleneck: at each percentile, so many packets wait less.",
)
_REST = (
    Measure("goodput", "goodput", "Mbit/s", "Payload that crosses the bottleneck."),
    Measure("other way", "goodput of the other direction", "Mbit/s", "Payload that crosses the link the other way."),
    Measure("worse", "delay of the worse direction", "ms", "The longer of the 90th percentiles of both queues."),
    Measure("dropped", "dropped", "%", "Dropped packets as a part of those that came to the queue."),
    Measure("again", "sent again", "%", "Segments that were sent again as a part of all."),
)


def page(answer: Mapping[str, Any], command: str) -> str:
    """Returns the page of an answer, as `answer.json` has it."""
    candidates = answer["candidates"]
    spread = f"range of {answer['seeds']} seeds"
    delays = Tidy(list(_delays(candidates)), ["percentile"], [_DELAY], group="discipline", spread=spread)
    rest = Tidy(list(_rest(candidates)), ["discipline"], _REST, spread=spread)
    reasons = [[text] for text in (*answer["because"], *answer["notes"])]
    verdict = _VERDICTS[answer["verdict"]]
    return table_page(
        f"What if {answer['capture']} had another discipline?",
        "The flows of the capture, simulated under each discipline: a closed loop, in which senders react. "
        "docs/what-if.md says how, and how well it foretells.",
        [delays, rest] if candidates else [],
        titles=["Queueing delay", "Goodput and losses"] if candidates else [],
        sections=[
            Section("Why", [Table("", ("Reasons and notes",), reasons, 1)]),
            Section("What the capture shows", [_seen(answer["capture_shows"])]),
        ],
        tiles=[
            Tile(answer["discipline"], verdict) if verdict == "recommended" else Tile(verdict, "answer"),
            Tile(answer["control"] or "–", "control of all senders"),
        ],
        command=command,
    )


def _row(name: str, measure: str, of: Mapping[str, float], factor: float = 1.0, **more: str) -> dict[str, Any]:
    values = {end: of[end] * factor for end in ("median", "low", "high")}
    return {"discipline": name, "measure": measure, **values, **more}


def _delays(candidates: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for one in candidates:
        for percentile, of in one["delay_ms"].items():
            yield _row(one["discipline"], "delay", of, percentile=percentile)


def _rest(candidates: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for one in candidates:
        yield _row(one["discipline"], "goodput", one["goodput_bps"], 1e-6)
        for name, key, factor in (("other way", "back_goodput_bps", 1e-6), ("worse", "worse_ms", 1.0)):
            if key in one:  # an answer of an earlier release has one direction
                yield _row(one["discipline"], name, one[key], factor)
        yield _row(one["discipline"], "dropped", one["drop_share"], 100)
        yield _row(one["discipline"], "again", one["sent_again"], 100)


def _mbps(bps: float | None) -> str:
    return "–" if bps is None else f"{bps / 1e6:.4g} Mbit/s"


def _share(part: float | None, digits: int) -> str:
    return "–" if part is None else f"{part:.{digits}%}"


def _seen(shows: Mapping[str, Any]) -> Table:
    delay = shows["queue_delay_ms"] or {}
    told = {
        "length": f"{shows['duration_s']:.1f} s, {shows['packets']:,} packets",
        "rate of the link": f"{_mbps(shows['rate_bps'])}, full in {_share(shows['full'], 0)} of the time",
        "goodput": f"{_mbps(shows['goodput_bps'])}, {_share(shows['sent_again'], 2)} of segments sent again",
        "traffic": f"{shows['transfers']:,} transfers, {shows['datagrams']:,} series of datagrams",
        "taken": shows["taken"] or "–",
        "queueing delay": ", ".join(f"{value:.1f} ms ({name})" for name, value in delay.items()) or "–",
        "limit of the queue": f"{shows['limit_bytes']:,} B" if shows["limit_bytes"] else "–",
    }
    return Table("", ("What", "Value"), [list(item) for item in told.items()], 2)
