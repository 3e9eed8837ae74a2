"""What the words of the documents mean: one table, which every check of the ledger reads.

The documents show curves and say "close", "rises" or "comparable". The ledger decides by these numbers alone.
A bound of a theorem, a rate, or a number that the document itself gives is no word and stands beside its check.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """A line of the table: words, and what has to be so."""

    words: str
    means: str


TABLE: list[Meaning] = []


def _word(value: float, words: str, means: str) -> float:
    TABLE.append(Meaning(words, means))
    return value


# Amounts: rates, times, bytes.
CLOSE = _word(0.03, "close to, near, almost identical, as much as", "within 3 %")
COMPARABLE = _word(0.05, "comparable, similar, alike, the same", "within 5 %")
ABOUT = _word(0.10, "about, around, circa, in the vicinity of; a rate or a time of a table", "within 10 %")
HALF = _word(0.50, "a queue of a table", "within 50 %: queues of two simulators differ more than rates do")
FACTOR = _word(2.0, "a number of drops of a table, about the same drops", "within a factor of two")
NEGLIGIBLE = _word(0.01, "negligible, vanishes, hardly varies", "at most 1 % of what it is compared with")
LITTLE = _word(0.10, "little, next to nothing, an order of magnitude", "at most a tenth of what it is compared with")
SLIGHT = _word(0.10, "slightly, a little, marginally", "in this direction, and by at most 10 %")
MUCH = _word(1.25, "much, clearly, significantly, considerably, a great gap", "by at least a quarter; else not much")
FAR = _word(2.0, "far above, halved by many, sharply, a huge waste", "at least twice, or at most half")
MOST = _word(0.75, "most of, most of the time", "three quarters and more")
ALMOST_ALWAYS = _word(0.95, "almost always", "in 95 % and more")
NEAR_BEST = _word(0.25, "close to the best", "within a quarter of the way from the best to the worst")

# Series.
LESS = _word(0.005, "above, below, more, less, shorter, of two numbers", "by more than 0.5 %")
CHANCE = _word(0.005, "goes from ... to", "a step of less than 0.5 % is none")
RISE = _word(0.01, "rises, grows; falls", "by more than 1 % in all, and without a step back that is more than chance")
CONSTANT = _word(0.05, "constant, stable, steady, flat, a narrow box", "lowest and highest within 5 % of the middle")

# Shares of a link, and indices of fairness.
FULL = _word(0.95, "full, fully used, nearly optimal", "at least 95 % of what the link can carry")
POOR = _word(0.90, "poor, not fully used", "less than 90 % of what the link can carry")
SHARE = _word(0.10, "a fair share, an even share, about half", "within 10 % of the equal part")
FAIR = _word(0.95, "fair, evenly, near 1, approaches 1", "Jain's index of 0.95 and more")
UNFAIR = _word(0.90, "unfair, poor fairness", "Jain's index below 0.9")
HIGH = _word(0.80, "a high index", "Jain's index of 0.8 and more")
INDEX = _word(0.05, "an index of a table", "within 0.05")
SAME_INDEX = _word(0.02, "as fair as", "indices within 0.02 of each other")

# Times of processors, which differ from machine to machine.
COST = _word(1.25, "takes about as long", "less than a quarter more processor time")
CONSTANT_COST = _word(
    2.0, "takes the same whatever the number of flows", "at most twice the processor time: caches have their part in it"
)
