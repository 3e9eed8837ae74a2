"""What the test cases of the BBR draft do with a connection, step by step, and what they check.

A state that ProbeRTT may interrupt, 5 s after the last smallest round trip time, is waited for again.
"""

from __future__ import annotations

import math
from typing import Any

from penstock.suites.networks import bdp_bytes
from penstock.suites.watched import SEGMENT, Connection, Path

Found = dict[str, Any]
PROBING = "Down Cruise Refill Up"
_TRIES = 20  # how often a case waits for its state again, if ProbeRTT comes in between
_LIMITS = ("bw_shortterm", "inflight_shortterm", "inflight_longterm")


def plateau(one: Connection) -> Found:
    left = one.until(lambda: one.state not in ("Startup", "ProbeRtt"), 60 * one.round + 60)
    checks = {
        "leaves Startup": left,
        "the next state is Drain": one.state == "Drain" or _drained(one),
        "full_bw_count is 3, full_bw_now and full_bw_reached": one.number("full_bw_count") >= 3
        and one.true("full_bw_now")
        and one.true("full_bw_reached"),
        "max_bw within 2 %": abs(one.number("max_bw") / one.path.bandwidth - 1) <= 0.02,
    }
    return one.told(checks, max_bw_part=one.number("max_bw") / one.path.bandwidth)


def _drained(one: Connection) -> bool:
    """True if Drain began, and with a small flight ended at the same ACK."""
    return one.state in PROBING.split() and one.number("drain_start_round") > 0


def startup_loss(one: Connection) -> Found:
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


def drain(one: Connection, part: float) -> Found:
    """A.3 and A.4: with the rate of the path, and with a part of it from the entry on."""
    entered = one.until(lambda: one.state == "Drain" or _drained(one), 60 * one.round + 60)
    lasts = one.state == "Drain"
    start, gain = one.number("drain_start_round"), one.number("pacing_rate") / (0.99 * one.number("bw") or 1)
    if part < 1:
        one.steer(mbit=part * one.path.mbit)
    left = one.leave(60 * one.round / part) if lasts else one.state
    rounds = one.number("round_count") - start
    if left == "ProbeRtt":
        left = one.leave(60 * one.round)
    checks = {"enters Drain": entered, "the next state is of ProbeBW": left in PROBING.split()}
    if part < 1:
        return one.told({**checks, "after more than 3 rounds": 3 < rounds <= 5}, rounds=rounds)
    gains = {"pacing_gain is 0.5": not lasts or abs(gain - 0.5) < 0.01, "within 3 rounds": rounds <= 3}
    return one.told({**checks, **gains}, rounds=rounds, gain=gain)


def up_plateau(one: Connection) -> Found:
    entered, left = False, "ProbeRtt"
    for _ in range(_TRIES):
        if left == "ProbeRtt":
            entered = one.enter("Up")
            left = one.leave() if entered else "never"
    checks = {"enters ProbeBW_UP": entered, "the next state is ProbeBW_DOWN": left == "Down"}
    full = one.true("full_bw_now") and one.number("full_bw_count") >= 3
    free = math.isinf(one.number("inflight_longterm"))
    return one.told({**checks, "full_bw_count is 3 and full_bw_now": full, "no loss": free})


def up_loss(one: Connection) -> Found:
    entered, left = False, "ProbeRtt"
    for _ in range(_TRIES):
        if left == "ProbeRtt":
            one.limit(None)
            one.steer(loss=0.0)
            entered = one.enter("Up")
            one.limit(0.6)
            one.steer(loss=0.3)
            left = (
                one.leave(20 * one.round + 5) if entered else "never"
            )  # with a small flight DOWN may last less than a step
    checks = {"enters ProbeBW_UP": entered, "the next state is ProbeBW_DOWN": left in ("Down", "Cruise")}
    return one.told({**checks, "because of losses": one.true("prev_probe_too_high")})


def never(one: Connection, state: str) -> Found:
    entered = one.enter(state)
    one.limit(0.3)
    seconds = min(30 * one.round, 4.0)  # ProbeRTT would come after 5 s
    stayed = not one.until(lambda: one.state not in (state, "ProbeRtt"), seconds)
    stayed = stayed or "ProbeRtt" in [name for _, name in one.states[-2:]]
    return one.told({f"enters {state}": entered, f"stays in {state}": stayed})


def _enter_down(one: Connection, loss: float = 0.0) -> bool:
    """Waits for ProbeBW_DOWN. Where the rounds of ProbeBW_UP take too long, losses of the round before end it."""
    if not one.enter("Refill Up"):
        return False
    if loss:
        one.enter("Refill")
        one.until(lambda: one.state != "Refill", 0.5 * one.round)
        one.steer(loss=min(0.4, max(loss, 1.5 / one.path.segments)))
    one.enter("Up")
    left = one.leave()
    if loss:
        one.steer(loss=0.0)
    return left == "Down"


