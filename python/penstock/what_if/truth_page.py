"""The comparison of forecasts with the truth, as lines and as a part of a page."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from penstock import marked
from penstock.provenance import revision
from penstock.what_if.lines import Line
from penstock.what_if.truth import AS_IT_IS, DISCIPLINES, Row

WITHIN = 0.15
ENOUGH = 27  # of 30
_JUDGED = ("line", "control", "answer", "as it is", "advised", "best of those that no other beats", "verdict")
_COLUMNS = ("capture", "control", "order", "goodput: worst", *(f"p90 of {name}" for name in DISCIPLINES))


def order(row: Row) -> str:
    """Returns whether the order of the disciplines is right, or which pairs are not."""
    if not row.delay:
        return "cannot tell"
    return ", ".join(f"{a} not before {b}" for a, b in row.wrong) or "right"


def line(row: Row) -> str:
    """Returns one line about a case."""
    if isinstance(row.case, Line):
        reasons = f": {'; '.join(row.because)}" if not row.advice else ""
        told = ", ".join(_both(row, name) for name in dict.fromkeys((AS_IT_IS, row.advice or AS_IT_IS, row.best)))
        return f"{row.case.kind}, {row.case.name}: {row.control}: {_advice(row)}{reasons}; true: {told}: {verdict(row)}"
    if not row.delay:
        return f"{row.case.name}: {row.verdict}: {'; '.join(row.because)}"
    delays = " ".join(f"{name} {row.delay[name].median:.1f}/{row.true_delay[name].median:.1f}" for name in DISCIPLINES)
    worst = max(row.errors("goodput"), key=abs)
    return f"{row.case.name}: {row.control}: order {order(row)}; goodput {worst:+.1%}; p90 {delays}"


def verdict(row: Row) -> str:
    """Returns whether an advice is right."""
    if not row.advice:
        return "cannot tell"
    return "harms" if row.harms else "right" if row.is_near else "not the best"


def _advice(row: Row) -> str:
    return {AS_IT_IS: "leave it", "": "cannot tell"}.get(row.advice, row.advice)


def _both(row: Row, name: str) -> str:
    return f"{name} {row.carried[name]:.2f}, {row.worse[name]:.1f} ms"


def judged(rows: Sequence[Row]) -> str:
    """Returns in one sentence how many advices are right."""
    words = [verdict(row) for row in rows]
    return (
        f"Of {len(rows)} advices {words.count('right')} are right, {words.count('not the best')} are not the best, "
        f"{words.count('harms')} harm; {words.count('cannot tell')} captures do not decide."
    )


def summary(rows: Sequence[Row]) -> str:
    """Returns the result in sentences: what is advised in all cases, and what is foretold in the compared ones."""
    every, rows = rows, [row for row in rows if not isinstance(row.case, Line)]
    hard = [row for row in every if isinstance(row.case, Line)]
    told = [
        f"{name} {judged(part)}" for name, part in (("The compared ones.", rows), ("The hard lines.", hard)) if part
    ]
    return "\n".join([*told, *(_foretold(rows) if rows else [])])


def _foretold(rows: Sequence[Row]) -> list[str]:
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
    return parts


def page(rows: Sequence[Row]) -> str:
    """Returns the part of the page."""
    compared, hard = ([row for row in rows if isinstance(row.case, Line) is is_hard] for is_hard in (False, True))
    table = marked.table(_COLUMNS, [_row(row) for row in compared])
    about = "Delays are forecast / truth in ms; bold: further apart than 15 %."
    lines = marked.table(_JUDGED, [_judged(row) for row in hard])
    of_lines = (
        "Cells have what both directions truly carry, as the sum of shares of their rates, and the longer p90 delay."
    )
    parts = [summary(rows), "", f"{of_lines} Made at revision {revision()[:7]}.", "", *lines]
    return "\n".join([*parts, "", about, "", *table])


def _judged(row: Row) -> list[str]:
    assert isinstance(row.case, Line)
    cells = [_both(row, name) if name else "" for name in (AS_IT_IS, row.advice, row.best)]
    why = f": {'; '.join(row.because)}" if not row.advice else ""
    return [f"{row.case.kind}: {row.case.name}", row.control, _advice(row) + why, *cells, verdict(row)]


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
