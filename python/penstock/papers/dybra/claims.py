"""The claims about the results of `dybra`."""

from __future__ import annotations

from penstock.claims import checks
from penstock.claims.entering import of, unexplained
from penstock.claims.ledger import Claim, Comparison, Finding, Kind, judge
from penstock.claims.words import COMPARABLE, FAIR, LITTLE, MOST, MUCH, NEGLIGIBLE
from penstock.papers._shared import nodes
from penstock.papers._shared.cooperation_claims import Value, value
from penstock.papers.dybra.runs import LEAVE, LEAVES_S, LEFT_BY, RATE_BPS, SCALE, channels
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence, Outcome
from penstock.reproduce.seconds import series_of

DYBRA_MB, PLAIN_MB = 143.88, 75.93
BDP_KB = 875.0

# Variants are run with 4 and 40 clients; this was searched with 4, 10, 20 and 40.
FALLS = unexplained(
    ("flows.*.start_spread", "tcp.timestamps", "tcp.receive_buffer", "dybra: cooperation.literal"),
    "starts spread over 200 ms: 10.2, 10.8, 8.4 and 7.6 kB with 4 to 40 clients; as published 10.6, 11.4, 11.7 and 9.7",
)

CLAIMS: list[Claim] = []
dybra = of(CLAIMS, "dybra", "002")


def of_mix(run: Evidence, aqm: str, measure: Value) -> float:
    """Of the ten clients with five controls."""
    return value(run, aqm, "mix", measure) or 0.0


@dybra("2.3.3", "in the text", "143.88 and 75.93 MB")
def dybra_fills_the_link(run: Evidence) -> Finding:
    """In 60 s DyBRA carries close to 143.88 MB, and much more than plain TCP."""
    ours, plain = of_mix(run, "dybra", nodes.sent_mb), of_mix(run, "plain", nodes.sent_mb)
    parts = [
        checks.close(ours, DYBRA_MB, "DyBRA", " MB"),
        checks.above(("DyBRA", ours), ("plain", plain), "carried", " MB", by=MUCH),
    ]
    return checks.decide(parts)


@dybra("2.3.3", "in the text", "75.93 MB", Kind.SET_UP)
def plain_tcp_carries_what_its_options_were_chosen_by(run: Evidence) -> Finding:
    """In 60 s plain TCP carries about 75.93 MB, by which its options were chosen from 24 combinations."""
    return checks.decide([checks.about(of_mix(run, "plain", nodes.sent_mb), PLAIN_MB, "plain", " MB")])


@dybra("2.3.3", "in the text", "a significant drop")
def c2ml_alone_does_not_adapt(run: Evidence) -> Finding:
    """C²ML without DyBRA carries less: what bad channels leave goes to nobody."""
    ours, even = of_mix(run, "dybra", nodes.sent_mb), of_mix(run, "c2ml", nodes.sent_mb)
    return judge(
        f"{even:.1f} MB for {ours:.1f}", [Comparison(even * MUCH <= ours, f"{even:.1f} MB, DyBRA {ours:.1f} MB")]
    )


def _negligible(outcome: Outcome) -> float:
    """The part of the time in which the queue is a negligible part of the bandwidth-delay product."""
    queue = series_of(outcome).waiting["bottleneck"]
    return sum(mean <= NEGLIGIBLE * BDP_KB * 1e3 for mean in queue) / len(queue)


@dybra("2.3.3", "Figure 2.34", "most of the time negligible, never problematic")
def dybra_keeps_the_queue_empty(run: Evidence) -> Finding:
    """Most of the time the queue is negligible beside the bandwidth-delay product, and it never fills it."""
    part, most = of_mix(run, "dybra", _negligible), of_mix(run, "dybra", columns.queue_max_kb)
    parts = [
        Comparison(part >= MOST, f"at most {NEGLIGIBLE:.0%} of {BDP_KB:.0f} kB in {part:.0%} of the seconds"),
        Comparison(most < BDP_KB, f"longest {most:.0f} kB"),
    ]
    return judge("; ".join(part.text for part in parts), parts)


@dybra("2.3.3", "Figure 2.36", "greatly improved")
def dybra_makes_friends(run: Evidence) -> Finding:
    """Five controls whose channels stay good are fairer to each other with DyBRA."""
    ours, plain = of_mix(run, "dybra", nodes.jain_good), of_mix(run, "plain", nodes.jain_good)
    parts = [
        Comparison(ours > plain, f"Jain {ours:.3f}, plain {plain:.3f}"),
        Comparison(ours >= FAIR, f"Jain {ours:.3f}"),
    ]
    return judge(parts[0].text, parts)


@dybra("2.3.3", "Figure 2.37", "1 to 2 orders of magnitude")
def dybra_scales(run: Evidence) -> Finding:
    """With CUBIC the mean queue is a tenth or less of the plain one."""
    parts = []
    for n in (n for n in SCALE if f"cubic-{n}" in run.settings):
        ours, plain = (
            value(run, aqm, f"cubic-{n}", lambda o: columns.mean_queue_kb(o.summary)) or 0.0
            for aqm in ("dybra", "plain")
        )
        parts.append(Comparison(ours <= LITTLE * plain, f"{n} clients: {ours:.1f} kB, plain {plain:.1f} kB"))
    return judge("; ".join(part.text for part in parts), parts)


def _mean_queues(run: Evidence, aqm: str) -> list[tuple[str, float]]:
    return [
        (f"{n} clients", value(run, aqm, f"cubic-{n}", lambda o: columns.mean_queue_kb(o.summary)) or 0.0)
        for n in SCALE
        if f"cubic-{n}" in run.settings
    ]


@dybra("2.3.3", "Figure 2.37", "inversely proportional to the number of nodes", because=FALLS)
def dybra_queues_less_with_more_clients(run: Evidence) -> Finding:
    """With DyBRA the mean queue falls with the number of clients."""
    return checks.decide(checks.falls(_mean_queues(run, "dybra"), "mean queue", " kB"))


@dybra("2.3.3", "Figure 2.37", "the opposite trend")
def cubic_alone_queues_more_with_more_clients(run: Evidence) -> Finding:
    """Without DyBRA the mean queue of CUBIC grows with the number of clients."""
    return checks.decide(checks.rises(_mean_queues(run, "plain"), "mean queue", " kB"))


# Theorem 1.


def settled_s(outcome: Outcome, payload_share: float) -> int:
    """Seconds from the end of the client that leaves until each other has, from then on, what its channel carries."""
    rates = series_of(outcome).flows[1:]
    wanted = [(1 - COMPARABLE) * float(bound) * RATE_BPS * payload_share / 1e3 for bound in channels(LEFT_BY)]
    end = len(rates[0])
    short = (s for s in range(LEAVES_S, end) if any(r[s] < least for r, least in zip(rates, wanted, strict=True)))
    return max(short, default=LEAVES_S - 1) + 1 - LEAVES_S


@dybra("2.3.2", "Theorem 1", "O(n)")
def a_change_settles_in_n_steps(run: Evidence) -> Finding:
    """Where channels bind one client after another, shares settle within n seconds after one has left."""
    seconds = value(run, "dybra", LEAVE, lambda outcome: settled_s(outcome, run.experiment.payload_share))
    rest = run.duration_s - LEAVES_S
    text = f"after {seconds:.0f} of {rest:.0f} s" if seconds is not None and seconds < rest else "never"
    held = seconds is not None and seconds <= LEFT_BY
    return judge(f"{text}, {LEFT_BY} clients", [Comparison(held, f"{LEFT_BY} clients: {text}; a message takes 0.4 s")])
