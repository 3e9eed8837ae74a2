"""The controls of the Linux kernel by its names: which control here has the same form, with which parameters."""

from __future__ import annotations

from collections.abc import Iterable

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
NAMES = (*_LINUX, *_ALSO)  # controls that have a Linux form here


def linux(name: str) -> tuple[str, list[str]]:
    """Returns the control here that has the form of the kernel's `name`, and its settings `key=value`."""
    found = _LINUX.get(_ALSO.get(name, name))
    if found is None:
        raise MistakeError(
            f"{name!r} has no Linux form here; {suggest.did_you_mean(name, list(_LINUX))}there are: {', '.join(_LINUX)}"
        )
    return found[0], list(found[1])


def merged(*settings: Iterable[str]) -> list[str]:
    """Returns settings `key=value`, each key once; what is given last counts."""
    return list({text.split("=")[0].strip(): text for each in settings for text in each}.values())
