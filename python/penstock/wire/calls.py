"""What calls and video were like, by the formulas of docs/reference/scenarios.md."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_PACKET_MS = 20.0
_NOTHING: dict[str, float | None] = dict.fromkeys(("mean", "p10", "p50", "p90", "p99", "max"))


def judge(sent: int, arrived: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Judges a call whose packets arrived in this order: number, time of sending, and delay in seconds."""
    delays = np.array([row[2] for row in arrived]) * 1e3
    best = _best_playout(np.sort(delays), _expected(arrived))
    playout, late, found = best or (None, None, 0.0 if sent else None)
    return {
        **_delivery(sent, arrived),
        "playout_ms": _rounded(playout),
        "late": _rounded(late),
        "r": _rounded(found),
        "mos": None if found is None else round(mos(found), 6),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def judge_video(firsts: Sequence[int], sent: int, arrived: Sequence[Sequence[float]], deadline_s: float) -> Any:
    """Judges a stream of frames, of which `firsts` has the numbers of the first packets.

    A frame is played if all of its packets arrive before the deadline. The last frame of which anything arrived may
    still be completed, and is not lost.
    """
    bounds = [*firsts, sent]
    came: dict[int, int] = {}
    played, late, last = 0, 0, -1
    delays = []
    for number, _, delay in arrived:
        frame = bisect.bisect_right(firsts, int(number)) - 1
        came[frame], last = came.get(frame, 0) + 1, max(last, frame)
        if came[frame] == bounds[frame + 1] - bounds[frame]:
            delays.append(delay * 1e3)
            played, late = (played + 1, late) if delay <= deadline_s else (played, late + 1)
            came[frame] = 0
    whole = last >= 0 and came[last] == 0
    return {
        **_delivery(sent, arrived),
        "frames": {
            "sent": len(firsts),
            "played": played,
            "late": late,
            "lost": max(last, 0) + whole - played - late,
            "delay_ms": quantiles(np.array(delays)),
        },
    }


def _expected(arrived: Sequence[Sequence[float]]) -> int:
    """Returns how many packets were sent up to the last one that arrived."""
    return max((int(row[0]) + 1 for row in arrived), default=0)


def _delivery(sent: int, arrived: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Returns what became of packets which arrived in this order: number, time of sending, and delay in seconds."""
    delays = np.array([row[2] for row in arrived]) * 1e3
    expected = _expected(arrived)
    lost = max(expected - len(arrived), 0)
    return {
        "sent": sent,
        "received": len(arrived),
        "lost": lost,
        "loss": round(lost / expected, 6) if expected else None,
        "delay_ms": quantiles(delays),
        "jitter_ms": _jitter(delays),
    }


def quantiles(ms: npt.NDArray[np.float64]) -> dict[str, float | None]:
    """Returns mean, percentiles and largest, all of which are missing if there is nothing."""
    if not len(ms):
        return dict(_NOTHING)
    at = {f"p{q}": round(float(np.percentile(ms, q)), 6) for q in (10, 50, 90, 99)}
    return {"mean": round(float(ms.mean()), 6), **at, "max": round(float(ms.max()), 6)}


def _jitter(ms: npt.NDArray[np.float64]) -> dict[str, float | None]:
    """Returns the interarrival jitter of RFC 3550 A.8, which needs two packets."""
    if len(ms) < 2:
        return dict.fromkeys(("mean", "max", "last"))
    last, total, most = 0.0, 0.0, 0.0
    for difference in np.abs(np.diff(ms)):
        last += (float(difference) - last) / 16
        total += last
        most = max(most, last)
    return {"mean": round(total / (len(ms) - 1), 6), "max": round(most, 6), "last": round(last, 6)}


def rating(delay_ms: float, loss: float) -> float:
    """Returns the rating R for a delay from mouth to ear and a share of packets lost."""
    percent = 100 * loss
    return 93.2 - 0.024 * delay_ms - 0.11 * max(delay_ms - 177.3, 0.0) - 95 * percent / (percent + 25.1)


def mos(r: float) -> float:
    """Returns the mean opinion score of a rating (G.107 Annex B)."""
    if r <= 0:
        return 1.0
    r = min(r, 100.0)
    return max(1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6, 1.0)


def _best_playout(ms: npt.NDArray[np.float64], expected: int) -> tuple[float, float, float] | None:
    """Returns the playout delay with the best rating, the share of packets that are too late for it, and the rating;
    nothing if no packet arrived.
    """
    found = [
        (rating(float(delay) + _PACKET_MS, 1 - count / expected), float(delay), (len(ms) - count) / expected)
        for count, delay in enumerate(ms, 1)
    ]
    if not found:
        return None
    best, playout, late = max(found)
    return playout, late, best
