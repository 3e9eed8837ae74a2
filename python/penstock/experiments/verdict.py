"""The rule by which `compare` answers: which side serves best, in an order of what counts.

Levels, in their order:

1. what people feel: calls, video, pages and transfers;
2. goodput of both directions, each as a share of its link, together;
3. time in the queues;
4. drops.

Two sides are compared seed by seed. In one quantity a side is *better* if the interval of 99 % of the differences
excludes zero and the means differ by more than the quantity's margin, below which nobody notices. Of more than two
sides, the 1 % is divided among all pairs, so that with many of them none is behind by chance. The sides are
*alike* if the means differ by no more than the margin, and the interval of 95 % reaches no further than twice of it.
Else the runs leave it *open*. A difference that is the same in all of at least eight different runs is as sure as one
of 99 %: by chance alone they have one sign in one of 128 cases.

On a level a side is better if it is better in a quantity and worse in none; where one is better in one quantity and the
other in another, it *depends* on what is wanted. The first level on which two sides are not alike decides between them,
also if it leaves it open: what counts less never outweighs what the runs cannot tell. Those serve best that no other
beats. With one seed, or with seeds that are one run (`penstock.chance`), the runs cannot tell.

`what-if` judges by the margins of goodput and of queues.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.experiments import statistics
from penstock.experiments.measures import HIGHER, LOWER
from penstock.experiments.statistics import Interval

UNSURE = 0.01  # with which a sentence may be wrong about a quantity of equal sides
REACH = 2.0  # margins, to which the interval of a difference that does not count may reach
ONE_SIGN = 8  # so many different runs with the same difference are as sure: 2 in 2**8 cases have one sign by chance
BETTER, WORSE, ALIKE, OPEN, DEPENDS = "better", "worse", "alike", "open", "depends"
BEST, CANNOT_TELL = "best", "cannot tell"  # verdicts, beside DEPENDS
ONE_SEED = "one seed has no interval; --seeds 10 gives one"
ONE_RUN = "all its seeds are one run, which has no interval"
FAILED = "{} of its {} runs failed"
NOTHING_CAME = "nothing was delivered"
FELT, CARRYING, QUEUEING, DROPPING = range(4)

Values = Sequence[float | None]


@dataclass(frozen=True)
class Quantity:
    """A number of a run by which sides are judged, and the margin within which it counts as the same."""

    key: str
    level: int
    words: str
    form: Callable[[float], str]
    better: str
    part: float = 0.0  # margin as a part of the better value
    least: float = 0.0  # margin in units of the quantity, if that is more
    about: str = ""
    unit: str = ""  # in which differences are written, and its size
    scale: float = 1.0

    def margin(self, best: float) -> float:
        """Returns by how much a value may be worse than the better one and count as the same."""
        return max(self.part * abs(best), self.least)

    def near(self, value: float, best: float) -> bool:
        """Returns whether a value counts as the same as the better one, or is better."""
        if self.better == HIGHER:
            return value >= min((1 - self.part) * best, best - self.least)
        return value <= max((1 + self.part) * best, best + self.least)

    def apart(self, interval: Interval) -> str:
        """Returns a difference with its interval in words."""
        return f"{statistics.with_ends(interval, self.scale, '+')} {self.unit}".rstrip()

    @property
    def told(self) -> str:
        """The margin in words."""
        parts = [f"{100 * self.part:g} %"] if self.part else []
        return " and ".join([*parts, *([self.form(self.least)] if self.least else [])])


_MOS = "MOS "


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def _ms(value: float) -> str:
    return f"{value:,.0f} ms" if abs(value) >= 100 else f"{value:.3g} ms"


CALLS = Quantity(
    "mos", FELT, "calls", (_MOS + "{:.2f}").format, HIGHER, least=0.1,
    about="mean opinion score of calls (E-model, 1 to 4.5), mean over the calls",
)  # fmt: skip
PLAYED = Quantity(
    "played", FELT, "video", _percent, HIGHER, least=0.01,
    about="part of the frames of videos that was played in time", unit="%", scale=0.01,
)  # fmt: skip
PAGES = Quantity(
    "page_ms", FELT, "pages", _ms, LOWER, part=0.1, least=20.0,
    about="median time of a page, mean over the flows of pages (web, http)", unit="ms",
)  # fmt: skip
CAME = Quantity(
    "pages_came", FELT, "pages that came", _percent, HIGHER, least=0.1,
    about="part of the pages that were complete when the run ended", unit="%", scale=0.01,
)  # fmt: skip
TRANSFERS = Quantity(
    "transfer_s", FELT, "transfers", "{:.3g} s".format, LOWER, part=0.05,
    about="median time of a transfer with an end, mean over its flows", unit="s",
)  # fmt: skip
CARRIED = Quantity(
    "carried", CARRYING, "goodput", _percent, HIGHER, part=0.05,
    about="goodputs of both directions, each as a share of its link, together", unit="%", scale=0.01,
)  # fmt: skip
DELAY = Quantity(
    "queue_ms", QUEUEING, "queue", _ms, LOWER, part=0.1, least=1.5,
    about="90th percentile of the queueing delay, of the measured link where it is longest", unit="ms",
)  # fmt: skip
DROPPED = Quantity(
    "dropped", DROPPING, "drops", _percent, LOWER, least=0.005,
    about="dropped packets as a part of those that came to the measured links", unit="%", scale=0.01,
)  # fmt: skip
QUANTITIES = (CALLS, PLAYED, PAGES, CAME, TRANSFERS, CARRIED, DELAY, DROPPED)
BY_KEY: Mapping[str, Quantity] = {quantity.key: quantity for quantity in QUANTITIES}


@dataclass(frozen=True)
class Sample:
    """What the runs of a side have: a value for each seed of each quantity, and how many of its runs are different."""

    label: str
    values: Mapping[str, Values]
    runs: int

    @property
    def problem(self) -> str:
        """Why the side cannot be judged; empty if it can."""
        by_seed = [list(column) for column in zip(*map(_known, self.values.values()), strict=True)]
        failed = sum(all(value is None for value in of_run) for of_run in by_seed)
        if failed:
            return FAILED.format(failed, len(by_seed))
        return ONE_RUN if self.runs < 2 else ""


@dataclass(frozen=True)
class Apart:
    """How a side differs from another in one quantity."""

    quantity: Quantity
    relation: str  # BETTER, WORSE, ALIKE or OPEN
    first: float
    other: float
    interval: Interval  # of the differences, 95 %; NaN where a value is missing
    why: str = ""  # nothing can be said

    def to_json(self) -> dict[str, Any]:
        """Returns the difference as plain values."""
        return {"relation": self.relation, **self.interval.to_json()}

    @property
    def told(self) -> str:
        """The two values in words, that of the other side first."""
        if self.why:
            return f"{self.quantity.words}: {self.why}"
        form, words = self.quantity.form, self.quantity.words
        return f"{words} {form(self.other)} instead of {form(self.first).removeprefix(_MOS)}"


@dataclass(frozen=True)
class Pair:
    """How a side differs from another: by the first level on which they are not alike."""

    first: str
    other: str
    relation: str  # BETTER, WORSE, ALIKE, OPEN or DEPENDS: what the other side is beside the first
    apart: tuple[Apart, ...]  # of all quantities

    @property
    def deciding(self) -> list[Apart]:
        """The quantities of the deciding level that have the relation; all on it if it depends."""
        level = min((one.quantity.level for one in self.apart if one.relation != ALIKE), default=-1)
        found = [one for one in self.apart if one.quantity.level == level]
        wanted = (BETTER, WORSE) if self.relation == DEPENDS else (self.relation,)
        return [one for one in found if one.relation in wanted]

    @property
    def alike_before(self) -> list[str]:
        """The words of what is alike before the level that decides."""
        level = min((one.quantity.level for one in self.apart if one.relation != ALIKE), default=-1)
        return _words(one.quantity for one in self.apart if one.quantity.level < level)


@dataclass(frozen=True)
class Answer:
    """Which sides serve best, in one setting, and why."""

    verdict: str  # BEST, CANNOT_TELL or DEPENDS
    best: tuple[str, ...]
    sentence: str
    because: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns the answer as plain values."""
        return {
            "settings": dict(self.settings),
            "verdict": self.verdict,
            "best": list(self.best),
            "sentence": self.sentence,
            "because": list(self.because),
        }


