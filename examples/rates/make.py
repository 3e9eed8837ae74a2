"""Writes the rates of this folder: links of our own making, each like a kind of real ones. They are no measurements.

    python examples/rates/make.py             # writes them anew, always the same
    python examples/rates/make.py DIRECTORY   # into another place

Each file has the columns of `table` in docs/reference/scenarios.md: time, rate, and where they change delay and loss.
"""

from __future__ import annotations

import csv
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path

Row = dict[str, float]
STEP = 0.1  # seconds between two rows of a link that always changes


def starlink(name: str, low: float, high: float) -> Iterator[Row]:
    """A satellite in a low orbit: another beam every 15 s, with its own rate and delay, and a short gap before."""
    draw, rate, delay = random.Random(name), 0.0, 0.0
    for step in range(1500):
        t = round(step * STEP, 1)
        begins = step % 150
        if begins == 0:
            rate, delay = draw.uniform(low, high), draw.uniform(12, 28)
        shared = rate * (1 + 0.12 * math.sin(math.tau * t / 3.7)) * math.exp(draw.gauss(0, 0.06))
        gap = begins < 1 and step > 0
        yield {
            "t_s": t,
            "rate_mbit_s": round(0.2 if gap else shared, 3),
            "delay_ms": round(delay + draw.uniform(0, 2), 1),
            "loss": 0.02 if gap else 0.0,
        }


def lte() -> Iterator[Row]:
    """A cell seen from a moving car: a random walk between 1 and 25 Mbit/s, and an outage in one of a hundred steps."""
    draw, rate = random.Random("lte"), 8.0
    for step in range(1200):
        rate = min(25.0, max(1.0, rate * math.exp(draw.gauss(0, 0.2))))
        yield {"t_s": round(step * STEP, 1), "rate_mbit_s": round(0.1 if draw.random() < 0.01 else rate, 3)}


# Spectral efficiencies of DVB-S2 (EN 302 307-1, table 13) in bit/s for each Hz, and the signal-to-noise ratios in dB
# that they need.
MODCODS = ((0.99, 1.0), (1.49, 4.0), (1.98, 6.6), (2.23, 7.9), (2.97, 10.2), (3.70, 12.7))


def rain() -> Iterator[Row]:
    """A geostationary link of 5.4 Mbaud: 20 Mbit/s under a clear sky, and other codes as rain comes and goes."""
    for second in range(300):
        fade = 9.0 * math.exp(-(((second - 150) / 45) ** 2))
        best = max((bits for bits, needs in MODCODS if needs <= 13.5 - fade), default=MODCODS[0][0])
        yield {"t_s": float(second), "rate_mbit_s": round(5.4 * best, 3)}


def dsl() -> Iterator[Row]:
    """The upload of a DSL line that loses its synchronization at 60 s, trains for 25 s, and comes back slower."""
    yield {"t_s": 0.0, "rate_mbit_s": 2.4, "loss": 0.0}
    yield {"t_s": 60.0, "rate_mbit_s": 0.001, "loss": 1.0}
    yield {"t_s": 85.0, "rate_mbit_s": 1.6, "loss": 0.0}
    for second, rate in ((110.0, 1.7), (125.0, 1.8), (140.0, 1.9)):
        yield {"t_s": second, "rate_mbit_s": rate, "loss": 0.0}


LINKS = {
    "starlink-up": lambda: starlink("up", 8, 25),
    "starlink-down": lambda: starlink("down", 50, 200),
    "lte-up": lte,
    "satellite-rain": rain,
    "dsl-up": dsl,
}


def write(name: str, directory: Path) -> Path:
    """Writes the file of a link; returns its path."""
    rows = list(LINKS[name]())
    path = directory / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


if __name__ == "__main__":
    for link in LINKS:
        print(write(link, Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent))
