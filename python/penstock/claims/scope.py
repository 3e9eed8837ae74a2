"""Rows out of scope: what the documents say in prose, about matters that nothing here computes."""

from __future__ import annotations

from penstock.claims.rows import Claim, Finding, Kind, Verdict


def _row(name: str, section: str, claim: str, paper: str, why: str) -> Claim:
    finding = Finding(Verdict.OUT_OF_SCOPE, "", why)
    return Claim(f"scope.{name}", "002", section, "in the text", claim, paper, (), lambda _: finding, False, Kind.SCOPE)


OUT_OF_SCOPE = (
    _row(
        "legacy-radio-rates",
        "2.1.1",
        "TETRA, TETRAPOL and analogue and digital PMR carry less than 30 kbit/s, TETRA 2 up to 400",
        "1 to 400 kbit/s",
        "rates of radio standards, from their documents; a link of any rate can be simulated, and says nothing of them",
    ),
    _row(
        "spectrum",
        "2.1.2.5",
        "The EU has no harmonized band for public safety; Greece has Band 40",
        "2300 MHz",
        "regulation of spectrum",
    ),
    _row(
        "legacy-interworking",
        "2.1.2.5",
        "LTE interworks with GSM, UMTS, CDMA2000 and WiMAX, and multi-mode terminals reach TETRA",
        "handover to other technologies",
        "what standards and terminals can do; links here have rates, delays and losses and no technology",
    ),
    _row(
        "lte-range",
        "2.1.2.6",
        "A cell reaches 0.5 to 3.5 km in a town and 25 to 50 km in the country",
        "15 to 100 km in theory",
        "propagation of radio waves, which no model here has",
    ),
    _row(
        "lte-data-rate",
        "2.1.2.6",
        "LTE carries 17 to 33 Mbit/s in trials, of 75 Mbit/s up and 326 down in theory",
        "17 to 33 Mbit/s",
        "the physical layer of LTE; scenarios take the rate of a cell as given",
    ),
    _row(
        "satellite-coverage",
        "2.1.2.6",
        "One satellite in the geostationary orbit sees 42 % of the Earth",
        "42 %",
        "geometry of coverage; orbits give delays here",
    ),
    _row(
        "service-provisioning",
        "2.1.2.2",
        "The core in the mobile centre gives addresses, voice and groups without the operator's network",
        "a whole core on each MEOC",
        "functions of a core network; packets of services are simulated, their signalling is not",
    ),
    _row(
        "general-terminals",
        "2.1.2",
        "Field operators need no special equipment: ordinary LTE terminals reach the deployed network",
        "general-purpose UE",
        "a property of terminals",
    ),
)
