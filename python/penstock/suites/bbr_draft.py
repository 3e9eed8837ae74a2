"""The test cases of draft-ietf-ccwg-bbr-06, appendix A, over a grid of rates and round trip times.

Each case drives a connection step by step (`watched`): it waits for a state, changes the path or the application then,
and checks what the draft says. A case holds at a path if all its checks do; the criterion is the part of the paths at
which it holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.adversary.subject import SUBJECT, Subject
from penstock.scenario import Scenario
from penstock.suites.kept import Kept
from penstock.suites.model import LEAST, Case, Criterion, NotRun, Runs, Suite, Unjudged
from penstock.suites.networks import bdp_bytes, bulk, dumbbell
from penstock.suites.watched import SEGMENT, Connection, Path

PROBING = "Down Cruise Refill Up"
GRID = tuple(
    path
    for mbit in (0.064, 1.0, 10.0, 100.0, 1000.0, 10_000.0)
    for rtt in (1.0, 30.0, 200.0, 1000.0)
    if (path := Path(mbit, rtt)).segments <= 2000
)
QUICK = (Path(1.0, 200.0), Path(10.0, 30.0), Path(100.0, 30.0))
_SECONDS = 3600.0  # of simulated time that a case may take
_DEEP = 4.0  # products of buffer: no loss without being asked for

Found = dict[str, Any]


@dataclass(frozen=True)
class Test:
    """A case of the appendix."""

    section: str
    name: str
    title: str
    about: str
    drive: Callable[[Connection], Found]
    suits: Callable[[Path], bool] = lambda _path: True
    buffer: float = _DEEP

    def at(self, path: Path) -> str:
        """What the case is called at a path."""
        return f"{self.name}/{path.name}"


def _plateau(one: Connection) -> Found:
    left = one.until(lambda: one.state != "Startup", 60 * one.round + 20)
    checks = {
        "leaves Startup": left,
        "the next state is Drain": one.states[1][1:] == ("Drain",) if len(one.states) > 1 else False,
        "full_bw_count is 3, full_bw_now and full_bw_reached": one.number("full_bw_count") >= 3
        and one.true("full_bw_now")
        and one.true("full_bw_reached"),
        "max_bw within 2 %": abs(one.number("max_bw") / one.path.bandwidth - 1) <= 0.02,
    }
    return one.told(checks, max_bw_part=one.number("max_bw") / one.path.bandwidth)


def _startup_loss(one: Connection) -> Found:
    one.limit(0.5)
    one.until(lambda: False, 12 * one.round)
    limited = one.state == "Startup"
    one.steer(loss=0.2)
    left = one.leave(20 * one.round)
    return one.told(
        {
            "in Startup while application-limited": limited,
            "the next state is Drain": left == "Drain",
            "full_bw_now and full_bw_reached": one.true("full_bw_now") and one.true("full_bw_reached"),
            "inflight_longterm is set": math.isfinite(one.number("inflight_longterm")),
        }
    )


def _drain(one: Connection, part: float) -> Found:
    """A.3 and A.4: with the rate of the path, and with a part of it from the entry on."""
    entered = one.enter("Drain", 60 * one.round + 20)
    start, gain = one.number("drain_start_round"), one.number("pacing_rate") / (0.99 * one.number("bw") or 1)
    if part < 1:
        one.steer(mbit=part * one.path.mbit)
    left = one.leave(60 * one.round / part)
    rounds = one.number("round_count") - start
    checks = {"enters Drain": entered, "the next state is of ProbeBW": left in PROBING.split()}
    if part < 1:
        return one.told({**checks, "after more than 3 rounds": 3 < rounds <= 5}, rounds=rounds)
    gains = {"pacing_gain is 0.5": abs(gain - 0.5) < 0.01, "within 3 rounds": rounds <= 3}
    return one.told({**checks, **gains}, rounds=rounds, gain=gain)


def _up_plateau(one: Connection) -> Found:
    entered = one.enter("Up")
    left = one.leave()
    checks = {"enters ProbeBW_UP": entered, "the next state is ProbeBW_DOWN": left == "Down"}
    full = one.true("full_bw_now") and one.number("full_bw_count") >= 3
    free = math.isinf(one.number("inflight_longterm"))
    return one.told({**checks, "full_bw_count is 3 and full_bw_now": full, "no loss": free})


def _up_loss(one: Connection) -> Found:
    entered = one.enter("Up")
    one.limit(0.6)
    one.steer(loss=0.3)
    left = one.leave(20 * one.round + 5)  # with a small flight DOWN may last less than a step
    checks = {"enters ProbeBW_UP": entered, "the next state is ProbeBW_DOWN": left in ("Down", "Cruise")}
    return one.told({**checks, "because of losses": one.true("prev_probe_too_high")})


def _never(one: Connection, state: str) -> Found:
    entered = one.enter(state)
    one.limit(0.3)
    seconds = min(30 * one.round, 4.0)  # ProbeRTT would come after 5 s
    stayed = not one.until(lambda: one.state != state, seconds)
    return one.told({f"enters {state}": entered, f"stays in {state}": stayed})


def _down(one: Connection) -> Found:
    entered = one.enter("Down")
    gain = one.number("pacing_rate") / (0.99 * one.number("bw") or 1)
    left = one.leave()
    return one.told(
        {
            "enters ProbeBW_DOWN": entered,
            "pacing_gain is 0.9": abs(gain - 0.9) < 0.01,
            "the next state is ProbeBW_CRUISE": left == "Cruise",
        },
        gain=gain,
    )


def _down_time(one: Connection) -> Found:
    one.enter("Up")
    entered = one.enter("Down")
    since, wait = one.now, 3.0 + one.round
    one.steer(mbit=0.9 * one.path.mbit)
    left = one.leave()
    checks = {"enters ProbeBW_DOWN": entered, "the next state is ProbeBW_REFILL": left == "Refill"}
    return one.told(
        {**checks, "within bw_probe_wait": one.now - since <= wait + 4 * one.round}, seconds=one.now - since
    )


def _probe_rtt(one: Connection) -> Found:
    one.enter(PROBING)
    entered = one.enter("ProbeRtt", 15 + 20 * one.round)
    since = one.now
    window = one.number("cwnd")
    most = max(0.5 * one.number("bw") * one.number("min_rtt"), 4 * SEGMENT)
    left = one.leave(5 + 20 * one.round)
    lasted = one.now - since
    one.until(lambda: False, 3 * one.round)
    return one.told(
        {
            "enters ProbeRTT": entered,
            "the window is half the BDP, 4 segments at least": window <= most + 1,
            "lasts 200 ms and a round trip": lasted >= 0.2,
            "the next state is of ProbeBW": left in PROBING.split(),
            "goes on sending": one.number("cwnd") > window or window <= 4 * SEGMENT,
        },
        seconds=lasted,
    )


def _idle(one: Connection) -> Found:
    one.enter(PROBING)
    one.limit(0.0)
    one.until(lambda: False, 6.0 + 5 * one.round)
    before = len(one.states)
    one.limit(None)
    one.read()
    restarted = one.true("idle_restart")
    one.until(lambda: False, min(3 * one.round, 4.0))
    skipped = all(state != "ProbeRtt" for _, state in one.states[before:])
    return one.told({"idle_restart is true": restarted, "no ProbeRTT": skipped})


def _tiny(one: Connection) -> Found:
    entered = one.enter(PROBING, 120)
    least, rates = math.inf, []
    for _ in range(200):
        one.look()
        least = min(least, one.number("cwnd"))
        rates.append(one.number("bw") / one.path.bandwidth)
    return one.told(
        {
            "enters ProbeBW": entered,
            "the window is 4 segments at least": least >= 4 * SEGMENT,
            "bw within 10 % of the link": all(abs(part - 1) <= 0.1 for part in rates),
        },
        window=least / SEGMENT,
        bw_part=rates[-1],
    )


def _faster(one: Connection) -> Found:
    one.enter(PROBING)
    one.steer(mbit=10 * one.path.mbit)
    rounds, last, probing = 0.0, one.number("round_count"), False
    end = one.now + 60 + 100 * one.round
    while one.number("max_bw") < 9.5 * one.path.bandwidth and one.now < end:
        one.look()
        count = one.number("round_count")
        rounds += (count - last) if probing else 0
        last, probing = count, one.state in ("Refill", "Up")
    found = one.number("max_bw") >= 9.5 * one.path.bandwidth
    most = 8 * math.log2(max(10 * one.path.segments, 2)) + 16
    return one.told(
        {"finds ten times the rate": found, "in O(log BDP) rounds": rounds <= most}, rounds=rounds, most=most
    )


def _slower(one: Connection) -> Found:
    one.enter("Cruise")
    before, cycle = one.number("max_bw"), one.number("cycle_count")
    one.steer(mbit=one.path.mbit / 10)
    lower = one.until(lambda: one.number("bw_shortterm") < before, 30 * one.round + 20)
    limit = 1.1 * one.path.bandwidth / 10
    down = one.until(lambda: one.number("max_bw") <= limit, 120 + 200 * one.round)
    cycles = one.number("cycle_count") - cycle
    return one.told(
        {"bw_shortterm falls": lower, "max_bw falls to the rate": down, "in 2 cycles": cycles <= 3}, cycles=cycles
    )


def _spurious_timeout(one: Connection) -> Found:
    one.enter("Cruise")
    before, usual = one.number("cwnd"), one.path.rtt_ms
    one.steer(delay_ms=usual + 1e3 * (1.5 + 3 * one.round))
    fell = one.until(lambda: one.number("cwnd") <= 2 * SEGMENT, 10 + 10 * one.round)
    # The originals arrive late, and their ACKs have old timestamps.
    restored = one.until(lambda: one.number("cwnd") >= 0.9 * before, 10 + 10 * one.round)
    kept = math.isinf(one.number("bw_shortterm")) or one.number("bw_shortterm") > 0.5 * one.number("max_bw")
    return one.told({"a timeout": fell, "the window returns": restored, "the limits return": kept})


def _probe_rtt_in_startup(one: Connection) -> Found:
    one.limit(0.3)
    entered = one.enter("ProbeRtt", 12)
    left = one.leave(10)
    reached = one.true("full_bw_reached")
    checks = {"enters ProbeRTT": entered, "the pipe was not full": not reached}
    return one.told({**checks, "returns to Startup": left == "Startup"})


def _second_loss(one: Connection) -> Found:
    one.enter("Up")
    one.steer(loss=0.2)
    one.leave()
    one.steer(loss=0.0)
    limit = one.number("inflight_longterm")
    one.enter("Cruise Refill")
    entered = one.enter("Up")
    one.steer(loss=0.2)
    left = one.leave()
    after = one.number("inflight_longterm")
    return one.told(
        {
            "inflight_longterm is set": math.isfinite(limit),
            "enters ProbeBW_UP again": entered,
            "the next state is ProbeBW_DOWN": left == "Down",
            "HandleInflightTooHigh()": one.true("prev_probe_too_high"),
            "Beta bounds inflight_longterm": after >= 0.69 * min(one.number("bw") * one.number("min_rtt"), limit),
        },
        before=limit / SEGMENT,
        after=after / SEGMENT,
    )


def _limited_refill(one: Connection) -> Found:
    entered = one.enter("Refill")
    before = one.number("max_bw")
    one.limit(0.2)
    left = one.leave(10 * one.round + 5)
    same = one.number("max_bw") >= 0.999 * before
    one.limit(None)
    on = one.leave()
    return one.told(
        {
            "enters ProbeBW_REFILL": entered,
            "max_bw stays": same,
            "the next state is ProbeBW_UP": left == "Up",
            "and then ProbeBW_DOWN": on == "Down",
        }
    )


def _has(segments: float) -> Callable[[Path], bool]:
    return lambda path: path.segments >= segments


TESTS = (
    Test("A.1", "plateau", "Startup ends on a plateau", "max_bw is within 2 % of the link.", _plateau),
    Test(
        "A.2",
        "startup-loss",
        "Startup ends on loss while application-limited",
        "The application writes at half the rate; 20 % are lost. Six ranges of a round need a flight of 100 segments.",
        _startup_loss,
        _has(200),
    ),
    Test("A.3", "drain", "Drain ends by the flight", "Within three rounds.", partial(_drain, part=1.0)),
    Test(
        "A.4",
        "drain-rounds",
        "Drain ends after three rounds",
        "The link falls to 40 % at the entry: with 90 %, as the draft says, a pace of 0.5 drains the queue in time.",
        partial(_drain, part=0.4),
        _has(20),
    ),
    Test(
        "A.5", "up-plateau", "ProbeBW_UP ends on a plateau", "A buffer of four products: nothing is lost.", _up_plateau
    ),
    Test(
        "A.6",
        "up-loss",
        "ProbeBW_UP ends on loss while application-limited",
        "The application writes at 60 % of the rate; 30 % are lost.",
        _up_loss,
        _has(10),
    ),
    Test(
        "A.7",
        "never-startup",
        "Startup never ends while application-limited",
        "At 30 % of the rate, for 30 rounds or 4 s.",
        partial(_never, state="Startup"),
        _has(1),
    ),
    Test(
        "A.7",
        "never-up",
        "ProbeBW_UP never ends while application-limited",
        "At 30 % of the rate, for 30 rounds or 4 s.",
        partial(_never, state="Up"),
        _has(20),
    ),
    Test("A.8", "down", "ProbeBW_DOWN ends by the flight", "The next state is ProbeBW_CRUISE.", _down),
    Test(
        "A.9",
        "down-time",
        "ProbeBW_DOWN ends after bw_probe_wait",
        "The link falls by 10 % at the entry; the next state is ProbeBW_REFILL.",
        _down_time,
    ),
    Test("A.10", "probe-rtt", "ProbeRTT is entered and left", "After 5 s, for 200 ms and a round trip.", _probe_rtt),
    Test("A.11", "idle", "ProbeRTT is skipped after an idle time", "Six seconds without data.", _idle),
    Test(
        "A.14",
        "tiny",
        "a product below one packet",
        "The window is four segments, the rate that of the link.",
        _tiny,
        lambda path: path.segments < 1,
    ),
    Test(
        "A.15",
        "faster",
        "a link ten times as fast",
        "Rounds in REFILL and UP until max_bw is 95 % of it.",
        _faster,
        lambda path: path.mbit <= 1000,
    ),
    Test(
        "A.16",
        "slower",
        "a link ten times as slow",
        "bw_shortterm falls at the first losses, max_bw in two cycles.",
        _slower,
        _has(20),
    ),
    Test(
        "A.19",
        "spurious-timeout",
        "a needless timeout is taken back",
        "The delay grows by more than the timeout.",
        _spurious_timeout,
        _has(10),
    ),
    Test(
        "A.20",
        "startup-probe-rtt",
        "ProbeRTT during Startup returns to Startup",
        "The application writes at 30 % of the rate for more than 5 s.",
        _probe_rtt_in_startup,
        _has(20),
    ),
    Test(
        "A.21",
        "second-loss",
        "a loss in ProbeBW_UP with inflight_longterm",
        "20 % are lost in two probes.",
        _second_loss,
        _has(20),
    ),
    Test(
        "A.22",
        "limited-refill",
        "application-limited in ProbeBW_REFILL",
        "At 20 % of the rate for the round.",
        _limited_refill,
        _has(20),
    ),
)


def cases(quick: bool) -> list[Case]:
    """Returns each case at each path of the grid that suits it."""
    paths = [*QUICK, Path(0.064, 1.0)] if quick else GRID
    return [_case(test, path) for test in TESTS for path in paths if test.suits(path)]


def _case(test: Test, path: Path) -> Case:
    buffer = test.buffer * max(bdp_bytes(path.mbit, path.rtt_ms), 20 * 1500)
    tcp = {"cc": SUBJECT, "receive_buffer": "1GB", "send_buffer": "1GB"}
    tables = dumbbell(path.mbit, path.rtt_ms, buffer, [bulk()], seconds=int(_SECONDS), aqm="droptail", tcp=tcp)
    tables["flows"] = [{"role": "bulk", "kind": "bulk"}]
    return Case(test.at(path), tables, driven=partial(_driven, test, path))


def _driven(test: Test, path: Path, scenario: Scenario, seed: int) -> Kept:
    return Kept(test.drive(Connection.of(scenario, seed, path)))


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


UNJUDGED: Sequence[Unjudged] = (
    Unjudged("A.12", "Startup on a link with aggregation", "no link of the simulator aggregates ACKs"),
    Unjudged("A.13", "Cruise on a link with aggregation", "no link of the simulator aggregates ACKs"),
    Unjudged("A.17", "token bucket policers", "no link of the simulator polices without a buffer"),
    Unjudged("A.18", "spurious fast recovery", "no packet overtakes another in the simulator, except at handovers"),
)

SUITE = Suite(
    "bbr-draft",
    "The test cases of the BBR draft",
    "draft-ietf-ccwg-bbr-06, appendix A",
    "control",
    (),
    cases,
    criteria,
    UNJUDGED,
    (1, 1),
    "A number is the part of the paths at which every check of a case holds. Limits that the draft does not give (how "
    "many rounds are O(log BDP), how close is close) are those of this suite. Paths with more than 2000 segments in "
    "flight are not run.",
    ("holds", "does not hold"),
)