def down(one: Connection) -> Found:
    """A.8: the flight falls."""
    entered, left, gain = False, "ProbeRtt", 0.0
    for attempt in range(_TRIES):
        if attempt and not one.true("full_bw_reached"):
            break  # it never leaves Startup
        if not gain or left != "Cruise":
            entered, gain = _enter_down(one, 0.0 if attempt < 4 else (0.05, 0.1, 0.2, 0.4)[attempt % 4]), 0.0
            end = one.now + 60
            while one.state == "Down" and one.now < end:
                one.look()
                if one.state == "Down":  # a loss sets the state, and the next ACK the pace
                    gain = one.number("pacing_rate") / (0.99 * one.number("bw") or 1)
            left = one.state
    return one.told(
        {
            "enters ProbeBW_DOWN": entered,
            "pacing_gain is 0.9": abs(gain - 0.9) < 0.01,
            "the next state is ProbeBW_CRUISE": left == "Cruise",
        },
        gain=gain,
    )


def down_time(one: Connection) -> Found:
    """A.9: the flight does not fall."""
    entered, left, since, wait = False, "ProbeRtt", one.now, 3.0 + one.round
    for _ in range(_TRIES):
        if not entered or left == "ProbeRtt":
            one.steer(mbit=one.path.mbit)
            entered = _enter_down(one)
            since = one.now
            one.steer(mbit=0.9 * one.path.mbit)
            left = one.leave() if entered else left
    checks = {"enters ProbeBW_DOWN": entered, "the next state is ProbeBW_REFILL": left == "Refill"}
    return one.told(
        {**checks, "within bw_probe_wait": one.now - since <= wait + 4 * one.round}, seconds=one.now - since
    )


def probe_rtt(one: Connection) -> Found:
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


def idle(one: Connection) -> Found:
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


def tiny(one: Connection) -> Found:
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


def faster(one: Connection) -> Found:
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


def slower(one: Connection) -> Found:
    one.enter("Cruise")
    before, cycle = one.number("max_bw"), one.number("cycle_count")
    one.steer(mbit=one.path.mbit / 10)
    lower = one.until(
        lambda: one.number("bw_shortterm") < before or math.isfinite(one.number("inflight_longterm")),
        30 * one.round + 20,
    )
    limit = 1.1 * one.path.bandwidth / 10
    down = one.until(lambda: one.number("max_bw") <= limit, 120 + 600 * one.round)
    cycles = one.number("cycle_count") - cycle
    return one.told(
        {"a limit falls": lower, "max_bw falls to the rate": down, "in 2 cycles": cycles <= 3}, cycles=cycles
    )


def spurious_timeout(one: Connection) -> Found:
    one.enter("Cruise")
    before, usual = one.number("cwnd"), one.path.rtt_ms
    one.steer(delay_ms=usual + 1e3 * (1.5 + 3 * one.round))
    fell = one.until(lambda: one.number("cwnd") <= 2 * SEGMENT, 10 + 10 * one.round)
    # The originals arrive late, and their ACKs have old timestamps.
    restored = one.until(lambda: one.number("cwnd") >= 0.9 * before, 10 + 10 * one.round)
    kept = math.isinf(one.number("bw_shortterm")) or one.number("bw_shortterm") > 0.5 * one.number("max_bw")
    return one.told({"a timeout": fell, "the window returns": restored, "the limits return": kept})


def probe_rtt_in_startup(one: Connection) -> Found:
    one.limit(0.3)
    entered = one.enter("ProbeRtt", 12)
    left = one.leave(10)
    reached = one.true("full_bw_reached")
    checks = {"enters ProbeRTT": entered, "the pipe was not full": not reached}
    return one.told({**checks, "returns to Startup": left == "Startup"})


def second_loss(one: Connection) -> Found:
    for _ in range(_TRIES):
        if math.isinf(one.number("inflight_longterm")):
            one.enter("Up")
            one.steer(loss=0.2)
            one.leave()
            one.steer(loss=0.0)
    limit, entered, left = one.number("inflight_longterm"), False, "ProbeRtt"
    for _ in range(_TRIES):
        if left == "ProbeRtt":
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


def limited_refill(one: Connection) -> Found:
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
            "and then ProbeBW_DOWN": on in ("Down", "ProbeRtt"),
        }
    )


def _hold_ms(path: Path) -> float:
    """How long a burst of ACKs is held: half a round trip, in which 4 segments pass at least."""
    return max(path.rtt_ms / 2, 4 * 1500 * 8 / (path.mbit * 1e3))


