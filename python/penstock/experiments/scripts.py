"""Scripts by which a cluster runs a sweep as an array of jobs, each of which runs a part (`--shard`)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

SYSTEMS = ("slurm",)
TASKS = 8

_SLURM = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=1-{tasks}
#SBATCH --cpus-per-task=1
#SBATCH --signal=TERM@30
# Each task runs a part of the points, into one directory that all machines see. A task that is submitted again goes on
# where it ended; the one that finishes last writes the tables. If none did, run the command
# once more without --shard: nothing is run twice.
{command} --jobs 1 --shard "$SLURM_ARRAY_TASK_ID/{tasks}"
"""


def script(wanted: str, name: str, words: Sequence[str]) -> str:
    """Returns the script of `--array-script slurm` or `slurm:TASKS` for a command of these words."""
    system, _, count = wanted.partition(":")
    if system not in SYSTEMS:
        raise MistakeError(f"--array-script {wanted}: {did_you_mean(system, SYSTEMS)}it is slurm, or slurm:TASKS")
    if count and not (count.isdigit() and int(count) > 0):
        raise MistakeError(f"--array-script {wanted}: {count!r} is no number of tasks")
    return _SLURM.format(name=name, tasks=count or TASKS, command=shlex.join(words))


def place(name: str) -> Path:
    """Returns the file of the script."""
    return Path(f"{name}.slurm.sh")
