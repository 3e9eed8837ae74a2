"""The answer of `compare` in small scenarios in which theory knows it.

The sides of each are the values of one key. What serves best is known from what the sides are: the same twice, a queue
of a second beside a short one, half of a rate, a lossy path; where nothing distinguishes them, none must be best.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, NamedTuple

import penstock
import pytest
from penstock.experiments.verdict import BEST, CANNOT_TELL, DEPENDS, Answer

UPLOAD = {"kind": "bulk", "count": 2, "start_spread": "20ms"}
CALL = {"kind": "voip", "start_spread": "20ms"}
PAGES = {"kind": "web", "per_second": 2, "direction": "reverse"}
VIDEO = {"kind": "video", "rate": "1Mbit/s", "start_spread": "20ms"}
FLOOD = {"kind": "cbr", "rate": "12Mbit/s", "start_spread": "20ms"}  # beside a link of 6
FILE = {"kind": "transfer", "size": "2MB", "start_spread": "20ms"}
FQ = {"name": "fq-codel"}
SAME = {"name": "fq-codel", "target": "5ms"}  # its default


def home(*flows: dict[str, Any], limit: str = "400p", duration: str = "12s", **topology: Any) -> dict[str, Any]:
    """A line of 6 Mbit/s up and 20 down; of its queue, 400 packets are 0.8 s."""
    return {
        "name": "line",
        "duration": duration,
        "warmup": "2s",
        "topology": {
            "kind": "dumbbell",
            "rate": "6Mbit/s",
            "reverse_rate": "20Mbit/s",
            "delay": "15ms",
            "limit": limit,
            **topology,
        },
        "aqm": {"name": "droptail"},
        "flows": [copy.deepcopy(flow) for flow in flows],
    }


class Case(NamedTuple):
    """A scenario, the key whose values are the sides, those that serve best, and what is told."""

    name: str
    scenario: dict[str, Any]
    key: str
    values: list[Any]
    verdict: str
    best: set[str]
    told: str = ""
    seeds: int | str = 8


AQM = "aqm.name"
CASES = (
    Case("the same twice", home(UPLOAD, CALL, PAGES), "aqm", [FQ, SAME], CANNOT_TELL, {"0", "1"}, "equally well"),
    Case("a call behind a deep queue", home(UPLOAD, CALL), AQM, ["droptail", "fq-codel"], BEST, {"1"}, "calls MOS"),
    Case("pages behind a deep queue", home(UPLOAD, PAGES), AQM, ["droptail", "fq-codel"], BEST, {"1"}, "pages"),
    Case("video behind a deep queue", home(UPLOAD, VIDEO), AQM, ["droptail", "fq-codel"], BEST, {"1"}, "video"),
    Case("a flood beside a call", home(FLOOD, CALL), AQM, ["droptail", "fq-codel"], BEST, {"1"}, "calls MOS"),
    Case("a flood beside video", home(FLOOD, VIDEO), AQM, ["codel", "fq-codel"], BEST, {"1"}, "video"),
    Case("a short queue and a deep one", home(UPLOAD, CALL), "topology.limit", ["400p", "30p"], BEST, {"1"}, "calls"),
    Case("uploads alone", home(UPLOAD), AQM, ["droptail", "codel"], BEST, {"1"}, "queue"),
    Case(
        "half the link is wasted", home(UPLOAD, delay="100ms"), "topology.limit", ["50p", "2p"], BEST, {"0"}, "goodput"
    ),
    Case("half the rate for a file", home(FILE), "topology.rate", ["3Mbit/s", "6Mbit/s"], BEST, {"1"}, "transfers"),
    Case("a longer path to pages", home(PAGES), "topology.delay", ["15ms", "90ms"], BEST, {"0"}, "pages"),
    Case("a lossy path for a call", home(CALL), "topology.loss", [0.0, 0.06], BEST, {"0"}, "calls MOS"),
    Case(
        "a call alone", home(CALL), AQM, ["droptail", "codel", "fq-codel"], CANNOT_TELL, {"0", "1", "2"}, "equally well"
    ),
    Case("few pages", home(PAGES), AQM, ["droptail", "codel", "pie"], CANNOT_TELL, {"0", "1", "2"}, "equally well"),
    Case(
        "the shortest of five queues",
        home(UPLOAD, CALL),
        "topology.limit",
        ["400p", "200p", "100p", "60p", "30p"],
        BEST,
        {"4"},
        "30p serves line best",
    ),
    Case(
        "two of three",
        home(UPLOAD, CALL, PAGES),
        "aqm",
        [{"name": "droptail"}, FQ, SAME],
        CANNOT_TELL,
        {"1", "2"},
        "best",
    ),
    Case(
        "calls or files",
        home(UPLOAD, CALL, FILE, delay="100ms"),
        "topology.limit",
        ["400p", "4p"],
        DEPENDS,
        {"0", "1"},
        "for calls",
    ),
    Case(
        "no chance",
        home({"kind": "bulk"}, {"kind": "voip"}),
        AQM,
        ["droptail", "codel"],
        CANNOT_TELL,
        {"0", "1"},
        "one run",
    ),
    Case("one seed", home(UPLOAD, CALL), AQM, ["droptail", "fq-codel"], CANNOT_TELL, {"0", "1"}, "one seed", "1..1"),
    Case("nothing comes", home(UPLOAD, CALL, loss=1.0), AQM, ["droptail", "pie"], CANNOT_TELL, {"0", "1"}),
)


def asked(case: Case) -> tuple[Answer, list[str]]:
    """The answer, and the labels of the sides."""
    scenario = copy.deepcopy(case.scenario)
    found = penstock.compare(scenario, vary={case.key: case.values}, seeds=case.seeds)
    [answer] = found.answers
    return answer, [side.label for side in found.sides]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_answer_is_the_truth(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer, labels = asked(case)
    told = " ".join((answer.sentence, *answer.because))
    assert answer.verdict == case.verdict, told
    assert set(answer.best) == {labels[int(place)] for place in case.best}, told
    assert case.told in told


def test_other_draws_of_the_same_traffic_are_not_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of flows in another order have other random numbers: equal in theory, and different in each seed."""
    monkeypatch.chdir(tmp_path)
    flows = (UPLOAD, CALL, PAGES)
    found = penstock.compare(home(*flows), home(*reversed(flows)), seeds=8)
    [answer] = found.answers
    assert (answer.verdict, len(answer.best)) == (CANNOT_TELL, 2), answer
    pages = next(one for one in found.to_json()["judged"][0]["quantities"] if one["key"] == "page_ms")
    assert pages["values"][0] != pages["values"][1], "the draws are others"
