"""The programs of a run: where they are, how they begin, and what they answer at their control sockets."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

from penstock.mistake import MistakeError
from penstock.testbed import LabError

# A child that its killed parent leaves is killed by the kernel.
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")


def find(name: str) -> Path:
    """Returns the program `penstock-NAME`; `PENSTOCK_NAME` names another one. Raises `MistakeError` without one."""
    variable = f"PENSTOCK_{name.upper()}"
    if given := os.environ.get(variable):
        return Path(given)
    if found := shutil.which(f"penstock-{name}"):
        return Path(found)
    target = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[3] / "target"))
    built = target / "release" / f"penstock-{name}"
    if built.is_file():
        return built
    raise MistakeError(
        f"--on wire needs the program penstock-{name}: `tools/setup appliances` builds it; or set {variable}"
    )


def ask(path: Path, request: dict[str, Any]) -> Any:
    """Returns the answer of a control socket (docs/reference/control-socket.md); else raises `LabError`."""
    try:
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(5)
            asked.connect(str(path))
            asked.sendall(json.dumps({"v": 1, **request}).encode() + b"\n")
            answer = json.loads(asked.makefile().readline())
    except (OSError, ValueError) as error:
        raise LabError(f"{path.name} does not answer: {error}") from None
    if "error" in answer:
        raise LabError(f"{path.name}: {answer['error']['what']}")
    return answer["ok"]
