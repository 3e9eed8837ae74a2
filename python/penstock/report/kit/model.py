"""What a page can have. Values are plain: nothing here knows runs or experiments."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

DIGITS = 5  # significant digits of the numbers of charts
ROWS = 60  # a longer table shows its first rows, and the others on request

Numbers = Sequence[float | None]


@dataclass(frozen=True)
class Axis:
    """An axis of a chart. With `names`, the positions 0, 1, 2 and so on have these names."""

    label: str
    unit: str = ""
    log: bool = False
    zero: bool = False  # the axis begins at zero
    low: float | None = None
    high: float | None = None
    names: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns the axis for the script."""
        told = {"label": self.label, "unit": self.unit}
        flags = {"log": self.log, "zero": self.zero, "names": list(self.names)}
        ends = {"min": self.low, "max": self.high}
        given = {key: end for key, end in ends.items() if end is not None}
        return {**told, **{key: flag for key, flag in flags.items() if flag}, **given}


@dataclass(frozen=True)
class Line:
    """One line of a chart, with an interval around each value if `low` and `high` are given.

    Styles: "line", "step" (a value holds until the next), "points", and "band" (the interval is filled).
    """

    name: str
    ys: Numbers
    colour: int = 0  # place in the palette, which gives the shape of marks as well
    xs: Numbers | None = None  # without it the line has the chart's
    low: Numbers | None = None
    high: Numbers | None = None
    style: str = "line"
    mark: bool = False
    open: bool = False  # marks are open: values of a document, beside ours
    hidden: bool = False

    def to_json(self) -> dict[str, Any]:
        """Returns the line for the script."""
        told: dict[str, Any] = {"name": self.name, "c": self.colour, "y": rounded(self.ys)}
        given = {"x": self.xs, "lo": self.low, "hi": self.high}
        flags = {"mark": self.mark, "open": self.open, "off": self.hidden}
        told |= {key: rounded(values) for key, values in given.items() if values is not None}
        told |= {key: True for key, flag in flags.items() if flag}
        return told if self.style == "line" else {**told, "style": self.style}


@dataclass(frozen=True)
class Chart:
    """A chart with lines over x. Charts with the same `together` share their range of x and the cursor."""

    title: str
    read: str  # explains how to read the chart
    x: Axis
    y: Axis
    lines: Sequence[Line]
    xs: Numbers = ()
    together: str = ""
    item: str = ""  # what it reproduces, such as a figure of a document

    def to_json(self) -> str:
        """Returns the chart for the script, in a form that may stand in HTML."""
        told = {"title": self.title, "x": self.x.to_json(), "y": self.y.to_json(), "xs": rounded(self.xs)}
        lines = [{**line.to_json(), **self._dashed(place)} for place, line in enumerate(self.lines)]
        text = json.dumps({**told, "sync": self.together, "lines": lines}, ensure_ascii=False, separators=(",", ":"))
        return text.replace("<", "\\u003c")

    def _dashed(self, place: int) -> dict[str, Any]:
        """Returns a dash for a line that would hide an earlier one, which then shows between its dashes."""
        line = self.lines[place]
        hidden = any(_covers(line, earlier) for earlier in self.lines[:place])
        return {"dash": [7, 7]} if hidden and line.style in ("line", "step") else {}

    @property
    def said(self) -> str:
        """What the chart shows, for who cannot see it."""
        names = [line.name for line in self.lines]
        listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        return f"{self.y.label} over {self.x.label}: {listed}. Arrow keys read values, plus and minus zoom."


@dataclass(frozen=True)
class Cell:
    """A cell of a table, if it is more than a text. `value` is what the table is sorted by."""

    text: str
    value: float | None = None
    chip: str = ""  # class of a coloured label: a verdict
    colour: int | str | None = None  # a dot before the text: a place in the palette, or a colour
    small: str = ""  # a second line
    wide: bool = False  # a longer text
    more: Evident | None = None  # what can be opened below


