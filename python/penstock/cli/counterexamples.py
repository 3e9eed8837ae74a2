"""`claims break`: searches, within the set-up of a document, the run that contradicts its claims most."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.cli import show
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

if TYPE_CHECKING:
    from penstock.claims import Claim
    from penstock.counterexamples.search import Worst


@dataclass(frozen=True)
class Options:
    """The options of the command."""

    trials: int | None
    jobs: int | None
    again: bool
    out: Path | None
    json: bool


def command(wanted: str, options: Options) -> None:
    """Searches for an experiment or a claim, or runs a stored counter-example again."""
    from penstock.counterexamples.search import not_searched

    claims = _claims(wanted)
    if options.again:
        if len(claims) != 1 or claims[0].id != wanted:
            raise MistakeError("--again needs the id of one claim: `penstock claims` lists them")
        _again(claims[0], options)
        return
    if options.out:
        raise MistakeError("--out goes with --again: the scenarios of the runs are written there")
    if len(claims) == 1 and (why := not_searched(claims[0])):
        raise MistakeError(f"{wanted}: the search does not apply: {why}")
    _search(claims, options)


def _claims(wanted: str) -> list[Claim]:
    from penstock.claims.ledger import claims as all_claims

    known = all_claims()
    found = [claim for claim in known if wanted in (claim.id, claim.id.split(".", 1)[0])]
    if not found:
        names = {name: None for claim in known for name in (claim.id, claim.id.split(".", 1)[0])}
        told = f"there is no claim or experiment {wanted!r}; {did_you_mean(wanted, names)}" if wanted else ""
        raise MistakeError(
            f"{told}give an id that `penstock claims` lists, or an experiment: penstock claims break qrm"
        )
    return found


def _search(claims: list[Claim], options: Options) -> None:
    from penstock.counterexamples.search import OUT, not_searched, search, searched
    from penstock.experiments.interrupts import stopping
    from penstock.reproduce import EXPERIMENTS

    some = [claim for claim in claims if not not_searched(claim)]
    if not some:
        raise MistakeError(f"the search applies to none of these claims: {not_searched(claims[0])}")
    experiment = EXPERIMENTS[some[0].needs[0]]

    def told(done: int, of: int) -> None:
        if not options.json:
            print(f"{experiment.name}: {done} of {of} trials", file=sys.stderr)

    with stopping() as stop:
        found = search(
            experiment,
            searched(experiment),
            stop,
            trials=options.trials,
            jobs=options.jobs,
            out=OUT / experiment.name,
            told=told,
        )
    if stop:
        show.warn("interrupted: what was tried is kept, and the same command goes on")
        raise typer.Exit(130)
    ids = {claim.id for claim in some}
    _show([one for one in found if one.claim in ids], options.json)


def _show(found: list[Worst], json: bool) -> None:
    from penstock.claims.counterexample import sentence

    if json:
        show.as_json({one.claim: one.to_json() for one in found})
        return
    show.table("", ("claim", "the worst within the set-up"), [[o.claim, sentence(o.to_json())] for o in found], left=2)


def _again(claim: Claim, options: Options) -> None:
    from penstock.claims import counterexample
    from penstock.counterexamples.again import again

    row = counterexample.stored().get(claim.id, {})
    if row.get("changed") is None:
        told = counterexample.sentence(row) if row else "nothing was searched"
        raise MistakeError(f"{claim.id} has no counter-example: {told}")
    found = again(claim, row, options.out)
    same = found.same(row)
    if options.json:
        finding = {key: value for key, value in asdict(found.finding).items() if key in ("verdict", "agree", "of")}
        show.as_json(
            {
                "claim": claim.id,
                "changed": row["changed"],
                "seed": row["seed"],
                **finding,
                "measured": found.finding.reason,
                "sha256": found.sha256,
                "same": same,
                "files": [str(file) for file in found.files],
            }
        )
    else:
        show.line(f"{claim.id}: {claim.claim}")
        show.line(f"changed: {counterexample.told(row['changed'])}; seed {row['seed']}")
        show.line(f"{found.finding.verdict}: {found.finding.reason}")
        show.line("the same bytes as stored" if same else f"other bytes than stored: {found.sha256}, {row['sha256']}")
        for file in found.files:
            show.line(f"scenario: {file}")
    if not same:
        raise typer.Exit(1)
