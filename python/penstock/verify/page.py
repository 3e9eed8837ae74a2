"""The tables of the comparison, for the terminal and for a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock import marked, store
from penstock.verify import compare, selection
from penstock.verify.compare import BEGIN_S, DRAWN_SEEDS, GOALS, MEASURED_S, SEEDS, Gap, Plan, Row
from penstock.verify.selection import Wanted

HEADINGS = ("case", "Mbit/s", "gap", "queue ms", "gap", "p95 ms", "loss %", "period s", "gap")
DRAWN_HEADINGS = ("path", "Mbit/s", "ratio", "queue ms", "ratio", "loss %", "ratio", "late us", "verdict")
_RFCS = {"reno": "RFC 5681", "cubic": "RFC 9438"}
_SEED_HEADINGS = ("seed", "kernel", "paths", "within the bar", "the others")


def cells(row: Row) -> list[str]:
    """Returns the cells of one row: for each measure the numbers of kernel and simulator, then the gap."""
    gaps = row.gaps
    return [
        row.case.name + (" (disturbed)" if row.disturbed else ""),
        *(_both(row, "goodput_mbps", 2), _gap(gaps.get("goodput_mbps"))),
        *(_both(row, "queue_mean_ms", 2), _gap(gaps.get("queue_mean_ms"))),
        _both(row, "queue_p95_ms", 1),
        _both(row, "loss", 3, 100),
        *(_both(row, "period_s", 2), _gap(gaps.get("period_s"))),
    ]


def drawn_cells(row: Row) -> list[str]:
    """Returns the cells of one drawn path: the numbers of kernel and simulator, their ratios, and the verdict."""
    missed = [f"{name} (seeds)" if name in row.within_seeds else name for name in row.missed]
    verdict = "apart: " + ", ".join(missed) if missed else "pass"
    return [
        row.case.name + (" *" if row.earlier else ""),
        *(_both(row, "goodput_mbps", 2), _ratio(row, "goodput_mbps")),
        *(_both(row, "queue_mean_ms", 2), _ratio(row, "queue_mean_ms")),
        *(_both(row, "loss", 3, 100), _ratio(row, "loss")),
        f"{row.lateness_p99_us:.0f}",
        verdict + (", disturbed" if row.disturbed else "") + _rfc(row),
    ]


def _both(row: Row, name: str, digits: int, factor: float = 1.0) -> str:
    pair = (getattr(side, name) for side in (row.kernel, row.simulator))
    return " / ".join("-" if value is None else f"{value * factor:.{digits}f}" for value in pair)


def _gap(gap: Gap | None) -> str:
    if gap is None:
        return "-"
    return f"{gap.share:+.1%}" + ("" if gap.word == "ok" else f" {gap.word}")


def _ratio(row: Row, name: str) -> str:
    kernel, ours = getattr(row.kernel, name), getattr(row.simulator, name)
    return f"{ours / kernel:.2f}" if kernel else "-"


def _rfc(row: Row) -> str:
    if row.rfc is None:
        return ""
    return f"; {_RFCS[row.case.control]}: {row.rfc.goodput_mbps:.2f}, {row.rfc.loss:.3%}"


def summary(rows: Sequence[Row]) -> str:
    """Returns the number of gaps of each kind, as text."""
    parts = []
    for name, goal in GOALS.items():
        words = [row.gaps[name].word for row in rows if name in row.gaps]
        label = name.rsplit("_", 1)[0].replace("_", " ")
        counts = f"{words.count('ok')} of {len(words)} within {goal:.0%}"
        parts.append(f"{label}: {counts}, {words.count('seeds')} more within the seeds, {words.count('apart')} apart")
    return "; ".join(parts)


def drawn_summary(rows: Sequence[Row]) -> str:
    """Returns how many of the drawn paths are within the bar, as text."""
    missed = [name for row in rows for name in row.missed]
    passed = sum(not row.missed for row in rows)
    parts = ", ".join(f"{name} {missed.count(name)}" for name in ("goodput", "queue", "loss"))
    chance = sum(bool(row.missed) and row.missed == row.within_seeds for row in rows)
    told = f"; {chance} of the others no further apart than the seeds" if chance else ""
    return f"drawn paths: {passed} of {len(rows)} within the bar{told}; missed: {parts}"


def write(page: Path, rows: Sequence[Row], about: str) -> None:
    """Replaces the text between the marks of the page by the comparison."""
    marked.replace(page, _table(rows, about))


def _table(rows: Sequence[Row], about: str) -> str:
    lines = marked.table(HEADINGS, [cells(row) for row in rows], numbers=True)
    return "\n".join([about, "", *lines, "", summary(rows) + "."])


def write_drawn(page: Path, rows: Sequence[Row], about: str, seed: str, kernel: str) -> None:
    """Replaces the drawn paths in the page, and the line of this seed and kernel in the history of the seeds."""
    store.write(page, marked.replaced(page, _drawn_parts(page, rows, about, seed, kernel)))


def _drawn_parts(page: Path, rows: Sequence[Row], about: str, seed: str, kernel: str) -> dict[str, str]:
    """Returns the parts of the page about drawn paths, by their marks."""
    lines = marked.table(DRAWN_HEADINGS, [drawn_cells(row) for row in rows], numbers=True)
    apart = ", ".join(row.case.name.split("-")[0] for row in rows if row.missed) or "none"
    passed = str(sum(not row.missed for row in rows))
    fresh = marked.table(_SEED_HEADINGS, [[seed, kernel, str(len(rows)), passed, apart]])
    label = fresh[2].split("|")[1:3]
    kept = [line for line in marked.between(page, "seeds")[2:] if line.split("|")[1:3] != label]
    paths = "\n".join([about, "", *lines, "", drawn_summary(rows) + "."])
    return {"paths": paths, "seeds": "\n".join([*fresh[:2], *kept, fresh[2]])}


@dataclass(frozen=True)
class Part:
    """A table with what is said of it."""

    about: str
    headings: Sequence[str]
    cells: list[list[str]]
    summary: str


def parts(plan: Plan, rows: Sequence[Row], seed: str) -> list[Part]:
    """Returns the tables of the rows: that of the fixed cases, and that of the drawn paths."""
    fixed, drawn = _apart(rows)
    found = [Part(_about(plan, fixed), HEADINGS, [cells(row) for row in fixed], summary(fixed))] if fixed else []
    if drawn:
        about = _about_drawn(plan, seed)
        found.append(Part(about, DRAWN_HEADINGS, [drawn_cells(row) for row in drawn], drawn_summary(drawn)))
    return found


def found(plan: Plan, rows: Sequence[Row], seed: str, left_out: Sequence[str], complete: bool) -> dict[str, Any]:
    """Returns the comparison as it is printed and stored."""
    fixed, drawn = _apart(rows)
    return {
        "about": _about(plan, fixed),
        "rows": [row.to_json() for row in fixed],
        "summary": summary(fixed),
        "left_out": list(left_out),
        "complete": complete,
        "drawn": _found_drawn(plan, drawn, seed),
    }


def _found_drawn(plan: Plan, rows: Sequence[Row], seed: str) -> dict[str, Any]:
    return {
        "seed": seed,
        "about": _about_drawn(plan, seed),
        "rows": [row.to_json() for row in rows],
        "passed": sum(not row.missed for row in rows),
        "of": len(rows),
        "summary": drawn_summary(rows),
    }


def _apart(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    return [row for row in rows if not row.case.drawn], [row for row in rows if row.case.drawn]


def _about(plan: Plan, rows: Sequence[Row]) -> str:
    seconds = rows[0].case.measured_s if rows else MEASURED_S
    return (
        f"{plan.kernel.label}: kernel / simulator, {seconds:g} s measured after {BEGIN_S:g} s; the simulator's number "
        f"is the median of {SEEDS} seeds."
    )


def _about_drawn(plan: Plan, seed: str) -> str:
    earlier = (
        " The kernel did not run paths with * again: their numbers are those of the page before."
        if plan.earlier
        else ""
    )
    return (
        f"{plan.kernel.label}: kernel / simulator, measured from the first data on, seed {seed}; the kernel's number "
        f"is the median of its runs, the simulator's that of {DRAWN_SEEDS} seeds.{earlier}"
    )


def write_all(page: Path, plan: Plan, wanted: Wanted) -> None:
    """Writes what was run into the page and the .json beside it; the part that was not run stays as it is there."""
    fixed = _apart(compare.rows(plan))[0]
    drawn = compare.rows(replace(plan, cases=selection.all_paths(wanted)))
    file = page.with_suffix(".json")
    store.finish(page)
    told: dict[str, Any] = store.read_json(file) if file.is_file() else {}
    parts: dict[str, str] = {}
    if fixed:
        parts["table"] = _table(fixed, _about(plan, fixed))
        told |= {key: value for key, value in found(plan, fixed, wanted.seed, [], True).items() if key != "drawn"}
    if drawn:
        parts |= _drawn_parts(page, drawn, _about_drawn(plan, wanted.seed), wanted.seed, plan.kernel.label)
        told["drawn"] = _found_drawn(plan, drawn, wanted.seed)
    store.together({page: marked.replaced(page, parts), file: store.rows(told)})
