"""HTML pages of runs and of experiments, each one file that needs nothing from outside; `kit` has their parts."""

from penstock.report.pages import (
    PACKETS,
    REPLAY,
    ReportError,
    remake,
    write_break,
    write_compare,
    write_experiment,
    write_flent,
    write_replay,
    write_run,
    write_suite,
    write_sweep,
    write_what_if,
)
from penstock.report.tidy_page import table_page

__all__ = [
    "PACKETS",
    "REPLAY",
    "ReportError",
    "remake",
    "table_page",
    "write_break",
    "write_compare",
    "write_experiment",
    "write_flent",
    "write_replay",
    "write_run",
    "write_suite",
    "write_sweep",
    "write_what_if",
]
