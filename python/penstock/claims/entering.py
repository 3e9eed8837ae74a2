"""Decorators which enter a check into the ledger. The docstring of the check is the text of the claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from penstock.claims.rows import DOCUMENTS, Because, Cause, Claim, Finding, Kind, Verdict
from penstock.reproduce.results import Evidence, NotCoveredError

Check = Callable[[Evidence], Finding]


class Where(Protocol):
    """`@of_it(section, item, paper's number)`, and what else is known of the row."""

    def __call__(
        self, section: str, item: str, paper: str, kind: Kind = Kind.CLAIM, because: Because | None = None
    ) -> Callable[[Check], Check]:
        """Returns the decorator that enters a check."""


def of(claims: list[Claim], experiment: str, document: str = "000", varies: bool = True) -> Where:
    """Returns a decorator that adds checks of one experiment to `claims`."""

    def at(
        section: str, item: str, paper: str, kind: Kind = Kind.CLAIM, because: Because | None = None
    ) -> Callable[[Check], Check]:
        def enter(check: Check) -> Check:
            name = f"{experiment}.{check.__name__.replace('_', '-')}"
            on = partial(_on, experiment, check)
            of_other = kind == Kind.CLAIM and document not in DOCUMENTS
            what = Kind.OTHER if of_other else kind
            row = (name, document, section, item, said(check), paper, (experiment,), on, varies, what, because)
            claims.append(Claim(*row))
            return check

        return enter

    return at


def contradicts(arithmetic: str) -> Because:
    """Explains a difference: the document contradicts itself, as the calculation `arithmetic` shows."""
    return Because(Cause.PAPER, arithmetic)


def unsaid(key: str, reading: str, what: str) -> Because:
    """Explains a difference: it hangs on `key`, which the document leaves open.

    It holds with a reading, since all comparisons with `reading` in their text agree; else this explains nothing.
    """
    return Because(Cause.NOT_SAID, what, (key,), reading=reading)


def unexplained(keys: tuple[str, ...], nearest: str) -> Because:
    """Says which open keys were searched without success in more runs than variants have, and what came nearest."""
    text = f"no reading that was searched reaches it; keys, alone and jointly: {', '.join(keys)}"
    return Because(Cause.UNEXPLAINED, text, keys, nearest)


def to_do(what: str) -> Because:
    """Explains a difference: the claim is about code of ours, or something here has to be done, which `what` says."""
    return Because(Cause.OURS, what)


def _on(experiment: str, check: Check, evidence: Mapping[str, Evidence]) -> Finding:
    run = evidence[experiment]
    if not run.part and set(run.aqms) != set(run.experiment.aqms):
        return Finding(Verdict.NOT_RUN, "", f"only {', '.join(run.aqms)} have results")
    if not run.outcomes:
        return Finding(Verdict.NOT_RUN, "", "no results")
    try:
        return check(run.strictly)
    except NotCoveredError as missing:
        return Finding(Verdict.NOT_RUN, "", f"the results at hand do not cover this claim: {missing}")
    except (LookupError, ValueError, ArithmeticError):
        if not (run.part or run.quick):
            raise
        return Finding(Verdict.NOT_RUN, "", "the results at hand do not cover this claim")


def said(check: Callable[..., Finding]) -> str:
    """Returns the text of a claim: the docstring of its check."""
    return (check.__doc__ or "").strip().removesuffix(".")
