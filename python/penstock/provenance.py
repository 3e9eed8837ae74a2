"""The origin of a result: versions of programs, the revision of the source, and hashes of inputs."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from penstock import engine

_SOURCE = Path(__file__).resolve().parents[2]


def sha256(text: str) -> str:
    """Returns the SHA-256 hash of a text as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def versions() -> dict[str, str]:
    """Returns the versions and properties of the machine which may differ between two runs of one scenario."""
    return {
        "penstock": _package_version(),
        "core": engine.core_version(),
        "core_sha256": engine.core_fingerprint(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "revision": revision(),
    }


def _package_version() -> str:
    try:
        return metadata.version("penstock")
    except metadata.PackageNotFoundError:
        return engine.core_version()


def revision() -> str:
    """Returns the git revision of the source tree, with `+changes` if files differ; `unknown` if there is none."""
    git = shutil.which("git")
    if git is None or not (_SOURCE / ".git").exists():
        return "unknown"
    head = _git(git, "rev-parse", "HEAD")
    if head is None:
        return "unknown"
    return head + ("+changes" if _git(git, "status", "--porcelain", "--untracked-files=no") else "")


def _git(git: str, *arguments: str) -> str | None:
    done = subprocess.run([git, "-C", str(_SOURCE), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
