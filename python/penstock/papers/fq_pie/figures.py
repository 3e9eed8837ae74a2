"""The figures of `fq-pie`."""

from __future__ import annotations

from penstock.papers._shared.flow_queueing_figures import FIGURES

__all__ = ["FIGURES"]
