"""The orbit of a satellite link: the parameters of `orbit` in a scenario, and delays and periods computed from them.

The simulator uses the same geometry: satellites at equal distances on one circular orbit over the equator, two ground
stations, and satellites that only repeat signals (bent pipe). `MEO` is O3b, with an altitude of 8063 km and 8
satellites, one of which rises every 45 minutes for an observer on the ground.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock import engine


@dataclass(frozen=True)
class Orbit:
    """A ring of satellites, and the places of the ground stations."""

    altitude_km: float
    satellites: int = 1
    latitude: float = 0.0  # latitude of both stations, in degrees
    apart: float = 0.0  # longitude from the terminal to the gateway, in degrees
    processing_ms: float = (
        35.0  # one-way delay of modems, gateways and framing; chosen so that round trips equal those of the source
    )

    @property
    def _geometry(self) -> engine.Orbit:
        return engine.Orbit(self.altitude_km, self.satellites, self.latitude, self.apart, self.processing_ms / 1e3)

    @property
    def period_s(self) -> float:
        """The duration of one revolution around the earth, in seconds."""
        return self._geometry.period_s

    @property
    def is_fixed(self) -> bool:
        """True if the period differs by less than a minute from the rotation of the earth (geostationary)."""
        return self._geometry.is_fixed

    @property
    def handover_s(self) -> float:
        """The time between handovers of satellites for a point on the ground; infinite for a fixed orbit."""
        return self._geometry.handover_s

    def delay_ms(self, t_s: float) -> float:
        """Returns the one-way delay `t_s` seconds after a satellite began to serve."""
        return self._geometry.delay_ms(t_s)

    def is_seen(self) -> bool:
        """True if the serving satellite is always above the horizon of both stations."""
        return self._geometry.is_seen

    def keys(self) -> dict[str, Any]:
        """Returns the keys of `orbit` in the `[[changes]]` of a scenario."""
        return {
            "altitude_km": self.altitude_km,
            "satellites": self.satellites,
            "latitude": self.latitude,
            "apart": self.apart,
            "processing": f"{round(self.processing_ms * 1e6)}ns",
        }


GEO = Orbit(35_786.0)
MEO = Orbit(8_063.0, satellites=8)
LEO = Orbit(780.0, satellites=11)  # altitude and satellites per plane of Iridium


def delay(orbit: Orbit, t_s: float) -> str:
    """Returns the delay of an orbit as text for a scenario."""
    return f"{round(orbit.delay_ms(t_s) * 1e3)}us"
