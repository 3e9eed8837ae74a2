"""What this machine needs and has for runs through a kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from penstock.mistake import MistakeError
from penstock.verify.recording import NAMED, PREFIX, LabError, about

__all__ = ["LabError", "clear_away", "controls", "find_emulator", "impossible"]

_SOURCE = Path(__file__).resolve().parents[3]


def impossible() -> str | None:
    """Returns the reason why this machine cannot run the comparison; `None` if it can."""
    if not sys.platform.startswith("linux"):
        return "this is not Linux"
    if os.geteuid() != 0:
        return "not root: interfaces and namespaces need it"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is missing: `modprobe tun`, or give the container the device"
    for program in ("ip", "nsenter", "sysctl"):
        if shutil.which(program) is None:
            return f"the program {program} is missing"
    probe = f"{PREFIX}{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespaces: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", probe], check=False)
    return None


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


def clear_away() -> None:
    """Removes namespaces of earlier runs whose process has ended."""
    for path in NAMED.glob(f"{PREFIX}*") if NAMED.is_dir() else ():
        pid = path.name.removeprefix(PREFIX).split("-")[0]
        if not Path(f"/proc/{pid}").exists():
            subprocess.run(["ip", "netns", "delete", path.name], capture_output=True, check=False)
