"""A shell on a host of a scenario while it runs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from penstock import store
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean
from penstock.wire import routes
from penstock.wire.plan import Plan

_END_S = 1.0  # a shell that does not end so long after SIGHUP is killed
# The names of hosts are known in a mount namespace of the shell's own.
_NAMED = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts; exec "$@"')


def hosts(plan: Plan) -> dict[str, tuple[str, str]]:
    """Returns the hosts by name (`c0` on the left, `s0` on the right, ...), each with its namespace and address."""
    found = {}
    for flow in plan.flows:
        both = zip("cs", routes.hosts(plan, flow), routes.addresses(plan, flow), strict=True)
        found.update({f"{side}{flow.id}": (space, address) for side, space, address in both})
    return found


def check(plan: Plan, name: str) -> None:
    """Raises `MistakeError` if no host has this name."""
    known = hosts(plan)
    if name not in known:
        raise MistakeError(
            f"--shell {name}: {did_you_mean(name, known)}hosts are c0 to c{len(plan.flows) - 1} on the left and "
            f"s0 to s{len(plan.flows) - 1} on the right, by the numbers of their flows"
        )


@contextlib.contextmanager
def opened(plan: Plan, name: str, begin: Sequence[str], directory: Path) -> Iterator[None]:
    """Has a shell on a host while the block lasts; `begin` is the command line that enters the host's namespace."""
    known = hosts(plan)
    file = directory / "hosts"
    store.write(file, "127.0.0.1 localhost\n" + "".join(f"{address} {host}\n" for host, (_, address) in known.items()))
    peer = ("s" if name[0] == "c" else "c") + name[1:]
    print(
        f"a shell on {name} ({known[name][1]}), whose flow has {peer} ({known[peer][1]}) at its other end; "
        f"it ends with the run, after {plan.duration_s:g} s",
        file=sys.stderr,
        flush=True,
    )
    with _terminal():
        child = subprocess.Popen(
            [*begin, *_NAMED, str(file), os.environ.get("SHELL", "/bin/sh")], env=_environment(name, known)
        )
        try:
            yield
        finally:
            _end(child)


def _environment(name: str, known: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    return {**os.environ, "PENSTOCK_HOST": name, "PENSTOCK_ADDRESS": known[name][1]}


def _end(child: subprocess.Popen[bytes]) -> None:
    """Hangs up, as a terminal that is closed. What the shell has begun is killed with the namespace."""
    child.send_signal(signal.SIGHUP)
    try:
        child.wait(_END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


@contextlib.contextmanager
def _terminal() -> Iterator[None]:
    """Lets the shell have the terminal in the block, and takes it back as it was."""
    if not sys.stdin.isatty():
        yield
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    handler = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield
    finally:
        os.tcsetpgrp(fd, os.getpgrp())
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTTOU, handler)
