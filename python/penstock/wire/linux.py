"""A scenario with hosts as Linux has them, for the simulator and for kernels alike, so that both run the same."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.engine import tcp_defaults
from penstock.scenario import Scenario, to_toml
from penstock.verify import forms
from penstock.wire.tcp import FIXED

Tree = dict[str, Any]


def hosts(scenario: Scenario, announce: bool = False) -> Scenario:
    """Returns the scenario with the TCP of Linux: its controls in their Linux form, RACK, and nothing that it lacks.

    What a kernel can be told stays: segments, windows, buffers, SACK, ECN, the least timeout, ACKs of every segment. So
    does `profile = "linux"`, which says the same, and lets receive windows grow on both sides.
    Where senders announce their rates, RED-ERN estimates them; with `announce` they go on announcing, which a kernel
    does only with a program (docs/hosts.md).
    """
    tree: Tree = tomllib.loads(scenario.text)
    general = tree.setdefault("tcp", {})
    for table in (tree, general, *_of_flows(tree)):
        if not str(table.get("profile", "")).startswith("linux"):
            table.pop("profile", None)
    if not announce:
        _estimate_rates(tree)
    _forget(general)
    general |= forms.recovery(general.get("sack", tcp_defaults()["sack"]))
    general["cc"] = _control(general.get("cc", tcp_defaults()["cc"]))
    for flow in tree.get("flows", []):
        if "cc" in flow:
            flow["cc"] = _control(flow["cc"])
        if isinstance(flow.get("tcp"), dict):
            _forget(flow["tcp"])
            flow["tcp"] |= forms.recovery(flow["tcp"]["sack"]) if "sack" in flow["tcp"] else {}
            if "cc" in flow["tcp"]:
                flow["tcp"]["cc"] = _control(flow["tcp"]["cc"])
    return replace(scenario, text=to_toml(tree))


def _of_flows(tree: Tree) -> list[Tree]:
    """Returns the tables `tcp` of flows."""
    return [flow["tcp"] for flow in tree.get("flows", []) if isinstance(flow.get("tcp"), dict)]


def _estimate_rates(tree: Tree) -> None:
    """Lets each RED-ERN estimate the rates of flows, and no flow announce its own."""
    announced = [table.pop("ern", False) for table in (tree["tcp"], *_of_flows(tree))]
    if not any(announced):
        return
    topology = tree.get("topology", {})
    for place in (tree, topology, *topology.get("links", []), *topology.get("hops", [])):
        for key in ("aqm", "reverse_aqm"):
            found = place.get(key)
            if isinstance(found, dict) and found.get("name") == "red-ern":
                found["rates"] = "estimated"


def _forget(table: Tree) -> None:
    """Removes what is fixed in the kernel."""
    for key in (*FIXED, "initial_ssthresh"):
        table.pop(key, None)


def _control(given: Any) -> Any:
    """Returns a control in the form of Linux; one that Linux does not have stays as it is, and is refused there."""
    name = given["name"] if isinstance(given, Mapping) else given
    kernel = forms.kernel_name(name)
    found = forms.SIMULATED.get(kernel, name)
    return {"name": found, "hystart": True} if kernel == "cubic" else found
