"""Readable twins: plain, slow versions of algorithms, written straight from their sources.

They can be read beside a paper, and are compared with the Rust code on random traces. Each module has

    replay(arrivals, rate_bps, limit, params, uniform) -> list[Fate]

`arrivals` are in order of time, `limit` is ("packets", n) or ("bytes", n), `params` is the module's `Params`, and
`uniform` gives the next random number in [0, 1). Each module says when it draws one.
"""

from penstock.reference.link import Arrival, Fate, Limit

__all__ = ["Arrival", "Fate", "Limit"]
