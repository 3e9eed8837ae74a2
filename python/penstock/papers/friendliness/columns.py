"""Columns that only `friendliness` has."""

from __future__ import annotations

from penstock.papers.friendliness.runs import share_of_first
from penstock.reproduce.columns import Column

COLUMNS = {
    "first_share": Column("first two", "{:.0%}", lambda o: share_of_first(o.summary)),
}
