"""Prints what the kernel in the jar says of itself, as a line of JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from penstock.jar import qdiscs

if __name__ == "__main__":
    controls = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()
    found = {"version": os.uname().release, "controls": controls, "disciplines": qdiscs.tried() or []}
    print(json.dumps(found), flush=True)
