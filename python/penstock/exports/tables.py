"""Tables of a run as CSV for programs, and as LaTeX for papers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_LISTS = ("bottlenecks", "flows")  # tables of a summary
_SPECIAL = {char: f"\\{char}" for char in "&%$#_{}"} | {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
}
# Columns of the tables in LaTeX: heading, key in the summary, factor, digits; no digits for text.
_BOTTLENECKS = (
    ("Link", "name", 1, None),
    ("Discipline", "aqm", 1, None),
    ("Goodput (Mbit/s)", "goodput_bps", 1e-6, 2),
    ("Use (\\%)", "utilization", 100, 1),
    ("Delay p50 (ms)", "queue_delay_ms.p50", 1, 1),
    ("p90 (ms)", "queue_delay_ms.p90", 1, 1),
    ("p99 (ms)", "queue_delay_ms.p99", 1, 1),
    ("Dropped", "dropped", 1, 0),
    ("Marked", "marks", 1, 0),
)
_FLOWS = (
    ("Flow", "id", 1, 0),
    ("Kind", "kind", 1, None),
    ("Control", "cc", 1, None),
    ("Goodput (Mbit/s)", "goodput_bps", 1e-6, 3),
    ("RTT p50 (ms)", "rtt_ms.p50", 1, 1),
    ("p90 (ms)", "rtt_ms.p90", 1, 1),
    ("Sent again", "retransmits", 1, 0),
)


def flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the numbers and texts of an object by their paths, such as `queue_delay_ms.p90`; lists are left out."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from flat(item, f"{key}.{name}".lstrip("."))
    elif not isinstance(value, list):
        yield key, value


def as_csv(summary: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """Returns a file for the run, one for bottlenecks, one for flows, and one for each table by seconds."""
    whole = dict(flat({name: item for name, item in summary.items() if name not in _LISTS}))
    found = {"run.csv": _csv([whole])}
    found |= {f"{name}.csv": _csv([dict(flat(row)) for row in summary[name]]) for name in _LISTS}
    return found | {f"{name}.csv": csv_of(table) for name, table in tables.items()}


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns rows as CSV; a row has an empty cell for a column that only others have."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return _written(columns, ([row.get(name) for name in columns] for row in rows))


def csv_of(table: pa.Table) -> str:
    """Returns a table as CSV."""
    return _written(table.column_names, zip(*(column.to_pylist() for column in table.columns), strict=True))


def _written(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if value != value else value for value in row] for row in rows)  # NaN is an empty cell as well
    return out.getvalue()


def as_latex(summary: Mapping[str, Any]) -> dict[str, str]:
    """Returns a table of bottlenecks and one of flows, to be included in a paper that loads `booktabs`."""
    bottlenecks = [
        {**dict(flat(one)), "dropped": one["drops_overflow"] + one["drops_aqm"]} for one in summary["bottlenecks"]
    ]
    flows = [dict(flat(one)) for one in summary["flows"]]
    return {"bottlenecks.tex": _latex(_BOTTLENECKS, bottlenecks), "flows.tex": _latex(_FLOWS, flows)}


def _latex(columns: Sequence[tuple[str, str, float, int | None]], rows: Iterable[Mapping[str, Any]]) -> str:
    places = "".join("l" if digits is None else "r" for *_, digits in columns)
    cells = ([_cell(row.get(key), factor, digits) for _, key, factor, digits in columns] for row in rows)
    return _tabular(places, [heading for heading, *_ in columns], cells)


def latex_of(columns: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> str:
    """Returns a table of texts, whose first `left` columns are words and the others numbers."""
    places = "l" * left + "r" * (len(columns) - left)
    cells = ([escaped(text).replace("±", r"$\pm$") for text in row] for row in rows)
    return _tabular(places, list(map(escaped, columns)), cells)


def _tabular(places: str, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [f"\\begin{{tabular}}{{{places}}}", "\\toprule", _line(headings), "\\midrule", *map(_line, rows)]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(value: Any, factor: float, digits: int | None) -> str:
    if value is None or value == "":
        return "--"
    return escaped(str(value)) if digits is None else f"{value * factor:.{digits}f}"


def escaped(text: str) -> str:
    """Returns a text in which LaTeX reads no commands."""
    return re.sub(r"[&%$#_{}~^\\]", lambda found: _SPECIAL[found[0]], text)
