"""The comparison of forecasts with the truth, as lines and as a part of a page."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from penstock import marked
from penstock.provenance import revision
from penstock.what_if.truth import DISCIPLINES, Row

WITHIN = 0.15
ENOUGH = 27  # of 30
_COLUMNS = ("capture", "control", "order", "goodput: worst", *(f"p90 of {name}" for name in DISCIPLINES))


def order(row: Row) -> str:
    """Returns whether the order of the disciplines is right, or which pairs are not."""
    if not row.delay:
        return "cannot tell"
    return ", ".join(f"{a} not before {b}" for a, b in row.wrong) or "right"


def line(row: Row) -> str:
    """Returns one line about a case."""
    if not row.delay:
        return f"{row.case.name}: {row.verdict}: {'; '.join(row.because)}"
    delays = " ".join(f"{name} {row.delay[name].median:.1f}/{row.true_delay[name].median:.1f}" for name in DISCIPLINES)
    worst = max(row.errors("goodput"), key=abs)
    return f"{row.case.name}: {row.control}: order {order(row)}; goodput {worst:+.1%}; p90 {delays}"


def summary(rows: Sequence[Row]) -> str:
    """Returns the result in three sentences."""
    right = sum(not row.wrong for row in rows)
    parts = [f"The order of the disciplines by p90 delay is right in {right} of {len(rows)} captures."]
    for what, name in (("goodput", "goodput"), ("delay", "delay (p90)")):
        errors = [error for row in rows for error in row.errors(what)]
        if errors:
            near = sum(abs(error) <= WITHIN for error in errors)
            middle = statistics.median(map(abs, errors))
            parts.append(
                f"{near} of {len(errors)} forecasts of {name} are within {WITHIN:.0%}; "
                f"the median of the errors is {middle:.1%}."
            )
    return "\n".join(parts)


def page(rows: Sequence[Row]) -> str:
    """Returns the part of the page."""
    table = marked.table(_COLUMNS, [_row(row) for row in rows])
    about = "Delays are forecast / truth in ms; bold: further apart than 15 %."
    return "\n".join([summary(rows), "", f"{about} Made at revision {revision()[:7]}.", "", *table])


def _row(row: Row) -> list[str]:
    if not row.delay:
        return [row.case.name, row.control, f"cannot tell: {'; '.join(row.because)}", *[""] * (len(_COLUMNS) - 3)]
    worst = max(row.errors("goodput"), key=abs)
    return [row.case.name, row.control, order(row), _bold(f"{worst:+.1%}", worst), *_delays(row)]


def _delays(row: Row) -> list[str]:
    texts = [f"{row.delay[name].median:.1f} / {row.true_delay[name].median:.1f}" for name in DISCIPLINES]
    errors = [row.delay[name].median / max(row.true_delay[name].median, 1e-9) - 1 for name in DISCIPLINES]
    return [_bold(text, error) for text, error in zip(texts, errors, strict=True)]


def _bold(text: str, error: float) -> str:
    return f"**{text}**" if abs(error) > WITHIN else text
