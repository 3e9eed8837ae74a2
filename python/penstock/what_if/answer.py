"""Simulates a capture under candidate disciplines, and decides which of them is the best for it, if any."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock.experiments.processes import Job, cores, run_all
from penstock.scenario import Scenario
from penstock.what_if import doubts, model
from penstock.what_if.model import Observed
from penstock.what_if.outcome import QUANTILES, Outcome

AS_IT_IS = "droptail"
CANDIDATES = (AS_IT_IS, "fq-codel", "fq-pie", "fq-cobalt", "pink")
# Controls that are tried, and how much better those that are less frequent must fit.
CONTROLS = {"cubic-linux": 0.0, "newreno": 0.1, "bbr": 0.2}
SEEDS = 5
_FIT_SEEDS = 3
_RIVAL = 0.15  # a control that fits so much worse than the best is possible, too
_FEW_LOST = 0.001  # shares of lost packets are compared above this
_GOODPUT = 0.95  # a discipline may cost so much of the goodput under drop-tail, as a share
_BETTER, _BETTER_MS = 0.8, 2.0  # its delay must be so much smaller, as a share and in milliseconds


@dataclass(frozen=True)
class Answer:
    """The answer to one capture."""

    seen: Observed
    verdict: str  # "recommended", "leave", "cannot-tell"
    discipline: str  # empty if it cannot be told
    because: list[str]
    notes: list[str]
    control: str
    seeds: int
    outcomes: list[Outcome] = field(default_factory=list)
    scenario: dict[str, Any] = field(default_factory=dict)  # the capture under drop-tail; empty if there is none

    def to_json(self) -> dict[str, Any]:
        """Returns the answer as plain values."""
        seen = self.seen
        return {
            "capture": str(seen.path),
            "verdict": self.verdict,
            "discipline": self.discipline or None,
            "because": self.because,
            "notes": self.notes,
            "capture_shows": shown(seen),
            "control": self.control or None,
            "seeds": self.seeds,
            "candidates": [asdict(outcome) for outcome in self.outcomes],
        }


def shown(seen: Observed) -> dict[str, Any]:
    """Returns what the capture itself shows."""
    knows = len(seen.queue.delay) > 0
    return {
        "duration_s": round(seen.duration_s, 6),
        "packets": seen.packets,
        "rate_bps": round(seen.rate.bps),
        "full": round(seen.rate.full, 4),
        "taken": ("behind the bottleneck" if seen.queue.at_home else "before the bottleneck") if knows else None,
        "limit_bytes": seen.limit_bytes if knows else None,
        "goodput_bps": round(seen.goodput_bps),
        "queue_delay_ms": {name: _ms(seen, float(name[1:]) / 100) for name in QUANTILES} if knows else None,
        "sent_again": round(seen.loss, 6),
        "transfers": sum(len(stream.bursts) for stream in (*seen.main, *seen.back)),
        "datagrams": len(seen.pieces),
        "quic": round(seen.quic, 4),
    }


def _ms(seen: Observed, quantile: float) -> float:
    return round(seen.queue.quantile(quantile) * 1e3, 3)


def ask(
    seen: Observed,
    disciplines: Sequence[str] = CANDIDATES,
    seeds: int = SEEDS,
    limit: str | None = None,
    control: str = "",
    on_run: Callable[[str, float], None] = lambda _label, _cpu_s: None,
) -> Answer:
    """Simulates what was seen under each discipline. `control` is that of all senders; empty: the best fit."""
    notes = list(doubts.notes(seen))
    reasons = list(doubts.of_capture(seen))
    if reasons:
        return Answer(seen, "cannot-tell", "", reasons, notes, control, seeds)
    controls = (control,) if control else tuple(CONTROLS)
    fitted = {cc: _outcome(model.scenario(seen, limit, cc), AS_IT_IS, _FIT_SEEDS, on_run, cc) for cc in controls}
    apart = {cc: _apart(seen, outcome) + CONTROLS.get(cc, 0.0) for cc, outcome in fitted.items()}
    control = min(controls, key=lambda cc: apart[cc])
    reasons = list(doubts.of_model(seen, fitted[control]))
    scenario = model.scenario(seen, limit, control)
    if reasons:
        return Answer(seen, "cannot-tell", "", reasons, notes, control, seeds, [fitted[control]], scenario)
    names = [AS_IT_IS, *(name for name in disciplines if name != AS_IT_IS)]
    outcomes = [_outcome(scenario, name, seeds, on_run, name) for name in names]
    verdict, discipline, because = decide(outcomes)
    for rival in (cc for cc in controls if cc != control and apart[cc] < apart[control] + _RIVAL):
        other = model.scenario(seen, limit, rival)
        rivals = [_outcome(other, name, min(seeds, _FIT_SEEDS), on_run, f"{name}, {rival}") for name in names]
        notes.append(_rivalry(rival, decide(rivals), verdict, discipline))
    return Answer(seen, verdict, discipline, because, notes, control, seeds, outcomes, scenario)


def _outcome(
    scenario: dict[str, Any], discipline: str, seeds: int, on_run: Callable[[str, float], None], label: str
) -> Outcome:
    source = Scenario.load({**scenario, "aqm": {"name": discipline}})
    source = Scenario(source.text, str(Path.cwd() / "what-if.toml"), source.classes)
    runs: dict[int, dict[str, Any]] = {}

    def done(job: Job[str], kept: tuple[dict[str, Any], float]) -> None:
        runs[job.seed], cpu_s = kept
        on_run(job.key, cpu_s)

    jobs = [Job(f"{label}, seed {seed}", source, seed) for seed in range(1, seeds + 1)]
    if not run_all(jobs, cores(), lambda _job, result: (result.summary, result.cpu_s), done):
        raise KeyboardInterrupt
    flows = scenario["flows"]
    main = [n for n, flow in enumerate(flows) if flow["kind"] != "cbr" and "direction" not in flow]
    return Outcome.of(discipline, [runs[seed] for seed in sorted(runs)], main)


def _apart(seen: Observed, outcome: Outcome) -> float:
    """Returns how far a simulation under drop-tail is from the capture."""
    delays = [
        doubts.apart(seen.queue.quantile(quantile), outcome.delay_ms[name].median / 1e3)
        for name, quantile in (("p50", 0.5), ("p90", 0.9))
    ]
    goodput = abs(outcome.goodput_bps.median / max(seen.goodput_bps, 1) - 1)
    losses = abs(math.log((outcome.sent_again.median + _FEW_LOST) / (seen.loss + _FEW_LOST)))
    return sum(delays) + 2 * goodput + losses / 2


def _rivalry(control: str, found: tuple[str, str, list[str]], verdict: str, discipline: str) -> str:
    told = f"senders of {control} fit nearly as well; with them the answer is "
    return told + ("the same" if found[:2] == (verdict, discipline) else f"{found[0]}: {found[1]}")


def decide(outcomes: Sequence[Outcome]) -> tuple[str, str, list[str]]:
    """Returns verdict, discipline and reasons. The first outcome is that under drop-tail."""
    as_it_is = outcomes[0]
    allowed = [one for one in outcomes if one.goodput_bps.median >= _GOODPUT * as_it_is.goodput_bps.median]
    best = min(allowed, key=lambda one: one.delay_ms["p90"].median)
    now, then = as_it_is.delay_ms["p90"], best.delay_ms["p90"]
    if then.median > min(_BETTER * now.median, now.median - _BETTER_MS):
        because = [f"no candidate shortens the delay of {now.median:.1f} ms (p90) by a fifth and 2 ms"]
        return "leave", AS_IT_IS, [*because, *_costly(outcomes, allowed, as_it_is)]
    gain = best.goodput_bps.median / as_it_is.goodput_bps.median - 1
    because = [
        f"the queueing delay falls from {now.median:.1f} to {then.median:.1f} ms (p90; {then.low:.1f} to "
        f"{then.high:.1f} over seeds), and goodput changes by {gain:+.1%}"
    ]
    like = [one.discipline for one in allowed if one is not best and one.delay_ms["p90"].low <= then.high]
    if like:
        because.append(f"as good within the range of the seeds: {', '.join(like)}")
    return "recommended", best.discipline, [*because, *_costly(outcomes, allowed, best)]


def _costly(outcomes: Sequence[Outcome], allowed: Sequence[Outcome], best: Outcome) -> list[str]:
    """Names the disciplines with a shorter delay that cost too much goodput; the first outcome is drop-tail."""
    found = [one for one in outcomes if one not in allowed and _p90(one) < _p90(best)]
    losses = [1 - one.goodput_bps.median / outcomes[0].goodput_bps.median for one in found]
    return [
        f"{one.discipline} has {_p90(one):.1f} ms, but costs {loss:.0%} of the goodput"
        for one, loss in zip(found, losses, strict=True)
    ]


def _p90(outcome: Outcome) -> float:
    return outcome.delay_ms["p90"].median
