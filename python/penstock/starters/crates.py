"""The crates of Penstock that an algorithm in Rust needs, as a workspace which is copied beside it.

So the crate of an algorithm has all that it is built of, wherever it lies: no checkout, and no path of this machine.
The sources are those of a wheel, which has them in `rust/`, or of the checkout to which this file belongs. What only
tests of Penstock need is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.mistake import MistakeError

# What a program for simulated packets is built of, and what one for real packets needs besides.
SIMULATED = ("core", "grammar", "trace", "sim")
HOSTED = (*SIMULATED, "stacks")  # a transport stack
REAL = (*SIMULATED, "conntrack", "linux", "shaper", "appliance", "emulator")
ALL = (*REAL, "stacks")
# Files outside of a crate that its sources include.
_SHARED = {
    "linux": ("bpf", ("*.c", "*.h")),
    "appliance": ("python/penstock/report/kit/assets", ("uplot.min.css", "uplot.min.js", "kit.css", "kit.js")),
}
_LEFT_OUT = ("[[test]]", "[[example]]", "[[bench]]", "[dev-dependencies", "[lints", "[profile")
_PACKAGE = Path(__file__).resolve().parents[1]


def files(of: tuple[str, ...], source: Path | None = None) -> dict[str, bytes]:
    """Returns the files of a workspace with these crates, by their paths in it.

    Args:
        of: Names of crates, without those of which they are built: `SIMULATED` or `REAL`.
        source: A checkout of this project; default: what this installation has.

    Raises:
        MistakeError: There are no sources.
    """
    top = _top(source)
    found = {"Cargo.toml": _workspace(top, of).encode(), "Cargo.lock": (top / "Cargo.lock").read_bytes()}
    for name in of:
        crate = top / "crates" / name
        found[f"crates/{name}/Cargo.toml"] = _kept((crate / "Cargo.toml").read_text(encoding="utf-8")).encode()
        sources = [crate / "build.rs", *(path for path in sorted((crate / "src").rglob("*")) if path.is_file())]
        if name in _SHARED:
            folder, patterns = _SHARED[name]
            sources += [path for pattern in patterns for path in sorted((top / folder).glob(pattern))]
        found |= {str(path.relative_to(top)): path.read_bytes() for path in sources if path.is_file()}
    return found


def _top(source: Path | None) -> Path:
    places = [source.expanduser()] if source else [_PACKAGE / "rust", _PACKAGE.parents[1]]
    for top in places:
        if (top / "crates" / "core" / "Cargo.toml").is_file():
            return top.resolve()
    told = (
        f"{source}: no checkout of penstock"
        if source
        else "this penstock was installed without the sources of its crates"
    )
    raise MistakeError(f"{told}; give --source the directory of one, in which crates/core/Cargo.toml is")


def _workspace(top: Path, of: tuple[str, ...]) -> str:
    """Returns the manifest of the workspace, without the crates that are not in it."""
    written = _kept((top / "Cargo.toml").read_text(encoding="utf-8"))
    ours = {f"penstock-{path.name}" for path in (top / "crates").iterdir()} | {"penstock-py", "penstock-web"}
    gone = ours - {f"penstock-{name}" for name in of}
    members = ", ".join(f'"crates/{name}"' for name in of)
    lines = []
    for line in written.splitlines():
        if line.startswith("members ="):
            lines.append(f"members = [{members}]")
        elif not line.startswith("exclude =") and line.split(" ", 1)[0] not in gone:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _kept(manifest: str) -> str:
    """Returns a manifest without tests, examples, lints and profiles."""
    return "".join(
        section for section in _sections(manifest) if not section.startswith((*_LEFT_OUT, "[workspace.lints"))
    )


def _sections(manifest: str) -> Iterator[str]:
    """Yields the tables of a manifest, each with its head; what stands before the first is one as well."""
    begun: list[str] = []
    for line in manifest.splitlines(keepends=True):
        if line.startswith("[") and begun:
            yield "".join(begun)
            begun = []
        begun.append(line)
    yield "".join(begun)
