"""What the transfers of `http` and `web` took, in the keys of the simulator's summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.wire.calls import quantiles

_CLASSES = (0, 10_000, 100_000, 1_000_000)  # least sizes of the classes of `by_size`, as in the simulator


def judge(kind: str, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Judges the transfers of a flow: of each its size, its begin and when its last byte came (`None`: not yet)."""
    rows = [(int(size), (end - begin) * 1e3) for size, begin, end in sent["transfers"] if end is not None]
    found = {
        "started": len(sent["transfers"]),
        "count": len(rows),
        "failed": sent["failed"],
        "refused": 0,
        "bytes": sum(size for size, _ in rows),
        "completion_ms": _took(rows),
    }
    return found | ({"by_size": _by_size(rows)} if kind == "web" and rows else {})


def _took(rows: Sequence[tuple[int, float]]) -> dict[str, float | None]:
    return quantiles(np.array([ms for _, ms in rows], float))


def _by_size(rows: Sequence[tuple[int, float]]) -> list[dict[str, Any]]:
    ends = [*_CLASSES[1:], float("inf")]
    classes = [
        (least, [row for row in rows if least <= row[0] < end]) for least, end in zip(_CLASSES, ends, strict=True)
    ]
    return [
        {
            "from_bytes": least,
            "count": len(inside),
            "mean_bytes": round(sum(size for size, _ in inside) / len(inside), 6),
            "completion_ms": _took(inside),
        }
        for least, inside in classes
        if inside
    ]
