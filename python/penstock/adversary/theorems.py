"""All theorems that the adversary tries to violate."""

from __future__ import annotations

from penstock.adversary.arrivals import ARRIVALS
from penstock.adversary.lags import LAGS
from penstock.adversary.policing import QRM
from penstock.adversary.theorem import Theorem
from penstock.adversary.windows import PINK

THEOREMS: tuple[Theorem, ...] = (*LAGS, *ARRIVALS, QRM, *PINK)
