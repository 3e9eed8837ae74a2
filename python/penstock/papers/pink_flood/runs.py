"""The runs of `pink-flood`."""

from __future__ import annotations

from penstock.reproduce.settings import Setting

# SYNs per second; each takes 52 B of the link. The flood begins when the transfers are under way.
FLOODS = (100, 1000, 10_000)
FLOOD_FROM_S = 5  # the end of the warm-up, so that only the flood is measured
SYN_BYTES = 52
SAMPLINGS = {"off": "every SYN counts", "after-drop": "SYNs count until a drop", "always": "who transmits counts"}


def _flood_setting(sampling: str, per_second: int) -> Setting:
    flood = {"kind": "synflood", "per_second": per_second, "start": f"{FLOOD_FROM_S}s"}
    transfers = {"kind": "bulk", "count": 8}
    return Setting(
        f"{sampling}-{per_second}",
        f"{SAMPLINGS[sampling]}, {f'{per_second:,} SYNs per second' if per_second else 'no flood'}",
        change={"aqm.sampling": sampling, "flows": [transfers, flood] if per_second else [transfers]},
        quick=per_second in (0, 1000),
        flows=8,
    )


SETTINGS = tuple(_flood_setting(sampling, n) for sampling in SAMPLINGS for n in (0, *FLOODS))
