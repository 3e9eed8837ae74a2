"""What the experiments on cooperative control share: C²ML, QRM and DyBRA of document 002, and PINK beside them."""

from __future__ import annotations

from typing import Any

Flow = dict[str, Any]
GOOD = 12  # of the 16 nodes of `cooperation` that obey, or keep their channel
