"""Writes the answer as a file for a gateway: link and discipline, with the evidence as comments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.engine import entries
from penstock.scenario import to_toml

if TYPE_CHECKING:
    from penstock.what_if.answer import Answer

# A gateway that stands beside the bottleneck must be slower than it, or packets wait in the bottleneck.
_SHARE = 0.95


def text(answer: Answer) -> str:
    """Returns the file."""
    lines = [
        f"Written by `penstock what-if {answer.seen.path.name}`.",
        "",
        f"{answer.discipline}: {answer.because[0]}",
        *answer.because[1:],
        "",
        f"{'discipline':12} {'goodput':>14} {'delay p50':>10} {'p90':>10} {'drops':>8}",
        *(
            f"{one.discipline:12} {one.goodput_bps.median / 1e6:8.3g} Mbit/s {one.delay_ms['p50'].median:7.1f} ms "
            f"{one.delay_ms['p90'].median:7.1f} ms {one.drop_share.median:8.2%}"
            for one in answer.outcomes
        ),
        "",
        f"Medians of {answer.seeds} seeds; senders with {answer.control}. What it assumes: penstock docs what-if",
        f"The link has {answer.seen.rate.bps / 1e6:.4g} Mbit/s; the gateway sends {_SHARE:.0%} of it, so that packets "
        "wait here and not there.",
    ]
    comments = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    tables = {
        "link": {"rate": _rate(_SHARE * answer.seen.rate.bps), "limit": answer.scenario["topology"]["limit"]},
        "discipline": {"name": answer.discipline, **parameters(answer.discipline)},
    }
    return comments + to_toml(tables)


def _rate(bps: float) -> str:
    return f"{bps / 1e6:.4g}Mbit/s" if bps >= 1e6 else f"{bps / 1e3:.4g}kbit/s"


def parameters(discipline: str) -> dict[str, Any]:
    """Returns the parameters of a discipline with the values that the simulation had."""
    found = next((entry for entry in entries() if entry.name == discipline), None)
    return {one.name: one.default for one in found.parameters if one.default is not None} if found else {}
