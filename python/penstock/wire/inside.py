"""The part of a run in the jar: takes its plan from a directory, plays it, and leaves there what was recorded.

    python -I inside.py DIRECTORY

The kernel there has hosts and links as on the wire, and nothing is late, since work takes no time. `jarred` is the part
of the run on this machine.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from penstock import store
from penstock.mistake import MistakeError
from penstock.wire import world

PLAN, RECORDED, AT = "plan.pickle", "recorded.pickle", "at "


def tell(now: float, _end: float) -> None:
    """Prints the seconds that have passed in the run, for who waits outside."""
    print(f"{AT}{now:.3f}", flush=True)


def main(directory: Path) -> None:
    """Plays the plan of a directory."""
    wanted, emulator = pickle.loads((directory / PLAN).read_bytes())
    os.environ["PENSTOCK_EMULATE"] = emulator
    found: world.Recorded | str
    try:
        found = world.play(wanted, directory, tell)
    except (MistakeError, OSError, ValueError, subprocess.SubprocessError) as error:
        found = str(error) or type(error).__name__
    store.write(directory / RECORDED, pickle.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
