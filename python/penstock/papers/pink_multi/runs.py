"""The runs of `pink-multi`."""

from __future__ import annotations

from typing import Any

from penstock.reproduce.settings import Setting

REALLOCATIONS = ("off", "paper", "max-min")
# Flow 3 crosses a link of 0.5 Mbit/s, as flow 2 crosses one of 2 Mbit/s.
_TWO_CORNERS: list[dict[str, Any]] = [
    {"kind": "bulk", "start": f"{25 * i}s", "from": "local", "to": {1: "corner", 2: "nook"}.get(i, "remote")}
    for i in range(8)
]

SETTINGS = (
    *(Setting(mode, f"one bad flow, {mode}", change={"aqm.reallocation": mode}) for mode in REALLOCATIONS),
    *(
        Setting(f"{mode}-two", f"two bad flows, {mode}", change={"aqm.reallocation": mode, "flows": _TWO_CORNERS})
        for mode in REALLOCATIONS
    ),
)
