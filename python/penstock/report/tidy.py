"""Charts, maps and tables from a tidy table: a row for each point, group and measure, with an interval over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.experiments.statistics import places
from penstock.report.kit.model import Axis, Cell, Chart, Heat, Line, Numbers, Table

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Sequence[Mapping[str, Any]]
MAPPED = 5  # a map needs at least this many places of the second key; fewer are lines
LINES = 16  # largest number of lines of a chart
CLEAR = 8  # of more lines than colours, each group has a chart of its own
_LOG = 8  # an axis is logarithmic if its largest value is so many times its smallest


@dataclass(frozen=True)
class Measure:
    """What a measure is called, its unit and how to read it."""

    key: str
    label: str
    unit: str = ""
    read: str = ""
    form: str = "{:,.4g}"

    @property
    def heading(self) -> str:
        """The heading of a column."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True)
class Tidy:
    """A tidy table. `keys` are the columns of what varies, in the order of importance, `group` that of lines.

    Each row has one measure: its name in the column `measure`, and its value in that which `value` names; if the
    columns `low` and `high` are there, they are its interval. `said` has rows of the same form, of a document.
    """

    rows: Rows
    keys: Sequence[str]
    measures: Sequence[Measure]
    group: str = ""
    measure: str = "measure"
    value: str = "median"
    low: str = "low"
    high: str = "high"
    labels: Mapping[str, str] = field(default_factory=dict)  # of keys and of groups
    colours: Mapping[str, int] = field(default_factory=dict)  # places of groups in the palette
    said: Rows = ()
    source: str = "the document"  # whose values `said` are
    spread: str = "interval over seeds"

    @classmethod
    def of_arrow(cls, table: pa.Table, keys: Sequence[str], measures: Sequence[Measure], **more: Any) -> Tidy:
        """Creates it from a table of Arrow."""
        return cls(table.to_pylist(), keys, measures, **more)

    def of(self, measure: Measure, rows: Rows) -> Rows:
        """Returns the rows of a measure that have a value."""
        return [row for row in rows if row[self.measure] == measure.key and _known(row.get(self.value))]

    def label(self, name: Any) -> str:
        """Returns what a key, a group or a value is called."""
        return self.labels.get(str(name), _text(name))


def parts(tidy: Tidy) -> list[Chart | Heat]:
    """Returns a chart for each measure; a map where a second key has many values and there is one group."""
    found: list[Chart | Heat] = []
    for measure in tidy.measures:
        rows = tidy.of(measure, tidy.rows)
        if rows and tidy.keys:
            found += maps(tidy, measure) if _is_map(tidy, rows) else _charts(tidy, measure, rows)
    return found


def _charts(tidy: Tidy, measure: Measure, rows: Rows) -> list[Chart]:
    """Returns a chart of a measure; if it had too many lines, one for each group, all with the same axis."""
    whole = chart(tidy, measure)
    names = list(dict.fromkeys(str(row[tidy.group]) for row in rows)) if tidy.group else []
    if len(_lines(tidy, rows, tidy.keys[1:])) <= CLEAR or len(names) < 2 or len(tidy.keys) < 2:
        return [whole]
    ends = [float(row[end]) for row in rows for end in (tidy.value, tidy.low, tidy.high) if _known(row.get(end))]
    low, high = min(ends), max(ends)
    room = 0.0 if whole.y.log else 0.05 * (high - low)
    y = replace(whole.y, low=0.0 if whole.y.zero else low - room, high=high + room)
    found = []
    for name in names:
        of, said = ([row for row in one if str(row[tidy.group]) == name] for one in (tidy.rows, tidy.said))
        own = chart(replace(tidy, rows=of, said=said, group="", colours={}), measure)
        found.append(replace(own, title=f"{own.title}: {tidy.label(name)}", y=y))
    return found


def _is_map(tidy: Tidy, rows: Rows) -> bool:
    return len(tidy.keys) == 2 and all(len({str(row[key]) for row in rows}) >= MAPPED for key in tidy.keys)


def chart(tidy: Tidy, measure: Measure) -> Chart:
    """Returns the chart of a measure over the first key, with a line for each group and for the other keys."""
    rows, said = tidy.of(measure, tidy.rows), tidy.of(measure, tidy.said)
    key, *others = tidy.keys
    places = list(dict.fromkeys(row[key] for row in (*rows, *said)))
    axis, at = _axis(tidy, key, places)
    lines: list[Line] = []
    more = 0
    named = _lines(tidy, rows, others)
    beside = _beside(len(named)) if axis.names else [0.0] * len(named)
    for index, (name, members) in enumerate(named.items()):
        if index >= LINES:
            more = len(named) - LINES
            break
        line = _line(tidy, tidy.label(name), members, key, at, tidy.colours.get(name, index))
        lines.append(replace(line, xs=_moved(line.xs, beside[index])))
    for index, (name, members) in enumerate(_lines(tidy, said, others).items()):
        place = list(named).index(name) if name in named else index
        line = _line(tidy, f"{tidy.label(name)}: {tidy.source}", members, key, at, tidy.colours.get(name, place))
        xs = _moved(line.xs, beside[place] if place < len(beside) else 0.0)
        lines.append(Line(line.name, line.ys, line.colour, xs, style="points", open=True))
    read = measure.read or measure.label + "."
    read += f" A bar is the {tidy.spread}." if any(_has_ends(tidy, row) for row in rows) else ""
    read += " Open marks are the values that the document gives." if said else ""
    read += f" {more} more lines are in the table." if more else ""
    low, high = _ends(tidy, rows)
    y = Axis(measure.label, measure.unit, log=low > 0 and high > 50 * low, zero=0 <= low < 0.5 * high)
    return Chart(measure.label, read, axis, y, lines)


