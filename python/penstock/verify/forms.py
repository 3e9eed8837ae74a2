"""The controls of the Linux kernel by its names: which control here has the same form, with which parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock import suggest
from penstock.mistake import MistakeError

_LINUX = {
    "reno": ("newreno", ("compat=linux",)),
    "cubic": ("cubic-linux", ("hystart=true",)),
    "cubic_nohystart": ("cubic-linux", ("hystart=false",)),
    "bic": ("bic", ("compat=linux",)),
    "highspeed": ("highspeed", ("compat=linux",)),
    "hybla": ("hybla", ("compat=linux",)),
    "scalable": ("scalable", ("compat=linux",)),
    "westwood": ("westwood", ("compat=linux",)),
}
_ALSO = {"newreno": "reno", "cubic-linux": "cubic"}
PRESETS = ("linux",)
# Controls whose Linux form runs in a simulation, by the kernel's names. BBR needs the fates of segments for its form.
SIMULATED: Mapping[str, Any] = {
    "reno": {"name": "newreno", "compat": "linux"},
    "cubic": "cubic-linux",
    **{
        name: {"name": name, "compat": "linux"} for name in ("bbr", "bic", "highspeed", "hybla", "scalable", "westwood")
    },
}


def kernel_name(name: str) -> str:
    """Returns the kernel's name of a control."""
    return _ALSO.get(name, name)


def recovery(sack: bool) -> dict[str, Any]:
    """Returns the keys of [tcp] with which a host recovers from losses and acknowledges as Linux does.

    Without SACK the kernel has no RACK either.
    """
    return {"sack": sack, "without_sack": "linux", "rack": sack, "acknowledging": "linux"}


def linux(name: str) -> tuple[str, list[str]]:
    """Returns the control here that has the form of the kernel's `name`, and its settings `key=value`."""
    found = _LINUX.get(kernel_name(name))
    if found is None:
        raise MistakeError(
            f"{name!r} has no Linux form here; {suggest.did_you_mean(name, list(_LINUX))}there are: {', '.join(_LINUX)}"
        )
    return found[0], list(found[1])


def sockets(name: str, settings: Iterable[str]) -> list[list[str]]:
    """Returns the settings of the kernel's sockets that may have made a reference, the usual one first.

    A socket does not pace unless its control wants to (BBR) or a queue does it (fq). HyStart asks, and a reference does
    not say.
    """
    told = name != "cubic-linux" or any(text.split("=")[0].strip() == "paced" for text in settings)
    return [[]] if told else [["paced=false"], ["paced=true"]]


def merged(*settings: Iterable[str]) -> list[str]:
    """Returns settings `key=value`, each key once; what is given last counts."""
    return list({text.split("=")[0].strip(): text for each in settings for text in each}.values())
