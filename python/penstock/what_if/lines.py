"""Lines on which advice is hard, as scenarios whose truth is known: asymmetric ones, and others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

ON, BACK = {"from": "gateway", "to": "provider"}, {"from": "provider", "to": "gateway"}
SPREAD = {"start_spread": "500ms"}
TODAY: Mapping[str, Any] = {"profile": "linux"}
_LATER = ("bulk", "transfer")


@dataclass(frozen=True)
class Line:
    """A capture whose truth is known."""

    kind: str
    name: str
    up_mbps: float
    down_mbps: float
    limit: str
    flows: tuple[Mapping[str, Any], ...]
    tcp: Mapping[str, Any] = field(default_factory=lambda: TODAY)
    delay_ms: int = 8
    more: Mapping[str, Any] = field(default_factory=dict)  # keys of the link
    changes: tuple[Mapping[str, Any], ...] = ()
    in_place: Mapping[str, Any] = field(default_factory=lambda: {"name": "droptail"})
    joined: bool = False  # the machine of the capture sends and receives several segments as one

    @property
    def back_bps(self) -> int:
        """The rate of the download in bit/s."""
        return round(self.down_mbps * 1e6)

    def scenario(self, discipline: str = "", shift_ms: int = 0) -> dict[str, Any]:
        """Returns the true scenario under a discipline, or that in place, in which transfers begin so much later."""
        link = {
            "a": "gateway",
            "b": "provider",
            "name": "link",
            "rate": f"{round(self.up_mbps * 1e6)}bit/s",
            "reverse_rate": f"{self.back_bps}bit/s",
            "delay": f"{self.delay_ms}ms",
            "limit": self.limit,
            "reverse_limit": self.limit,
            "aqm": {"name": discipline} if discipline else dict(self.in_place),
            "reverse_aqm": "droptail",
            **self.more,
        }
        return {
            "name": "truth",
            "duration": "30s",
            "topology": {"kind": "graph", "access_rate": "1Gbit/s", "access_delay": "1ms", "links": [link]},
            "tcp": dict(self.tcp),
            "flows": [later(flow, shift_ms) for flow in self.flows],
            **({"changes": [dict(change) for change in self.changes]} if self.changes else {}),
            "output": {"series": False},
        }


def later(flow: Mapping[str, Any], shift_ms: int) -> dict[str, Any]:
    """Returns a flow that begins so much later, if it is a transfer."""
    if flow["kind"] not in _LATER:
        return dict(flow)
    return {**flow, "start": f"{1000 * float(str(flow.get('start', '0s')).removesuffix('s')) + shift_ms:g}ms"}


def _bulk(way: Mapping[str, str], count: int = 1, delay_ms: int = 10, **more: Any) -> dict[str, Any]:
    return {"kind": "bulk", "count": count, "access_delay": f"{delay_ms}ms", **way, **SPREAD, **more}


_CALL = {"kind": "voip", **ON}
_ASYMMETRIC = (
    (1, 10, "32kB"),
    (2, 16, "64kB"),
    (5, 20, "128kB"),
    (5, 50, "128kB"),
    (10, 50, "256kB"),
    (10, 100, "256kB"),
)
_HOUSE = (_bulk(ON, 2, 15), _bulk(BACK, 2, 12), {"kind": "web", "per_second": 2, "access_delay": "20ms", **BACK}, _CALL)
_THREE = (_bulk(ON, 3), {"kind": "voip", "count": 2, **ON})
_OLD = {"cc": {"name": "cubic-linux", "hystart": False}}


def _boost(way: str, first: str, then: str) -> tuple[Mapping[str, Any], ...]:
    """Changes of a shaper that lets a direction have a higher rate until its tokens are used up, after six seconds."""
    rates = {"0s": first, "6s": then}
    return tuple({"link": "link", "at": at, "direction": way, "rate": rate} for at, rate in rates.items())


def lines() -> Iterator[Line]:
    """Returns the 36 lines."""
    for up, down, limit in _ASYMMETRIC:
        name = f"{up}/{down} Mbit/s"
        yield Line("asymmetric", f"{name}, one each way", up, down, limit, (_bulk(BACK), _bulk(ON)), _OLD)
        yield Line("asymmetric", f"{name}, a house", up, down, limit, _HOUSE)
    stations = {"stations": [0.02, 0.1, 0.0, 0.05, 0.05]}
    yield Line("losses behind", "wireless, three transfers", 20, 20, "256kB", _THREE, _OLD, more=stations)
    yield Line("losses behind", "1 %, two transfers", 20, 20, "256kB", (_bulk(ON, 2), _CALL), more={"loss": 0.01})
    yield Line("losses behind", "0.3 %, four transfers", 5, 20, "96kB", (_bulk(ON, 4), _CALL), more={"loss": 0.003})
    yield Line("losses behind", "1 %, both ways", 5, 20, "96kB", (_bulk(ON, 2), _bulk(BACK)), more={"loss": 0.01})
    marking = {**TODAY, "ecn": True}
    yield Line("in place", "fq-codel", 10, 50, "1000p", _HOUSE, in_place={"name": "fq-codel"})
    yield Line("in place", "codel with ECN", 10, 10, "1000p", _THREE, marking, in_place={"name": "codel", "ecn": True})
    yield Line("in place", "pie", 10, 10, "1000p", _THREE, in_place={"name": "pie"})
    yield Line(
        "in place", "fq-codel with ECN", 5, 20, "1000p", _HOUSE, marking, in_place={"name": "fq-codel", "ecn": True}
    )
    yield Line(
        "bursts", "a cable modem, 2 ms", 10, 100, "256kB", _HOUSE, more={"reverse_aggregate": {"interval": "2ms"}}
    )
    yield Line("bursts", "ACKs every 4 ms", 20, 20, "256kB", _THREE, more={"reverse_aggregate": {"interval": "4ms"}})
    wander = [{"delay": f"{ms}ms", "lasts": "50ms"} for ms in (8, 10, 13)]
    yield Line("jitter", "8 to 13 ms", 10, 50, "256kB", _HOUSE, changes=({"link": "link", "states": wander},))
    yield Line("jitter", "8 to 13 ms, uploads", 20, 20, "256kB", _THREE, changes=({"link": "link", "states": wander},))
    yield Line("joined", "uploads", 20, 20, "256kB", _THREE, joined=True)
    yield Line("joined", "both ways", 10, 100, "256kB", _HOUSE, joined=True)
    buckets = {"police": {"rate": "8Mbit/s", "burst": "32kB"}, "reverse_police": {"rate": "40Mbit/s", "burst": "128kB"}}
    ticks = {"interval": "10ms"}
    yield Line("shaper", "a token bucket, uploads", 10, 10, "128kB", _THREE, more={"police": buckets["police"]})
    yield Line("shaper", "token buckets both ways", 10, 50, "256kB", _HOUSE, more=buckets)
    fast = _boost("forward", "40Mbit/s", "20Mbit/s")
    yield Line("shaper", "40 Mbit/s, then 20", 20, 20, "256kB", _THREE, changes=fast)
    fast = _boost("reverse", "100Mbit/s", "50Mbit/s")
    yield Line("shaper", "100 Mbit/s, then 50", 10, 50, "256kB", _HOUSE, changes=fast)
    yield Line("shaper", "every 10 ms, uploads", 20, 20, "256kB", _THREE, more={"aggregate": ticks})
    both = {"aggregate": ticks, "reverse_aggregate": ticks}
    yield Line("shaper", "every 10 ms, both ways", 10, 50, "256kB", _HOUSE, more=both)
    bbr = {"profile": "linux", "cc": "bbr"}
    reno = {"profile": "linux", "cc": "newreno"}
    yield Line("mixed", "cubic and bbr", 20, 20, "256kB", (_bulk(ON, 2), _bulk(ON, 1, tcp=bbr), _CALL))
    yield Line("mixed", "cubic and newreno", 10, 50, "128kB", (_bulk(ON, 2), _bulk(ON, 2, tcp=reno), _bulk(BACK)))
    above = {"kind": "cbr", "rate": "15Mbit/s", **ON, **SPREAD}
    yield Line("datagrams above", "one transfer", 10, 10, "128kB", (_bulk(ON), above))
    yield Line("datagrams above", "both ways", 10, 50, "128kB", (_bulk(ON), _bulk(BACK), above))


__all__ = ["BACK", "ON", "SPREAD", "Line", "later", "lines"]
