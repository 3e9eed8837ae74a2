"""Types of scenarios and of summaries, for editors; `tools/schemas` writes this file."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

# What has parameters or numbers of its own, which the schema does not name.
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class DroptailDiscipline(TypedDict):
    name: Literal["droptail"]


Compat = Literal["source"] | Literal["linux"]


Mode = Literal["packets"] | Literal["bytes"]


OverMax = Literal["drop"] | Literal["mark"] | Literal["linear"]


class RedDiscipline(TypedDict):
    bandwidth: NotRequired[str | None]
    byte_drop: NotRequired[bool]  # Scale the probability by packet size / mean packet (§4, byte mode of marking).
    compat: NotRequired[Compat]
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them early.
    gentle: NotRequired[bool]  # Let the probability rise to 1 between max_threshold and twice max_threshold.
    least_waiting: NotRequired[int]
    max_probability: NotRequired[float]  # Probability at max_threshold, max_p (1997 note: 0.1).
    max_threshold: NotRequired[str]
    mean_packet: NotRequired[
        str
    ]  # Mean packet size, which converts thresholds and gives the time unit of idle compensation.
    min_threshold: NotRequired[str]  # Average queue below which nothing is dropped (1997 note: 5 packets).
    mode: NotRequired[Mode]  # What the average counts: "packets" or "bytes".
    name: Literal["red"]
    over_max: NotRequired[OverMax]
    scell_log: NotRequired[int | None]
    stab: NotRequired[list[int] | None]
    wait: NotRequired[bool]  # Space drops at least 1/pb apart, as ns-2 does by default.
    weight: NotRequired[float]  # Weight w of the newest queue length in the average (§6: 0.002).


GentleSlope = Literal["current"] | Literal["initial"]


class AredDiscipline(TypedDict):
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them early.
    gentle_slope: NotRequired[GentleSlope]
    interval: NotRequired[str]  # Time between adaptations of max_p (§3: 500ms).
    least_waiting: NotRequired[int]
    max_probability: NotRequired[float]  # Initial value of max_p, 0.01 to 0.5 (1997 note on RED: 0.1).
    mean_packet: NotRequired[str]  # Mean packet size, which converts the rate of the link to packets per second.
    name: Literal["ared"]
    target: NotRequired[str]  # Target mean queueing delay, which determines the thresholds (ns-2: 5ms).
    wait: NotRequired[bool]  # Space drops at least 1/pb apart, as ns-2 and ns-3 do by default.


Identify = Literal["bits"] | Literal["ect1"]


Rates = Literal["announced"] | Literal["estimated"]


class RedErnDiscipline(TypedDict):
    ecn: NotRequired[bool]
    gentle: NotRequired[bool]  # Let the probability rise to 1 between max_threshold and twice max_threshold.
    identify: NotRequired[Identify]  # How ERN-capable flows are recognized: by the header "bits", or by "ect1".
    last_period: NotRequired[str]  # Time between updates of the probability for round trip times of 320 ms and more.
    max_probability: NotRequired[float]  # Probability at max_threshold, max_p (§III.B: 0.1).
    max_threshold: NotRequired[str]  # Average queue at which the probability is max_probability (as in red).
    mean_packet: NotRequired[
        str
    ]  # Mean packet size, which converts thresholds and gives the time unit of idle compensation.
    min_threshold: NotRequired[str]  # Average queue below which nothing is marked or dropped (as in red).
    name: Literal["red-ern"]
    over_max: NotRequired[OverMax]  # What is done above the hard limit (as in red); "linear" is eq
    rate_weight: NotRequired[float]  # Weight of the newest rate in the fair rate (§III.B: 0.02).
    rates: NotRequired[Rates]
    weight: NotRequired[float]  # Weight of the newest queue length in the average (as in red).


class FengRedDiscipline(TypedDict):
    alpha: NotRequired[float]
    beta: NotRequired[float]
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them early.
    gentle: NotRequired[bool]  # Let the probability rise to 1 between max_threshold and twice max_threshold.
    max_probability: NotRequired[float]  # Initial value of max_p (1997 note: 0.1).
    max_threshold: NotRequired[
        str
    ]  # Average queue above which max_p becomes larger (1997 note: three times min_threshold).
    mean_packet: NotRequired[
        str
    ]  # Mean packet size, which converts thresholds and gives the time unit of idle compensation.
    min_threshold: NotRequired[str]
    name: Literal["feng-red"]
    wait: NotRequired[bool]  # Space drops at least 1/pb apart, as ns-2 does by default.
    weight: NotRequired[float]  # Weight of the newest queue length in the average (RED: 0.002).


class NonlinearRedDiscipline(TypedDict):
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them early.
    gentle: NotRequired[bool]  # Let the probability rise to 1 between max_threshold and twice max_threshold.
    max_probability: NotRequired[
        float
    ]  # The max_p of a RED with an equal mean probability; at most 2/3 (1997 note: 0.1).
    max_threshold: NotRequired[str]
    mean_packet: NotRequired[
        str
    ]  # Mean packet size, which converts thresholds and gives the time unit of idle compensation.
    min_threshold: NotRequired[str]  # Average queue below which nothing is dropped (1997 note on RED: 5 packets).
    name: Literal["nonlinear-red"]
    wait: NotRequired[bool]  # Space drops at least 1/pb apart, as ns-2 does by default.
    weight: NotRequired[float]  # Weight of the newest queue length in the average (RED: 0.002).


class AnAqmDiscipline(TypedDict):
    a: NotRequired[float]
    b: NotRequired[float]  # Weight of the previous error in that controller, per packet; below a (PI: 1.816e-5).
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    interval: NotRequired[str]  # Time between samples (PI: 1/160 s; the paper's is not known).
    learning: NotRequired[float]
    mean_packet: NotRequired[str]  # Mean packet size, for the link's rate in packets, and for a queue limited in bytes.
    name: Literal["an-aqm"]
    target_ratio: NotRequired[float]  # Queue to hold, as a part of the queue's limit (001 Table 2: 0.3).


class LindropDiscipline(TypedDict):
    avg_max: NotRequired[float]
    avg_min: NotRequired[float]  # Average queue, in packets, up to which f is 0 (001 Table 2: 0).
    dr_init: NotRequired[float]  # Initial spacing of drops, in packets (001 §3: 500000).
    dr_max: NotRequired[float]  # Largest spacing of drops, in packets (001 §3: 1000000).
    dr_min: NotRequired[float]  # Least spacing of drops, in packets (001 §3: 5).
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    mean_packet: NotRequired[str]  # Mean packet size, which gives the time unit of idle compensation of the average.
    n_pd: NotRequired[float]
    n_pu: NotRequired[float]  # Factor of the spacing at each packet while f grows, n_pu, below 1 (001 Table 2: 0.98).
    name: Literal["lindrop"]
    weight: NotRequired[float]  # Weight of the newest queue length in the average (not in 001; RED's 0.002).


CompatVersion = Literal["source"] | Literal["linux"] | Literal["linux-7.0"]


class CodelDiscipline(TypedDict):
    ce_threshold: NotRequired[str | None]
    ce_threshold_mask: NotRequired[int]
    ce_threshold_selector: NotRequired[int]
    compat: NotRequired[CompatVersion]
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    interval: NotRequired[str]
    mtu: NotRequired[str]
    name: Literal["codel"]
    target: NotRequired[str]  # Acceptable standing queueing delay (RFC 8289 §4.3: 5ms).


class ModifiedCodelDiscipline(TypedDict):
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    interval: NotRequired[str]  # How long the delay may stay above the target (Algorithm 5: 30ms).
    mtu: NotRequired[str]
    name: Literal["modified-codel"]
    target: NotRequired[str]  # Acceptable standing queueing delay (§3.2.5 compares 5ms to 20ms).


class CobaltDiscipline(TypedDict):
    compat: NotRequired[Compat]
    decrement: NotRequired[float]  # What an empty queue takes from BLUE's probability (cake: 1/4096).
    ecn: NotRequired[bool]  # Mark ECN-capable packets where CoDel would drop them (cake: always)
    freeze: NotRequired[str | None]
    head_drop: NotRequired[bool | None]
    increment: NotRequired[float]  # What an overflow adds to BLUE's probability (cake: 1/256).
    interval: NotRequired[str]  # Time before the first signal; about the largest round trip time (cake: 100ms).
    mtu: NotRequired[str]  # Largest packet, from which the least useful target follows (1514B).
    name: Literal["cobalt"]
    target: NotRequired[str]  # Acceptable queueing delay (cake: 5ms)


Estimator = Literal["timestamps"] | Literal["departure-rate"]


class PieDiscipline(TypedDict):
    alpha: NotRequired[float]  # Gain on the distance from the target, in 1/s (§4.2: 0.125).
    beta: NotRequired[float]  # Gain on the change of the delay, in 1/s (§4.2: 1.25).
    bytemode: NotRequired[bool]  # Scale the probability of packets below mean_packet by their size (§4.1).
    compat: NotRequired[Compat]  # Whose arithmetic is used: that of the "rfc", or that of Linux 6.18 ("linux").
    derandomize: NotRequired[bool]  # Space drops evenly by an accumulated probability (§5.4).
    dq_threshold: NotRequired[str]  # Bytes of a measurement cycle of "departure-rate", DQ_THRESHOLD (§5.2: 16 KiB).
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    ecn_threshold: NotRequired[float]
    estimator: NotRequired[Estimator]
    high_delay: NotRequired[str]  # Above this delay each update adds 2 % to the probability (Linux: 250ms).
    max_burst: NotRequired[str]  # For how long a burst passes after an idle time, MAX_BURST (§4.4: 150ms).
    mean_packet: NotRequired[str]
    name: Literal["pie"]
    target: NotRequired[str]  # Queueing delay to hold, QDELAY_REF (RFC 8033 §4.2: 15ms).
    tupdate: NotRequired[str]  # Time between updates, T_UPDATE (§4.2: 15ms).


class MinstrelPieDiscipline(TypedDict):
    alpha: NotRequired[float]  # Gain on the distance from the target, in 1/s (RFC 8033 §4.2: 0.125).
    beta: NotRequired[float]  # Gain on the change of the delay, in 1/s (RFC 8033 §4.2: 1.25).
    bytemode: NotRequired[bool]  # Scale the probability of packets below mean_packet by their size (RFC 8033 §4.1).
    derandomize: NotRequired[bool]  # Space drops evenly by an accumulated probability (RFC 8033 §5.4).
    dq_threshold: NotRequired[str]  # Bytes of a measurement cycle of "departure-rate" (RFC 8033 §5.2: 16 KiB).
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    ecn_threshold: NotRequired[
        float
    ]  # Probability from which on ECN-capable packets are dropped as well (RFC 8033 §5.1: 0.1).
    estimator: NotRequired[Estimator]  # How the delay is measured: "timestamps" or "departure-rate".
    high_delay: NotRequired[str]  # Above this delay each update adds 2 % to the probability (Linux: 250ms).
    max_burst: NotRequired[str]  # For how long a burst passes after an idle time (RFC 8033 §4.4: 150ms).
    mean_packet: NotRequired[
        str
    ]  # Mean packet size; nothing is dropped while at most two such packets wait (ns-3: 1000B).
    min_target: NotRequired[str]  # Least target of the queueing delay (004 §4.2.2: 5ms).
    name: Literal["minstrel-pie"]
    target: NotRequired[str]  # Initial and largest target of the queueing delay (004 §4.2.2: 15ms).
    tupdate: NotRequired[str]  # Time between updates (004 Algorithm 6: 16ms).


class Pi2Discipline(TypedDict):
    alpha: NotRequired[float]  # Gain on the distance from the target, in 1/s (Table 1: 5/16).
    beta: NotRequired[float]  # Gain on the change of the delay, in 1/s (Table 1: 50/16).
    coupling: NotRequired[float]  # Coupling factor k: scalable traffic is marked with k p' (§4: 2).
    dq_threshold: NotRequired[str]  # Bytes of a measurement cycle of "departure-rate" (RFC 8033 §5.2: 16 KiB).
    ecn: NotRequired[bool]
    estimator: NotRequired[Estimator]  # How the delay is measured: "timestamps" or "departure-rate".
    mean_packet: NotRequired[
        str
    ]  # Mean packet size; nothing is dropped while at most two such packets wait (ns-3: 1000B).
    name: Literal["pi2"]
    target: NotRequired[str]  # Queueing delay to hold (Table 1: 20ms).
    tupdate: NotRequired[str]  # Time between updates (Table 1: 32ms).


class GreenDiscipline(TypedDict):
    c: NotRequired[float]  # Constant c of the throughput equation of TCP (§II: 0.93; 1.22 with an ACK per segment).
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    name: Literal["green"]
    rtt: NotRequired[str]  # Round trip time assumed for a flow until it is measured.
    window: NotRequired[str]  # Length of the sampling window in which sending flows are counted.


class PiDiscipline(TypedDict):
    a: NotRequired[float]  # Weight of the newest sample, per packet (§V: 1.822e-5).
    b: NotRequired[float]  # Weight of the previous sample, per packet; below a (§V: 1.816e-5).
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    interval: NotRequired[str]  # Time between samples, T (§V: 1/160 s; ns-2: 1/170 s).
    mean_packet: NotRequired[str]  # Bytes that count as one packet if reference is in bytes (ns-2: 500 B).
    name: Literal["pi"]
    reference: NotRequired[str]


class RemDiscipline(TypedDict):
    alpha: NotRequired[float]  # Weight of the queue against the rate, alpha (article: 0.1).
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    gamma: NotRequired[float]  # Step size of the price, gamma (article: 0.001).
    interval: NotRequired[str]  # Time between updates, T (ns-2: 2 ms).
    mean_packet: NotRequired[str]  # Mean packet size, which converts the rate of the link to packets (ns-2: 1000 B).
    name: Literal["rem"]
    phi: NotRequired[float]  # Base of the exponential, phi, above 1 (article: 1.001).
    target: NotRequired[str]
    weight: NotRequired[float]  # Weight w of the newest period in the input rate (ns-2: 1, no average).


class AvqDiscipline(TypedDict):
    adapt_on_drop: NotRequired[bool]
    alpha: NotRequired[float]  # Speed at which the virtual capacity adapts, alpha, in 1/s (§4: 0.15).
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    gamma: NotRequired[float]  # Part of the link that is to be used, gamma (§4: 0.98).
    initial: NotRequired[float]  # Virtual capacity at the start, as a part of the link's rate (ns-2: 0.8).
    mean_packet: NotRequired[
        str
    ]  # Bytes that count for one packet if the limit of the queue is in packets (ns-2: 1000 B).
    name: Literal["avq"]


class BlueDiscipline(TypedDict):
    decrement: NotRequired[float]
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    freeze_time: NotRequired[
        str
    ]  # Least time between two changes of the probability (one of the paper's sets: 100 ms).
    increment: NotRequired[float]  # What a loss adds to the probability, d1 (one of the paper's sets: 0.0025).
    name: Literal["blue"]
    threshold: NotRequired[str | None]


class SfbDiscipline(TypedDict):
    bin_limit: NotRequired[int]
    bin_size: NotRequired[int]  # Packets queued in a bin at which its probability grows (Linux: 20).
    bins: NotRequired[int]  # Number of bins of each level, N; a power of two (Linux: 16).
    decrement: NotRequired[float]  # What an empty bin takes from its probability, d2 (Linux: 1/6000).
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    increment: NotRequired[float]  # What a full bin adds to its probability, d1 (Linux: 0.001).
    levels: NotRequired[int]  # Number of levels, L (Linux: 8).
    name: Literal["sfb"]
    penalty_burst: NotRequired[int]  # Packets that all flows of the penalty box together may send at once (Linux: 20).
    penalty_rate: NotRequired[
        float
    ]  # Packets per second that all flows of the penalty box together may send (Linux: 10).
    rehash: NotRequired[str]  # Time between changes of the hashes; "0s" means never (Linux: 600 s).
    warmup: NotRequired[str]


Account = Literal["bucket"] | Literal["window"]


class QrmDiscipline(TypedDict):
    account: NotRequired[Account]
    idle: NotRequired[str]  # Without told budgets, a node which sent nothing for this long has no part of the link.
    max_lan: NotRequired[str]  # Largest value of the half between node and gateway in a round trip time.
    name: Literal["qrm"]
    rtt: NotRequired[str]  # Round trip time assumed for a node whose round trip time was not measured yet.
    slack: NotRequired[str]
    syn_rate: NotRequired[int]
    tolerance: NotRequired[float]


Behind = Literal["fifo"] | Literal["fq"] | Literal["fq-others"] | Literal["fq-codel"] | Literal["qrm"]


RateFrom = Literal["told"] | Literal["estimated"]


Reallocation = Literal["off"] | Literal["demand"] | Literal["paper"] | Literal["max-min"]


Sampling = Literal["always"] | Literal["after-drop"] | Literal["off"]


Shrink = Literal["advance"] | Literal["immediate"]


Window = Literal["steady"] | Literal["dither"] | Literal["literal"]


class PinkDiscipline(TypedDict):
    c: NotRequired[float]
    idle_timeout: NotRequired[str]  # A flow which sent no data for this long stops counting until it sends again
    max_flows: NotRequired[
        int
    ]  # Size of the table of flows, 128 bytes per flow; flows with a higher index are left alone.
    name: Literal["pink"]
    queue: NotRequired[Behind]
    rate: NotRequired[str | None]  # Rate BW of the bottleneck; by default that of the link
    rate_from: NotRequired[RateFrom]
    reallocation: NotRequired[Reallocation]
    reserve: NotRequired[str | None]  # Rate that is not given out, for traffic which obeys no window; by default none.
    sampling: NotRequired[Sampling]
    shrink: NotRequired[Shrink]
    silent_timeout: NotRequired[str]  # How long after its SYN the first data of a flow are expected
    window: NotRequired[Window]


Part = (
    Literal["hosts"]
    | Literal["windows"]
    | Literal["common"]
    | Literal["others"]
    | Literal["young"]
    | Literal["floor"]
    | Literal["pace"]
    | Literal["gain"]
)


class WeirDiscipline(TypedDict):
    name: Literal["weir"]
    without: NotRequired[list[Part]]


class ChokeDiscipline(TypedDict):
    ecn: NotRequired[bool]  # Mark ECN-capable packets where RED would drop them below max_threshold.
    gentle: NotRequired[bool]  # Let RED's probability rise to 1 between max_threshold and twice that.
    max_probability: NotRequired[float]  # RED's probability at max_threshold, max_p (§III: 0.02).
    max_threshold: NotRequired[str]  # Average queue above which every arrival is dropped (§III: 200 packets).
    mean_packet: NotRequired[str]
    min_threshold: NotRequired[str]
    name: Literal["choke"]
    weight: NotRequired[float]  # Weight of the newest queue length in the average (§III: 0.002).


class Dualpi2Discipline(TypedDict):
    alpha: NotRequired[float | None]
    any_ect: NotRequired[bool]  # ECT(0) belongs to the L queue as well (tc: any_ect).
    beta: NotRequired[
        float | None
    ]  # Gain on the change of the delay, in 1/s; by default 0.3 / rtt_max (A.1; Linux: 819/256).
    classic_weight: NotRequired[
        int
    ]  # Percentage of the bytes for the classic queue while both queues wait (Linux: 10).
    compat: NotRequired[Compat]
    coupling: NotRequired[float]  # Coupling factor k: L4S traffic is marked with k p' (§2.1: 2).
    drop_early: NotRequired[bool]  # Judge packets on arrival and not at departure (tc: drop_enqueue).
    drop_overload: NotRequired[bool]
    memory_limit: NotRequired[str | None]
    min_qlen_step: NotRequired[
        int
    ]  # The step is for packets which found at least this many packets in the L queue (Linux: 0).
    min_th: NotRequired[str]  # Delay in the L queue at which the ramp of marks begins (A.1: 800us).
    mtu: NotRequired[str]  # Largest packet, from which the initial credit of the scheduler follows (Linux: 1514 B)
    name: Literal["dualpi2"]
    range: NotRequired[str]  # Delay over which the ramp goes from 0 to 1 (A.1: 400us).
    rtt_max: NotRequired[str]  # Longest usual round trip time (A.1: 100ms).
    step_packets: NotRequired[int | None]
    step_thresh: NotRequired[str]  # A packet of the L queue that waited longer than this is marked (Linux: 1ms).
    target: NotRequired[str]  # Queueing delay of the classic queue to hold (RFC 9332 A.1: 15ms).
    th_len: NotRequired[int]  # The ramp does not apply while the L queue has at most this many packets (A.1: 1).
    tupdate: NotRequired[str | None]


Overflow = Literal["fattest"] | Literal["arrival"]


class FqCodelDiscipline(TypedDict):
    ce_threshold: NotRequired[str | None]
    ce_threshold_mask: NotRequired[int]
    ce_threshold_selector: NotRequired[int]
    compat: NotRequired[CompatVersion]
    drop_batch: NotRequired[int]
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    flows: NotRequired[int]  # Number of flow queues (RFC 8290 §5.2: 1024).
    interval: NotRequired[str]
    memory_limit: NotRequired[str]
    mtu: NotRequired[str]
    name: Literal["fq-codel"]
    overflow: NotRequired[Overflow]
    perturbation: NotRequired[
        int | None
    ]  # Key of the hash; with null a random key is drawn when the first packet arrives.
    quantum: NotRequired[str]  # Bytes that a queue may send in each turn (RFC 8290 §5.2: the largest packet, 1514B).
    target: NotRequired[str]  # Acceptable standing queueing delay (RFC 8289 §4.3: 5ms).
    ways: NotRequired[int]  # Number of queues from which a flow may take a free one; must divide flows


class FqCobaltDiscipline(TypedDict):
    compat: NotRequired[CompatVersion]
    decrement: NotRequired[float]  # What an empty queue takes from BLUE's probability (cake: 1/4096).
    drop_batch: NotRequired[int]
    ecn: NotRequired[bool]  # Mark ECN-capable packets where CoDel would drop them (cake: always)
    flows: NotRequired[int]  # Number of flow queues (RFC 8290 §5.2: 1024).
    freeze: NotRequired[str | None]
    head_drop: NotRequired[bool | None]
    increment: NotRequired[float]  # What an overflow adds to BLUE's probability (cake: 1/256).
    interval: NotRequired[str]  # Time before the first signal; about the largest round trip time (cake: 100ms).
    memory_limit: NotRequired[str]
    mtu: NotRequired[str]  # Largest packet, from which the least useful target follows (1514B).
    name: Literal["fq-cobalt"]
    overflow: NotRequired[Overflow]
    perturbation: NotRequired[
        int | None
    ]  # Key of the hash; with null a random key is drawn when the first packet arrives.
    quantum: NotRequired[str]  # Bytes that a queue may send in each turn (RFC 8290 §5.2: the largest packet, 1514B).
    target: NotRequired[str]  # Acceptable queueing delay (cake: 5ms)
    ways: NotRequired[int]  # Number of queues from which a flow may take a free one; must divide flows


class FqPieDiscipline(TypedDict):
    alpha: NotRequired[float]  # Gain on the distance from the target, in 1/s (§4.2: 0.125).
    beta: NotRequired[float]  # Gain on the change of the delay, in 1/s (§4.2: 1.25).
    bytemode: NotRequired[bool]  # Scale the probability of packets below mean_packet by their size (§4.1).
    compat: NotRequired[CompatVersion]
    derandomize: NotRequired[bool]  # Space drops evenly by an accumulated probability (§5.4).
    dq_threshold: NotRequired[str]  # Bytes of a measurement cycle of "departure-rate", DQ_THRESHOLD (§5.2: 16 KiB).
    drop_batch: NotRequired[int]
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    ecn_threshold: NotRequired[float]
    estimator: NotRequired[Estimator]
    flows: NotRequired[int]  # Number of flow queues (RFC 8290 §5.2: 1024).
    high_delay: NotRequired[str]  # Above this delay each update adds 2 % to the probability (Linux: 250ms).
    max_burst: NotRequired[str]  # For how long a burst passes after an idle time, MAX_BURST (§4.4: 150ms).
    mean_packet: NotRequired[str]
    memory_limit: NotRequired[str]
    name: Literal["fq-pie"]
    overflow: NotRequired[Overflow]
    perturbation: NotRequired[
        int | None
    ]  # Key of the hash; with null a random key is drawn when the first packet arrives.
    quantum: NotRequired[str]  # Bytes that a queue may send in each turn (RFC 8290 §5.2: the largest packet, 1514B).
    target: NotRequired[str]  # Queueing delay to hold, QDELAY_REF (RFC 8033 §4.2: 15ms).
    tupdate: NotRequired[str]  # Time between updates, T_UPDATE (§4.2: 15ms).
    ways: NotRequired[int]  # Number of queues from which a flow may take a free one; must divide flows


class FqMinstrelPieDiscipline(TypedDict):
    alpha: NotRequired[float]  # Gain on the distance from the target, in 1/s (RFC 8033 §4.2: 0.125).
    beta: NotRequired[float]  # Gain on the change of the delay, in 1/s (RFC 8033 §4.2: 1.25).
    bytemode: NotRequired[bool]  # Scale the probability of packets below mean_packet by their size (RFC 8033 §4.1).
    compat: NotRequired[CompatVersion]
    derandomize: NotRequired[bool]  # Space drops evenly by an accumulated probability (RFC 8033 §5.4).
    dq_threshold: NotRequired[str]  # Bytes of a measurement cycle of "departure-rate" (RFC 8033 §5.2: 16 KiB).
    drop_batch: NotRequired[int]
    ecn: NotRequired[bool]  # Mark ECN-capable packets instead of dropping them.
    ecn_threshold: NotRequired[
        float
    ]  # Probability from which on ECN-capable packets are dropped as well (RFC 8033 §5.1: 0.1).
    estimator: NotRequired[Estimator]  # How the delay is measured: "timestamps" or "departure-rate".
    flows: NotRequired[int]  # Number of flow queues (RFC 8290 §5.2: 1024).
    high_delay: NotRequired[str]  # Above this delay each update adds 2 % to the probability (Linux: 250ms).
    max_burst: NotRequired[str]  # For how long a burst passes after an idle time (RFC 8033 §4.4: 150ms).
    mean_packet: NotRequired[
        str
    ]  # Mean packet size; nothing is dropped while at most two such packets wait (ns-3: 1000B).
    memory_limit: NotRequired[str]
    min_target: NotRequired[str]  # Least target of the queueing delay (004 §4.2.2: 5ms).
    name: Literal["fq-minstrel-pie"]
    overflow: NotRequired[Overflow]
    perturbation: NotRequired[
        int | None
    ]  # Key of the hash; with null a random key is drawn when the first packet arrives.
    quantum: NotRequired[str]  # Bytes that a queue may send in each turn (RFC 8290 §5.2: the largest packet, 1514B).
    target: NotRequired[str]  # Initial and largest target of the queueing delay (004 §4.2.2: 15ms).
    tupdate: NotRequired[str]  # Time between updates (004 Algorithm 6: 16ms).
    ways: NotRequired[int]  # Number of queues from which a flow may take a free one; must divide flows


class FqDiscipline(TypedDict):
    compat: NotRequired[CompatVersion]
    drop_batch: NotRequired[int]
    flows: NotRequired[int]  # Number of flow queues (RFC 8290 §5.2: 1024).
    memory_limit: NotRequired[str]
    name: Literal["fq"]
    overflow: NotRequired[Overflow]
    per_flow: NotRequired[str | dict[str, Json]]
    perturbation: NotRequired[
        int | None
    ]  # Key of the hash; with null a random key is drawn when the first packet arrives.
    quantum: NotRequired[str]  # Bytes that a queue may send in each turn (RFC 8290 §5.2: the largest packet, 1514B).
    ways: NotRequired[int]  # Number of queues from which a flow may take a free one; must divide flows


AckFilter = Literal["no"] | Literal["yes"] | Literal["aggressive"]


Framing = Literal["none"] | Literal["atm"] | Literal["ptm"]


Isolation = (
    Literal["flowblind"]
    | Literal["srchost"]
    | Literal["dsthost"]
    | Literal["hosts"]
    | Literal["flows"]
    | Literal["dual-srchost"]
    | Literal["dual-dsthost"]
    | Literal["triple-isolate"]
)


Tins = (
    Literal["besteffort"] | Literal["diffserv3"] | Literal["diffserv4"] | Literal["diffserv8"] | Literal["precedence"]
)


class CakeDiscipline(TypedDict):
    ack_filter: NotRequired[AckFilter]  # Filter of ACKs: "no", "yes" or "aggressive" (tc: no-ack-filter).
    bandwidth: NotRequired[
        str | None
    ]  # Rate of the shaper; null is unlimited: the link is the bottleneck (tc: unlimited).
    compat: NotRequired[Compat]
    framing: NotRequired[Framing]  # Framing of the link below: "none", "atm" or "ptm" (tc: noatm).
    ingress: NotRequired[bool]
    isolation: NotRequired[Isolation]
    memory_limit: NotRequired[str | None]
    mpu: NotRequired[int]  # The least size of a packet on the link below, in bytes (tc: 0).
    mtu: NotRequired[str]
    name: Literal["cake"]
    overhead: NotRequired[
        int
    ]  # Bytes added to the size of each packet, which may be negative (tc: 0, from -64 to 256).
    perturbation: NotRequired[
        int | None
    ]  # Key of the hash; with null a random key is drawn when the first packet arrives.
    rtt: NotRequired[str]  # Usual round trip time, which is the interval of COBALT (tc: 100ms).
    target: NotRequired[str | None]  # Acceptable queueing delay; null is a twentieth of rtt (tc: 5ms)
    tins: NotRequired[Tins]
    wash: NotRequired[bool]  # Set the Diffserv codepoint of packets to 0 once it has chosen their tin (tc: nowash)


Classify = Literal["index"] | Literal["hash"]


FlowSets = str


class DrrDiscipline(TypedDict):
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    compat: NotRequired[Compat]
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["drr"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    quantum: NotRequired[str | None]  # Bytes per turn for a class of weight 1; the default is the largest packet.
    stations: NotRequired[int]
    weights: NotRequired[FlowSets]


class PrioDiscipline(TypedDict):
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["prio"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    stations: NotRequired[int]
    weights: NotRequired[FlowSets]


class SfqDiscipline(TypedDict):
    buckets: NotRequired[int]  # Number of buckets (Linux: 1024).
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    key: NotRequired[int]  # The initial key of the hash.
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["sfq"]
    perturb: NotRequired[int]  # Number of packets after which the key of the hash changes; 0 means never.
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    quantum: NotRequired[str | None]  # Bytes per turn; the default is the largest packet.
    stations: NotRequired[int]
    weights: NotRequired[FlowSets]


class StfqDiscipline(TypedDict):
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["stfq"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    stations: NotRequired[int]
    weights: NotRequired[FlowSets]


Wf2qPlusCompat = Literal["source"] | Literal["dummynet"]


class Wf2qPlusDiscipline(TypedDict):
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    compat: NotRequired[Wf2qPlusCompat]
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["wf2q-plus"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    stations: NotRequired[int]
    weights: NotRequired[FlowSets]


class KpsDiscipline(TypedDict):
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["kps"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    stations: NotRequired[int]
    weights: NotRequired[FlowSets]


class QfqDiscipline(TypedDict):
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["qfq"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    stations: NotRequired[int]
    weights: NotRequired[FlowSets]


class QfqPlusDiscipline(TypedDict):
    aggregate: NotRequired[int]
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["qfq-plus"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    stations: NotRequired[int]
    weights: NotRequired[FlowSets]


class W2f2qDiscipline(TypedDict):
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    lag: NotRequired[str | None]
    lead: NotRequired[str | None]
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["w2f2q"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    stations: NotRequired[int]
    weights: NotRequired[FlowSets]


Bearers = str


class LteBearersDiscipline(TypedDict):
    bearers: NotRequired[Bearers]
    bucket: NotRequired[str]  # How long a bearer saves its rate while it sends nothing (the bucket size duration).
    name: Literal["lte-bearers"]
    quantum: NotRequired[str]  # Bytes per turn among bearers of equal priority.


Buffer = str


Weighting = Literal["constant"] | Literal["linear"] | Literal["exponential"] | Literal["analogical"]


class HfsDiscipline(TypedDict):
    buffer: NotRequired[
        Buffer
    ]  # Q, the limit of the MAC-SAL, in packets or bytes; 0p uses the scheduler of flows alone.
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["hfs"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    stations: NotRequired[int]
    weighting: NotRequired[Weighting]
    weights: NotRequired[FlowSets]


class HfsDrrDiscipline(TypedDict):
    buffer: NotRequired[
        Buffer
    ]  # Q, the limit of the MAC-SAL, in packets or bytes; 0p uses the scheduler of flows alone.
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["hfs-drr"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    stations: NotRequired[int]
    weighting: NotRequired[Weighting]
    weights: NotRequired[FlowSets]


class DoubleDrrDiscipline(TypedDict):
    buffer: NotRequired[
        Buffer
    ]  # Q, the limit of the MAC-SAL, in packets or bytes; 0p uses the scheduler of flows alone.
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["double-drr"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    stations: NotRequired[int]
    weighting: NotRequired[Weighting]
    weights: NotRequired[FlowSets]


class DoubleWf2qPlusDiscipline(TypedDict):
    buffer: NotRequired[
        Buffer
    ]  # Q, the limit of the MAC-SAL, in packets or bytes; 0p uses the scheduler of flows alone.
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["double-wf2q-plus"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    stations: NotRequired[int]
    weighting: NotRequired[Weighting]
    weights: NotRequired[FlowSets]


class ModularDiscipline(TypedDict):
    buffer: NotRequired[
        Buffer
    ]  # Q, the limit of the MAC-SAL, in packets or bytes; 0p uses the scheduler of flows alone.
    class_limit: NotRequired[str | None]
    classify: NotRequired[Classify]  # How the class of a flow is found: by its "index", or by a keyed "hash".
    flows: NotRequired[int]  # Number of classes.
    good_loss: NotRequired[float]
    mac: NotRequired[str]  # The scheduler of stations, such as "qfq-plus".
    max_packet: NotRequired[str]  # The largest packet; a larger packet is scheduled as if it had this size.
    name: Literal["modular"]
    perturbation: NotRequired[int | None]  # Key of the hash; null draws a key when the first packet arrives.
    qos: NotRequired[str]  # The scheduler of flows, such as "qfq-plus".
    stations: NotRequired[int]
    weighting: NotRequired[Weighting]
    weights: NotRequired[FlowSets]


class Other48Discipline(TypedDict):
    name: str


Discipline = (
    Literal[
        "droptail",
        "red",
        "ared",
        "red-ern",
        "feng-red",
        "nonlinear-red",
        "an-aqm",
        "lindrop",
        "codel",
        "modified-codel",
        "cobalt",
        "pie",
        "minstrel-pie",
        "pi2",
        "green",
        "pi",
        "rem",
        "avq",
        "blue",
        "sfb",
        "qrm",
        "pink",
        "weir",
        "choke",
        "dualpi2",
        "fq-codel",
        "fq-cobalt",
        "fq-pie",
        "fq-minstrel-pie",
        "fq",
        "cake",
        "drr",
        "prio",
        "sfq",
        "stfq",
        "wf2q-plus",
        "kps",
        "qfq",
        "qfq-plus",
        "w2f2q",
        "lte-bearers",
        "hfs",
        "hfs-drr",
        "double-drr",
        "double-wf2q-plus",
        "modular",
    ]
    | str
    | DroptailDiscipline
    | RedDiscipline
    | AredDiscipline
    | RedErnDiscipline
    | FengRedDiscipline
    | NonlinearRedDiscipline
    | AnAqmDiscipline
    | LindropDiscipline
    | CodelDiscipline
    | ModifiedCodelDiscipline
    | CobaltDiscipline
    | PieDiscipline
    | MinstrelPieDiscipline
    | Pi2Discipline
    | GreenDiscipline
    | PiDiscipline
    | RemDiscipline
    | AvqDiscipline
    | BlueDiscipline
    | SfbDiscipline
    | QrmDiscipline
    | PinkDiscipline
    | WeirDiscipline
    | ChokeDiscipline
    | Dualpi2Discipline
    | FqCodelDiscipline
    | FqCobaltDiscipline
    | FqPieDiscipline
    | FqMinstrelPieDiscipline
    | FqDiscipline
    | CakeDiscipline
    | DrrDiscipline
    | PrioDiscipline
    | SfqDiscipline
    | StfqDiscipline
    | Wf2qPlusDiscipline
    | KpsDiscipline
    | QfqDiscipline
    | QfqPlusDiscipline
    | W2f2qDiscipline
    | LteBearersDiscipline
    | HfsDiscipline
    | HfsDrrDiscipline
    | DoubleDrrDiscipline
    | DoubleWf2qPlusDiscipline
    | ModularDiscipline
    | Other48Discipline
)


class RingKeys(TypedDict):
    altitude_km: float
    apart: NotRequired[float]
    latitude: NotRequired[float]
    processing: NotRequired[str]
    satellites: NotRequired[int]
    served: NotRequired[str]
    step: NotRequired[str]


OrbitKeys = str | RingKeys


class StateKeys(TypedDict):
    delay: NotRequired[str | None]
    lasts: str
    loss: NotRequired[float | None]
    rate: NotRequired[str | None]


class ChangeKeys(TypedDict):
    at: NotRequired[str | None]  # When the step happens, or the series begins.
    bin: NotRequired[str | None]  # Shortest interval of constant rate in a trace.
    delay: NotRequired[str | None]  # The new one-way delay.
    direction: NotRequired[str]  # "both", "forward" or "reverse".
    every: NotRequired[str | None]  # After this time the step is repeated, or the `table` begins again.
    link: str  # Name of the link.
    loss: NotRequired[float | None]  # The new probability of loss.
    orbit: NotRequired[OrbitKeys | None]  # An orbit, which gives the delay.
    rate: NotRequired[str | None]  # The new rate.
    states: NotRequired[list[StateKeys] | None]  # States between which the link changes at random.
    stations: NotRequired[list[float] | None]  # The new losses of the stations.
    table: NotRequired[str | None]  # A CSV file with `t_s` and at least one of `rate_mbit_s`, `delay_ms` and `loss`.
    tell_after: NotRequired[str]  # How much later the disciplines are told of the change.
    told: NotRequired[bool]  # False if the disciplines are not told of the change.
    trace: NotRequired[str | None]  # A file of packet opportunities, as Mahimahi records them.


Floor = str


Floors = list[Floor]


Lie = Literal["silent"] | Literal["claims"] | Literal["replays"]


NodeKeys = TypedDict(
    "NodeKeys",
    {
        "class": "NotRequired[int | None]",
        "csi": "NotRequired[str | None]",
        "floor": "NotRequired[Floor | None]",
        "lie": "NotRequired[Lie | None]",
        "name": "str",
        "weight": "NotRequired[int | None]",
    },
)


Sharing = Literal["unweighted-fair"] | Literal["weighted"] | Literal["priority"] | Literal["dybra"] | Literal["max-min"]


class CooperationKeys(TypedDict):
    advertise: NotRequired[str | None]
    floors: NotRequired[Floors | None]
    lease: NotRequired[str | None]
    link: str
    literal: NotRequired[bool]
    nodes: NotRequired[list[NodeKeys]]
    sharing: NotRequired[Sharing | None]
    silent_from: NotRequired[str | None]


Growth = Literal["bytes"] | Literal["acks"]


class NewrenoControl(TypedDict):
    abc_limit: NotRequired[int]
    beta: NotRequired[float]  # Part of the data in flight that stays after a loss (RFC 5681 eq
    compat: NotRequired[Compat]  # Whose rules apply: those of the "source", or those of Linux 6.18 ("linux").
    growth: NotRequired[Growth]
    name: Literal["newreno"]
    resume_cwnd: NotRequired[str | None]
    resume_rtt: NotRequired[str | None]  # The smallest round trip time of that connection (saved_rtt).
    search: NotRequired[bool]  # The first slow start ends by SEARCH (draft-chung-ccwg-search-09).


class CubicControl(TypedDict):
    beta: NotRequired[float]  # Part of the data in flight that stays after a loss (§4.6: 0.7).
    c: NotRequired[float]  # C, how fast the curve rises, in segments per cubic second (§5.1: 0.4).
    fast_convergence: NotRequired[bool]
    hystart: NotRequired[bool]  # The first slow start is HyStart++ (§4.10, RFC 9406).
    name: Literal["cubic"]
    resume_cwnd: NotRequired[str | None]
    resume_rtt: NotRequired[str | None]  # The smallest round trip time of that connection (saved_rtt).
    search: NotRequired[
        bool
    ]  # The first slow start ends by SEARCH (draft-chung-ccwg-search-09), in place of HyStart++.
    tcp_friendliness: NotRequired[bool]


class CubicLinuxControl(TypedDict):
    beta: NotRequired[int]  # Part of the window that stays after a loss, in 1/1024 (Linux: 717).
    c: NotRequired[int]
    fast_convergence: NotRequired[bool]
    hystart: NotRequired[bool]  # Slow start ends by HyStart: by the train of ACKs or by delay (Linux: true).
    name: Literal["cubic-linux"]
    resume_cwnd: NotRequired[str | None]
    resume_rtt: NotRequired[str | None]  # The smallest round trip time of that connection (saved_rtt).
    search: NotRequired[bool]  # The first slow start ends by SEARCH (draft-chung-ccwg-search-09), in place of HyStart.
    tcp_friendliness: NotRequired[bool]  # The window is at least the estimate of Reno's window, W_est.


class BicControl(TypedDict):
    b: NotRequired[float]
    beta: NotRequired[float]  # Part of the data in flight that stays after a loss (Linux: 819/1024; the paper: 0.875).
    compat: NotRequired[Compat]  # Whose rules apply: those of the "source", or those of Linux 6.18 ("linux").
    fast_convergence: NotRequired[bool]
    low_window: NotRequired[float]  # Segments up to which growth and reduction are those of Reno (14).
    name: Literal["bic"]
    s_max: NotRequired[float]
    smooth: NotRequired[float]  # Round trips per B segments when the window is within B segments of W_max (Linux: 20).


class HighspeedControl(TypedDict):
    compat: NotRequired[Compat]  # Whose rules apply: those of the "source", or those of Linux 6.18 ("linux").
    high_decrease: NotRequired[float]
    high_p: NotRequired[float]  # High_P: the loss rate at which the mean window is high_window (§5: 10^-7).
    high_window: NotRequired[float]  # High_Window: the mean window in segments at a loss rate of high_p (§5: 83000).
    low_p: NotRequired[float]  # Low_P: the loss rate at which the mean window is low_window (§5: 10^-3).
    low_window: NotRequired[
        float
    ]  # Low_Window: up to this many segments growth and reduction are those of Reno (§5: 38).
    name: Literal["highspeed"]


class HyblaControl(TypedDict):
    compat: NotRequired[Compat]  # Whose rules apply: those of the "source", or those of Linux 6.18 ("linux").
    name: Literal["hybla"]
    rtt0: NotRequired[str]  # RTT0: a flow grows as Reno would with this round trip time (the paper: 25 ms).


class WestwoodControl(TypedDict):
    compat: NotRequired[Compat]  # Whose rules apply: those of the "source", or those of Linux 6.18 ("linux").
    gain: NotRequired[float]  # Part of a sample in each of the two filters of the bandwidth, g (Linux: 1/8).
    min_interval: NotRequired[str]  # Shortest time over which a sample of the bandwidth is taken (Linux: 50 ms).
    name: Literal["westwood"]


class ScalableControl(TypedDict):
    a: NotRequired[float]  # Segments by which each acknowledged segment opens the window (the paper: 0.01).
    b: NotRequired[float]  # Part of the data in flight which a loss takes (the paper: 1/8).
    compat: NotRequired[Compat]  # Whose rules apply: those of the "source", or those of Linux 6.18 ("linux").
    name: Literal["scalable"]


class VegasControl(TypedDict):
    alpha: NotRequired[float]  # Segments in the queue below which the window grows (2).
    beta: NotRequired[float]  # Segments in the queue above which the window shrinks (4).
    gamma: NotRequired[float]  # Segments in the queue with which slow start ends (1).
    name: Literal["vegas"]


class LedbatPpControl(TypedDict):
    constant: NotRequired[float]
    name: Literal["ledbat-pp"]
    slowdown_factor: NotRequired[float]  # Time between two slowdowns, in durations of the first of them (9).
    target: NotRequired[str]  # Queueing delay above which the window shrinks (60 ms).


class CompoundControl(TypedDict):
    alpha: NotRequired[float]  # Factor of the growth of dwnd: alpha win^k segments per round trip (§III.B: 1/8).
    beta: NotRequired[float]  # Part of the data in flight which a loss takes (§III.B: 1/2).
    gamma: NotRequired[float]  # Segments in the queue from which on dwnd decreases (§III.B: 30).
    k: NotRequired[float]  # Exponent of the growth of dwnd: alpha win^k segments per round trip (§III.B: 0.75).
    name: Literal["compound"]
    zeta: NotRequired[float]  # Segments by which dwnd decreases per round trip, for each segment in the queue (1).


class NoordwijkControl(TypedDict):
    limited_timer: NotRequired[str]
    min_burst: NotRequired[int]  # Least BURST in segments (3).
    name: Literal["noordwijk"]
    stability: NotRequired[int]  # Trains of ACKs per evaluation (2).
    threshold: NotRequired[str]
    timer: NotRequired[str]  # T0, the first TX_TMR (dissertation §2.2: 500 ms).


class BbrControl(TypedDict):
    bw_rounds: NotRequired[int]  # Length in round trips of the maximum filter of BtlBw (draft §4.1.1: 10).
    compat: NotRequired[Compat]  # Whose rules apply: those of the "source", or those of Linux 6.12 ("linux").
    cwnd_gain: NotRequired[float]  # Window gain of ProbeBW (2).
    drain_gain: NotRequired[
        float
    ]  # Pacing gain of the phase after probing, which drains the queue that probing built (0.75).
    full_bw_growth: NotRequired[float]  # Factor by which BtlBw must grow for Startup to continue (1.25).
    full_bw_rounds: NotRequired[int]  # Rounds without such growth that end Startup (3).
    high_gain: NotRequired[float]  # Pacing and window gain of Startup; Drain paces with its inverse (2/ln 2 = 2.885).
    min_rtt_window: NotRequired[str]  # Length of the minimum filter of RTprop (draft §4.1.2: 10 s).
    min_segments: NotRequired[int]  # Least window in segments, and the window of ProbeRTT (4).
    name: Literal["bbr"]
    pacing_margin: NotRequired[float]  # Pacing rate as a part of pacing_gain BtlBw; below 1 queues drain (Linux: 0.99).
    probe_gain: NotRequired[float]  # Pacing gain of the phase of ProbeBW that probes for more (1.25).
    probe_rtt_time: NotRequired[str]  # Least duration of ProbeRTT (200 ms).


class Bbr3Control(TypedDict):
    beta: NotRequired[float]
    cwnd_gain: NotRequired[float]  # Window gain of all states but two: DefaultCwndGain (2).
    down_pacing_gain: NotRequired[float]  # Pacing gain of ProbeBW_DOWN (0.9).
    drain_pacing_gain: NotRequired[float]  # Pacing gain of Drain: DrainPacingGain (0.5).
    extra_acked_rounds: NotRequired[int]  # Rounds that extra_acked remembers after Startup: ExtraAckedFilterLen (10).
    full_bw_growth: NotRequired[
        float
    ]  # Factor by which the delivery rate must grow for the pipe not to be full (1.25).
    full_bw_rounds: NotRequired[int]  # Rounds without such growth that end Startup and ProbeBW_UP (3).
    full_loss_ranges: NotRequired[int]  # Lost ranges in a round that may end Startup: StartupFullLossCnt (6).
    headroom: NotRequired[float]  # Part of inflight_longterm that is left to others: Headroom (0.15).
    loss_threshold: NotRequired[float]  # Part of a round that may be lost while probing: LossThresh (0.02).
    min_rtt_window: NotRequired[str]  # Length of the minimum filter of min_rtt: MinRTTFilterLen (10 s).
    min_segments: NotRequired[int]  # Least window in segments: MinPipeCwnd (4).
    name: Literal["bbr3"]
    pacing_margin: NotRequired[float]  # Pacing rate as a part of pacing_gain bw: 1 less PacingMarginPercent (0.99).
    probe_rtt_cwnd_gain: NotRequired[float]  # Window gain of ProbeRTT: ProbeRTTCwndGain (0.5).
    probe_rtt_interval: NotRequired[
        str
    ]  # Time without a new smallest round trip time that begins ProbeRTT: ProbeRTTInterval (5 s).
    probe_rtt_time: NotRequired[str]  # Least duration of ProbeRTT: ProbeRTTDuration (200 ms).
    startup_pacing_gain: NotRequired[float]  # Pacing gain of Startup: StartupPacingGain (4 ln 2 = 2.77).
    up_cwnd_gain: NotRequired[float]  # Window gain of ProbeBW_UP (2.25).
    up_pacing_gain: NotRequired[float]  # Pacing gain of ProbeBW_UP (1.25).


class DctcpControl(TypedDict):
    alpha: NotRequired[float]  # alpha before the first measurement (§3.3: 1).
    g: NotRequired[float]
    name: Literal["dctcp"]


class PragueControl(TypedDict):
    alpha: NotRequired[float]  # alpha until the first mark; with 1 the first mark halves the window.
    classic_fallback: NotRequired[bool]
    g: NotRequired[float]  # g: weight of a new measurement in alpha, the moving average of the marked part (1/16).
    name: Literal["prague"]
    reference_rtt: NotRequired[str]


class Other18Control(TypedDict):
    name: str


Control = (
    Literal[
        "newreno",
        "cubic",
        "cubic-linux",
        "bic",
        "highspeed",
        "hybla",
        "westwood",
        "scalable",
        "vegas",
        "ledbat-pp",
        "compound",
        "noordwijk",
        "bbr",
        "bbr3",
        "dctcp",
        "prague",
    ]
    | str
    | NewrenoControl
    | CubicControl
    | CubicLinuxControl
    | BicControl
    | HighspeedControl
    | HyblaControl
    | WestwoodControl
    | ScalableControl
    | VegasControl
    | LedbatPpControl
    | CompoundControl
    | NoordwijkControl
    | BbrControl
    | Bbr3Control
    | DctcpControl
    | PragueControl
    | Other18Control
)


Acknowledging = Literal["rfc5681"] | Literal["linux"]


Form = Literal["off"] | Literal["on"] | Literal["literal"]


ReceiveWindow = Literal["fixed"] | Literal["linux"]


SillyWindow = Literal["minshall"] | Literal["strict"]


WithoutSack = Literal["rfc6582"] | Literal["linux"]


class Tcp(TypedDict):
    accurate_ecn: NotRequired[
        bool
    ]  # Accurate feedback of marks (RFC 9768), where the peer has it as well; needs `ecn`.
    accurate_ecn_option: NotRequired[bool]
    ack_every_segment: NotRequired[bool]  # Every segment is acknowledged at once, without delayed ACKs.
    acknowledging: NotRequired[Acknowledging]  # When this host acknowledges data.
    c2ml: NotRequired[Form]
    cc: NotRequired[Control]  # The congestion control with its parameters.
    delayed_ack_timeout: NotRequired[str]  # Longest delay of an ACK (RFC 5681 §4.2: at most 500 ms).
    ecn: NotRequired[bool]  # Explicit congestion notification (RFC 3168).
    ecn_retransmits: NotRequired[bool]
    ern: NotRequired[bool]
    ern_ect1: NotRequired[bool]
    hystart: NotRequired[bool]
    initial_ssthresh: NotRequired[
        str | None
    ]  # Initial slow start threshold; `None` is without limit (RFC 5681 §3.1: arbitrarily high).
    initial_window: NotRequired[int]  # Initial window in segments (RFC 6928).
    limited_transmit: NotRequired[bool]  # Limited transmit (RFC 3042).
    min_rto: NotRequired[str]  # Lower bound of the retransmission timeout (RFC 6298 §2.4 says 1 s; Linux 200 ms).
    mss: NotRequired[str]  # Largest payload of a segment.
    opaque: NotRequired[bool]  # No element of the network sees the header of the transport, as with QUIC.
    optimistic_ack: NotRequired[str]
    profile: NotRequired[str]  # The profile whose values the keys of hosts have that the file does not give.
    prr: NotRequired[bool]  # Proportional rate reduction (RFC 9937).
    rack: NotRequired[bool]  # RACK-TLP (RFC 8985): losses are detected by time, and the end of a flight is probed
    receive_buffer: NotRequired[str]  # Size of the receive buffer, which bounds the advertised window.
    receive_window: NotRequired[ReceiveWindow]  # Whether the advertised window grows.
    rto_granularity: NotRequired[str]
    sack: NotRequired[bool]  # Selective acknowledgments (RFC 2018, RFC 6675).
    scone: NotRequired[str | None]
    send_buffer: NotRequired[str]  # Size of the send buffer, which bounds the unacknowledged data.
    silly_window: NotRequired[SillyWindow]  # The sender's rule for short segments (silly window avoidance).
    timestamps: NotRequired[bool]  # Timestamps (RFC 7323).
    window_scaling: NotRequired[bool]  # Window scaling (RFC 7323).
    without_sack: NotRequired[WithoutSack]  # The form of recovery where SACK was not agreed.


BulkFlow = TypedDict(
    "BulkFlow",
    {
        "access_delay": "NotRequired[str | None]",
        "cc": "NotRequired[Control]",
        "class": "NotRequired[int | None]",
        "count": "NotRequired[int]",
        "direction": "NotRequired[str | None]",
        "from": "NotRequired[str | None]",
        "kind": "Literal['bulk']",
        "node": "NotRequired[str | None]",
        "opaque": "NotRequired[bool | None]",
        "start": "NotRequired[str]",
        "start_spread": "NotRequired[str]",
        "start_step": "NotRequired[str]",
        "stop": "NotRequired[str | None]",
        "tcp": "NotRequired[Tcp]",
        "to": "NotRequired[str | None]",
        "weight": "NotRequired[int | None]",
    },
)


TransferFlow = TypedDict(
    "TransferFlow",
    {
        "access_delay": "NotRequired[str | None]",
        "cc": "NotRequired[Control]",
        "class": "NotRequired[int | None]",
        "count": "NotRequired[int]",
        "direction": "NotRequired[str | None]",
        "from": "NotRequired[str | None]",
        "kind": "Literal['transfer']",
        "node": "NotRequired[str | None]",
        "opaque": "NotRequired[bool | None]",
        "size": "str",
        "start": "NotRequired[str]",
        "start_spread": "NotRequired[str]",
        "start_step": "NotRequired[str]",
        "stop": "NotRequired[str | None]",
        "tcp": "NotRequired[Tcp]",
        "to": "NotRequired[str | None]",
        "weight": "NotRequired[int | None]",
    },
)


CbrFlow = TypedDict(
    "CbrFlow",
    {
        "access_delay": "NotRequired[str | None]",
        "cc": "NotRequired[Control]",
        "class": "NotRequired[int | None]",
        "count": "NotRequired[int]",
        "direction": "NotRequired[str | None]",
        "from": "NotRequired[str | None]",
        "kind": "Literal['cbr']",
        "node": "NotRequired[str | None]",
        "opaque": "NotRequired[bool | None]",
        "packet_size": "NotRequired[str | list[str] | None]",
        "packet_weights": "NotRequired[list[float] | None]",
        "rate": "str",
        "start": "NotRequired[str]",
        "start_spread": "NotRequired[str]",
        "start_step": "NotRequired[str]",
        "stop": "NotRequired[str | None]",
        "tcp": "NotRequired[Tcp]",
        "to": "NotRequired[str | None]",
        "weight": "NotRequired[int | None]",
    },
)


OnoffFlow = TypedDict(
    "OnoffFlow",
    {
        "access_delay": "NotRequired[str | None]",
        "cc": "NotRequired[Control]",
        "class": "NotRequired[int | None]",
        "count": "NotRequired[int]",
        "direction": "NotRequired[str | None]",
        "from": "NotRequired[str | None]",
        "kind": "Literal['onoff']",
        "mean_off": "str",
        "mean_on": "str",
        "node": "NotRequired[str | None]",
        "opaque": "NotRequired[bool | None]",
        "packet_size": "NotRequired[str | list[str] | None]",
        "packet_weights": "NotRequired[list[float] | None]",
        "rate": "str",
        "start": "NotRequired[str]",
        "start_spread": "NotRequired[str]",
        "start_step": "NotRequired[str]",
        "stop": "NotRequired[str | None]",
        "tcp": "NotRequired[Tcp]",
        "to": "NotRequired[str | None]",
        "weight": "NotRequired[int | None]",
    },
)


SynfloodFlow = TypedDict(
    "SynfloodFlow",
    {
        "access_delay": "NotRequired[str | None]",
        "cc": "NotRequired[Control]",
        "class": "NotRequired[int | None]",
        "count": "NotRequired[int]",
        "direction": "NotRequired[str | None]",
        "from": "NotRequired[str | None]",
        "kind": "Literal['synflood']",
        "node": "NotRequired[str | None]",
        "opaque": "NotRequired[bool | None]",
        "per_second": "float",
        "start": "NotRequired[str]",
        "start_spread": "NotRequired[str]",
        "start_step": "NotRequired[str]",
        "stop": "NotRequired[str | None]",
        "tcp": "NotRequired[Tcp]",
        "to": "NotRequired[str | None]",
        "weight": "NotRequired[int | None]",
    },
)


HttpFlow = TypedDict(
    "HttpFlow",
    {
        "access_delay": "NotRequired[str | None]",
        "cc": "NotRequired[Control]",
        "class": "NotRequired[int | None]",
        "connection": "NotRequired[str | None]",
        "count": "NotRequired[int]",
        "direction": "NotRequired[str | None]",
        "first": "NotRequired[str | None]",
        "from": "NotRequired[str | None]",
        "idle": "NotRequired[str | None]",
        "idle_distribution": "NotRequired[str | None]",
        "kind": "Literal['http']",
        "node": "NotRequired[str | None]",
        "opaque": "NotRequired[bool | None]",
        "packets": "NotRequired[int | None]",
        "size": "NotRequired[str | None]",
        "start": "NotRequired[str]",
        "start_spread": "NotRequired[str]",
        "start_step": "NotRequired[str]",
        "stop": "NotRequired[str | None]",
        "tcp": "NotRequired[Tcp]",
        "to": "NotRequired[str | None]",
        "weight": "NotRequired[int | None]",
    },
)


WebFlow = TypedDict(
    "WebFlow",
    {
        "access_delay": "NotRequired[str | None]",
        "cc": "NotRequired[Control]",
        "class": "NotRequired[int | None]",
        "count": "NotRequired[int]",
        "direction": "NotRequired[str | None]",
        "from": "NotRequired[str | None]",
        "kind": "Literal['web']",
        "load": "NotRequired[float | None]",
        "max_size": "NotRequired[str | None]",
        "mean_size": "NotRequired[str | None]",
        "node": "NotRequired[str | None]",
        "opaque": "NotRequired[bool | None]",
        "per_second": "NotRequired[float | None]",
        "shape": "NotRequired[float | None]",
        "start": "NotRequired[str]",
        "start_spread": "NotRequired[str]",
        "start_step": "NotRequired[str]",
        "stop": "NotRequired[str | None]",
        "tcp": "NotRequired[Tcp]",
        "to": "NotRequired[str | None]",
        "weight": "NotRequired[int | None]",
    },
)


VoipFlow = TypedDict(
    "VoipFlow",
    {
        "access_delay": "NotRequired[str | None]",
        "cc": "NotRequired[Control]",
        "class": "NotRequired[int | None]",
        "count": "NotRequired[int]",
        "direction": "NotRequired[str | None]",
        "from": "NotRequired[str | None]",
        "kind": "Literal['voip']",
        "mean_off": "NotRequired[str | None]",
        "mean_on": "NotRequired[str | None]",
        "node": "NotRequired[str | None]",
        "opaque": "NotRequired[bool | None]",
        "start": "NotRequired[str]",
        "start_spread": "NotRequired[str]",
        "start_step": "NotRequired[str]",
        "stop": "NotRequired[str | None]",
        "talk_spurts": "NotRequired[bool | None]",
        "tcp": "NotRequired[Tcp]",
        "to": "NotRequired[str | None]",
        "weight": "NotRequired[int | None]",
    },
)


VideoFlow = TypedDict(
    "VideoFlow",
    {
        "access_delay": "NotRequired[str | None]",
        "cc": "NotRequired[Control]",
        "class": "NotRequired[int | None]",
        "count": "NotRequired[int]",
        "deadline": "NotRequired[str | None]",
        "direction": "NotRequired[str | None]",
        "fps": "NotRequired[float | None]",
        "from": "NotRequired[str | None]",
        "gop": "NotRequired[int | None]",
        "i_frame_ratio": "NotRequired[float | None]",
        "kind": "Literal['video']",
        "node": "NotRequired[str | None]",
        "opaque": "NotRequired[bool | None]",
        "packet_size": "NotRequired[str | list[str] | None]",
        "rate": "str",
        "spread": "NotRequired[float | None]",
        "start": "NotRequired[str]",
        "start_spread": "NotRequired[str]",
        "start_step": "NotRequired[str]",
        "stop": "NotRequired[str | None]",
        "tcp": "NotRequired[Tcp]",
        "to": "NotRequired[str | None]",
        "weight": "NotRequired[int | None]",
    },
)


StackFlow = TypedDict(
    "StackFlow",
    {
        "access_delay": "NotRequired[str | None]",
        "cc": "NotRequired[Control]",
        "class": "NotRequired[int | None]",
        "count": "NotRequired[int]",
        "direction": "NotRequired[str | None]",
        "from": "NotRequired[str | None]",
        "kind": "Literal['stack']",
        "node": "NotRequired[str | None]",
        "opaque": "NotRequired[bool | None]",
        "size": "NotRequired[str | None]",
        "stack": "str",
        "start": "NotRequired[str]",
        "start_spread": "NotRequired[str]",
        "start_step": "NotRequired[str]",
        "stop": "NotRequired[str | None]",
        "tcp": "NotRequired[Tcp]",
        "to": "NotRequired[str | None]",
        "weight": "NotRequired[int | None]",
    },
)


HandoverKeys = TypedDict(
    "HandoverKeys",
    {
        "at": "str",
        "flows": "NotRequired[list[int] | None]",
        "from": "str",
        "interruption": "NotRequired[str | None]",
        "procedure": "str",
        "to": "str",
    },
)


class InvariantKeys(TypedDict):
    max_queue: NotRequired[str | None]  # Largest number of bytes that may wait at any bottleneck.
    no_drops: NotRequired[bool]  # True if no packet may be dropped at any bottleneck.


class OutputKeys(TypedDict):
    pcapng: NotRequired[list[str]]  # Names of the queues to capture.
    series: NotRequired[bool]  # True if tables by seconds are kept.


class Aggregate(TypedDict):
    interval: str  # Time from the first packet of a burst to its release.
    packets: NotRequired[int | None]  # Number of packets with which a burst is released earlier.


class Gilbert(TypedDict):
    bad: NotRequired[float]  # Probability to lose a packet in the bad state.
    good: NotRequired[float]  # Probability to lose a packet in the good state.
    to_bad: float  # Probability to change from the good to the bad state after a packet.
    to_good: float


Distribution = Literal["uniform"] | Literal["normal"] | Literal["pareto"]


class Jitter(TypedDict):
    last: float | None  # Value of the estimate at the end, which a receiver would report.
    max: float | None  # Largest value of the estimate.
    mean: float | None  # Mean of the estimate J over all packets.


class Police(TypedDict):
    burst: str  # Size of the bucket, which is full at the beginning.
    rate: str  # Rate at which tokens come.


Law = Literal["estimate"] | Literal["autorate"] | Literal["oracle"] | Literal["late-oracle"]


class Reorder(TypedDict):
    by: str  # Delay of each of them, besides that of the link.
    share: float  # Part of the packets that are delayed.


class Markov(TypedDict):
    bad: float
    good: float
    mean_bad: str
    mean_good: str


Technology = Literal["wifi"] | Literal["wimax"]


class Signal(TypedDict):
    snr_db: float
    technology: Technology


class Moving(TypedDict):
    far_m: float
    near_m: float
    period: str
    technology: Technology


StationSpec = float | Markov | Signal | Moving


class DumbbellTopology(TypedDict):
    access_delay: NotRequired[str]  # One-way delay of the access links of hosts.
    access_rate: NotRequired[str]  # Rate of the access links of hosts.
    aggregate: NotRequired[Aggregate | None]  # Packets are released in bursts, from the first end to the second.
    delay: str
    duplicate: NotRequired[float | None]  # Part of the packets that arrive twice, from the first end to the second.
    first_rate: NotRequired[str | None]
    framing: NotRequired[Framing | None]
    gilbert: NotRequired[Gilbert | None]  # Losses in a row (Gilbert and Elliott), from the first end to the second.
    highest: NotRequired[str | None]  # The highest one; by default twenty times the first.
    jitter: NotRequired[Jitter | None]  # The delay varies, from the first end to the second.
    kind: Literal["dumbbell"]
    limit: NotRequired[str]  # Limit of the queue from the first end to the second.
    link_layer: NotRequired[str | None]
    loss: NotRequired[float]
    lowest: NotRequired[
        str | None
    ]  # The lowest rate that the gateway takes for right; by default a twentieth of the first.
    modem_limit: NotRequired[str | None]  # Limit of the queue of the modem, behind the gateway.
    mpu: NotRequired[int | None]  # The least size of a packet with its overhead on the link, in bytes, up to 256.
    overhead: NotRequired[int | None]  # Bytes that the link adds to each IP packet, from -64 to 256.
    police: NotRequired[Police | None]  # A token bucket without a queue, from the first end to the second.
    provider_limit: NotRequired[str | None]  # Limit of the queue of the provider, at the second end.
    rate: str  # Rate from the first end to the second, and back without `reverse_rate`.
    rate_from: NotRequired[Law | None]  # Who tells the gateway at the first end of the link the rates
    reorder: NotRequired[Reorder | None]  # Some packets are overtaken, from the first end to the second.
    reverse_aggregate: NotRequired[
        Aggregate | None
    ]  # Packets are released in bursts, from the second end to the first.
    reverse_aqm: NotRequired[Discipline]
    reverse_delay: NotRequired[
        str | None
    ]  # One-way propagation delay from the second end to the first; without it `delay`.
    reverse_duplicate: NotRequired[
        float | None
    ]  # Part of the packets that arrive twice, from the second end to the first.
    reverse_first_rate: NotRequired[str | None]  # The same from the second end to the first.
    reverse_framing: NotRequired[Framing | None]  # The framing from the second end to the first.
    reverse_gilbert: NotRequired[Gilbert | None]  # Losses in a row, from the second end to the first.
    reverse_highest: NotRequired[str | None]  # The highest one from the second end to the first.
    reverse_jitter: NotRequired[Jitter | None]  # The delay varies, from the second end to the first.
    reverse_limit: NotRequired[str]  # Limit of the queue from the second end to the first.
    reverse_link_layer: NotRequired[str | None]  # A preset from the second end to the first.
    reverse_lowest: NotRequired[str | None]  # The lowest one from the second end to the first.
    reverse_mpu: NotRequired[int | None]  # The least size of a packet from the second end to the first.
    reverse_overhead: NotRequired[
        int | None
    ]  # Bytes that the link adds to each IP packet from the second end to the first.
    reverse_police: NotRequired[Police | None]  # A token bucket without a queue, from the second end to the first.
    reverse_rate: NotRequired[str | None]  # Rate from the second end to the first; without it `rate`.
    reverse_reorder: NotRequired[Reorder | None]  # Some packets are overtaken, from the second end to the first.
    reverse_scone: NotRequired[bool]  # The same from the second end to the first.
    scone: NotRequired[bool]
    stations: NotRequired[list[StationSpec]]  # The channels to the stations behind a wireless link.


class ParkingLotTopologyHopsItem(TypedDict):
    aggregate: NotRequired[Aggregate | None]  # Packets are released in bursts, from the first end to the second.
    aqm: NotRequired[Discipline]
    delay: str
    duplicate: NotRequired[float | None]  # Part of the packets that arrive twice, from the first end to the second.
    first_rate: NotRequired[str | None]
    framing: NotRequired[Framing | None]
    gilbert: NotRequired[Gilbert | None]  # Losses in a row (Gilbert and Elliott), from the first end to the second.
    highest: NotRequired[str | None]  # The highest one; by default twenty times the first.
    jitter: NotRequired[Jitter | None]  # The delay varies, from the first end to the second.
    limit: NotRequired[str]  # Limit of the queue from the first end to the second.
    link_layer: NotRequired[str | None]
    loss: NotRequired[float]
    lowest: NotRequired[
        str | None
    ]  # The lowest rate that the gateway takes for right; by default a twentieth of the first.
    modem_limit: NotRequired[str | None]  # Limit of the queue of the modem, behind the gateway.
    mpu: NotRequired[int | None]  # The least size of a packet with its overhead on the link, in bytes, up to 256.
    overhead: NotRequired[int | None]  # Bytes that the link adds to each IP packet, from -64 to 256.
    police: NotRequired[Police | None]  # A token bucket without a queue, from the first end to the second.
    provider_limit: NotRequired[str | None]  # Limit of the queue of the provider, at the second end.
    rate: str  # Rate from the first end to the second, and back without `reverse_rate`.
    rate_from: NotRequired[Law | None]  # Who tells the gateway at the first end of the link the rates
    reorder: NotRequired[Reorder | None]  # Some packets are overtaken, from the first end to the second.
    reverse_aggregate: NotRequired[
        Aggregate | None
    ]  # Packets are released in bursts, from the second end to the first.
    reverse_delay: NotRequired[
        str | None
    ]  # One-way propagation delay from the second end to the first; without it `delay`.
    reverse_duplicate: NotRequired[
        float | None
    ]  # Part of the packets that arrive twice, from the second end to the first.
    reverse_first_rate: NotRequired[str | None]  # The same from the second end to the first.
    reverse_framing: NotRequired[Framing | None]  # The framing from the second end to the first.
    reverse_gilbert: NotRequired[Gilbert | None]  # Losses in a row, from the second end to the first.
    reverse_highest: NotRequired[str | None]  # The highest one from the second end to the first.
    reverse_jitter: NotRequired[Jitter | None]  # The delay varies, from the second end to the first.
    reverse_limit: NotRequired[str]  # Limit of the queue from the second end to the first.
    reverse_link_layer: NotRequired[str | None]  # A preset from the second end to the first.
    reverse_lowest: NotRequired[str | None]  # The lowest one from the second end to the first.
    reverse_mpu: NotRequired[int | None]  # The least size of a packet from the second end to the first.
    reverse_overhead: NotRequired[
        int | None
    ]  # Bytes that the link adds to each IP packet from the second end to the first.
    reverse_police: NotRequired[Police | None]  # A token bucket without a queue, from the second end to the first.
    reverse_rate: NotRequired[str | None]  # Rate from the second end to the first; without it `rate`.
    reverse_reorder: NotRequired[Reorder | None]  # Some packets are overtaken, from the second end to the first.
    reverse_scone: NotRequired[bool]  # The same from the second end to the first.
    scone: NotRequired[bool]
    stations: NotRequired[list[StationSpec]]  # The channels to the stations behind a wireless link.


class ParkingLotTopology(TypedDict):
    access_delay: NotRequired[str]  # One-way delay of the access links of hosts.
    access_rate: NotRequired[str]  # Rate of the access links of hosts.
    hops: list[ParkingLotTopologyHopsItem]
    kind: Literal["parking-lot"]


class GraphTopologyLinksItem(TypedDict):
    a: str  # Router at the first end.
    aggregate: NotRequired[Aggregate | None]  # Packets are released in bursts, from the first end to the second.
    aqm: NotRequired[Discipline]
    b: str  # Router at the second end.
    bottleneck: NotRequired[bool | None]  # True if the queue is measured.
    delay: str
    duplicate: NotRequired[float | None]  # Part of the packets that arrive twice, from the first end to the second.
    first_rate: NotRequired[str | None]
    framing: NotRequired[Framing | None]
    gilbert: NotRequired[Gilbert | None]  # Losses in a row (Gilbert and Elliott), from the first end to the second.
    highest: NotRequired[str | None]  # The highest one; by default twenty times the first.
    jitter: NotRequired[Jitter | None]  # The delay varies, from the first end to the second.
    limit: NotRequired[str]  # Limit of the queue from the first end to the second.
    link_layer: NotRequired[str | None]
    loss: NotRequired[float]
    lowest: NotRequired[
        str | None
    ]  # The lowest rate that the gateway takes for right; by default a twentieth of the first.
    modem_limit: NotRequired[str | None]  # Limit of the queue of the modem, behind the gateway.
    mpu: NotRequired[int | None]  # The least size of a packet with its overhead on the link, in bytes, up to 256.
    name: NotRequired[str | None]  # Name of the link.
    overhead: NotRequired[int | None]  # Bytes that the link adds to each IP packet, from -64 to 256.
    police: NotRequired[Police | None]  # A token bucket without a queue, from the first end to the second.
    provider_limit: NotRequired[str | None]  # Limit of the queue of the provider, at the second end.
    rate: str  # Rate from the first end to the second, and back without `reverse_rate`.
    rate_from: NotRequired[Law | None]  # Who tells the gateway at the first end of the link the rates
    reorder: NotRequired[Reorder | None]  # Some packets are overtaken, from the first end to the second.
    reverse_aggregate: NotRequired[
        Aggregate | None
    ]  # Packets are released in bursts, from the second end to the first.
    reverse_aqm: NotRequired[Discipline]
    reverse_delay: NotRequired[
        str | None
    ]  # One-way propagation delay from the second end to the first; without it `delay`.
    reverse_duplicate: NotRequired[
        float | None
    ]  # Part of the packets that arrive twice, from the second end to the first.
    reverse_first_rate: NotRequired[str | None]  # The same from the second end to the first.
    reverse_framing: NotRequired[Framing | None]  # The framing from the second end to the first.
    reverse_gilbert: NotRequired[Gilbert | None]  # Losses in a row, from the second end to the first.
    reverse_highest: NotRequired[str | None]  # The highest one from the second end to the first.
    reverse_jitter: NotRequired[Jitter | None]  # The delay varies, from the second end to the first.
    reverse_limit: NotRequired[str]  # Limit of the queue from the second end to the first.
    reverse_link_layer: NotRequired[str | None]  # A preset from the second end to the first.
    reverse_lowest: NotRequired[str | None]  # The lowest one from the second end to the first.
    reverse_mpu: NotRequired[int | None]  # The least size of a packet from the second end to the first.
    reverse_overhead: NotRequired[
        int | None
    ]  # Bytes that the link adds to each IP packet from the second end to the first.
    reverse_police: NotRequired[Police | None]  # A token bucket without a queue, from the second end to the first.
    reverse_rate: NotRequired[str | None]  # Rate from the second end to the first; without it `rate`.
    reverse_reorder: NotRequired[Reorder | None]  # Some packets are overtaken, from the second end to the first.
    reverse_scone: NotRequired[bool]  # The same from the second end to the first.
    scone: NotRequired[bool]
    stations: NotRequired[list[StationSpec]]  # The channels to the stations behind a wireless link.


class GraphTopology(TypedDict):
    access_delay: NotRequired[str]  # One-way delay of the access links of hosts.
    access_rate: NotRequired[str]  # Rate of the access links of hosts.
    kind: Literal["graph"]
    links: list[GraphTopologyLinksItem]


class Scenario(TypedDict):
    aqm: NotRequired[Discipline]
    changes: NotRequired[list[ChangeKeys]]  # Changes of links.
    cooperation: NotRequired[CooperationKeys | None]  # The gateway that grants budgets.
    duration: str  # Simulated time.
    flows: list[
        BulkFlow
        | TransferFlow
        | CbrFlow
        | OnoffFlow
        | SynfloodFlow
        | HttpFlow
        | WebFlow
        | VoipFlow
        | VideoFlow
        | StackFlow
    ]
    handovers: NotRequired[list[HandoverKeys]]  # Moves of hosts between cells.
    invariants: NotRequired[InvariantKeys]  # Conditions that must hold throughout a run.
    name: NotRequired[str | None]  # Name of the scenario; by default that of the file.
    output: NotRequired[OutputKeys]  # What a run records.
    profile: NotRequired[str | None]  # The profile whose values the keys have that the file does not give.
    seed: NotRequired[int]  # Seed of all random streams.
    tcp: NotRequired[Tcp]
    topology: DumbbellTopology | ParkingLotTopology | GraphTopology
    warmup: NotRequired[str]  # Time at the beginning which the statistics by seconds leave out.


class Estimated(TypedDict):
    bps: int  # The rate in bits per second.
    measured: bool  # True if a full link was seen; otherwise the rate is a lower bound, or the first one.


class QueueBytes(TypedDict):
    max: int  # Largest number of bytes.
    mean: float  # Mean over time, in bytes.


class Quantiles(TypedDict):
    max: float | None  # Largest value.
    mean: float | None  # Arithmetic mean.
    p10: float | None  # 10th percentile.
    p50: float | None  # Median.
    p90: float | None  # 90th percentile.
    p99: float | None  # 99th percentile.


class AdviceStats(TypedDict):
    busy: int  # Those of them that use their part now.
    flows: int  # Flows that are known now.
    kept: int  # Those whose signal was as low already.
    lowered: int  # Those whose signal was lowered.
    seen: int  # SCONE packets that came.
    spared: int


class BottleneckSummary(TypedDict):
    algorithm: NotRequired[Json]  # Numbers that the algorithm reports of itself; absent if it reports none.
    aqm: str  # Name of the queue discipline.
    bursts: NotRequired[
        int | None
    ]  # Number of bursts in which the link released packets; absent if it does not aggregate.
    bytes_all: int  # Number of bytes of these packets; the one that is being transmitted counts whole.
    dropped_bytes: int  # Number of bytes dropped, for any reason.
    drops_aqm: int  # Number of packets dropped by the AQM.
    drops_forced: int
    drops_overflow: int  # Number of packets dropped because there was no room.
    duplicated: NotRequired[int | None]  # Number of packets which arrived twice; absent if there are none.
    estimate: NotRequired[
        Estimated | None
    ]  # What the gateway estimates of the link at the end; absent if it is told the rate.
    goodput_bps: float
    lost: int  # Number of packets which were sent and lost on the wire.
    marks: int  # Number of packets marked CE.
    name: str  # Name of the link and direction.
    packets: int  # Number of TCP segments with payload and UDP datagrams sent.
    packets_all: int  # Number of packets of any kind sent.
    policed: NotRequired[int | None]  # Number of packets which a policer dropped before the queue; absent without one.
    queue_bytes: QueueBytes  # Bytes waiting, without the packet on the wire.
    queue_delay_ms: Quantiles  # Queueing delay of the packets sent, in milliseconds.
    reordered: NotRequired[int | None]
    scone: NotRequired[AdviceStats | None]  # Throughput advice that was given; absent without `scone`.
    throughput_bps: float  # Bits sent per second, headers included, counted as for `utilization`.
    utilization: float


class CooperationSummary(TypedDict):
    bandwidth_bps: int  # The rate that is divided, in bits per second.
    clients: int  # Number of clients that hold a budget at the end.
    forged: int
    granted_bps: int  # Sum of their budgets, in bits per second.
    ignored: int  # Number of messages that are not meant for a gateway, or that speak for another node.
    joined: int  # Number of clients admitted.
    lapsed: int  # Number of clients removed because the gateway had heard nothing of them for one lease.
    left: int  # Number of clients that said goodbye.
    message_bytes: int  # Bytes of these datagrams, without headers.
    messages: int  # Number of datagrams sent.
    repeated: int  # Number of requests that were repeated and got the same answer again.
    stale: int  # Number of requests that were ignored because they were too old.


EcnLost = Literal["declined"] | Literal["syn-retransmitted"]


class RttSummary(TypedDict):
    mean: float | None  # Mean round trip time.
    min: float | None  # Smallest round trip time.
    p10: float | None  # 10th percentile.
    p50: float | None  # Median.
    p90: float | None  # 90th percentile.
    p99: float | None  # 99th percentile.


class StackSummary(TypedDict):
    answers: int  # Number of datagrams that the server sent.
    believed_lost: int  # Number of datagrams that the client's stack believed lost.
    delay_ms: Quantiles  # One-way delays of the client's datagrams in milliseconds.
    ended: NotRequired[str | None]
    handshake_ms: float | None  # Time in milliseconds until its handshake was complete; missing if it was not.
    received: int  # Number of these datagrams that the server received; one that came twice counts twice.
    sent: int  # Number of datagrams that the client sent.
    sent_bytes: int  # Bytes of these datagrams, with the headers of the stack and without those of UDP and IP.
    version: str  # Name and version of the stack as it calls itself.


class SizeClass(TypedDict):
    completion_ms: Quantiles
    count: int  # Number of complete transfers.
    from_bytes: int  # Smallest size of the class in bytes; the next class begins at its end.
    mean_bytes: float  # Mean size of these transfers in bytes.


class Transfers(TypedDict):
    by_size: NotRequired[
        list[SizeClass]
    ]  # The transfers by size, only for `web`; classes without a transfer are left out.
    bytes: int  # Payload bytes of the complete transfers.
    completion_ms: Quantiles  # Time in milliseconds from the request until the last byte was delivered.
    count: int  # Number of transfers completed.
    failed: int  # Number of transfers whose connection was given up.
    refused: int  # Number of transfers refused because too many connections were open.
    started: int  # Number of transfers begun.


class Frames(TypedDict):
    delay_ms: Quantiles  # Time in milliseconds from the sending of a frame until it was complete.
    late: int  # Number of frames that were complete after their deadline.
    lost: int  # Number of incomplete frames, among those before the last of which a datagram arrived.
    played: int  # Number of frames that were complete before their deadline.
    sent: int  # Number of frames sent.


class VideoSummary(TypedDict):
    delay_ms: Quantiles  # One-way delays in milliseconds.
    frames: Frames  # What became of the frames.
    jitter_ms: Jitter  # Interarrival jitter in milliseconds.
    loss: float | None
    lost: int  # Number of datagrams lost, among those up to the last one that arrived.
    received: int  # Number of datagrams that arrived.
    sent: int  # Number of datagrams sent.


class VoipSummary(TypedDict):
    delay_ms: Quantiles  # One-way delays in milliseconds.
    jitter_ms: Jitter  # Interarrival jitter in milliseconds.
    late: float | None  # Share of packets that arrived, but too late to be played; missing if no packet arrived.
    loss: float | None
    lost: int  # Number of datagrams lost, among those up to the last one that arrived.
    mos: float | None  # Estimated mean opinion score, 1 to 4.5; missing if no packet was sent.
    playout_ms: float | None
    r: float | None  # Transmission rating R of the E-model; missing if no packet was sent.
    received: int  # Number of datagrams that arrived.
    sent: int  # Number of datagrams sent.


class FlowSummary(TypedDict):
    advised_bps: NotRequired[int | None]
    cc: str  # Name of the congestion control, or of the hosted stack; empty for other UDP.
    completion_s: float | None
    delivered_bytes: int  # Payload delivered, in bytes.
    ecn_accurate: NotRequired[int]  # Number of connections with accurate feedback (RFC 9768); absent if there is none.
    ecn_asked: int  # Number of connections with `ecn = true`.
    ecn_lost: int  # Number of them that go on without ECN.
    ecn_lost_why: EcnLost | None
    ecn_used: int  # Number of them that use ECN.
    goodput_bps: float | None  # Payload delivered per second while the flow was active, in bits per second
    id: int  # Number of the flow.
    kind: str  # Name of the kind of traffic: `bulk`, `transfer`, and so on.
    retransmits: int  # Number of segments retransmitted.
    rtt_ms: RttSummary  # Round trip times as the flow's sender measured them.
    stack: NotRequired[StackSummary]
    start_s: float  # When the flow began, in seconds.
    timeouts: int  # Number of retransmission timeouts.
    transfers: NotRequired[Transfers]
    video: NotRequired[VideoSummary]
    voip: NotRequired[VoipSummary]


class Counters(TypedDict):
    forwarded: int  # Number of packets forwarded from a cell whose host had left.
    held: int  # Number of packets that were held until a host had attached, on either side of the link.
    lost_in_air: int  # Number of packets that were in flight when their host left, and were lost.
    moves: int  # Number of moves, one for each flow; moves of a node's client are not counted.


class JainSummary(TypedDict):
    mean_1s: float | None  # Mean of the indices of the seconds after the warm-up.
    overall: float | None  # Index of the goodput of these connections, each over the time it was active.
    worst_1s: float | None  # Lowest index of a second after the warm-up.


class Summary(TypedDict):
    bottlenecks: list[BottleneckSummary]  # The queues which are measured.
    cooperation: NotRequired[
        CooperationSummary | None
    ]  # Counters of the gateway and its clients; absent without `[cooperation]`.
    duration_s: float  # Simulated time in seconds.
    events: int  # Number of events handled.
    flows: list[FlowSummary]  # The flows, in the order of their numbers.
    goodput_1s_bps: Quantiles  # Goodput of all flows together in bits per second, by seconds after the warm-up.
    handovers: NotRequired[
        Counters | None
    ]  # What became of the packets of hosts that moved; absent without `[[handovers]]`.
    jain: JainSummary  # Fairness among the connections.
    name: str  # Name of the scenario.
    rtt_ms: RttSummary  # Round trip times of all flows together.
    seed: int  # Seed of the run.
    warmup_s: float  # Seconds at the beginning which the statistics by seconds leave out.


__all__ = ["Scenario", "Summary"]
