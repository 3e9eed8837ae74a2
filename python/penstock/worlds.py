"""The worlds in which a scenario runs: the simulator, the fluid equations, and real kernels. All return the same keys.

Commands that run nothing import this module as well, so it imports what a world needs when it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.mistake import MistakeError

if TYPE_CHECKING:
    from penstock.engine import Result, Watch
    from penstock.jar import Jar
    from penstock.scenario import Scenario

SIM, FLUID, WIRE, JAR, TC, JAR_TC = "sim", "fluid", "wire", "jar", "tc", "jar-tc"
NAMES = {
    SIM: "the simulator",
    FLUID: "the equations of the fluid model",
    WIRE: "the emulator between real hosts in network namespaces",
    JAR: "the same with a stock kernel in virtual time",
    TC: "as on the wire, with disciplines of the kernel as queues",
    JAR_TC: "the same with a stock kernel in virtual time",
}
KERNELS = (WIRE, JAR, TC, JAR_TC)
REAL_TIME = (WIRE, TC)
KERNEL_QUEUES = (TC, JAR_TC)


def run(
    scenario: Scenario,
    seed: int | None = None,
    on: str = SIM,
    *,
    pcapng: Path | None = None,
    on_progress: Callable[[float, float], None] = lambda _now, _end: None,
    stop: Callable[[], bool] = lambda: False,
    watch: Watch | None = None,
    shell: str = "",
    datagrams: bool = False,
) -> Result:
    """Runs a scenario to its end, or until `stop` returns true, and then raises `Stopped`.

    `pcapng` is a file for the packets of the bottlenecks. `watch` goes with the simulator alone,
    `shell`, the name of a host, with the wire. With `datagrams` a run on a kernel has a table of them.
    """
    from penstock import engine

    if on == FLUID:
        return engine.solve(scenario, seed)
    if on in KERNELS:
        from penstock import wire

        return wire.play(
            scenario,
            seed,
            packets=pcapng,
            on_progress=on_progress,
            on_host=shell or None,
            kernel=_kernel(on),
            has_tc=on in KERNEL_QUEUES,
            stop=stop,
            keeps_datagrams=datagrams,
        )
    return engine.simulate(scenario, seed, pcapng, on_progress=on_progress, stop=stop, watch=watch)


def disturbed_by(result: Result) -> tuple[str, ...]:
    """Returns how the machine disturbed a run in real time; nothing in other worlds."""
    return tuple(result.wire["disturbed_by"]) if result.wire else ()


def check(scenario: Scenario, seed: int | None = None, on: str = SIM) -> dict[str, Any]:
    """Says what a run would do; raises `ScenarioError` where the world cannot run the scenario."""
    if on in KERNELS:
        from penstock import wire

        return wire.check(scenario, seed, _kernel(on), on in KERNEL_QUEUES)
    if on == FLUID:
        raise MistakeError(
            f"--check goes with --on {SIM}, {', '.join(KERNELS)}; the equations are solved within seconds"
        )
    from penstock import engine

    return {"duration_s": engine.check(scenario)}


def require(on: str) -> None:
    """Raises `MistakeError` with what this machine lacks for a world in real time; `check` does not ask for it."""
    if on in REAL_TIME:
        from penstock import wire

        wire.require(on == TC)


def fingerprint(on: str) -> str:
    """Returns what results depend on besides scenario, seed and compiled part; nothing for the simulator."""
    kernel = _kernel(on)
    if on in REAL_TIME:
        import os

        return f"{on} {os.uname().release}"
    return f"{on} {kernel.version} {kernel.linux.stat().st_mtime_ns}" if kernel else on * (on != SIM)


def linux_hosts(scenario: Scenario, announce: bool = False) -> Scenario:
    """Returns the scenario with the TCP of Linux, so that the simulator and kernels run the same.

    Rates that senders announce are estimated by RED-ERN, unless `announce` lets them.
    """
    from penstock.wire import linux

    return linux.hosts(scenario, announce)


def at_once(on: str) -> int | None:
    """Returns how many runs may go on at the same time; `None` for as many as there are cores."""
    return 1 if on in REAL_TIME else None  # runs in real time disturb each other


def _kernel(on: str) -> Jar | None:
    """Returns the kernel in the jar, if the world is one."""
    if on not in (JAR, JAR_TC):
        return None
    from penstock import jar

    return jar.opened(jar.find(), f"{jar.ENVIRONMENT}:")
