"""Which scripts can judge the simulated TCP, by a stated rule.

A script is applicable if it needs nothing of this list; what it needs is the reason that it is not:

- TCP over IPv4 alone: no UDP, ICMP, GRE, fields of IP besides ECN, and no script for IPv6 only;
- no Fast Open, no MD5 or other options that the simulated TCP has not, no syncookies;
- no corking and no MSG_MORE: what an application writes is sent as soon as the windows allow it;
- no accounting of the kernel's memory: sizes of buffers that limit what a call takes or which window is told;
- no pipes and no `poll()`;
- no pacing by the discipline fq, which moves the time at which data counts as sent;
- no other machinery: routes, probes of the path's MTU, disciplines that drop, counters of the kernel, keep-alives.
"""

from __future__ import annotations

from penstock.suites.packetdrill.host import Host
from penstock.suites.packetdrill.script import Call, Command, Packet, Script
from penstock.suites.packetdrill.values import Fields, Value, names

__all__ = ["unsuited"]

_MEMORY = "memory of the kernel"
_FAST_OPEN = "Fast Open"
_WRITES = "corking"
_NAMES = {
    "MSG_FASTOPEN": _FAST_OPEN, "TCP_FASTOPEN": _FAST_OPEN, "TCP_FASTOPEN_CONNECT": _FAST_OPEN,
    "TCP_FASTOPEN_KEY": _FAST_OPEN,
    "MSG_MORE": _WRITES, "TCP_CORK": _WRITES,
    "SO_RCVBUF": _MEMORY, "TCP_NOTSENT_LOWAT": _MEMORY,
    "TCP_USER_TIMEOUT": "user timeout", "SO_KEEPALIVE": "keep-alives", "TCP_KEEPIDLE": "keep-alives",
    "TCP_SYNCNT": "retries",
}  # fmt: skip
_CALLS = {"poll": "poll()", "splice": "pipes", "pipe": "pipes"}
_OPTIONS = {"mss", "wscale", "sackOK", "TS", "sack", "ECN"}
_TOLD = ("SK_MEMINFO", "tcpi_rcv_mss", "tcpi_sndbuf_limited", "tcpi_probes")


def unsuited(script: Script) -> list[str]:
    """Returns what a script needs that the simulated TCP has not; nothing if it is applicable."""
    found: dict[str, None] = {}
    if script.options.get("ip_version") == "ipv6":
        found["IPv6"] = None
    host = Host()
    for text in script.before:
        host.take(text)
    for event in script.events:
        match event.action:
            case Packet(options=options):
                found.update(
                    dict.fromkeys(
                        _FAST_OPEN if option.kind.startswith("FO") else f"option {option.kind}"
                        for option in options or ()
                        if option.kind not in _OPTIONS
                    )
                )
            case Call() as call:
                found.update(dict.fromkeys(_of_call(call)))
            case Command(text):
                host.take(text)
            case code:
                found.update(dict.fromkeys(_MEMORY for word in _TOLD if word in code.text))
    if host.paced:
        found["pacing by fq"] = None
    found.update(dict.fromkeys(f"command {' '.join(line.split()[:3])}" for line in host.foreign))
    return list(found)


def _of_call(call: Call) -> list[str]:
    found = [_CALLS[call.name]] if call.name in _CALLS else []
    found += [_NAMES[name] for value in call.arguments for name in _all_names(value) if name in _NAMES]
    if call.name == "getsockopt" and call.arguments[2] == "SO_SNDBUF":
        found.append(_MEMORY)
    if call.name in ("write", "send") and isinstance(call.result, int) and 0 <= call.result != call.arguments[2]:
        found.append(_MEMORY)
    if any(isinstance(value, int) and value > 1 << 32 for value in call.arguments):
        found.append("bad pointers")
    return found


def _all_names(value: Value) -> set[str]:
    if isinstance(value, list):
        return {name for item in value for name in _all_names(item)}
    if isinstance(value, Fields):
        return {name for item in [*value.named.values(), *value.plain] for name in _all_names(item)}
    return names(value)
