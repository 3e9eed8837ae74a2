"""Self-contained HTML pages: one for a run, one for an experiment. No network, no script, images inside."""

from penstock.report.pages import ReportError, remake, write_experiment, write_run

__all__ = ["ReportError", "remake", "write_experiment", "write_run"]
