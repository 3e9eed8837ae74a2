"""Congestion controls over a satellite link: document 002, section 2.2.2."""

from __future__ import annotations

STEP_S = 10.0
# In the order in which they begin, three seconds apart.
SIX = ("noordwijk", "cubic", "newreno", "hybla", "highspeed", "bic")
THREE = ("newreno", "cubic", "noordwijk")
SIX_SETTING = "six-large"
NAMES = {
    "newreno": "NewReno",
    "cubic": "CUBIC",
    "noordwijk": "Noordwijk",
    "hybla": "Hybla",
    "highspeed": "HighSpeed",
    "bic": "BIC",
}