def aggregation(one: Connection) -> Found:
    one.impair(reverse=True, aggregate_ms=_hold_ms(one.path))
    most = 0.0
    end = one.now + 60 * one.round + 60
    while one.state in ("Startup", "ProbeRtt") and one.now < end:
        most = max(most, one.number("extra_acked"))
        one.look()
    burst = one.path.bandwidth * _hold_ms(one.path) / 1e3
    bdp = one.path.bandwidth * one.path.rtt_ms / 1e3
    part = one.number("max_bw") / one.path.bandwidth
    return one.told(
        {
            "leaves Startup": one.state == "Drain",
            "extra_acked is a burst": 0.5 * burst <= most <= 2.5 * burst,
            "the window is more than twice the BDP": one.number("cwnd") > 2 * bdp,
            "finds the rate": 0.9 <= part <= 2,
        },
        extra_acked_part=most / burst,
        window_part=one.number("cwnd") / bdp,
        max_bw_part=part,
    )


def cruise_aggregation(one: Connection) -> Found:
    entered = one.enter("Cruise")
    one.impair(reverse=True, aggregate_ms=_hold_ms(one.path))
    burst = one.path.bandwidth * _hold_ms(one.path) / 1e3
    most, window, part = 0.0, 0.0, 0.0
    for _ in range(3):  # from one ProbeRTT to the next
        one.until(lambda: one.state != "ProbeRtt", 10 * one.round + 5)
        one.until(lambda: one.state == "ProbeRtt", 2 * one.round)
        before, since = one.number("delivered"), one.now
        while one.now < since + 20 * one.round and one.state != "ProbeRtt":
            most = max(most, one.number("extra_acked"))
            window = max(window, one.number("cwnd") - 2 * one.number("bw") * one.number("min_rtt"))
            one.look()
        if one.now >= since + one.round:
            part = max(part, (one.number("delivered") - before) / (one.now - since) / one.path.bandwidth)
    return one.told(
        {
            "enters ProbeBW_CRUISE": entered,
            "extra_acked is a burst": 0.5 * burst <= most <= 2.5 * burst,
            "the window has room for it": window >= 0.5 * burst,
            "uses the link": part >= 0.85,
        },
        extra_acked_part=most / burst,
        room_part=window / burst,
        used=part,
    )


def policer(one: Connection) -> Found:
    tokens = 0.5 * one.path.mbit
    burst = max(bdp_bytes(one.path.mbit, one.path.rtt_ms), 20 * 1500)
    one.impair(police=(tokens, burst))
    entered = one.enter(PROBING, 60 * one.round + 60)
    bounded = one.until(
        lambda: math.isfinite(one.number("bw_shortterm")) and math.isfinite(one.number("inflight_shortterm")),
        60 * one.round + 60,
    )
    one.until(lambda: False, 300 * one.round + 3)
    first, since = one.bottleneck(), one.now
    policed, passed, last = dict.fromkeys(("Cruise", "else"), 0), dict.fromkeys(("Cruise", "else"), 0), first
    while one.now < since + 200 * one.round + 5:
        where = one.state if one.state == "Cruise" else "else"
        one.look()
        now = one.bottleneck()
        policed[where] += now["policed"] - last["policed"]
        passed[where] += now["packets_all"] - last["packets_all"]
        last = now
    part = (last["bytes_all"] - first["bytes_all"]) * 8 / (one.now - since) / (tokens * 1e6)
    lost, all_lost = (
        sum(policed[where] for where in of) / max(1, sum(policed[where] + passed[where] for where in of))
        for of in (("Cruise",), ("Cruise", "else"))
    )
    return one.told(
        {
            "enters ProbeBW": entered,
            "bw_shortterm and inflight_shortterm follow the losses": bounded,
            "conforms to the rate": 0.3 <= part <= 1.001 + burst * 8 / (tokens * 1e6) / (one.now - since),
            "few losses in ProbeBW_CRUISE": lost <= 0.1,
            "few losses": all_lost <= 0.2,
        },
        used=part,
        lost_in_cruise=lost,
        lost=all_lost,
    )


def spurious_recovery(one: Connection) -> Found:
    entered = one.enter("Cruise")
    before, sent = {name: one.number(name) for name in _LIMITS}, one.retransmits()
    late_ms = max(one.path.rtt_ms / 4, 12 * 1500 * 8 / (one.path.mbit * 1e3))
    one.impair(reorder=(1.0, late_ms))
    one.look()
    one.impair()
    recovering = one.until(lambda: one.true("recovering"), 20 * one.round)
    over = one.until(lambda: not one.true("recovering"), 20 * one.round)
    one.until(lambda: False, 2 * one.round)
    kept = all(one.number(name) >= 0.999 * value for name, value in before.items())
    return one.told(
        {
            "enters ProbeBW_CRUISE": entered,
            "fast recovery": recovering and over and one.retransmits() > sent,
            "the limits return": kept,
            "the state stays": one.state in ("Cruise", "Refill", "Up"),
        }
    )
