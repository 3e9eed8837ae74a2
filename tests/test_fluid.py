"""The fluid model: stability against an independent method, and runs on the equations by command and from Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import penstock as lab
import pytest
from conftest import Command
from penstock.fluid import PI, PIE, RED, loop
from penstock.mistake import MistakeError

HOLLOT = {"flows": 60, "rtt_s": 0.246, "packets_per_s": 3750}  # the design example of Hollot et al.

SCENARIO = """duration = "60s"
warmup = "10s"

[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "50ms"
limit = "400p"

[aqm]
name = "{aqm}"

[tcp]
cc = "newreno"
mss = "1000B"

[[flows]]
kind = "bulk"
count = 5
"""


def chebyshev(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Differentiation matrix and points on [-1, 1] (Trefethen, "Spectral Methods in MATLAB", program 6)."""
    x = np.cos(np.pi * np.arange(n + 1) / n)
    c = np.r_[2, np.ones(n - 1), 2] * (-1.0) ** np.arange(n + 1)
    dx = x[:, None] - x[None, :]
    d = np.outer(c, 1 / c) / (dx + np.eye(n + 1))
    return d - np.diag(d.sum(axis=1)), x


def by_spectrum(flows: float, rtt: float, c: float, gain: float, zero: float) -> complex:
    """The rightmost root of TCP behind PI, from the equations and not from L(s): W, q and p as a delay system whose
    generator is discretized (Breda, Maset and Vermiglio 2005)."""
    w0 = rtt * c / flows
    # States W, q, i = integral of q; p = K (q / z + i).
    a0 = np.array([[-flows / (rtt**2 * c), 0, 0], [flows / rtt, -1 / rtt, 0], [0, 1, 0]])
    b = -rtt * c**2 / (2 * flows**2)
    a1 = np.array([[-flows / (rtt**2 * c), b * gain / zero, b * gain], [0, 0, 0], [0, 0, 0]])
    assert w0 > 1
    n, size = 24, 3
    d, _ = chebyshev(n)
    generator = np.kron(d * 2 / rtt, np.eye(size))
    generator[:size] = 0
    generator[:size, :size], generator[:size, -size:] = a0, a1
    roots = np.linalg.eigvals(generator)
    return complex(roots[np.argmax(roots.real)])


def test_the_published_parameters_of_pi_are_those_of_the_published_design() -> None:
    """Hollot et al. give C(s) = 9.64e-6 (s / 0.53 + 1) / s at 160 Hz as a = 1.822e-5 and b = 1.816e-5."""
    gain, zero, t = 9.64e-6, 0.53, 1 / 160
    assert gain / zero + gain * t / 2 == pytest.approx(1.822e-5, abs=5e-9)
    assert gain / zero - gain * t / 2 == pytest.approx(1.816e-5, abs=5e-9)
    assert PI().gain == pytest.approx(gain, rel=0.01)
    assert PI().zero == pytest.approx(zero, rel=0.01)


def test_the_design_example_of_pi_has_its_crossover_at_the_corner_of_tcp() -> None:
    margins = loop(**HOLLOT, controller=PI()).margins()
    # The design puts the crossover at the zero, which is at the corner 2N / (R^2 C) = 0.53 rad/s; the phase there is by
    # hand -90 + 45 - 45 - 7.4 - 7.4 degrees.
    assert float(margins.crossover) == pytest.approx(0.53, rel=0.03)
    assert float(margins.phase_deg) == pytest.approx(75, abs=1)
    assert bool(margins.stable)


def test_red_with_the_usual_weight_oscillates_where_pi_does_not() -> None:
    """§III of the source: RED is stable with a filter that is slow enough."""
    assert not bool(loop(**HOLLOT, controller=RED(150, 600, 0.1, 0.002)).margins().stable)
    assert bool(loop(**HOLLOT, controller=RED(150, 600, 0.1, 1.33e-6)).margins().stable)


def test_roots_are_those_of_an_independent_method() -> None:
    rng = np.random.default_rng(1)
    flows = rng.uniform(5, 120, 40)
    rtt, c = rng.uniform(0.05, 0.5, 40), rng.uniform(500, 10_000, 40)
    pi = PI()
    found = loop(flows=flows, rtt_s=rtt, packets_per_s=c, controller=pi)
    roots, stable = found.rightmost(), found.margins().stable
    for n in range(40):
        if rtt[n] * c[n] / flows[n] <= 1.5:
            continue
        expected = by_spectrum(flows[n], rtt[n], c[n], pi.gain, pi.zero)
        # The equations have exp(-sR) in the window's own term as well (Hollot et al. §II.B leave it out where the delay
        # is shorter than the window's time constant), so the roots agree where W is large.
        assert (expected.real < 0) == stable[n] or abs(expected.real) < 0.05
        assert roots[n].real == pytest.approx(expected.real, rel=0.25, abs=0.05)


def test_the_root_is_left_of_the_axis_where_the_margins_say_stable() -> None:
    flows, rtt, c = np.meshgrid(np.geomspace(2, 200, 8), np.geomspace(0.02, 1, 8), np.geomspace(200, 5e4, 8))
    for controller in (PI(), PIE(), RED(50, 150, 0.1, 0.002)):
        found = loop(flows=flows, rtt_s=rtt, packets_per_s=c, controller=controller)
        roots, margins = found.rightmost(), found.margins()
        known = ~np.isnan(roots) & (np.abs(margins.phase_deg) > 1)
        assert known.mean() > 0.9
        assert ((roots.real < 0) == margins.stable)[known].mean() > 0.99


def test_a_loop_refuses_what_cannot_be() -> None:
    with pytest.raises(MistakeError, match="rtt_s must be above 0"):
        loop(flows=1, rtt_s=0, packets_per_s=100, controller=PI())


@pytest.mark.parametrize("aqm", ["droptail", "red", "ared", "pi", "pie", "codel", "modified-codel", "pink"])
def test_equations_and_packets_agree_in_use_and_order_of_delay(aqm: str, tmp_path: Path) -> None:
    file = tmp_path / "home.toml"
    file.write_text(SCENARIO.format(aqm=aqm))
    fluid, packets = (lab.run(file, on=world).summary["bottlenecks"][0] for world in ("fluid", "sim"))
    assert fluid["utilization"] == pytest.approx(packets["utilization"], abs=0.12)
    assert fluid["queue_delay_ms"]["mean"] == pytest.approx(packets["queue_delay_ms"]["mean"], rel=0.6, abs=4)


def test_a_run_on_the_equations_is_stored_shown_and_run_again(tmp_path: Path, penstock: Command) -> None:
    file = tmp_path / "home.toml"
    file.write_text(SCENARIO.format(aqm="codel"))
    out = penstock("run", file, "--on", "fluid", "--out", tmp_path / "run")
    assert out.returncode == 0, out.stderr
    assert "report" in out.stdout
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["options"]["on"] == "fluid"
    again = penstock("runs", "rerun", tmp_path / "run")
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('name = "codel"', 'name = "fq-codel"'), "equations of droptail, red, ared"),
        (('cc = "newreno"', 'cc = "bbr"'), "equations of newreno and cubic"),
        (('kind = "bulk"', 'kind = "transfer"\nsize = "20kB"'), "kind bulk and cbr"),
        (("[aqm]", "[invariants]\nno_drops = true\n\n[aqm]"), "no [invariants]"),
    ],
)
def test_what_the_equations_cannot_say_is_refused_with_its_line(
    change: tuple[str, str], told: str, tmp_path: Path, penstock: Command
) -> None:
    file = tmp_path / "home.toml"
    file.write_text(SCENARIO.format(aqm="codel").replace(*change))
    out = penstock("run", file, "--on", "fluid", "--json")
    assert out.returncode == 2
    assert told in " ".join(out.stderr.split())
    assert "home.toml:" in out.stderr
