"""Hosts that announce rates (`ern`), by a program in the kernel: `penstock-agent announce` attaches it to cgroups.

docs/reference/hosts.md says what it writes into segments, and when. Senders that announce are programs in such a
cgroup.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from penstock import testbed
from penstock.wire import programs

CGROUP = "ern"  # the cgroup of senders that announce and have no agent


def lacks(world: str) -> str:
    """Says why hosts of a world cannot announce rates; empty if they can, or if only root could tell."""
    if world.startswith("jar"):
        return "no host in the jar announces its rate: its kernel has no BPF"
    if testbed.hierarchy() is None:
        return "the program that announces rates needs cgroups of version 2: mount -t cgroup2 none /mnt"
    if os.geteuid() != 0:
        return ""
    done = subprocess.run(
        [str(programs.find("agent")), "announce", "--check"], capture_output=True, text=True, check=False
    )
    return done.stderr.strip().removeprefix("error: ") if done.returncode else ""


def make(mark: str) -> Path:
    """Makes the cgroup of a run, whose names begin with a mark."""
    hierarchy = testbed.hierarchy()
    assert hierarchy is not None, "lacks() has looked"
    cgroup = hierarchy / f"{mark}-{CGROUP}"
    cgroup.mkdir()
    return cgroup


def command(cgroups: Sequence[Path]) -> list[str]:
    """Returns the command whose process lets connections of cgroups announce, as long as it runs."""
    return [*programs.WITH_PARENT, str(programs.find("agent")), "announce", *map(str, cgroups)]
