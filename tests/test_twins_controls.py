"""The compiled congestion controls and their readable twins have the same windows after every event of random scripts.

Script `number` is always the same one. `PENSTOCK_TWIN_TRACES` says how many there are for each control.
"""

from __future__ import annotations

import io
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from penstock import engine
from penstock.reference.cc import Control, Event, replay
from penstock.reference.cc.bic import Bic
from penstock.reference.cc.compound import Compound
from penstock.reference.cc.cubic import Cubic
from penstock.reference.cc.cubic_linux import CubicLinux
from penstock.reference.cc.dctcp import Dctcp
from penstock.reference.cc.highspeed import HighSpeed
from penstock.reference.cc.hybla import Hybla
from penstock.reference.cc.newreno import NewReno
from penstock.reference.cc.prague import Prague
from penstock.reference.cc.scalable import Scalable
from penstock.reference.cc.vegas import Vegas
from penstock.reference.cc.westwood import Westwood

SCRIPTS = int(os.environ.get("PENSTOCK_TWIN_TRACES", "100"))

TWINS: dict[str, Callable[[], Control]] = {
    "newreno": NewReno,
    "scalable": Scalable,
    "highspeed": HighSpeed,
    "hybla": Hybla,
    "bic": Bic,
    "westwood": Westwood,
    "vegas": Vegas,
    "compound": Compound,
    "dctcp": Dctcp,
    "prague": Prague,
    "cubic": Cubic,
    "cubic-linux": CubicLinux,
}


def script(number: int) -> list[Event]:
    """A path with a queue, losses in bursts and alone, marks and timeouts; some ACKs cover many segments."""
    r = random.Random(number)
    base_us = r.choice([1_000, 20_000, 25_000, 100_000, 600_000, r.randint(500, 900_000)])
    queue_us = r.choice([0, base_us // 10, base_us, 3 * base_us])
    per_event = r.choice([1, 1, 2, 3, 64, 5_000])  # segments in an ACK, at most
    losses = r.choice([0.002, 0.01, 0.05])
    pace_us = max(1, base_us // r.choice([2, 10, 40, 200]))
    t_us, recovering, events = 0, False, list[Event]()
    while len(events) < 400:
        t_us += r.choice([0, 1, pace_us, r.randint(0, 2 * pace_us)])
        if not recovering and r.random() < losses:
            name = r.choice(["loss", "loss", "loss", "ecn", "rto"])
            events.append((t_us, name, r.choice([0, 0, 0, r.randint(1, 300)]), 0))
            recovering = name == "loss"
        elif recovering and r.random() < 0.15:
            name = r.choice(["recovered"] * 8 + ["rto"])
            events.append((t_us, name, 0, 0))
            recovering = False
        else:
            rtt_us = 0 if r.random() < 0.1 else base_us + r.randint(0, queue_us)
            events.append((t_us, "ack", r.randint(1, per_event), rtt_us))
    return events


def compiled(name: str, events: list[Event], file: Path) -> list[tuple[float, float]]:
    """The windows by the compiled part."""
    file.write_text("t_us,event,segments,rtt_us\n" + "".join(",".join(map(str, event)) + "\n" for event in events))
    out = io.BytesIO()
    engine.replay_control(file, name, out)
    rows = [line.split(",") for line in out.getvalue().decode().splitlines()[1:]]
    return [(float(row[2]), float(row[3] or "inf")) for row in rows]


def compare(name: str, number: int, file: Path) -> None:
    """Fails at the first event after which the two differ."""
    events = script(number)
    pairs = zip(events, compiled(name, events, file), replay(TWINS[name](), events), strict=True)
    for index, (event, ours, twins) in enumerate(pairs):
        # Three places are written.
        same = all(a == b or abs(a - b) < 0.002 + 1e-6 * b for a, b in zip(ours, twins, strict=True))
        assert same, f"{name}, script {number}, event {index} {event}: compiled {ours}, twin {twins}"


@pytest.mark.parametrize("name", TWINS)
def test_a_control_and_its_twin_have_the_same_windows(name: str, tmp_path: Path) -> None:
    for number in range(SCRIPTS):
        compare(name, number, tmp_path / "script.csv")
