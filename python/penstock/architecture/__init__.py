"""Scenarios of emergency networks: LTE cells on vehicles (MEOCs), backhauled by satellite to headquarters (EOC).

The reference architecture of *Communication Networks for Public Protection and Disaster Relief Systems*, section 2.1,
as scenarios: `emergency_network` makes one. It is what a scenario file may hold.
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
