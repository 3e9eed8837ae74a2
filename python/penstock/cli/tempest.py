"""`tempest`: tests packet schedulers. The flags are those of document 002, section 4.3.2.6."""

from __future__ import annotations

import signal
import sys
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from penstock.cli import show
from penstock.cli.base import verb
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

_EXAMPLES = (
    "penstock tempest -alg qfq+ -flows 32k -n 10M",
    "penstock tempest -alg wf2q+ -flowsets 20::20,10::20,1::60 -qmax 300 -burst 1 -n 1M",
    "penstock tempest -mode integrated -alg w2f2q -flowsets 20::20,10::20,1::60 -qmax 300 -intgr_th 80%",
    "penstock tempest -mode double -alg hfs -flowsets 20::20,10::20,1::60 -qmax 300 -qmac 100",
    "Numbers take k and M; 30n is 30 for each flow. Flags may have two dashes as well: --alg. `penstock docs tempest` "
    "explains what the numbers mean.",
)


class _Flags(TyperCommand):
    """Reports an unknown flag by its whole name, where the parser would report `-f` for an unknown `-foo`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Checks the names of all flags, then parses them; raises `MistakeError` for an unknown one."""
        takes_value = {name: not p.is_flag for p in self.params if isinstance(p, TyperOption) for name in p.opts}
        takes_value |= dict.fromkeys(ctx.help_option_names, False)
        rest = iter(args)
        for word in rest:
            name, equals, _ = word.partition("=")
            if name not in takes_value:
                meant = did_you_mean(name, takes_value)
                raise MistakeError(f"{word}: no such flag; {meant}`penstock tempest --help` lists them")
            if takes_value[name] and not equals:
                next(rest, None)
        return super().parse_args(ctx, args)


def _flag(about: str, *names: str) -> Any:
    """Creates an option with the name that the document gives, and with the same name after two dashes."""
    long = [f"-{name.replace('_', '-')}" for name in names if len(name) > 2]
    return typer.Option(None, *names, *dict.fromkeys(long), help=about, show_default=False, metavar="VALUE")


@verb("tempest", *_EXAMPLES, cls=_Flags)
def tempest(
    n: str | None = _flag("Number of enqueues and dequeues together; 10M.", "-n", "-num_event", "-num_events"),
    qmin: str | None = _flag("Packets left when the enqueue phase begins; 0.", "-qmin", "-q_min"),
    qmax: str | None = _flag("Packets waiting when the dequeue phase begins; 30n.", "-qmax", "-q_max"),
    length: str | None = _flag("Size of a packet in bytes; 1700.", "-len"),
    burst: str | None = _flag("0: smooth arrivals; else bursts of 1 to VALUE times weight; 0.", "-burst"),
    qsing: str | None = _flag("A flow with fewer packets may end the dequeue phase; 0, never.", "-qsing"),
    psing: str | None = _flag("Probability of this end; 0.5. Not in the document.", "-psing"),
    mode: str | None = _flag("single, integrated or double; single.", "-mode"),
    alg: str | None = _flag("The scheduler.", "-alg"),
    qos: str | None = _flag("Double: scheduler of the flows, for quality of service.", "-qos"),
    mac: str | None = _flag("Double: scheduler of the stations, at the radio.", "-mac"),
    flows: str | None = _flag("Number of flows of weight 1.", "-flows"),
    flowsets: str | None = _flag("Flows by weight: weight::flows,weight::flows.", "-flowsets"),
    flowsmac: str | None = _flag("Number of stations; 20 if the mode has channels.", "-flowsmac"),
    flowsetsmac: str | None = _flag("Double: stations by weight: weight::stations.", "-flowsetsmac"),
    qmac: str | None = _flag("Double: packets between the two schedulers; 100.", "-qmac"),
    qcount: str | None = _flag("Double: -qmin and -qmax count what waits before the first or both; first.", "-qcount"),
    wdistr: str | None = _flag("Weights of stations: 0 equal, 1 linear, 2 exponential, 3 by loss; 3.", "-wdistr"),
    ploss: str | None = _flag("Loss of each station: powers, steps, or 0.2:0.1:0; powers, 1 to 0.0001.", "-ploss"),
    intgr_th: str | None = _flag("Integrated: a good station has more weight, or with % gets more; 80%.", "-intgr_th"),
    rate: str | None = _flag("Rate of the link, for times in ms; 54Mbit/s. Not in the document.", "-rate"),
    seed: str | None = _flag("Seed of bursts and refills; 1. Not in the document.", "-seed"),
    repeat: str | None = _flag("Number of timed runs, of which the fastest counts; 3. Not in the document.", "-repeat"),
    measure: str | None = _flag("all, time, fairness or harness; all. Not in the document.", "-measure"),
    json: bool = typer.Option(False, "--json", "-json", help="Print one JSON object."),
) -> None:
    """Test a packet scheduler: CPU time of a packet, delay, fairness and throughput. See `penstock docs tempest`."""
    given = {key: value for key, value in locals().items() if key != "json" and value is not None}
    if "length" in given:
        given["len"] = given.pop("length")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would run only after the compiled code returned
    try:
        from penstock import engine

        report = engine.tempest(given)
    except ValueError as error:
        raise MistakeError(str(error)) from None
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    if json:
        show.as_json(report)
    else:
        _print(report)


