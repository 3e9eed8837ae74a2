"""Decorators which enter a check into the ledger. The docstring of the check is the text of the claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from penstock.claims.ledger import Claim, Finding, Verdict
from penstock.reproduce.results import Evidence

Check = Callable[[Evidence], Finding]
Where = Callable[[str, str, str], Callable[[Check], Check]]


def of(claims: list[Claim], experiment: str, document: str = "000", varies: bool = True) -> Where:
    """Returns a decorator that adds checks of one experiment to `claims`: `@of_it(section, item, paper's number)`."""

    def at(section: str, item: str, paper: str) -> Callable[[Check], Check]:
        def enter(check: Check) -> Check:
            name = f"{experiment}.{check.__name__.replace('_', '-')}"
            on = partial(_on, experiment, check)
            claims.append(Claim(name, document, section, item, said(check), paper, (experiment,), on, varies))
            return check

        return enter

    return at


def _on(experiment: str, check: Check, evidence: Mapping[str, Evidence]) -> Finding:
    run = evidence[experiment]
    if set(run.aqms) != set(run.experiment.aqms):
        return Finding(Verdict.NOT_RUN, "", f"only {', '.join(run.aqms)} have results")
    return check(run)


def said(check: Callable[..., Finding]) -> str:
    """Returns the text of a claim: the docstring of its check."""
    return (check.__doc__ or "").strip().removesuffix(".")
