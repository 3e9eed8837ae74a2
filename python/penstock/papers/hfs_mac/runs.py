"""The runs of `hfs-mac`."""

from __future__ import annotations

from penstock.papers._shared.hfs import VARIANTS, Modular, tests

_OF_LAYERS = ("hfs", "hfs-wf2q-plus", "hfs-drr")

KIND = Modular

TESTS = tests(_OF_LAYERS, ())[1:]

__all__ = ["KIND", "TESTS", "VARIANTS"]
