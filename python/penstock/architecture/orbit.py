"""A satellite link's orbit: what a scenario's `orbit` says, and what follows from it.

The geometry is the simulator's: satellites at equal distances on one circular orbit over the equator, two ground
stations, a bent pipe. `MEO` is O3b: 8063 km high and 8 satellites, one of which rises every 45 minutes for a point that
turns with the earth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock import engine


@dataclass(frozen=True)
class Orbit:
    """A ring of satellites and where the ground stations are."""

    altitude_km: float
    satellites: int = 1
    latitude: float = 0.0  # of both stations, in degrees
    apart: float = 0.0  # longitude from the terminal to the gateway, in degrees
    processing_ms: float = 35.0  # one way: modems, gateways, framing. A choice: the source's round trips then come out

    @property
    def _geometry(self) -> engine.Orbit:
        return engine.Orbit(self.altitude_km, self.satellites, self.latitude, self.apart, self.processing_ms / 1e3)

    @property
    def period_s(self) -> float:
        """Of one turn around the earth."""
        return self._geometry.period_s

    @property
    def is_fixed(self) -> bool:
        """True if it stays over one place: within a minute of the earth's own turn."""
        return self._geometry.is_fixed

    @property
    def handover_s(self) -> float:
        """From one satellite to the next, for who stands on the earth; infinite if it is fixed."""
        return self._geometry.handover_s

    def delay_ms(self, t_s: float) -> float:
        """One way, `t_s` after a satellite began to serve."""
        return self._geometry.delay_ms(t_s)

    def is_seen(self) -> bool:
        """True if both stations have the serving satellite above the horizon all the time."""
        return self._geometry.is_seen

    def keys(self) -> dict[str, Any]:
        """As `orbit` of a scenario's `[[changes]]`."""
        return {
            "altitude_km": self.altitude_km,
            "satellites": self.satellites,
            "latitude": self.latitude,
            "apart": self.apart,
            "processing": f"{round(self.processing_ms * 1e6)}ns",
        }


GEO = Orbit(35_786.0)
MEO = Orbit(8_063.0, satellites=8)
LEO = Orbit(780.0, satellites=11)  # Iridium's height and satellites in a plane


def delay(orbit: Orbit, t_s: float) -> str:
    """The delay as a scenario writes it."""
    return f"{round(orbit.delay_ms(t_s) * 1e3)}us"
