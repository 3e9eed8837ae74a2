"""Writes the answer as a file for a gateway: link and discipline, with the evidence as comments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.engine import entries, on_wire
from penstock.scenario import to_toml

if TYPE_CHECKING:
    from penstock.what_if.answer import Answer

# A gateway that stands beside the bottleneck must be slower than it, or packets wait in the bottleneck.
_SHARE = 0.95
# The size of the packets whose rate a capture shows.
_PACKET = 1500


def text(answer: Answer, layer: Sequence[str] = ()) -> str:
    """Returns the file. `layer` says what the line adds to packets, as texts `key=value`.

    Raises `ValueError` if `layer` is not right.
    """
    lines = [
        f"Written by `penstock what-if {answer.seen.path.name}`.",
        "",
        f"{answer.discipline}: {answer.because[0]}",
        *answer.because[1:],
        "",
        f"{'discipline':12} {'goodput':>14} {'other way':>14} {'delay p50':>10} {'p90':>10} {'drops':>8}",
        *(
            f"{one.discipline:12} {one.goodput_bps.median / 1e6:8.3g} Mbit/s "
            f"{one.back_goodput_bps.median / 1e6:7.3g} Mbit/s {one.delay_ms['p50'].median:7.1f} ms "
            f"{one.delay_ms['p90'].median:7.1f} ms {one.drop_share.median:8.2%}"
            for one in answer.outcomes
        ),
        "",
        f"Medians of {answer.seeds} seeds; senders with {answer.control}. What it assumes: penstock docs what-if",
        f"The link has {answer.seen.rate.bps / 1e6:.4g} Mbit/s; the gateway sends {_SHARE:.0%} of it, so that packets "
        "wait here and not there.",
        *_ways(answer.seen.uploads),
    ]
    comments = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    return comments + to_toml(_tables(answer, layer))


def _ways(uploads: bool | None) -> list[str]:
    if uploads is None:
        return ["Its addresses do not tell which direction is the upload: both have this rate and discipline here."]
    way, other = ("upload", "download") if uploads else ("download", "upload")
    return [f"The discipline is for the {way}; the {other} keeps a plain queue."]


def _tables(answer: Answer, layer: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the tables of the file: keys of the upload begin with `reverse_`. Rates are those of the line."""
    line = _SHARE * on_wire(layer, _PACKET) / _PACKET
    adds = {
        key: int(value) if value.lstrip("-").isdigit() else value
        for key, _, value in (one.partition("=") for one in layer)
    }
    [link] = answer.scenario["topology"]["links"]
    seen = answer.seen
    chosen = {"name": answer.discipline, **parameters(answer.discipline)}
    main = (_rate(line * seen.rate.bps), link["limit"])
    if seen.uploads is None:
        return {"link": {"rate": main[0], "limit": main[1], **adds}, "discipline": chosen}
    other = (_rate(line * seen.back_bps), link["reverse_limit"])
    plain = {"name": "droptail"}
    (rate, limit), (reverse_rate, reverse_limit) = (other, main) if seen.uploads else (main, other)
    return {
        "link": {"rate": rate, "reverse_rate": reverse_rate, "limit": limit, "reverse_limit": reverse_limit, **adds},
        "discipline": plain if seen.uploads else chosen,
        "reverse_discipline": chosen if seen.uploads else plain,
    }


def _rate(bps: float) -> str:
    return f"{bps / 1e6:.4g}Mbit/s" if bps >= 1e6 else f"{bps / 1e3:.4g}kbit/s"


def parameters(discipline: str) -> dict[str, Any]:
    """Returns the parameters of a discipline with the values that the simulation had."""
    found = next((entry for entry in entries() if entry.name == discipline), None)
    return {one.name: one.default for one in found.parameters if one.default is not None} if found else {}