@dataclass(frozen=True)
class Evident:
    """A small table in a cell, which is shown on request, and a text below it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    text: str = ""


@dataclass(frozen=True)
class Table:
    """A table whose first `left` columns are texts and the others numbers. On a phone each row is a card."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    left: int = 1
    note: str = ""
    most: int = ROWS
    level: int = 3

    def __post_init__(self) -> None:
        if not all(self.columns):
            raise ValueError(f"table {self.title!r}: a column without a name is read by nobody who listens to the page")

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, all as cells."""
        return [[one if isinstance(one, Cell) else Cell(one) for one in row] for row in self.rows]


@dataclass(frozen=True)
class Heat:
    """A map: a table of numbers over two quantities, whose cells are coloured by value."""

    title: str
    read: str
    across: str
    down: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[float | None]]]
    form: str = "{:.3g}"
    unit: str = ""

    @property
    def shaded(self) -> list[tuple[str, list[tuple[str, int | None]]]]:
        """The rows, each cell with its text and its shade from 0 to 100; `None` for a missing value."""
        known = [value for _, row in self.rows for value in row if value is not None and math.isfinite(value)]
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        scale = math.log if low > 0 and high > 50 * low else float
        return [(name, [self._cell(value, scale, scale(low), scale(high)) for value in row]) for name, row in self.rows]

    def _cell(
        self, value: float | None, scale: Callable[[float], float], low: float, high: float
    ) -> tuple[str, int | None]:
        if value is None or not math.isfinite(value):
            return "–", None
        return self.form.format(value), round(100 * (scale(value) - low) / (high - low or 1.0))


@dataclass(frozen=True)
class Mark:
    """A row of `Strip`: a value with its interval, and single values beside it, all on one axis."""

    name: str
    colour: int
    text: str  # the value in words
    value: float | None = None
    low: float | None = None
    high: float | None = None
    dots: Sequence[float] = ()
    chip: str = ""  # class of a coloured label before the text
    chip_text: str = ""


@dataclass(frozen=True)
class Strip:
    """Values with their intervals on one axis, a row for each: drawn as vectors, so that it is sharp on every page.

    `zero` is a line that counts, `band` the range around it in which differences do not.
    """

    title: str
    read: str
    head: str  # heading of the texts
    rows: Sequence[Mark]
    form: Callable[[float], str] = "{:g}".format
    zero: float | None = None
    band: tuple[float, float] | None = None
    about: str = "side"  # heading of the names
    item: str = ""

    @cached_property
    def _ends(self) -> tuple[float, float]:
        numbers = [of for row in self.rows for of in (row.value, row.low, row.high, *row.dots) if of is not None]
        numbers += [of for of in (self.zero, *(self.band or ())) if of is not None]
        low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
        room = 0.06 * (high - low) or abs(high) or 1.0
        return low - room, high + room

    def at(self, value: float) -> str:
        """Returns the place of a value between the ends of the axis."""
        low, high = self._ends
        return f"{100 * (value - low) / (high - low):.2f}%"

    @property
    def width(self) -> str:
        """The width of the band."""
        (low, high), (first, last) = self._ends, self.band or (0.0, 0.0)
        return f"{100 * (last - first) / (high - low):.2f}%"

    @property
    def ticks(self) -> list[tuple[str, str]]:
        """Places and texts of two to six round values of the axis."""
        low, high = self._ends
        rough = (high - low) / 5
        size = 10 ** math.floor(math.log10(rough))
        step = next(size * by for by in (1, 2, 5, 10) if size * by >= rough)
        first, last = math.ceil(low / step), math.floor(high / step)
        return [(self.at(place * step), self.form(place * step)) for place in range(first, last + 1)]


@dataclass(frozen=True)
class Tile:
    """A number that sums up a page."""

    value: str
    label: str


@dataclass(frozen=True)
class Picture:
    """A picture that was drawn before, as the text of an attribute `src`."""

    title: str
    read: str
    src: str
    item: str = ""


@dataclass(frozen=True)
class Network:
    """A drawn network: boxes with lines of text, and links between them. Sizes are in pixels."""

    said: str
    width: float
    height: float
    boxes: Sequence[Box]
    links: Sequence[Bond]
    moves: Sequence[Move] = ()
    read: str = ""


@dataclass(frozen=True)
class Box:
    """A node: its middle, its size and its lines of text, the first of which is its name."""

    x: float
    y: float
    width: float
    height: float
    texts: Sequence[str]


@dataclass(frozen=True)
class Bond:
    """A link between two places, with lines of text at its middle."""

    x0: float
    y0: float
    x1: float
    y1: float
    texts: Sequence[str]
    changes: bool = False

    @property
    def width(self) -> float:
        """The width of the texts."""
        return max((7.2 * len(text) for text in self.texts), default=0.0)


@dataclass(frozen=True)
class Move:
    """An arrow from a place to another, which bends, with a text."""

    path: str
    x: float
    y: float
    texts: Sequence[str]


@dataclass(frozen=True)
class Section:
    """A part of a page with its heading: texts, charts, tables and so on, in their order."""

    title: str
    parts: Sequence[Any] = ()
    lead: str = ""
    code: Sequence[tuple[str, str, bool]] = field(default_factory=tuple)  # title, text, and whether it is shown at once

    @property
    def blocks(self) -> list[list[Any]]:
        """The parts, with charts or strips that follow each other together: they stand side by side."""
        found: list[list[Any]] = []
        for part in self.parts:
            if found and type(part) in (Chart, Strip) and type(part) is type(found[-1][0]):
                found[-1].append(part)
            else:
                found.append([part])
        return found

    @property
    def anchor(self) -> str:
        """The name of the section in addresses."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.title.lower()).strip("-")


def _covers(line: Line, other: Line) -> bool:
    """True if two lines are the same at most of their places, within a hundredth of their largest value."""
    if len(line.ys) != len(other.ys) or line.xs != other.xs:
        return False
    pairs = [(a, b) for a, b in zip(line.ys, other.ys, strict=True) if a is not None and b is not None]
    near = 0.01 * max((abs(value) for pair in pairs for value in pair), default=0.0)
    return sum(abs(a - b) <= near for a, b in pairs) > 0.5 * len(line.ys)


def rounded(values: Numbers) -> list[float | int | None]:
    """Returns numbers with few digits; `None` for those which are none."""
    return [None if value is None or not math.isfinite(value) else _short(value) for value in values]


def _short(value: float) -> float | int:
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short == int(short) else short