def apart(quantity: Quantity, first: Sample, other: Sample, pairs: int = 1) -> Apart | None:
    """Returns how a side differs from the first in a quantity, as one of so many pairs; `None` if none has it."""
    columns = [_known(one.values.get(quantity.key, ())) for one in (first, other)]
    if all(value is None for column in columns for value in column):
        return None
    nothing = Interval(math.nan, math.nan, math.nan)
    for side, column in zip((first, other), columns, strict=True):
        missing = sum(value is None for value in column)
        if missing or not column:
            whole = missing == len(column)
            why = f"{side.label} has none" if whole else f"{side.label} has none in {missing} of {len(column)} seeds"
            return Apart(quantity, OPEN, math.nan, math.nan, nothing, why)
    both = [(a, b) for a, b in zip(*columns, strict=True) if a is not None and b is not None]
    means = [math.fsum(column) / len(both) for column in zip(*both, strict=True)]
    runs = min(first.runs, other.runs)
    interval = statistics.mean([b - a for a, b in both], runs)
    relation = _relation(quantity, means[0], means[1], interval, runs, 1 - UNSURE / pairs)
    return Apart(quantity, relation, means[0], means[1], interval)


def _known(values: Values) -> list[float | None]:
    return [value if value is not None and math.isfinite(value) else None for value in values]