def _print(report: dict[str, Any]) -> None:
    title = f"{report['alg']}, {report['mode']}, {report['flows']:,} flows, {report['events']:,} events"
    show.table(title, ("", ""), [*_cost(report), *_service(report)], left=2)
    if report["flows_detail"]:
        show.line()
        show.table("Flows by weight, the worst of each", _SET, _sets(report["flows_detail"]))


def _cost(report: dict[str, Any]) -> list[list[str]]:
    if report["ns_harness"] is None:
        return []
    if report["ns_per_packet"] is None:
        return [["time of an enqueue and a dequeue, the harness alone", f"{report['ns_harness']:.1f} ns"]]
    counters, energy = report["counters"], report["energy"]
    rows = [
        ["time of an enqueue and a dequeue", f"{report['ns_per_packet']:.1f} ns, {report['mpps']:.1f} Mpps"],
        ["of this the harness", f"{report['ns_harness']:.1f} ns"],
        ["the scheduler alone", f"{report['ns_scheduler']:.1f} ns"],
    ]
    if counters["missing"] is None:
        rows.append(["instructions, cycles", f"{counters['instructions']:.0f}, {counters['cycles']:.0f}"])
        rows.append(["instructions of the scheduler alone", f"{counters['instructions_scheduler']:.0f}"])
    else:
        rows.append(["instructions, cycles", counters["missing"]])
    measured = energy["kind"] == "rapl"
    value = f"{energy['nanojoules']:.1f} nJ" if measured else f"{energy['proxy_ns']:.1f} ns"
    rows.append(["energy" if measured else "energy, by proxy", f"{value}: {energy['note']}"])
    return rows


def _service(report: dict[str, Any]) -> list[list[str]]:
    worst = report["worst"]
    if worst is None:
        return []
    rows = [["normalized throughput", _value(report["throughput"], "{:.3f}")]]
    rows.append(["longest delay", _value(worst["max_delay_dequeues"], "{:,} dequeues")])
    rows.append(["T-WFI", _value(worst["t_wfi_ms"], "{:.3f} ms")])
    rows.append(["B-WFI", _value(worst["b_wfi_packets"], "{:.3f} packets")])
    if report["rfi"] is not None or report["rfi_between"] is None:
        rows.append(["RFI", _value(report["rfi"], "{:.3f} packets over relative weight")])
    else:
        least, most = report["rfi_between"]
        rows.append(["RFI", f"{least:.3f} to {most:.3f}: too many flows to follow every pair"])
    return rows


def _value(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


_SET = ("weight", "flows", "packets", "delay", "T-WFI ms", "B-WFI packets", "RFI")


def _sets(flows: list[dict[str, Any]]) -> list[list[str]]:
    rows = []
    for weight in sorted({flow["weight"] for flow in flows}, reverse=True):
        among = [flow for flow in flows if flow["weight"] == weight]
        worst = {key: max((f[key] for f in among if f[key] is not None), default=None) for key in _WORST}
        counts = [f"{weight:,}", f"{len(among):,}", f"{sum(flow['packets'] for flow in among):,}"]
        rows.append([*counts, *(_value(worst[key], form) for key, form in _WORST.items())])
    return rows


_WORST = {"max_delay_dequeues": "{:,}", "t_wfi_ms": "{:.3f}", "b_wfi_packets": "{:.3f}", "rfi": "{:.3f}"}
