"""KPS as read in kps.rs, without wheels: WF²Q+ whose starts are rounded down and whose finishes are rounded up.

They are rounded to slots that are the same for all classes of a stratum.
"""

from collections.abc import Sequence
from fractions import Fraction

from penstock.reference.sched import SHIFT
from penstock.reference.sched.wf2q_plus import Wf2qPlus

STRATA = 25


class Kps(Wf2qPlus):
    """The scheduler. Classes of one slot are served in the order in which they were released."""

    def __init__(self, weights: Sequence[int], max_packet: int) -> None:
        super().__init__(weights, max_packet)
        least = SHIFT + (max_packet - 1).bit_length() - STRATA + 1
        sizes = [1 << least + i for i in range(STRATA)]
        self.slot = [next(s for s in sizes if s >= (max_packet << SHIFT) // weight) for weight in weights]
        self.released: list[int] = []
        self.waiting: list[int] = []  # classes that are not released yet, in the order of their arrival

    def rounded_start(self, cls: int) -> int:
        """Returns the start of a class, rounded down to the beginning of its slot."""
        return self.start[cls] // self.slot[cls] * self.slot[cls]

    def deadline(self, cls: int) -> int:
        """Returns F rounded up to the middle of a slot."""
        half = self.slot[cls] // 2
        return (self.finish[cls] + half - 1) // self.slot[cls] * self.slot[cls] + half

    def stamp(self, cls: int, start: int) -> None:
        """Sets the start of a class, which then waits for its release or is released at once."""
        super().stamp(cls, start)
        (self.released if self.rounded_start(cls) <= self.now else self.waiting).append(cls)

    def choose(self) -> int:
        """Releases classes by stratum and then by slot, and returns the class to serve."""
        if not self.released:
            self.now = max(self.now, Fraction(min(self.rounded_start(cls) for cls in self.waiting)))
        due = [cls for cls in self.waiting if self.rounded_start(cls) <= self.now]
        self.released += sorted(due, key=lambda cls: (self.slot[cls], self.rounded_start(cls)))
        self.waiting = [cls for cls in self.waiting if cls not in due]
        return min(self.released, key=self.deadline)

    def sent(self, cls: int, size: int) -> None:
        """Takes the served class out of the released ones."""
        self.released.remove(cls)
        super().sent(cls, size)
