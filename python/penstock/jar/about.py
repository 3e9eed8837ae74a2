"""Prints what the kernel in the jar says of itself, as a line of JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

if __name__ == "__main__":
    controls = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()
    print(json.dumps({"version": os.uname().release, "controls": controls}), flush=True)
