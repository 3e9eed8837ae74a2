"""The test cases of draft-ietf-ccwg-bbr-06, appendix A, over a grid of rates and round trip times.

Each case drives a connection step by step (`watched`): it waits for a state, changes the path or the application then,
and checks what the draft says. A case holds at a path if all its checks do; the criterion is the part of the paths at
which it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path as Directory

from penstock.adversary.subject import SUBJECT, Subject
from penstock.scenario import Scenario, tree
from penstock.store import files
from penstock.suites import bbr_steps as steps
from penstock.suites.kept import Kept
from penstock.suites.model import LEAST, Case, Criterion, NotRun, Runs, Suite
from penstock.suites.networks import bdp_bytes, bulk, dumbbell
from penstock.suites.qlog import Trace
from penstock.suites.watched import Connection, Path

GRID = tuple(
    path
    for mbit in (0.064, 1.0, 10.0, 100.0, 1000.0, 10_000.0)
    for rtt in (1.0, 30.0, 200.0, 1000.0)
    if (path := Path(mbit, rtt)).segments <= 2000
)
QUICK = (Path(1.0, 200.0), Path(10.0, 30.0), Path(100.0, 30.0))
_SECONDS = 3600.0  # of simulated time that a case may take
_SLOW_MS = 200.0  # from this round trip time on, ProbeRTT comes before these cases are over
_OVERTAKEN = ("A.2", "A.4", "A.5", "A.8", "A.9", "A.16", "A.17")
_PUT_OFF = {"probe_rtt_interval": "1h"}
_DEEP = 4.0  # products of buffer: no loss without being asked for


@dataclass(frozen=True)
class Test:
    """A case of the appendix."""

    section: str
    name: str
    title: str
    about: str
    drive: Callable[[Connection], steps.Found]
    suits: Callable[[Path], bool] = lambda _path: True
    buffer: float = _DEEP

    def at(self, path: Path) -> str:
        """What the case is called at a path."""
        return f"{self.name}/{path.name}"


def _has(segments: float) -> Callable[[Path], bool]:
    return lambda path: path.segments >= segments


TESTS = (
    Test("A.1", "plateau", "Startup ends on a plateau", "max_bw is within 2 % of the link.", steps.plateau),
    Test(
        "A.2",
        "startup-loss",
        "Startup ends on loss while application-limited",
        "The application writes at half the rate; 20 % are lost. Six ranges of a round need a flight of 100 segments.",
        steps.startup_loss,
        _has(200),
    ),
    Test("A.3", "drain", "Drain ends by the flight", "Within three rounds.", partial(steps.drain, part=1.0)),
    Test(
        "A.4",
        "drain-rounds",
        "Drain ends after three rounds",
        "The link falls to 40 % at the entry: with 90 %, as the draft says, a pace of 0.5 drains the queue in time.",
        partial(steps.drain, part=0.4),
        _has(20),
    ),
    Test(
        "A.5",
        "up-plateau",
        "ProbeBW_UP ends on a plateau",
        "A buffer of four products: nothing is lost.",
        steps.up_plateau,
    ),
    Test(
        "A.6",
        "up-loss",
        "ProbeBW_UP ends on loss while application-limited",
        "The application writes at 60 % of the rate; 30 % are lost.",
        steps.up_loss,
        _has(10),
    ),
    Test(
        "A.7",
        "never-startup",
        "Startup never ends while application-limited",
        "At 30 % of the rate, for 30 rounds or 4 s.",
        partial(steps.never, state="Startup"),
        _has(1),
    ),
    Test(
        "A.7",
        "never-up",
        "ProbeBW_UP never ends while application-limited",
        "At 30 % of the rate, for 30 rounds or 4 s.",
        partial(steps.never, state="Up"),
        _has(20),
    ),
    Test("A.8", "down", "ProbeBW_DOWN ends by the flight", "The next state is ProbeBW_CRUISE.", steps.down),
    Test(
        "A.9",
        "down-time",
        "ProbeBW_DOWN ends after bw_probe_wait",
        "The link falls by 10 % at the entry; the next state is ProbeBW_REFILL. Not where three quanta of 1 ms exceed "
        "the product: no flight falls below them.",
        steps.down_time,
        lambda path: path.segments >= 10 and path.rtt_ms > 3,
    ),
    Test(
        "A.10", "probe-rtt", "ProbeRTT is entered and left", "After 5 s, for 200 ms and a round trip.", steps.probe_rtt
    ),
    Test("A.11", "idle", "ProbeRTT is skipped after an idle time", "Six seconds without data.", steps.idle),
    Test(
        "A.12",
        "startup-aggregation",
        "Startup finds the rate behind bursts of ACKs",
        "ACKs are held for half a round trip, in which 4 segments pass at least.",
        steps.aggregation,
        lambda path: path.segments >= 10,
    ),
    Test(
        "A.13",
        "cruise-aggregation",
        "ProbeBW_CRUISE uses the link behind bursts of ACKs",
        "From the entry on ACKs are held for half a round trip, in which 4 segments pass at least.",
        steps.cruise_aggregation,
        lambda path: path.segments >= 10,
    ),
    Test(
        "A.14",
        "tiny",
        "a product below one packet",
        "The window is four segments, the rate that of the link.",
        steps.tiny,
        lambda path: path.segments < 1,
    ),
    Test(
        "A.15",
        "faster",
        "a link ten times as fast",
        "Rounds in REFILL and UP until max_bw is 95 % of it.",
        steps.faster,
        lambda path: path.mbit <= 1000,
    ),
    Test(
        "A.16",
        "slower",
        "a link ten times as slow",
        "bw_shortterm falls at the first losses, max_bw in two cycles. The buffer has one product: losses come.",
        steps.slower,
        _has(20),
        1.0,
    ),
    Test(
        "A.17",
        "policer",
        "a policer without a buffer",
        "Tokens for half the rate of the link; a bucket of a product of the link, 20 packets at least.",
        steps.policer,
        lambda path: path.segments >= 10,
    ),
    Test(
        "A.18",
        "spurious-recovery",
        "a needless fast recovery is taken back",
        "What is sent in a step is late by a quarter of a round trip, 12 segments at least.",
        steps.spurious_recovery,
        lambda path: path.segments >= 20,
    ),
    Test(
        "A.19",
        "spurious-timeout",
        "a needless timeout is taken back",
        "The delay grows by more than the timeout.",
        steps.spurious_timeout,
        _has(10),
    ),
    Test(
        "A.20",
        "startup-probe-rtt",
        "ProbeRTT during Startup returns to Startup",
        "The application writes at 30 % of the rate for more than 5 s.",
        steps.probe_rtt_in_startup,
        _has(20),
    ),
    Test(
        "A.21",
        "second-loss",
        "a loss in ProbeBW_UP with inflight_longterm",
        "20 % are lost in two probes.",
        steps.second_loss,
        _has(20),
    ),
    Test(
        "A.22",
        "limited-refill",
        "application-limited in ProbeBW_REFILL",
        "At 20 % of the rate for the round.",
        steps.limited_refill,
        _has(20),
    ),
)


def cases(quick: bool, qlog: Directory | None = None) -> list[Case]:
    """Returns each case at each path of the grid that suits it; with `qlog` each run writes a trace there."""
    paths = [*QUICK, Path(0.064, 1.0)] if quick else GRID
    return [_case(test, path, qlog) for test in TESTS for path in paths if test.suits(path)]


def _case(test: Test, path: Path, qlog: Directory | None = None) -> Case:
    buffer = test.buffer * max(bdp_bytes(path.mbit, path.rtt_ms), 20 * 1500)
    tcp = {"cc": SUBJECT, "receive_buffer": "1GB", "send_buffer": "1GB"}
    # The cases are about the control alone: its hosts have no habits of a kernel, and nothing else limits a flight.
    more = {"hosts": {"mss": "1448B"}, "aqm": "droptail", "tcp": tcp}
    tables = dumbbell(path.mbit, path.rtt_ms, buffer, [bulk()], seconds=int(_SECONDS), **more)
    tables["flows"] = [{"role": "bulk", "kind": "bulk"}]
    overtaken = test.section in _OVERTAKEN and path.rtt_ms >= _SLOW_MS
    adapt = _put_off if overtaken else _as_it_is
    if qlog:  # another role, so that what was run without traces is run again
        tables["flows"] = [{"role": "traced", "kind": "bulk"}]
    return Case(test.at(path), tables, adapt=adapt, driven=partial(_driven, test, path, qlog))


def _as_it_is(subject: Subject) -> Subject:
    return subject


def _put_off(subject: Subject) -> Subject:
    """The control with ProbeRTT put off, if it has this parameter and it was not given."""
    if "probe_rtt_interval" not in subject.parameters:
        return subject
    return replace(subject, given={**subject.given, **_PUT_OFF})


def _driven(test: Test, path: Path, qlog: Directory | None, scenario: Scenario, seed: int) -> Kept:
    trace = Trace() if qlog else None
    found = test.drive(Connection.of(scenario, seed, path, trace))
    if qlog and trace:
        control = tree(scenario.text)["tcp"]["cc"]
        name = " ".join([control["name"], *(f"{key}={control[key]}" for key in control if key != "name")])
        file = qlog / f"{test.name}-{path.name}-{name.replace(' ', '-')}-{seed}.sqlog"
        files.write(file, trace.text(f"{test.section} {test.title}", f"{path.name}, {name}, seed {seed}"))
    return Kept(found)


def traced(directory: Directory) -> Suite:
    """Returns the suite with a qlog of each run in a directory."""
    return replace(SUITE, cases=partial(cases, qlog=directory))


def criteria(_subject: Subject) -> list[Criterion]:
    """Returns a criterion for each case: the part of the paths at which it holds."""
    return [
        Criterion(
            test.name,
            test.section,
            test.title,
            "% of paths",
            test.about,
            partial(_held, test),
            LEAST,
            _all,
            why=partial(_why, test),
        )
        for test in TESTS
    ]


def _all(_runs: Runs, _name: str) -> float:
    return 100.0


def _ran(test: Test, runs: Runs, name: str) -> list[Kept]:
    paths = dict.fromkeys((*GRID, *QUICK))
    found = [kept for path in paths if runs.has(test.at(path), name) for kept in runs.of(test.at(path), name)]
    if not found:
        raise NotRun(test.name)
    return found


def _held(test: Test, runs: Runs, name: str) -> float:
    found = _ran(test, runs, name)
    return 100.0 * sum(all(kept.summary["checks"].values()) for kept in found) / len(found)


def _why(test: Test, runs: Runs, name: str) -> str:
    """Returns at which paths which checks fail."""
    failed: dict[str, list[str]] = {}
    for kept in _ran(test, runs, name):
        for check, held in kept.summary["checks"].items():
            if not held and kept.summary["path"] not in failed.setdefault(check, []):
                failed[check].append(kept.summary["path"])
    return "; ".join(f"not {check!r}: {', '.join(paths)}" for check, paths in failed.items())


SUITE = Suite(
    "bbr-draft",
    "The test cases of the BBR draft",
    "draft-ietf-ccwg-bbr-06, appendix A",
    "control",
    (),
    cases,
    criteria,
    (),
    (1, 1),
    "A number is the part of the paths at which every check of a case holds. Limits that the draft does not give (how "
    "many rounds are O(log BDP), how close is close) are those of this suite. Paths with more than 2000 segments in "
    "flight are not run. With 200 ms and more, A.2, A.4, A.5, A.8, A.9, A.16 and A.17 run with ProbeRTT put off: it "
    "comes 5 s after the last smallest round trip time, which is before they are over.",
    ("holds", "does not hold"),
    only_sim="it reads the state of the control while a connection goes on, and changes its path and its application "
    "when the state does, which only the simulator lets it do",
)
