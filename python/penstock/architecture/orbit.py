"""Delay over a satellite, from the geometry of its orbit.

Satellites stand at equal distances on one circular orbit over the equator, and both ground stations see them. The one
that serves is the nearest to the middle between both; half-way to the next one the terminal changes to that. With
make-before-break both are connected while it changes, so only the delay jumps. The way is a bent pipe: up, down, and
what modems and gateways take.

`MEO` is O3b: 8063 km high and 8 satellites, one of which rises every 45 minutes for a point that turns with the earth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EARTH_KM = 6378.137  # equatorial radius, WGS 84
GRAVITY = 398_600.4418  # km^3/s^2, WGS 84
DAY_S = 86_164.0905  # one turn of the earth
LIGHT_KM_S = 299_792.458


@dataclass(frozen=True)
class Orbit:
    """A ring of satellites and where the ground stations are."""

    altitude_km: float
    satellites: int = 1
    latitude: float = 0.0  # of both stations, in degrees
    apart: float = 0.0  # longitude from the terminal to the gateway, in degrees
    processing_ms: float = 35.0  # one way: modems, gateways, framing. A choice: the source's round trips then come out

    @property
    def radius_km(self) -> float:
        """From the centre of the earth."""
        return EARTH_KM + self.altitude_km

    @property
    def period_s(self) -> float:
        """Of one turn around the earth."""
        return math.tau * math.sqrt(self.radius_km**3 / GRAVITY)

    @property
    def is_fixed(self) -> bool:
        """True if it stays over one place: within a minute of the earth's own turn."""
        return abs(self.period_s - DAY_S) < 60

    @property
    def handover_s(self) -> float:
        """From one satellite to the next, for who stands on the earth; infinite if it is fixed."""
        return math.inf if self.is_fixed else 1 / (1 / self.period_s - 1 / DAY_S) / self.satellites

    def delay_ms(self, t_s: float) -> float:
        """One way, `t_s` after a satellite began to serve."""
        angle = 0.0 if self.is_fixed else 360 / self.satellites * ((t_s / self.handover_s) % 1 - 0.5)
        ways = self._slant_km(angle - self.apart / 2) + self._slant_km(angle + self.apart / 2)
        return ways / LIGHT_KM_S * 1e3 + self.processing_ms

    def is_seen(self) -> bool:
        """True if both stations have the serving satellite above the horizon all the time."""
        furthest = (0.0 if self.is_fixed else 180 / self.satellites) + abs(self.apart) / 2
        return self._cos(furthest) > EARTH_KM / self.radius_km

    def _cos(self, longitude: float) -> float:
        """Of the angle between a station and the point below the satellite, seen from the earth's centre."""
        return math.cos(math.radians(self.latitude)) * math.cos(math.radians(longitude))

    def _slant_km(self, longitude: float) -> float:
        station, satellite = EARTH_KM, self.radius_km
        return math.sqrt(station**2 + satellite**2 - 2 * station * satellite * self._cos(longitude))


GEO = Orbit(35_786.0)
MEO = Orbit(8_063.0, satellites=8)
LEO = Orbit(780.0, satellites=11)  # Iridium's height and satellites in a plane


def changes(
    link: str, orbit: Orbit, duration_s: float, step_s: float = 10.0, begin_s: float = 0.0
) -> list[dict[str, Any]]:
    """The `[[changes]]` that give a link the delay of this orbit.

    One passage is written, in steps of at most `step_s`, and repeats. `begin_s` is how long the first satellite has
    served when the run begins. Nothing changes with a fixed one.
    """
    if orbit.is_fixed:
        return []
    steps = math.ceil(orbit.handover_s / step_s)
    step = orbit.handover_s / steps
    every = {} if orbit.handover_s > duration_s else {"every": _ns(orbit.handover_s)}
    made: list[dict[str, Any]] = []
    for index in range(steps):
        since = (index * step - begin_s) % orbit.handover_s
        if since <= duration_s:
            # The delay of the middle of a step.
            made.append({"link": link, "at": _ns(since), **every, "delay": delay(orbit, (index + 0.5) * step)})
    return sorted(made, key=lambda change: int(change["at"].removesuffix("ns")))


def delay(orbit: Orbit, t_s: float) -> str:
    """The delay as a scenario writes it."""
    return f"{round(orbit.delay_ms(t_s) * 1e3)}us"


def series(made: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Seconds and milliseconds of changes of the delay, for a figure."""
    of = [(str(change["at"]), str(change["delay"])) for change in made]
    return [(int(at.removesuffix("ns")) / 1e9, int(ms.removesuffix("us")) / 1e3) for at, ms in of]


def _ns(seconds: float) -> str:
    return f"{round(seconds * 1e9)}ns"
