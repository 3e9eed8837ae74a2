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
    """Returns the path of `penstock-emulate`: `given`, the installed one, or the newest built from this source."""
    if given is not None:
        if not os.access(given, os.X_OK):
            raise MistakeError(f"--emulator {given}: no such program")
        return given.resolve()
    if installed := shutil.which("penstock-emulate"):
        return Path(installed)
    target = Path(os.environ.get("CARGO_TARGET_DIR", _SOURCE / "target"))
    built = [path for profile in ("release", "debug") if (path := target / profile / "penstock-emulate").is_file()]
    if not built:
        raise MistakeError(
            "penstock-emulate is missing: `cargo build --release -p penstock-emulator` makes it; "
            "or say where it is by --emulator"
        )
    return max(built, key=lambda path: path.stat().st_mtime)