def _moved(xs: Numbers | None, by: float) -> list[float | None]:
    return [None if x is None else x + by for x in xs or ()]


def _beside(count: int) -> list[float]:
    """Returns how far each line stands beside the place of its value, so that intervals do not hide each other."""
    step = min(0.07, 0.5 / max(1, count))
    return [round((index - (count - 1) / 2) * step, 4) for index in range(count)]


def _ends(tidy: Tidy, rows: Rows) -> tuple[float, float]:
    values = [float(row[tidy.value]) for row in rows]
    return min(values, default=0.0), max(values, default=0.0)


def _lines(tidy: Tidy, rows: Rows, others: Sequence[str]) -> dict[str, Rows]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        name = str(row[tidy.group]) if tidy.group else ""
        words = [name, *(f"{tidy.label(other)} {_text(row[other])}" for other in others)]
        found.setdefault(", ".join(word for word in words if word), []).append(row)
    return dict(found)


def _line(tidy: Tidy, name: str, rows: Rows, key: str, at: Mapping[Any, float], colour: int) -> Line:
    ordered = sorted(rows, key=lambda row: at[row[key]])
    ys = [float(row[tidy.value]) for row in ordered]
    bars = [[row.get(end) for row in ordered] for end in (tidy.low, tidy.high)]
    known = all(_known(value) for bar in bars for value in bar)
    low, high = bars if known else (None, None)
    return Line(name or "value", ys, colour, [at[row[key]] for row in ordered], low, high, mark=True)


def _axis(tidy: Tidy, key: str, places: Sequence[Any]) -> tuple[Axis, dict[Any, float]]:
    """Returns the axis of a key, and where each of its values is. Few numbers, and texts, stand at equal distances."""
    numbers = [number_of(place) for place in places]
    if len(places) > 12 and all(number is not None for number in numbers):
        at = {place: float(number or 0.0) for place, number in zip(places, numbers, strict=True)}
        low, high = min(at.values()), max(at.values())
        return Axis(tidy.label(key), log=low > 0 and high >= _LOG * low), at
    order = sorted(places, key=lambda one: number_of(one) or 0.0) if None not in numbers else list(places)
    return Axis(tidy.label(key), names=tuple(map(_text, order))), {place: float(i) for i, place in enumerate(order)}


def maps(tidy: Tidy, measure: Measure) -> list[Heat]:
    """Returns a map of a measure over two keys for each group."""
    rows = tidy.of(measure, tidy.rows)
    across, down = tidy.keys[:2]
    found = []
    for name in dict.fromkeys(str(row[tidy.group]) if tidy.group else "" for row in rows):
        members = [row for row in rows if not tidy.group or str(row[tidy.group]) == name]
        values = {(row[down], row[across]): float(row[tidy.value]) for row in members}
        columns, lines = (_in_order(row[key] for row in members) for key in (across, down))
        title = f"{measure.heading}: {tidy.label(name)}" if name else measure.heading
        shown = [(_text(line), [values.get((line, column)) for column in columns]) for line in lines]
        read = f"{measure.read or measure.label + '.'} A cell is the median over seeds; the darker, the larger."
        found.append(
            Heat(title, read, tidy.label(across), tidy.label(down), [_text(c) for c in columns], shown, measure.form)
        )
    return found


def table(tidy: Tidy, title: str = "Points", most: int = 60) -> Table:
    """Returns the table with a row for each point and group, and a column for each measure."""
    about = [*tidy.keys, *([tidy.group] if tidy.group else [])]
    cells: dict[tuple[Any, ...], dict[str, Mapping[str, Any]]] = {}
    for row in tidy.rows:
        cells.setdefault(tuple(row[key] for key in about), {})[row[tidy.measure]] = row
    rows = []
    for point, found in cells.items():
        keys = [Cell(tidy.label(value), number_of(value)) for value in point]
        rows.append([*keys, *(_cell(tidy, measure, found.get(measure.key)) for measure in tidy.measures)])
    heads = [*(tidy.label(key) for key in about), *(measure.heading for measure in tidy.measures)]
    note = f"A second line is the {tidy.spread}." if any(_has_ends(tidy, row) for row in tidy.rows) else ""
    return Table(title, heads, rows, len(about), note, most)


def _cell(tidy: Tidy, measure: Measure, row: Mapping[str, Any] | None) -> Cell:
    if row is None or not _known(row.get(tidy.value)):
        return Cell("–")
    if not _has_ends(tidy, row):
        return Cell(measure.form.format(row[tidy.value]), float(row[tidy.value]))
    form = f"{{:,.{places(row[tidy.low], row[tidy.high])}f}}"  # as many digits as the interval's width allows
    bar = f"{form.format(row[tidy.low])} to {form.format(row[tidy.high])}"
    return Cell(form.format(row[tidy.value]), float(row[tidy.value]), small=bar)


def _has_ends(tidy: Tidy, row: Mapping[str, Any]) -> bool:
    """True if a row has an interval that is not a point."""
    low, high = row.get(tidy.low), row.get(tidy.high)
    return _known(low) and _known(high) and low != high


_SCALES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def number_of(value: Any) -> float | None:
    """Returns the number of a value, of a quantity such as "10Mbit/s" as well; `None` if it is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    text = str(value).strip()
    digits = next((i for i, letter in enumerate(text) if letter not in "+-.0123456789eE"), len(text))
    try:
        number = float(text[:digits])
    except ValueError:
        return None
    unit = text[digits:].strip()
    return number * _SCALES.get(unit[0], 1.0) if len(unit) > 1 else number


def _in_order(values: Iterable[Any]) -> list[Any]:
    found = list(dict.fromkeys(values))
    return sorted(found, key=lambda one: number_of(one) or 0.0) if None not in map(number_of, found) else found


def _known(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
