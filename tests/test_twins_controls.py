"""The compiled congestion controls and their readable twins have the same windows after every event of random scripts.

Script `number` is always the same one. `PENSTOCK_TWIN_TRACES` says how many there are for each control, and twice for
how many of a control with C²ML.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from penstock import engine
from penstock.reference.cc import Control, Event, Replayed, replay
from penstock.reference.cc.bbr import Bbr
from penstock.reference.cc.bbr3 import Bbr3
from penstock.reference.cc.bic import Bic
from penstock.reference.cc.c2ml import C2ml
from penstock.reference.cc.compound import Compound
from penstock.reference.cc.cubic import Cubic
from penstock.reference.cc.cubic_linux import CubicLinux
from penstock.reference.cc.dctcp import Dctcp
from penstock.reference.cc.highspeed import HighSpeed
from penstock.reference.cc.hybla import Hybla
from penstock.reference.cc.ledbat_pp import LedbatPp
from penstock.reference.cc.newreno import NewReno
from penstock.reference.cc.noordwijk import Noordwijk
from penstock.reference.cc.prague import Prague
from penstock.reference.cc.scalable import Scalable
from penstock.reference.cc.vegas import Vegas
from penstock.reference.cc.westwood import Westwood
from twin_settings import TRACES

TWINS: dict[str, Callable[[], Control]] = {
    "newreno": NewReno,
    "scalable": Scalable,
    "highspeed": HighSpeed,
    "hybla": Hybla,
    "bic": Bic,
    "westwood": Westwood,
    "vegas": Vegas,
    "ledbat-pp": LedbatPp,
    "compound": Compound,
    "dctcp": Dctcp,
    "prague": Prague,
    "cubic": Cubic,
    "cubic-linux": CubicLinux,
    "noordwijk": Noordwijk,
    "bbr": Bbr,
    "bbr3": Bbr3,
}
# The controls to which the dissertation adapts C²ML (§2.2.4), and one that paces.
ADAPTED = ("noordwijk", "newreno", "cubic", "hybla", "highspeed", "bic", "bbr")
PAIRS = [*TWINS, *(f"{name}/c2ml-{form}" for name in ADAPTED for form in ("on", "literal"))]


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


def with_budgets(events: list[Event], number: int) -> list[Event]:
    """The script with budgets that come, change and go. Multiples of 8 bit/s: eq. (2.1) rounds bytes per second up."""
    r = random.Random(f"budgets {number}")
    told, rate_bps = list[Event](), 0
    for event in events:
        if not told and r.random() < 0.7:
            told.append((event[0], "handshake", 0, r.choice([r.randint(500, 900_000), 20_000, 600_000])))
        if r.random() < (0.02 if told else 0.5):
            rate_bps = r.choice([0, rate_bps, *(8 * round(10 ** r.uniform(3.5, 8)) for _ in range(4))])
            told.append((event[0], "budget", rate_bps, 0))
        told.append(event)
    return told


def compiled(name: str, events: list[Event], file: Path) -> list[tuple[float, float, float | None]]:
    """The windows, thresholds and paces by the compiled part."""
    cc, _, form = name.partition("/c2ml-")
    # A budget has a column of its own.
    rows = [
        (t, event, 0 if event == "budget" else count, rtt, count if event == "budget" else 0)
        for t, event, count, rtt in events
    ]
    file.write_text("t_us,event,segments,rtt_us,budget_bps\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    out = io.BytesIO()
    engine.replay_control(file, cc, out, [f"c2ml={form}"] if form else [])
    found = [line.split(",") for line in out.getvalue().decode().splitlines()[1:]]
    return [(float(row[2]), float(row[3] or "inf"), float(row[4]) if row[4] else None) for row in found]


def control(name: str) -> Replayed:
    """The twin of this name."""
    cc, _, form = name.partition("/c2ml-")
    return C2ml(TWINS[cc](), literal=form == "literal") if form else TWINS[cc]()


def compare(name: str, number: int, file: Path) -> int:
    """Fails at the first event after which the two differ. Returns the number of events."""
    events = with_budgets(script(number), number) if "/" in name else script(number)
    pairs = zip(events, compiled(name, events, file), replay(control(name), events), strict=True)
    for index, (event, ours, twins) in enumerate(pairs):
        # Of windows three places are written, and of paces whole bits.
        same = all(a == b or abs(a - b) < 0.002 + 1e-6 * b for a, b in zip(ours[:2], twins[:2], strict=True))
        if name.startswith("bbr"):
            same &= (ours[2] is None) == (twins[2] is None)
            same &= abs((ours[2] or 0) - (twins[2] or 0)) <= 2 + 1e-6 * (twins[2] or 0)
        assert same, f"{name}, script {number}, event {index} {event}: compiled {ours}, twin {twins}"
    return len(events)


@pytest.mark.parametrize("name", PAIRS)
def test_a_control_and_its_twin_have_the_same_windows(name: str, tmp_path: Path) -> None:
    for number in range(TRACES // 2 if "/" in name else TRACES):
        compare(name, number, tmp_path / "script.csv")
