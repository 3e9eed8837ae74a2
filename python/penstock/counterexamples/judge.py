"""A trial: all runs of an experiment with other values, and what each of its claims says of them.

How much a claim is contradicted is a number from -1 to 1. It is positive if the claim does not hold: the part of its
comparisons that are false and, among equal parts, how far their numbers are from those of the published values. A claim
that holds gives no direction, since most comparisons are no numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock import chance, engine
from penstock.adversary.sentence import Judged
from penstock.adversary.space import Settings
from penstock.adversary.trials import Judge, Trial
from penstock.claims.rows import Claim, Comparison, Finding, Verdict
from penstock.claims.seeds import NUMBER
from penstock.counterexamples.space import Altered
from penstock.engine import ScenarioError, Stopped
from penstock.mistake import MistakeError
from penstock.reproduce import Case, Evidence, Experiment, Outcome, open_keys
from penstock.scenario import Scenario

FORMAT = 2  # of what a trial keeps and how settings change scenarios; another one is run again
UNJUDGED = Judged(False, -1.0)
HOLDS = Judged(False, -0.5)
_ERRORS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)


@dataclass(frozen=True)
class Said:
    """What a claim says of a trial."""

    verdict: str
    agree: int
    of: int
    text: str

    @classmethod
    def of_trial(cls, trial: Trial, place: int) -> Said:
        """Returns what the claim at this place says."""
        return cls(*json.loads(trial.texts[place]))


@dataclass(frozen=True)
class Made:
    """What a trial consists of."""

    sha256: str  # of the results of all runs
    events: int

    @classmethod
    def of_trial(cls, trial: Trial) -> Made:
        """Reads it from the trial, which keeps it behind what its claims say."""
        return cls(**json.loads(trial.texts[-1]))


@dataclass(frozen=True)
class ClaimJudge(Judge):
    """Runs an experiment with settings, and judges its claims."""

    experiment: Experiment
    claims: tuple[Claim, ...]
    instead: bool = False  # drop-tail is in the place of the disciplines under test
    _kept: dict[tuple[str, int], Outcome] = field(default_factory=dict, compare=False, repr=False)
    _published: dict[str, Sequence[Comparison]] = field(default_factory=dict, compare=False, repr=False)

    def trial(self, settings: Settings, seed: int, stop: Callable[[], bool] = lambda: False) -> Trial:
        """Runs the experiment with these settings. Runs that the settings leave as published are not repeated."""
        try:
            outcomes = self.outcomes(settings, seed, stop)
        except Stopped:
            raise
        except (ScenarioError, MistakeError, RuntimeError, ValueError) as error:
            return Trial(settings, seed, (), (), 0.0, str(error).splitlines()[0])
        findings = self.findings(settings, outcomes)
        published = self._parts(stop)
        pairs = list(zip(self.claims, findings, strict=True))
        judged = tuple(contradicted(found, published[claim.id]) for claim, found in pairs)
        shown = tuple(found.agree / found.of if found.of else None for found in findings)
        texts = [json.dumps([f.verdict.value, f.agree, f.of, f.reason], ensure_ascii=False) for f in findings]
        events = sum(int(outcome.summary.get("events", 0)) for outcome in outcomes)
        made = json.dumps({"sha256": digest(outcomes), "events": events})
        cpu_s = sum(outcome.cpu_s for outcome in outcomes)
        return Trial(settings, seed, judged, shown, cpu_s, "", (*texts, made), _mark(outcomes))

    def failed(self, settings: Settings, seed: int, error: str) -> Trial:
        """Returns the trial of a process that died: it is none that can be judged."""
        return Trial(settings, seed, (), (), 0.0, error.splitlines()[0])

    def outcomes(self, settings: Settings, seed: int, stop: Callable[[], bool] = lambda: False) -> list[Outcome]:
        """Runs the experiment."""
        altered = replace(Altered.of(self.experiment, settings), instead=self.instead)
        return [self._outcome(altered, case, stop) for case in altered.cases(seed)]

    def _outcome(self, altered: Altered, case: Case, stop: Callable[[], bool]) -> Outcome:
        scenario = altered.scenario(case)
        key = (scenario.text, case.seed)
        if key in self._kept:
            return self._kept[key]
        outcome = _run(altered.experiment, case, scenario, stop)
        if not altered.settings:
            self._kept[key] = outcome
        return outcome

    def findings(self, settings: Settings, outcomes: Sequence[Outcome]) -> list[Finding]:
        """Returns what each claim says of the runs."""
        altered = Altered.of(self.experiment, settings)
        evidence = Evidence(altered.experiment, altered.form.quick, tuple(outcomes), {})
        return [_finding(claim, {self.experiment.name: evidence}) for claim in self.claims]

    def _parts(self, stop: Callable[[], bool]) -> Mapping[str, Sequence[Comparison]]:
        """The comparisons of each claim with the published values and the first seed."""
        if not self._published:
            findings = self.findings({}, self.outcomes({}, 1, stop))
            self._published.update({c.id: f.parts for c, f in zip(self.claims, findings, strict=True)})
        return self._published

    @property
    def made_of(self) -> str:
        """The hash of everything beside its settings that decides the result of a trial."""
        altered = Altered.of(self.experiment, {})
        texts = [altered.scenario(case).text for case in altered.cases(1)]
        changes = repr((self.experiment.variants, *open_keys.own(self.experiment.name)))
        made = [FORMAT, engine.core_fingerprint(), texts, changes, [claim.id for claim in self.claims]]
        return hashlib.sha256(json.dumps(made, ensure_ascii=False).encode()).hexdigest()


def _run(experiment: Experiment, case: Case, scenario: Scenario, stop: Callable[[], bool]) -> Outcome:
    result = experiment.run(scenario, case.seed, on_progress=lambda *_: None, stop=stop)
    return Outcome(case, experiment.cc, result.summary, result.cpu_s, experiment.series_of(result))


def _finding(claim: Claim, evidence: Mapping[str, Evidence]) -> Finding:
    try:
        return claim.check(evidence)
    except _ERRORS as error:
        return Finding(Verdict.NOT_RUN, "", f"cannot be judged: {type(error).__name__}: {error}")


def _mark(outcomes: Sequence[Outcome]) -> str:
    """Returns what trials with other seeds have in common if all of their runs are equal."""
    return hashlib.blake2b(b"".join(chance.mark(outcome.summary) for outcome in outcomes), digest_size=16).hexdigest()


def digest(outcomes: Sequence[Outcome]) -> str:
    """Returns the hash of the results of all runs: the same bytes give the same hash."""
    found = hashlib.sha256()
    for outcome in outcomes:
        found.update(f"{outcome.case}\0".encode())
        found.update(json.dumps(outcome.summary, sort_keys=True, ensure_ascii=False).encode())
    return found.hexdigest()


def contradicted(found: Finding, published: Sequence[Comparison]) -> Judged:
    """Returns whether a claim is contradicted, and how much."""
    if found.verdict in (Verdict.NOT_RUN, Verdict.OUT_OF_SCOPE):
        return UNJUDGED
    if found.verdict == Verdict.HOLDS:
        return HOLDS
    false = [place for place, part in enumerate(found.parts) if not part.holds]
    if not false:
        return Judged(True, 0.5)  # a check may add to what its comparisons say
    same = len(published) == len(found.parts)
    moved = [_moved(found.parts[i].text, published[i]) for i in false] if same else [0.0]
    return Judged(True, (len(false) + sum(moved) / len(moved)) / (len(found.parts) + 1))


def _moved(text: str, published: Comparison) -> float:
    """How far the numbers of a false comparison are from those with which it was true, as a part of both, up to 1."""
    if not published.holds or NUMBER.sub("#", text) != NUMBER.sub("#", published.text):
        return 0.0
    pairs = zip(_numbers(text), _numbers(published.text), strict=True)
    return max((abs(a - b) / (abs(a) + abs(b)) for a, b in pairs if a != b), default=0.0)


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]
