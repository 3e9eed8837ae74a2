"""The runs of `tempest-time`."""

from __future__ import annotations

from penstock.papers._shared.schedulers import flows_in
from penstock.reproduce.tempest import Test

WIRED_TESTED = ("fifo", "drr", "wf2q-plus", "qfq", "qfq-plus")

FLOW_SETS = {
    "1k-w1": "1::1k",
    "1k-wmix": "1::500,2::250,8::125",
    "32k-w1": "1::32k",
    "32k-wmix": "1::16k,2::8k,8::4k",
}
PATTERNS = {"smooth": "0", "bursty": "2"}

TESTS = tuple(
    Test(f"{pattern}-{name}", f"{pattern}, {name}", WIRED_TESTED, {"burst": burst, "flowsets": sets}, flows_in(sets))
    for pattern, burst in PATTERNS.items()
    for name, sets in FLOW_SETS.items()
)
