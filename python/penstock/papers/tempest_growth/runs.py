"""The runs of `tempest-growth`."""

from __future__ import annotations

from penstock.reproduce.tempest import Test

COUNTS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000)
GROWING = ("fifo", "drr", "wf2q-plus", "kps", "qfq-plus")

TESTS = tuple(Test(f"n-{n}", f"{n:,} flows", GROWING, {"flowsets": f"1::{n}"}, n) for n in COUNTS)
