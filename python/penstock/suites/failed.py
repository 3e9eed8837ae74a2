"""Why a value of a suite cannot be had."""

from __future__ import annotations


class Failed(Exception):  # noqa: N818 - it is a reason, which becomes a part of a finding
    """A value that cannot be had; the text is the reason."""
