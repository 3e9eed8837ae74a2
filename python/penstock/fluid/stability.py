"""The stability of TCP behind a controller: the fluid model made linear at its equilibrium.

Source: Hollot, Misra, Towsley and Gong, "Analysis and design of controllers for AQM routers supporting TCP flows", IEEE
Trans. Automatic Control 47(6), 2002. N flows of Reno with round trip R over a link of C packets per second have, at the
equilibrium W = RC/N and p = 2/W^2, the open loop

    L(s) = K(s) (C^2 / 2N) exp(-sR) / ((s + 2N / (R^2 C)) (s + 1/R))

from a queue in packets through the controller K(s) back to the queue. Everything takes arrays: a map of 10,000 points
is one call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from penstock.mistake import MistakeError

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Complex = npt.NDArray[np.complex128]

_LADDER = ((1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0))
_BISECTIONS = 60
_NEWTON_STEPS = 40


class Controller(Protocol):
    """A discipline made linear: the response of its probability to the queue in packets."""

    def response(self, s: Complex, loop: Loop) -> Complex:
        """Returns K(s) for each point of the loop."""


@dataclass(frozen=True)
class RED:
    """RED: a low-pass filter of the queue and the slope of its probability (§III of the source)."""

    min_threshold: float = 5.0
    max_threshold: float = 15.0
    max_probability: float = 0.1
    weight: float = 0.002

    def response(self, s: Complex, loop: Loop) -> Complex:
        """Returns L_red / (1 + s / K) with K = -ln(1 - w) C."""
        slope = self.max_probability / (self.max_threshold - self.min_threshold)
        pole = -np.log1p(-self.weight) * loop.packets_per_s
        return np.asarray(slope / (1.0 + s / pole))


@dataclass(frozen=True)
class PI:
    """The PI controller p += a (q - q_ref) - b (q_old - q_ref), sampled every `interval_s`."""

    a: float = 1.822e-5
    b: float = 1.816e-5
    interval_s: float = 1 / 160

    @property
    def gain(self) -> float:
        """The gain K of K (s/z + 1) / s."""
        return (self.a - self.b) / self.interval_s

    @property
    def zero(self) -> float:
        """The zero z of K (s/z + 1) / s, in rad/s: the bilinear transform gives K/z = (a + b) / 2."""
        return 2.0 * self.gain / (self.a + self.b)

    def response(self, s: Complex, loop: Loop) -> Complex:  # noqa: ARG002 - it is the same at every point
        """Returns K (s/z + 1) / s."""
        return np.asarray(self.gain * (s / self.zero + 1.0) / s)


@dataclass(frozen=True)
class PIE:
    """PIE (RFC 8033): a PI controller of the delay, whose gains follow the probability at the equilibrium (§5.5)."""

    alpha: float = 0.125
    beta: float = 1.25
    interval_s: float = 0.015
    derandomize: bool = True

    def response(self, s: Complex, loop: Loop) -> Complex:
        """Returns the response of the probability to the queue in packets; delay = q / C."""
        p = loop.probability * (1.85 if self.derandomize else 1.0)
        part = np.ones_like(p)
        for below, divisor in reversed(_LADDER):
            part = np.where(p < below, 1.0 / divisor, part)
        if self.derandomize:
            part = (
                part / 1.85
            )  # of the packets that p says, this part is dropped (crates/fluid/src/laws/controllers.rs)
        return np.asarray(part * (self.alpha / self.interval_s / s + self.beta + self.alpha / 2) / loop.packets_per_s)


@dataclass(frozen=True)
class Margins:
    """How far a loop is from oscillating, for each point."""

    crossover: Array  # rad/s at which the loop has gain 1; nan if it is below 1 everywhere
    phase_deg: Array  # phase margin in degrees; inf without a crossover
    gain: Array  # factor by which the gain may grow until the loop oscillates
    stable: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Loop:
    """TCP flows, a link and a controller, for one point or for arrays of points."""

    flows: Array
    rtt_s: Array
    packets_per_s: Array
    controller: Controller

    @property
    def window(self) -> Array:
        """The window of each flow at the equilibrium, in packets."""
        return self.rtt_s * self.packets_per_s / self.flows

    @property
    def probability(self) -> Array:
        """The probability at the equilibrium: 2 / W^2, at most 1."""
        return np.minimum(2.0 / self.window**2, 1.0)

    def response(self, s: Complex) -> Complex:
        """Returns the open loop L(s)."""
        n, r, c = self.flows, self.rtt_s, self.packets_per_s
        plant = c**2 / (2 * n) / ((s + 2 * n / (r**2 * c)) * (s + 1 / r))
        return np.asarray(self.controller.response(s, self) * plant * np.exp(-s * r))

    def margins(self) -> Margins:
        """Returns the margins. The gain of these loops falls with the frequency, so there is one crossover."""
        crossover = self._find(lambda w: np.abs(self._at(w)) - 1.0)
        at = np.where(np.isnan(crossover), 1.0, crossover)
        phase = np.where(np.isnan(crossover), np.inf, 180.0 + np.degrees(self._phase(at)))
        turn = self._find(lambda w: self._phase(w) + np.pi)
        gain = 1.0 / np.abs(self._at(turn))
        return Margins(crossover, np.asarray(phase), np.asarray(gain), np.asarray(phase > 0))

    def rightmost(self) -> Complex:
        """Returns the root of 1 + L(s) with the largest real part, or one of such a pair; nan if none is found.

        Newton's method begins at six places, near the crossover, near the turn of the phase and on the real axis. Roots
        farther to the left have larger imaginary parts, since exp(-sR) has to balance their powers.
        """
        margins = self.margins()
        corner = 1.0 / self.rtt_s
        crossover = np.where(np.isnan(margins.crossover), corner, margins.crossover)
        turn = self._find(lambda w: self._phase(w) + np.pi)
        starts = [crossover * (-0.01 + 1j), crossover * (-0.7 + 0.7j), turn * (0.1 + 1j), turn * (-0.5 + 1j)]
        starts += [-0.9 * crossover + 0j, -0.3 * corner + 0.1j * corner]
        roots = np.stack([self._newton(np.asarray(start)) for start in starts])
        best = np.argmax(np.where(np.isnan(roots), -np.inf, roots.real), axis=0)
        return np.asarray(np.take_along_axis(roots, best[None, ...], axis=0)[0])

    def _newton(self, s: Complex) -> Complex:
        """Follows Newton's method from `s`, with steps of at most half of |s|; nan where it does not converge."""
        with np.errstate(all="ignore"):  # a start that comes upon a pole ends as nan
            for _ in range(_NEWTON_STEPS):
                h = 1e-6 * np.abs(s)
                value = 1.0 + self.response(s)
                slope = (self.response(s + h) - self.response(s - h)) / (2 * h)
                step = value / slope
                s = s - step * np.minimum(1.0, 0.5 * np.abs(s) / np.maximum(np.abs(step), 1e-300))
            good = np.abs(1.0 + self.response(s)) < 1e-6
        return np.asarray(np.where(good, s, np.nan))

    def _at(self, w: Array) -> Complex:
        return self.response(np.asarray(1j * w, dtype=complex))

    def _phase(self, w: Array) -> Array:
        """The phase of the loop in radians, not folded: the sum of those of controller, both poles and delay."""
        n, r, c = self.flows, self.rtt_s, self.packets_per_s
        controller = np.angle(self.controller.response(np.asarray(1j * w, dtype=complex), self))
        return np.asarray(controller - np.arctan2(w, 2 * n / (r**2 * c)) - np.arctan2(w, 1 / r) - w * r)

    def _find(self, falling: Callable[[Array], Array]) -> Array:
        """Finds the frequency at which a falling function is zero; nan if it is below zero everywhere."""
        low = np.full(np.broadcast(self.flows, self.rtt_s, self.packets_per_s).shape, np.log(1e-6))
        high = np.full_like(low, np.log(1e6))
        none = falling(np.exp(low)) <= 0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            above = falling(np.exp(middle)) > 0
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.where(none, np.nan, np.exp(low))


def loop(*, flows: Any, rtt_s: Any, packets_per_s: Any, controller: Controller) -> Loop:
    """Makes a loop of numbers or of arrays that broadcast together.

    `rtt_s` includes the queueing delay at the equilibrium. Raises `MistakeError` for a number that is not above 0.
    """
    values = {"flows": flows, "rtt_s": rtt_s, "packets_per_s": packets_per_s}
    arrays = {name: np.asarray(value, dtype=float) for name, value in values.items()}
    for name, array in arrays.items():
        if not np.all(array > 0):
            raise MistakeError(f"{name} must be above 0")
    return Loop(**arrays, controller=controller)
