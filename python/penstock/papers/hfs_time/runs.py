"""The runs of `hfs-time`."""

from __future__ import annotations

from penstock.papers._shared.hfs import WIRED, Modular, tests

_TIMED = ("hfs", "hfs-wf2q-plus", "hfs-drr", "double-drr", "double-wf2q-plus")

KIND = Modular

TESTS = tests(_TIMED, WIRED)
