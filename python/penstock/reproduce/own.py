"""A discipline of one's own in a published experiment, beside its own disciplines."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from penstock.experiments.adjusting import CLASSES
from penstock.mistake import MistakeError
from penstock.own import Library
from penstock.reproduce.base import Experiment, Own
from penstock.reproduce.settings import Listed
from penstock.reproduce.tempest import Tempest

# Parameters that disciplines of a kind have besides those of the class.
_OF_KIND = {
    "aqm": frozenset(),
    "scheduler": CLASSES,
    "ack-path": frozenset({"queue"}),
}


def with_own(experiment: Experiment, names: Sequence[str]) -> Experiment:
    """Returns the experiment with these disciplines (FILE.py:CLASS) as well, each called by the name of its class.

    Where a setting lists its disciplines, they are added there, too; variants and claims stay as they are. Raises
    `MistakeError` if a class cannot be used.
    """
    for name in names:
        experiment = _with_one(experiment, name)
    return experiment


def _with_one(experiment: Experiment, name: str) -> Experiment:
    file, colon, label = name.rpartition(":")
    if not colon or not file.endswith(".py"):
        raise MistakeError(f"--with {name}: write FILE.py:CLASS")
    library = Library()
    kind = library.kind(name)
    if isinstance(experiment, Tempest) and kind != "scheduler":
        raise MistakeError(
            f"--with {name}: {experiment.name} tests schedulers; a class that derives from Scheduler is one"
        )
    if kind not in ("aqm", "scheduler", "ack-path"):
        what = "a congestion control" if kind == "cc" else "no algorithm of penstock"
        raise MistakeError(f"--with {name}: {what}; a class that derives from Aqm, Scheduler or AckPath can be added")
    if label in experiment.aqms:
        raise MistakeError(f"--with {name}: {experiment.name} has a discipline {label} already; rename the class")
    path = f"{Path(file).resolve()}:{label}"
    digest = hashlib.sha256(library.sources[file].encode()).hexdigest()
    added = replace(
        experiment,
        aqms=(*experiment.aqms, label),
        own={**experiment.own, label: Own(path, digest, frozenset(library.parameters(name)) | _OF_KIND[kind])},
    )
    if isinstance(added, Listed):
        settings = (replace(s, aqms=(*s.aqms, label)) if s.aqms else s for s in added.settings)
        return replace(added, settings=tuple(settings))
    if isinstance(added, Tempest):
        return replace(added, tests=tuple(replace(test, aqms=(*test.aqms, label)) for test in added.tests))
    return added
