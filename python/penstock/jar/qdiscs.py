"""Which queue disciplines a kernel has: `tc` tries each, in the jar or on this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

# The kinds that scenarios use, with words that `tc` takes.
WORDS = {
    "htb": "",
    "pfifo": "limit 10",
    "bfifo": "limit 10000",
    "red": "limit 100000 min 5000 max 15000 avpkt 1000 burst 9 probability 0.1",
    "codel": "",
    "fq_codel": "",
    "pie": "",
    "fq_pie": "",
    "cake": "",
}


def tried(begin: Sequence[str] = ()) -> list[str] | None:
    """Returns the kinds that the kernel takes, in a namespace which `begin` makes; `None` if none can be tried."""
    try:
        if subprocess.run([*begin, "tc", "-V"], capture_output=True, check=False).returncode:
            return None
    except FileNotFoundError:
        return None
    lines = (f"tc qdisc add dev lo root {kind} {words} && echo {kind}" for kind, words in WORDS.items())
    script = "\n".join(f"{line}; tc qdisc del dev lo root" for line in lines)
    done = subprocess.run([*begin, "sh", "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.split()
