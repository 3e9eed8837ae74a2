"""A limit of the address space (`ulimit -v`) ends a command with a sentence and not with a crash."""

from __future__ import annotations

import os
import resource
import signal
from types import FrameType

from penstock.mistake import MistakeError

# Verbs that load numpy and Arrow; the address space in bytes that these need, by themselves and for each thread.
_CALCULATE = {
    "run",
    "sweep",
    "compare",
    "reproduce",
    "claims",
    "runs",
    "rerun",
    "report",
    "verify",
    "bench",
    "tcp-trace",
    "what-if",
}
_ADDRESSES, _ADDRESSES_PER_CORE = 768 << 20, 128 << 20
# How a process ends whose allocation failed in Rust or in C++.
_FAILED = (-signal.SIGABRT, -signal.SIGSEGV)
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def check(verb: str) -> None:
    """Goes on in a child process if the address space is limited, and says what has happened if that crashes.

    A limit with which numpy and Arrow crash while they are loaded is refused at once.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    needed = _ADDRESSES + _ADDRESSES_PER_CORE * (os.cpu_count() or 1)
    if verb in _CALCULATE and limit < needed:
        raise MistakeError(
            f"the address space is limited to {limit >> 20} MiB (`ulimit -v`); {verb} needs {needed >> 20} MiB: "
            "`ulimit -v unlimited` removes the limit"
        )
    child = os.fork()
    if child:
        _end_as(child, limit)


def _end_as(child: int, limit: int) -> None:
    """Waits for the child process and ends as it did."""

    def pass_on(number: int, _: FrameType | None) -> None:
        os.kill(child, number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both
    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in _FAILED:
        raise MistakeError(
            f"the memory is not enough: the address space is limited to {limit >> 20} MiB (`ulimit -v`), and this "
            "command needs more: `ulimit -v unlimited` removes the limit"
        )
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    raise SystemExit(code)
