"""The rate at which the packets of a capture are spaced most often: that of the link from whose queue they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

SMALL = 400  # bytes; ACKs have the spacing of the data which they acknowledge
STEP = 0.01  # width of a class of the logarithm of rates
NEAR = 0.015  # spacings so close to the most frequent one are those of the link
SPACED = 0.25  # share of bytes at the spacing of the link which shows that they come from its queue
FASTER = 0.05  # share of bytes above the rate which shows that they do not


@dataclass(frozen=True)
class Peak:
    """The most frequent rate in bits per second, the share of bits near it, and the share of bits above it."""

    bps: float
    spaced: float
    faster: float

    @property
    def is_regular(self) -> bool:
        """True if many packets have this spacing, and few are closer."""
        return self.spaced >= SPACED and self.faster <= FASTER


def peak(gap: Floats, bits: Floats) -> Peak:
    """Returns the most frequent rate of packets with these gaps in seconds and sizes in bits, without small ones."""
    import numpy as np

    ok = (gap > 0) & (bits > 8 * SMALL)
    if not ok.any():
        return Peak(0.0, 0.0, 0.0)
    rate, weight, total = bits[ok] / gap[ok], bits[ok], float(bits.sum())
    classes = np.floor(np.log(rate) / STEP).astype(int)
    counts = np.bincount(classes - classes.min(), weight)
    at = (int(np.argmax(counts)) + classes.min() + 0.5) * STEP
    near = np.abs(np.log(rate) - at) < NEAR
    order = np.argsort(rate[near])
    middle = np.searchsorted(np.cumsum(weight[near][order]), weight[near].sum() / 2)
    bps = float(rate[near][order][middle])
    above = rate > bps * (1 + 3 * NEAR)
    return Peak(bps, float(weight[near].sum()) / total, float(weight[above].sum()) / total)