def _relation(quantity: Quantity, first: float, other: float, interval: Interval, runs: int, level: float) -> str:
    if runs < 2:
        return OPEN
    margin = quantity.margin(max(first, other) if quantity.better == HIGHER else min(first, other))
    if abs(interval.value) <= margin:
        reach = abs(interval.value) + (interval.half_width if interval.known else 0.0)
        return ALIKE if reach <= REACH * margin or interval.value == reach == 0 else OPEN
    sure = statistics.excludes_zero(interval, runs, level) if interval.known else runs >= ONE_SIGN
    if not sure:
        return OPEN
    return BETTER if (interval.value > 0) == (quantity.better == HIGHER) else WORSE


def pair(first: Sample, other: Sample, pairs: int = 1) -> Pair:
    """Compares two sides by the rule, one of so many pairs."""
    found = tuple(one for quantity in QUANTITIES if (one := apart(quantity, first, other, pairs)))
    for level in sorted({one.quantity.level for one in found}):
        relations = {one.relation for one in found if one.quantity.level == level}
        if {BETTER, WORSE} <= relations:
            return Pair(first.label, other.label, DEPENDS, found)
        for relation in (BETTER, WORSE, OPEN):
            if relation in relations:
                return Pair(first.label, other.label, relation, found)
    return Pair(first.label, other.label, ALIKE, found)


