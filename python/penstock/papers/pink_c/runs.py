"""The runs of `pink-c`."""

from __future__ import annotations

from typing import Any

from penstock.reproduce.settings import Setting

SATELLITE: dict[str, Any] = {  # Table 3
    "topology.rate": "4Mbit/s",
    "topology.delay": "350ms",
    "topology.limit": "350kB",
    "warmup": "20s",
}
C_VALUES = tuple(round(0.80 + 0.01 * step, 2) for step in range(21))
C_QUICK = (0.80, 0.90, 0.92, 0.95, 0.97, 1.00)


def _c_settings() -> tuple[Setting, ...]:
    return tuple(
        Setting(f"{link}-{c:.2f}", f"{title}, c = {c:.2f}", change={**change, "aqm.c": c}, quick=c in C_QUICK)
        for link, title, change in (("dsl", "DSL", {}), ("sat", "satellite", SATELLITE))
        for c in C_VALUES
    )


SETTINGS = _c_settings()
