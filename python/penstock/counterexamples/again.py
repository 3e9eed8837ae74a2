"""Runs a stored counter-example again, which gives the same bytes as long as the simulator is the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import store
from penstock.claims.rows import Claim, Finding
from penstock.counterexamples.judge import digest
from penstock.counterexamples.search import judge_of
from penstock.counterexamples.space import Altered
from penstock.reproduce import EXPERIMENTS


@dataclass(frozen=True)
class Again:
    """A counter-example that was run again."""

    finding: Finding
    sha256: str
    files: tuple[Path, ...]  # the scenarios of its runs, each for `penstock run`

    def same(self, row: Mapping[str, Any]) -> bool:
        """True if all bytes are those that were stored."""
        return bool(self.sha256 == row["sha256"] and self.finding.reason == row["measured"])


def again(claim: Claim, row: Mapping[str, Any], out: Path | None = None) -> Again:
    """Runs what is stored of a claim. With `out`, its scenarios are written there."""
    experiment = EXPERIMENTS[claim.needs[0]]
    judge = judge_of(experiment, [claim])
    settings, seed = dict(row["changed"]), int(row["seed"])
    outcomes = judge.outcomes(settings, seed)
    finding = judge.findings(settings, outcomes)[0]
    files = []
    if out:
        altered = Altered.of(experiment, settings)
        for case in altered.cases(seed):
            scenario = altered.scenario(case)
            files.append(out / scenario.file)
            store.write(files[-1], scenario.text)
    return Again(finding, digest(outcomes), tuple(files))
