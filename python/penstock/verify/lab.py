"""What this machine needs and has for runs through a kernel."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from penstock.mistake import MistakeError
from penstock.verify.recording import about

_SOURCE = Path(__file__).resolve().parents[3]


def controls() -> list[str]:
    """Returns the names of the congestion controls that the kernel offers."""
    return list(about()["controls"])


def find_emulator(given: Path | None) -> Path:
    """Returns the path of `penstock-emulate`: `given`, the installed one, or the release that was built here."""
    if given is not None:
        if not os.access(given, os.X_OK):
            raise MistakeError(f"--emulator {given}: no such program")
        return given.resolve()
    if installed := shutil.which("penstock-emulate"):
        return Path(installed)
    built = Path(os.environ.get("CARGO_TARGET_DIR", _SOURCE / "target")) / "release" / "penstock-emulate"
    if not built.is_file():
        raise MistakeError(
            "penstock-emulate is missing: `tools/setup appliances` builds it; or say where it is by --emulator"
        )
    return built