def judged(sides: Sequence[Sample], settings: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    """Returns as plain values what sides are judged by: each quantity with its values, and how it differs from the
    first side.
    """
    listed = []
    for quantity in QUANTITIES:
        found = [apart(quantity, sides[0], other, math.comb(len(sides), 2)) for other in sides[1:]]
        if any(found):
            values = [_known(side.values.get(quantity.key, ())) for side in sides]
            differences = [one.to_json() if one else None for one in found]
            listed.append({"key": quantity.key, "values": values, "differences": differences})
    return {"settings": dict(settings), "runs": [side.runs for side in sides], "quantities": listed}


def answer(sides: Sequence[Sample], of: str = "", settings: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Answers which sides serve best; `of` is what they serve, such as the name of a scenario."""
    all_labels = tuple(side.label for side in sides)
    able = [side for side in sides if not side.problem]
    problems = [f"{side.label}: {side.problem}" for side in sides if side.problem]
    if reason := _no_answer(sides, able):
        sentence = f"The runs cannot tell which of {_listed(all_labels)} serves{_of(of)} best: {reason}."
        return Answer(CANNOT_TELL, all_labels, sentence, tuple(problems) if able else (), settings)
    labels = tuple(side.label for side in able)
    many = math.comb(len(able), 2)
    pairs = {(a.label, b.label): pair(a, b, many) for a, b in itertools.permutations(able, 2)}
    beaten = {second for (_, second), one in pairs.items() if one.relation == WORSE}
    best = tuple(label for label in labels if label not in beaten) or labels
    verdict, sentence, among = _sentence(labels, best, pairs, of)
    rest = [_behind(label, best, pairs) for label in labels if label not in best]
    judged = f"Of {_listed(labels)}, which can be judged: {sentence}" if problems else sentence
    return Answer(verdict, best, judged, (*among, *rest, *problems), settings)


def _no_answer(sides: Sequence[Sample], able: Sequence[Sample]) -> str:
    """Returns why no sides can be judged; nothing if they can."""
    columns = [column for side in sides for column in side.values.values()]
    if max(map(len, columns), default=0) < 2:
        return ONE_SEED
    if len(able) < 2:
        problems = list(dict.fromkeys(side.problem for side in sides if side.problem))
        alike = len(problems) == 1 and not able
        return f"of each, {problems[0]}" if alike else "only one can be judged" if able else "none can be judged"
    carried = [value for side in able for value in side.values.get(CARRIED.key, ())]
    return NOTHING_CAME if carried and not any(carried) else ""


def _sentence(
    labels: tuple[str, ...], best: tuple[str, ...], pairs: Mapping[tuple[str, str], Pair], of: str
) -> tuple[str, str, list[str]]:
    """Returns the verdict, the sentence, and what is told of those that serve best."""
    among = [pairs[two] for two in itertools.combinations(best, 2)]
    relations = {one.relation for one in among}
    if len(best) == 1:
        return BEST, f"{best[0]} serves{_of(of)} best.", []
    if DEPENDS in relations:
        for_ = "; ".join(_favourites(best, pairs))
        return DEPENDS, f"None serves{_of(of)} best in all that people feel: {for_}.", []
    everybody = len(best) == len(labels)
    if OPEN in relations:
        told = [_open(one) for one in among if one.relation == OPEN]
        which = _listed(best, "or")
        sentence = f"{which} serves{_of(of)} best; the runs cannot tell which."
        if everybody:
            sentence = f"The runs cannot tell which of {_listed(best)} serves{_of(of)} best."
        more = any(not each.why for one in among for each in one.deciding if one.relation == OPEN)
        return CANNOT_TELL, sentence, [*told, *(["more seeds may tell"] if more else [])]
    how = "equally well" if everybody else "best"
    sentence = f"{_listed(best)} serve{_of(of)} {how}; the runs cannot tell between them."
    words = _words(one.quantity for two in among for one in two.apart)
    return CANNOT_TELL, sentence, [f"no difference that counts: {_listed(words)}"]


def _favourites(best: Sequence[str], pairs: Mapping[tuple[str, str], Pair]) -> Iterator[str]:
    """Yields for each deciding quantity who is not beaten in it among the best."""
    deciding = {one.quantity.key for two in itertools.permutations(best, 2) for one in _decides(pairs[two])}
    for quantity in QUANTITIES:
        if quantity.key in deciding:
            names = [label for label in best if not _beaten(label, quantity, best, pairs)]
            yield f"{_listed(names)} for {quantity.words}"


def _decides(one: Pair) -> list[Apart]:
    return one.deciding if one.relation == DEPENDS else []


def _beaten(label: str, quantity: Quantity, best: Sequence[str], pairs: Mapping[tuple[str, str], Pair]) -> bool:
    others = (pairs[other, label] for other in best if other != label)
    return any(one.quantity is quantity and one.relation == WORSE for other in others for one in other.apart)


def _open(one: Pair) -> str:
    """Says where the runs leave it open which of two is better."""
    return f"{one.other} beside {one.first}: {'; '.join(map(_open_apart, one.deciding))}"


def _open_apart(one: Apart) -> str:
    if one.why or not one.interval.known:
        return one.told
    return f"{one.told}, difference {one.quantity.apart(one.interval)}"


def _behind(label: str, best: Sequence[str], pairs: Mapping[tuple[str, str], Pair]) -> str:
    """Says in what a side is behind one of the best, or else behind any other."""
    others = [*best, *(first for first, second in pairs if second == label and first not in best)]
    one = next(pairs[other, label] for other in others if pairs[other, label].relation == WORSE)
    alike = f"; {_listed(one.alike_before)} alike" if one.alike_before else ""
    return f"{label} beside {one.first}: {', '.join(each.told for each in one.deciding)}{alike}"


def _words(of: Iterable[Quantity]) -> list[str]:
    """Returns the words of quantities, each once; that all pages came goes without saying."""
    return [quantity.words for quantity in dict.fromkeys(of) if quantity is not CAME]


def _of(name: str) -> str:
    return f" {name}" if name else ""


def _listed(names: Sequence[str], word: str = "and") -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}" if len(names) > 1 else "".join(names)
