"""Scenarios of emergency networks: LTE cells on vehicles (MEOCs), connected by satellite with headquarters (EOC).

The networks follow the reference architecture of *Communication Networks for Public Protection and Disaster Relief
Systems*, section 2.1. `emergency_network` returns one as a mapping with the keys of a scenario file.
"""

from __future__ import annotations

from penstock.architecture import orbit
from penstock.architecture.moves import ArchitectureError, Handover
from penstock.architecture.network import BACKHAULS, Backhaul, BaseStation, Meoc, emergency_network
from penstock.architecture.orbit import GEO, LEO, MEO, Orbit

__all__ = [
    "BACKHAULS",
    "GEO",
    "LEO",
    "MEO",
    "ArchitectureError",
    "Backhaul",
    "BaseStation",
    "Handover",
    "Meoc",
    "Orbit",
    "emergency_network",
    "orbit",
]
