"""Searches the runs of an experiment that contradict its claims most, with the search of the adversary.

One trial judges all claims of the experiment. The search has the first seed. The worst trial of each claim that holds
as published is then run with further seeds, and keys that are not needed for it are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from penstock.adversary.search import Search
from penstock.adversary.sentence import Judged
from penstock.adversary.shrink import Shrinker, enough
from penstock.adversary.space import Choices, Settings, Space
from penstock.adversary.trials import Trial, Trials, breaking
from penstock.claims.ledger import claims as all_claims
from penstock.claims.rows import JUDGED, Claim, Verdict
from penstock.counterexamples.judge import ClaimJudge, Made, Said
from penstock.counterexamples.space import form_of, space_of
from penstock.experiments.interrupts import Stop
from penstock.reproduce import EXPERIMENTS, Experiment, Tempest

SEED = 1  # of the search
SEEDS = (1, 2, 3)
EVENTS = 300_000_000  # of the simulator, which the trials of an experiment take
MOST = 200
SEVERAL = 50_000_000  # a trial of more events has one seed
_PER_KEY = 0.004  # as in the search: of two that contradict alike the smaller one is better
_NEAR = 1e-6

OUT = Path("runs/counterexamples")


@dataclass(frozen=True)
class Worst:
    """The run that contradicts a claim most, of those that were tried."""

    claim: str
    trials: int  # in which the claim could be judged, with the first seed
    changed: Settings | None = None  # None if none contradicts it; empty if it is that of the published values
    seed: int = SEED  # of the runs whose values are shown
    seeds: str = ""  # in how many seeds it does: "2/3"; seeds whose runs are equal are one
    verdict: str = ""
    agree: int = 0
    of: int = 0
    measured: str = ""
    sha256: str = ""  # of the results of these runs

    def to_json(self) -> dict[str, Any]:
        """Returns it as a JSON object."""
        if self.changed is None:
            return {"trials": self.trials, "changed": None}
        return {key: value for key, value in asdict(self).items() if key != "claim"}


def not_searched(claim: Claim) -> str:
    """Returns why the search does not apply to a claim; empty if it does."""
    if claim.kind not in JUDGED:
        return "no claim of a document"
    if not claim.varies:
        return "a sum, which no run can change"
    if len(claim.needs) != 1:
        return "it compares runs of two experiments"
    experiment = EXPERIMENTS[claim.needs[0]]
    if isinstance(experiment, Tempest) and experiment.one_at_a_time:
        return "processor times of packet schedulers"
    if isinstance(experiment, Tempest):
        return "a test of packet schedulers, which has no scenario"
    return "processor times" if experiment.one_at_a_time else ""


def searched(experiment: Experiment) -> tuple[Claim, ...]:
    """Returns the claims of an experiment to which the search applies."""
    return tuple(claim for claim in all_claims() if claim.needs == (experiment.name,) and not not_searched(claim))


def judge_of(experiment: Experiment, claims: Sequence[Claim]) -> ClaimJudge:
    """Returns what runs and judges the trials of an experiment."""
    return ClaimJudge(space_of(experiment), (), experiment, tuple(claims))


def search(
    experiment: Experiment,
    claims: Sequence[Claim],
    stop: Stop,
    *,
    trials: int | None = None,
    jobs: int | None = None,
    out: Path | None = None,
    told: Callable[[int, int], None] = lambda _done, _of: None,
) -> list[Worst]:
    """Returns the worst run of each claim; without those of a search that `stop` ended. `out` keeps the trials.

    Without `trials` their number follows from the events of the published runs, which are the same on any machine.
    """
    with Trials(judge_of(experiment, claims), out, stop, jobs) as runner:
        hunt = _Hunt(experiment, claims, runner)
        first = hunt.execute([{}], (SEED,))
        if not first or first[0].refused:
            return []
        events = Made.of_trial(first[0]).events
        hunt.seeds = SEEDS if experiment.seeds > 1 and events <= SEVERAL else (SEED,)
        count = trials or affordable(hunt.space, events)
        engine = Search(hunt.space, len(claims), SEED)

        def more(done: int) -> int:
            told(done, count)
            return 0 if stop else count - done

        engine.run(lambda wanted: hunt.execute(wanted, (SEED,)), more)
        found = [hunt.worst(place) for place in range(len(claims))]
        return [] if stop else found


def affordable(space: Space, events: int) -> int:
    """Returns the number of trials: each key alone at all its values at least."""
    alone = 1 + sum(len(gene.values.values) for gene in space.genes if isinstance(gene.values, Choices))
    return max(alone, min(MOST, EVENTS // max(1, events)))


class _Hunt:
    """The trials of an experiment, by their settings and seeds."""

    def __init__(self, experiment: Experiment, claims: Sequence[Claim], runner: Trials) -> None:
        self.space = runner.judge.space
        self._claims, self._runner = claims, runner
        self._shorter = form_of(experiment).shorter
        self.seeds: tuple[int, ...] = (SEED,)  # of the trials that are shown
        self._known: dict[str, dict[int, Trial]] = {}

    def execute(self, wanted: Sequence[Settings], seeds: Sequence[int]) -> list[Trial]:
        """Runs trials and remembers them."""
        found = self._runner.run(wanted, seeds)
        for trial in found:
            self._known.setdefault(repr(trial.settings), {})[trial.seed] = trial
        return found

    def worst(self, place: int) -> Worst:
        """Returns the worst run of the claim at this place."""
        first = [group[SEED] for group in self._known.values() if SEED in group and not group[SEED].refused]
        judged = [trial for trial in first if Said.of_trial(trial, place).verdict != Verdict.NOT_RUN]
        nothing = Worst(self._claims[place].id, len(judged))
        bad = [trial for trial in judged if trial.judged[place].true]
        published = self.execute([{}], self.seeds)
        as_published = self._score(published, place)[0]
        if self._shorter and as_published:
            return replace(nothing, trials=0)  # these shorter runs do not show what the published ones do
        if not bad:
            return nothing
        chosen = max(bad, key=lambda trial: _value(trial, place)).settings
        if not as_published:
            chosen = self._smaller(self._confirmed(chosen, place), place)
        return self._told(chosen, place, nothing)

    def _confirmed(self, first: Settings, place: int) -> Settings:
        """Returns the worst settings that contradict in half of the seeds; else the first."""
        self.execute([first], self.seeds)
        whole = [group for group in self._known.values() if group.keys() >= set(self.seeds)]
        scored = [(self._score(group.values(), place), group[SEED].settings) for group in whole]
        best = max(scored, key=lambda one: one[0], default=None)
        return best[1] if best and best[0][0] else first

    def _score(self, group: Iterable[Trial], place: int) -> tuple[bool, float]:
        known = [trial for trial in group if not trial.refused]
        values = sorted(_value(trial, place) for trial in known)
        return self._enough(known, place), values[len(values) // 2] if values else -1.0

    @staticmethod
    def _enough(known: Iterable[Trial], place: int) -> bool:
        """True if at least half of the different runs contradict."""
        return enough(*breaking(known, place), needed=1, seeds=2)

    def _smaller(self, settings: Settings, place: int) -> Settings:
        """Leaves out keys, as long as it is contradicted as much and in as many seeds."""
        trials = self.execute([settings], self.seeds)
        least = sorted(trial.judged[place].margin for trial in trials)[len(trials) // 2] if len(settings) > 1 else 0.0
        if len(settings) < 2 or not self._enough((one for one in trials if not one.refused), place):
            return settings

        def strict(wanted: Sequence[Settings], seeds: Sequence[int]) -> list[Trial]:
            return [_at_least(trial, place, least) for trial in self.execute(wanted, seeds)]

        needed = (len(self.seeds) + 1) // 2
        return Shrinker(self.space, place, strict, self.seeds, needed).shrink(settings).settings

    def _told(self, settings: Settings, place: int, nothing: Worst) -> Worst:
        group = self._known[repr(settings)]
        trial = max((one for one in group.values() if not one.refused), key=lambda one: _value(one, place))
        said = Said.of_trial(trial, place)
        breaks, of = breaking((one for one in group.values() if not one.refused), place)
        return replace(
            nothing,
            changed=settings,
            seed=trial.seed,
            seeds=f"{breaks}/{of}",
            verdict=said.verdict,
            agree=said.agree,
            of=said.of,
            measured=said.text,
            sha256=Made.of_trial(trial).sha256,
        )


def _value(trial: Trial, place: int) -> float:
    return trial.judged[place].margin - _PER_KEY * len(trial.settings)


def _at_least(trial: Trial, place: int, least: float) -> Trial:
    """The trial, which contradicts only if it does so much."""
    if trial.refused:
        return trial
    judged = list(trial.judged)
    judged[place] = Judged(judged[place].margin >= least - _NEAR, judged[place].margin)
    return replace(trial, judged=tuple(judged))
