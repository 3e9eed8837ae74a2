"""Paths drawn at random: the same for everybody who knows the seed, which is the version of this program.

So the paths change with each release, and nobody can draw again until they fit without its being seen: the page
keeps the history of the seeds.
"""

from __future__ import annotations

import math
import random
from importlib.metadata import PackageNotFoundError, version

from penstock.mistake import MistakeError
from penstock.verify.cases import CONTROLS, Case, Path

NUMBER = 64
# The disciplines that need nothing but packets: no classes, no announced rates, no budgets.
DISCIPLINES = (
    *("droptail", "red", "ared", "feng-red", "nonlinear-red", "an-aqm", "lindrop", "codel", "modified-codel", "cobalt"),
    *("pie", "minstrel-pie", "pi2", "green", "pi", "rem", "avq", "blue", "sfb", "choke", "dualpi2", "pink"),
    *("fq-codel", "fq-cobalt", "fq-pie", "fq-minstrel-pie"),
)
# Every second path has one of these, which are met most.
_MET_MOST = ("droptail", "codel", "fq-codel", "pie", "red", "pink")
_WITHOUT_MARKS = ("droptail", "pink")
RATES_MBPS, RTTS_MS, FLOWS, LOSSES, BUFFERS = (2, 100), (10, 700), (1, 40), (1e-4, 1e-2), (0.3, 3.0)
# Parts of the paths: hosts without SACK, with ECN where the discipline can mark, and wires that lose packets.
NO_SACK, WITH_ECN, WITH_LOSS = 1 / 8, 1 / 4, 1 / 4
# Above this round trip time a run takes twice as long.
_LONG_RTT_MS = 250
_LEAST_BUFFER, _AMPLE = 16, 1000


def release_seed() -> str:
    """Returns the seed of this release: its version."""
    try:
        return version("penstock")
    except PackageNotFoundError:
        from penstock.engine import core_version

        return core_version()


def paths(seed: str) -> list[Case]:
    """Draws the paths of a seed. Each has dice of its own, so that none depends on how many others are drawn."""
    return [_draw(number, random.Random(f"penstock tcp-linux {seed} {number}")) for number in range(NUMBER)]


def _draw(number: int, dice: random.Random) -> Case:
    rate, rtt, flows = (round(_logarithmic(dice, *ends)) for ends in (RATES_MBPS, RTTS_MS, FLOWS))
    path = Path(rate, rtt)
    control = _one_of(dice, CONTROLS)
    aqm = _one_of(dice, _MET_MOST if dice.random() < 0.5 else DISCIPLINES)
    buffer = _logarithmic(dice, *BUFFERS)
    sack, ecn, lossy = dice.random() >= NO_SACK, dice.random() < WITH_ECN, dice.random() < WITH_LOSS
    loss = _logarithmic(dice, *LOSSES)
    return Case(
        control,
        path,
        aqm,
        flows,
        number=number,
        limit_packets=_limit(aqm, path.bdp_packets, buffer),
        sack=sack,
        ecn=ecn and aqm not in _WITHOUT_MARKS,
        loss=round(loss, 4) if lossy else 0.0,
        begin_s=0.0,
        measured_s=60.0 if rtt > _LONG_RTT_MS else 30.0,
    )


def _limit(aqm: str, product: int, buffer: float) -> int:
    return max(_LEAST_BUFFER, round(buffer * product)) if aqm == "droptail" else max(_AMPLE, 2 * product)


def _logarithmic(dice: random.Random, least: float, most: float) -> float:
    return math.exp(dice.uniform(math.log(least), math.log(most)))


def _one_of(dice: random.Random, things: tuple[str, ...]) -> str:
    return things[int(dice.random() * len(things))]


def numbers(text: str) -> list[int]:
    """Reads a list of numbers of paths: `0-15`, `3`, `0-7,20`, or `none`."""
    if text == "none":
        return []
    try:
        ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    except ValueError:
        ends = [[]]
    if any(len(end) not in (1, 2) or end[-1] >= NUMBER or end[0] > end[-1] for end in ends):
        raise MistakeError(f"--paths {text}: allowed are numbers from 0 to {NUMBER - 1}, such as 0-15 or 3,7, or none")
    return sorted({number for end in ends for number in range(end[0], end[-1] + 1)})
