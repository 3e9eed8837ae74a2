"""Writes what was fitted and recovered: tables of a page, and the sentences above them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock import marked
from penstock.citations import cited
from penstock.fitting.fit import Fitted, Found, Number
from penstock.fitting.recover import Recovery


def sentence(found: Fitted) -> str:
    """Returns what follows for the table."""
    met, of = sum(number.met for number in found.told), len(found.told)
    if found.explains:
        return f"The best values meet all {of} numbers."
    if found.published_explains:
        return f"The published set-up meets all {of} numbers, the best values of the surface {met}."
    return f"No values within these ranges explain the table: the best meet {met} of {of} numbers."


def held(found: Fitted) -> str:
    """Returns what the numbers say that the fit has not seen; empty if there are none."""
    if not found.kept:
        return ""
    best = sum(number.met for number in found.kept)
    before = sum(number.cell.met(number.published) for number in found.kept)
    return f"Of {len(found.kept)} numbers held out they meet {best}, the published set-up {before}."


def parameters(found: Fitted) -> list[list[str]]:
    """Returns a row for each parameter."""
    return [
        [one.parameter.about, _range(one), _of(one, one.parameter.published), _of(one, one.value), _interval(one)]
        for one in found.parameters
    ]


PARAMETERS = ("not said", "searched", "published here", "best", "90 % interval")
NUMBERS = ("number", "document", "published here", "best values", "")
ALONE = ("number alone", "allows")
RECOVERED = ("fit", "parameter", "intervals that contain it", "mean width, of the range")


def _of(one: Found, value: float) -> str:
    return one.parameter.text(value)


def _range(one: Found) -> str:
    low, high = one.parameter.range
    return f"{one.parameter.text(low)} to {one.parameter.text(high)}"


def _interval(one: Found) -> str:
    if one.bounded == (False, False):
        return "the whole range: the table does not tell"
    text = f"{_of(one, one.low)} to {_of(one, one.high)}"
    return text if all(one.bounded) else f"{text}, to the end of the range"


def numbers(found: Sequence[Number]) -> list[list[str]]:
    """Returns a row for each number."""
    return [[n.cell.name, f"{n.cell.said:g}", f"{n.published:.3g}", f"{n.best:.3g}", _told(n)] for n in found]


def _told(number: Number) -> str:
    met = "met" if number.met else "missed"
    return f"{met}, held out" if number.cell.held_out else met


def alone(found: Fitted) -> list[list[str]]:
    """Returns the values that each number alone allows."""
    one = found.fit.parameters[0]
    texts = (" or ".join(f"{one.text(low)} to {one.text(high)}" for low, high in a.ranges) for a in found.alone)
    return [[a.cell.name, text or "no value"] for a, text in zip(found.alone, texts, strict=True)]


def _name(one: Recovery) -> str:
    return f"{one.fit.experiment.name}, {one.fit.name}"


def recoveries(found: Sequence[Recovery]) -> list[list[str]]:
    """Returns a row for each parameter of each fit."""
    return [
        [_name(one), p.name, f"{one.covered(k)} of {len(one.draws)}", f"{one.width(k):.0%}"]
        for one in found
        for k, p in enumerate(one.fit.parameters)
    ]


def body(found: Sequence[Fitted]) -> str:
    """Returns the Markdown of some fits."""
    lines: list[str] = []
    for one in found:
        lines += [f"### {cited(one.fit.title)}", "", f"{sentence(one)} {held(one)}".strip(), ""]
        if one.fit.says:
            lines += [one.fit.says, ""]
        lines += [*marked.table(PARAMETERS, parameters(one)), ""]
        if one.alone:
            lines += [*marked.table(ALONE, alone(one)), ""]
        lines += ["<details><summary>The numbers</summary>", "", *marked.table(NUMBERS, numbers(one.numbers))]
        lines += ["", "</details>", ""]
    return "\n".join(lines).rstrip()


def write(page: Path, found: Sequence[Fitted]) -> None:
    """Writes the fits of an experiment between the marks with its name."""
    marked.replace(page, body(found), found[0].fit.experiment.name)


def write_recovered(page: Path, found: Sequence[Recovery]) -> None:
    """Writes the test by recovery of an experiment between the marks `recovered-NAME`."""
    name = f"recovered-{found[0].fit.experiment.name}"
    marked.replace(page, "\n".join(marked.table(RECOVERED, recoveries(found))), name)
