"""The claims about the results of `cooperation`."""

from __future__ import annotations

from penstock.claims.entering import of
from penstock.claims.ledger import Claim, Comparison, Finding, Kind, judge
from penstock.claims.words import CLOSE, SHARE
from penstock.papers._shared import nodes
from penstock.papers._shared.cooperation_claims import value
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence

CLAIMS: list[Claim] = []
ways = of(CLAIMS, "cooperation", "002")


def _near(run: Evidence, setting: str) -> list[Comparison]:
    parts = []
    for name, measure in (("goodput", nodes.goodput_good_mbps), ("Jain", nodes.jain_good)):
        pink, c2ml = (value(run, way, setting, measure) or 0.0 for way in ("pink", "c2ml"))
        text = f"{run.experiment.label(setting)}: {name} {pink:.3f}, C²ML {c2ml:.3f}"
        parts.append(Comparison(pink >= (1 - CLOSE) * c2ml, text))
    return parts


@ways("3.2.2", "in the text", "no modification of end hosts", Kind.OWN)
def pink_does_as_well_as_c2ml(run: Evidence) -> Finding:
    """PINK, with no client involved, is within 3 % of C²ML's goodput and fairness where all obey."""
    parts = [part for setting in ("clean", "rtts", "channel") for part in _near(run, setting)]
    return judge("; ".join(part.text for part in parts), parts)


@ways("3.1", "in the text", "protects legitimate users")
def qrm_protects_both(run: Evidence) -> Finding:
    """Under attack QRM keeps for good nodes what C²ML and PINK alone lose."""
    parts = []
    for way, guarded in (("c2ml", "c2ml-qrm"), ("pink", "pink-qrm")):
        alone, kept = (value(run, w, "attack", nodes.goodput_good_mbps) or 0.0 for w in (way, guarded))
        clean = (value(run, guarded, "clean", nodes.goodput_good_mbps) or 0.0) * 12 / 16
        parts.append(Comparison(kept > alone, f"{guarded} {kept:.2f} Mbit/s, {way} {alone:.2f}"))
        parts.append(Comparison(kept >= (1 - SHARE) * clean, f"{guarded} {kept:.2f} of {clean:.2f} Mbit/s"))
    return judge("; ".join(part.text for part in parts), parts)


@ways("3.2.2", "in the text", "no modification of end hosts", Kind.OWN)
def pink_before_qrm_does_as_well_under_attack(run: Evidence) -> Finding:
    """Under attack PINK before QRM is within 3 % of C²ML with QRM, in goodput and fairness of those who obey."""
    parts = []
    for name, measure in (("goodput", nodes.goodput_good_mbps), ("Jain", nodes.jain_good)):
        pink, c2ml = (value(run, way, "attack", measure) or 0.0 for way in ("pink-qrm", "c2ml-qrm"))
        parts.append(Comparison(pink >= (1 - CLOSE) * c2ml, f"{name} {pink:.3f}, C²ML {c2ml:.3f}"))
    return judge("; ".join(part.text for part in parts), parts)


@ways("2.3.3", "in the text", "efficient")
def dybra_uses_what_channels_leave(run: Evidence) -> Finding:
    """With channels that change DyBRA uses more of the link than C²ML alone."""
    ours, even = (value(run, way, "channel", columns.use) or 0.0 for way in ("dybra", "c2ml"))
    return judge(f"{ours:.1%}, C²ML {even:.1%}", [Comparison(ours > even, f"{ours:.1%}, C²ML {even:.1%}")])
