"""Cases of a suite with a hosted stack in the place of a congestion control: which it can stand in, and how."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from penstock.adversary.subject import STACK, SUBJECT, Subject
from penstock.suites.model import Case
from penstock.units import base

_OF_WEB = ("per_second", "max_size")
_WEB_SIZE = "50kB"  # the mean of the transfers of `web`, whose sizes a stack does not draw


def case_of(case: Case, subject: Subject) -> Case:
    """Returns the case as the subject needs it: for a stack, with flows of the stack."""
    if subject.kind != STACK:
        return case
    seconds = base(case.tables["duration"]) or 0.0
    flows = [_flow(flow, seconds) for flow in case.tables["flows"]]
    return dataclasses.replace(case, tables={**case.tables, "flows": flows})


def suits(case: Case, subject: Subject) -> str:
    """Returns why a stack cannot stand in the case; empty if it can."""
    if subject.kind != STACK:
        return case.suits(subject)
    if case.driven or case.tables.get("tcp", {}).get("cc") == SUBJECT:
        return "the case looks into the control, and a hosted stack does not show it"
    if any(flow.get("cc") == SUBJECT and "tcp" in flow for flow in case.tables["flows"]):
        return "the case changes the host, and that of a hosted stack is its own"
    return ""


def _flow(flow: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Returns a flow with web traffic of the subject as transfers; `Subject.placed` makes connections of a stack of it.

    DIFFERENCE: they have one size and begin at equal times; each is a connection, whose handshake is a part of it.
    """
    if flow.get("cc") != SUBJECT or flow["kind"] != "web":
        return dict(flow)
    each = flow["per_second"]
    kept = {key: value for key, value in flow.items() if key not in _OF_WEB}
    return {**kept, "count": round(each * seconds), "start_step": f"{1e6 / each:.0f}us", "size": _WEB_SIZE}
