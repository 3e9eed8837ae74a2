"""The columns of `hfs-testbed`."""

from __future__ import annotations

from penstock.papers._shared.schedulers import losses
from penstock.papers.hfs_testbed.runs import arrives, least_of_good
from penstock.reproduce.columns import Column

COLUMNS = {
    "hfs_arrives": Column("arrives", "{:.3f}", lambda outcome: arrives(outcome.summary)),
    "hfs_good_part": Column("of the reserved rate, good", "{:.2f}", lambda o: least_of_good(o.summary, losses())),
}
