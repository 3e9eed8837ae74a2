"""Simulates a capture under candidate disciplines, and decides which of them is the best for it, if any."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock.experiments.processes import Job, cores, run_all
from penstock.scenario import Scenario
from penstock.units import number
from penstock.what_if import decision, doubts, model
from penstock.what_if.model import Observed
from penstock.what_if.outcome import QUANTILES, Outcome

AS_IT_IS = "droptail"
CANDIDATES = (AS_IT_IS, "fq-codel", "fq-pie", "fq-cobalt", "pink")


@dataclass(frozen=True)
class Hosts:
    """Senders that are tried: their TCP, and how much better those that are less frequent must fit."""

    tcp: Mapping[str, Any]
    rare: float


# Hosts by their names in answers: those of today, those with a slow start that ends with losses, and other controls.
HOSTS: Mapping[str, Hosts] = {
    "cubic-linux": Hosts(model.LINUX, 0.0),
    "cubic-linux without HyStart": Hosts({"cc": {"name": "cubic-linux", "hystart": False}}, 0.05),
    "newreno": Hosts({**model.LINUX, "cc": "newreno"}, 0.1),
    "newreno of RFC 5681": Hosts({"cc": "newreno"}, 0.15),
    "bbr": Hosts({**model.LINUX, "cc": "bbr"}, 0.2),
}
# Disciplines that may be in place already, and the senders with which they are tried.
IN_PLACE = ("fq-codel", "codel", "fq-pie", "pie", "cake")
BACK_IN_PLACE = ("fq-codel", "codel", "pie")  # of the other direction
_IN_PLACE_HOSTS = ("cubic-linux", "newreno")
SEEDS = 5
_FIT_SEEDS = 3
_RIVAL = 0.15  # senders that fit so much worse than the best are possible, too
_MOST_RIVALS = 2
_FEW_LOST = 0.001  # shares of lost packets are compared above this
_MARKS = 3  # marks of ECN that show a discipline

OnRun = Callable[[str, float], None]


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
    scenario: dict[str, Any] = field(default_factory=dict)  # the capture as it is; empty if there is none

    def to_json(self) -> dict[str, Any]:
        """Returns the answer as plain values."""
        seen = self.seen
        return {
            "capture": str(seen.path),
            "read": seen.read,
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
    """Returns what the capture itself shows; `None` for what it does not, such as a link that is never full."""
    knows = len(seen.queue.delay) > 0
    segments = sum(stream.segments for stream in seen.main)
    return {
        "duration_s": round(seen.duration_s, 6),
        "packets": seen.packets,
        "rate_bps": round(seen.rate.bps) or None,
        "back_rate_bps": round(seen.back_bps) or None,
        "full": round(seen.rate.full, 4) if seen.rate.bps > 0 else None,
        "taken": ("behind the bottleneck" if seen.queue.at_home else "before the bottleneck") if knows else None,
        "limit_bytes": seen.limit_bytes if knows else None,
        "goodput_bps": round(seen.goodput_bps) if seen.duration_s else None,
        "back_goodput_bps": round(seen.back_goodput_bps) if seen.duration_s else None,
        "queue_delay_ms": {name: _ms(seen, float(name[1:]) / 100) for name in QUANTILES} if knows else None,
        "sent_again": round(seen.loss, 6) if segments else None,
        "lost_behind": round(seen.lost_behind, 6) if segments else None,
        "marks": seen.marks,
        "transfers": sum(len(stream.bursts) for stream in (*seen.main, *seen.back)),
        "datagrams": len(seen.pieces),
        "quic": round(seen.quic, 4) if seen.packets else None,
    }


def _ms(seen: Observed, quantile: float) -> float:
    return round(seen.queue.quantile(quantile) * 1e3, 3)


@dataclass(frozen=True)
class _Fit:
    """A simulation of the capture as it is: its senders, the discipline in place, and how far it is from that."""

    hosts: str
    in_place: str
    scenario: dict[str, Any]
    outcome: Outcome
    apart: float
    back_in_place: str = ""  # the discipline of the other direction, if it is not drop-tail


def ask(
    seen: Observed,
    disciplines: Sequence[str] = CANDIDATES,
    seeds: int = SEEDS,
    limit: str | None = None,
    control: str = "",
    on_run: OnRun = lambda _label, _cpu_s: None,
) -> Answer:
    """Simulates what was seen under each discipline. `control` is that of all senders; empty: the best fit."""
    notes = list(doubts.notes(seen))
    reasons = list(doubts.of_capture(seen))
    if reasons:
        return Answer(seen, "cannot-tell", "", reasons, notes, control, seeds)
    hosts = {control: Hosts({**model.LINUX, "cc": control}, 0.0)} if control else HOSTS
    fits = [] if seen.marks >= _MARKS else _fits(seen, limit, hosts, on_run)
    reasons = list(doubts.of_model(seen, fits[0].outcome)) if fits else [doubts.marked(seen)]
    like = [fit for fit in fits if _is_like(seen, fit)]
    if like:
        fits, reasons = like, []
    else:
        usual = hosts if control else {name: hosts[name] for name in _IN_PLACE_HOSTS}
        others = _fits_in_place(seen, limit, usual, on_run)
        like = [fit for fit in others if _is_like(seen, fit)]
        fits, reasons = (like, []) if like else (fits or others, reasons)
    best = fits[0]
    if reasons:
        return Answer(seen, "cannot-tell", "", reasons, notes, best.hosts, seeds, [best.outcome], best.scenario)
    notes += _told(best, 1 if control else len(HOSTS))
    names = [name for name in disciplines if name not in (AS_IT_IS, best.in_place)]
    outcomes = _outcomes(best, names, seeds, on_run)
    found = decision.decide(outcomes)
    if not decision.is_sure(found, outcomes):
        reasons.append(f"{found.best.discipline} is better by the median, but the ranges over the seeds leave it open")
    for rival in [one for one in fits[1:] if one.apart < best.apart + _RIVAL][:_MOST_RIVALS]:
        theirs = _outcomes(rival, names, min(seeds, _FIT_SEEDS), on_run)
        there = decision.decide(theirs)
        notes.append(_rivalry(rival, there, found))
        if not decision.stands(found.best.discipline, theirs):
            reasons.append(
                f"with {_name(best)} the answer is {_answer(found)}, and with {_name(rival)}, which fit nearly as "
                f"well, it is {_answer(there)}"
            )
    if reasons:
        return Answer(seen, "cannot-tell", "", reasons, notes, best.hosts, seeds, outcomes, best.scenario)
    name = found.best.discipline
    return Answer(seen, found.verdict, name, found.because, notes, best.hosts, seeds, outcomes, best.scenario)


def _fits(seen: Observed, limit: str | None, hosts: Mapping[str, Hosts], on_run: OnRun) -> list[_Fit]:
    """Returns the simulations under drop-tail, the nearest first."""
    found = []
    for name, one in hosts.items():
        scenario = model.scenario(seen, limit, one.tcp)
        outcome = _outcome(scenario, AS_IT_IS, _FIT_SEEDS, on_run, name)
        found.append(_Fit(name, AS_IT_IS, scenario, outcome, _apart(seen, outcome) + one.rare))
    return sorted(found, key=lambda fit: fit.apart)


def _fits_in_place(seen: Observed, limit: str | None, hosts: Mapping[str, Hosts], on_run: OnRun) -> list[_Fit]:
    """Returns the simulations with disciplines in one direction, the nearest first; they mark if the capture does."""
    found = []
    places = [(name, "") for name in IN_PLACE]
    if seen.marks < _MARKS:
        places += [("", name) for name in BACK_IN_PLACE]
    for name, back in places:
        marks = {"ecn": seen.marks >= _MARKS} if name and name != "cake" else {}
        in_place = {"name": name, **marks} if name else None
        for sender, one in hosts.items():
            scenario = model.scenario(seen, None if name else limit, one.tcp, in_place, back or AS_IT_IS)
            outcome = _outcome(scenario, "", _FIT_SEEDS, on_run, f"{name or back} in place, {sender}")
            apart = _apart(seen, outcome) + one.rare
            found.append(_Fit(sender, name or AS_IT_IS, scenario, outcome, apart, back))
    return sorted(found, key=lambda fit: fit.apart)


def _is_like(seen: Observed, fit: _Fit) -> bool:
    return not any(doubts.of_model(seen, fit.outcome))


def _outcomes(fit: _Fit, names: Sequence[str], seeds: int, on_run: OnRun) -> list[Outcome]:
    """Returns the outcomes of the link as it is, and of each candidate."""
    own = fit.in_place if fit.in_place == AS_IT_IS else ""
    now = _outcome(fit.scenario, own, seeds, on_run, f"{fit.in_place}, {fit.hosts}")
    return [now, *(_outcome(fit.scenario, name, seeds, on_run, f"{name}, {fit.hosts}") for name in names)]


def _outcome(scenario: dict[str, Any], discipline: str, seeds: int, on_run: OnRun, label: str) -> Outcome:
    """Simulates with a discipline, or with that which the scenario has."""
    source = Scenario.load(model.with_discipline(scenario, discipline) if discipline else scenario)
    source = Scenario(source.text, str(Path.cwd() / "what-if.toml"), source.classes)
    runs: dict[int, dict[str, Any]] = {}

    def done(job: Job[str], kept: tuple[dict[str, Any], float]) -> None:
        runs[job.seed], cpu_s = kept
        on_run(job.key, cpu_s)

    jobs = [Job(f"{label}, seed {seed}", source, seed) for seed in range(1, seeds + 1)]
    if not run_all(jobs, cores(), lambda _job, result: (result.summary, result.cpu_s), done):
        raise KeyboardInterrupt
    [link] = scenario["topology"]["links"]
    flows = scenario["flows"]
    main = [n for n, flow in enumerate(flows) if flow["kind"] != "cbr" and flow["from"] == model.LEFT]
    rates = (number(link["rate"]), number(link.get("reverse_rate", link["rate"])))
    return Outcome.of(discipline or link["aqm"]["name"], [runs[seed] for seed in sorted(runs)], main, rates)


def _apart(seen: Observed, outcome: Outcome) -> float:
    """Returns how far a simulation of the capture as it is is from the capture."""
    delays = [
        doubts.apart(seen.queue.quantile(quantile), outcome.delay_ms[name].median / 1e3)
        for name, quantile in (("p50", 0.5), ("p90", 0.9))
    ]
    goodput = abs(outcome.goodput_bps.median / max(seen.goodput_bps, 1) - 1)
    carried = abs(outcome.carried.median / max(seen.carried, 1e-3) - 1)
    losses = abs(math.log((outcome.sent_again.median + _FEW_LOST) / (seen.loss + _FEW_LOST)))
    return sum(delays) + goodput + carried + losses / 2


def _name(fit: _Fit) -> str:
    behind = fit.back_in_place or ("" if fit.in_place == AS_IT_IS else fit.in_place)
    return f"senders of {fit.hosts}" + (f" behind {behind}" if behind else "")


def _told(best: _Fit, tried: int) -> list[str]:
    tcp = ", ".join(f"{key} = {value}" for key, value in dict(best.scenario["tcp"]).items())
    fit = f", which fit best of {tried} kinds" if tried > 1 else ""
    found = [f"all senders are simulated as {best.hosts} ([tcp] {tcp}){fit}"]
    if best.in_place != AS_IT_IS:
        found.append(
            f"the queue is not drop-tail; of {', '.join(IN_PLACE)} {best.in_place} is nearest, and stands for it"
        )
    if best.back_in_place:
        told = f"the queue of the other direction is not drop-tail; of {', '.join(BACK_IN_PLACE)} {best.back_in_place}"
        found.append(f"{told} is nearest, and stands for it")
    return found


def _answer(found: decision.Decision) -> str:
    return found.best.discipline if found.verdict == "recommended" else "to leave it as it is"


def _rivalry(rival: _Fit, there: decision.Decision, found: decision.Decision) -> str:
    same = (there.verdict, there.best.discipline) == (found.verdict, found.best.discipline)
    return f"{_name(rival)} fit nearly as well; with them the answer is {'the same' if same else _answer(there)}"
