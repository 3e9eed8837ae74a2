"""The runs of `tempest-throughput`."""

from __future__ import annotations

from penstock.papers._shared.schedulers import BOTH, CHANCE, DOUBLED, STEPS, STEPS_CHANCE, TEN_EACH, over_q
from penstock.reproduce.tempest import INTEGRATED, Test

TESTS = (Test("integrated", "no second layer", INTEGRATED, {}, 100), *over_q("hfs", "hfs-drr"))

VARIANTS = (STEPS, CHANCE, STEPS_CHANCE, BOTH, DOUBLED, TEN_EACH)
