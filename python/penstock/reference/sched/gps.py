"""GPS, the fluid system that all of these approximate: classes with packets are served at once, each by its weight.

Exact: times and amounts are fractions. `finish_times` tells when each packet leaves, on a link of one byte per unit of
time (Parekh and Gallager 1993).
"""

from collections import deque
from collections.abc import Sequence
from fractions import Fraction


def finish_times(weights: Sequence[int], arrivals: Sequence[tuple[Fraction, int, int]]) -> list[Fraction]:
    """Arrivals are (time, class, size) in order of time; the answer is in the same order."""
    left: list[deque[list[Fraction]]] = [deque() for _ in weights]
    numbers: list[deque[int]] = [deque() for _ in weights]
    finish = [Fraction(0)] * len(arrivals)
    now = Fraction(0)

    def run_until(end: Fraction | None) -> None:
        nonlocal now
        while True:
            busy = [cls for cls, packets in enumerate(left) if packets]
            if not busy:
                now = now if end is None else end
                return
            total = sum(weights[cls] for cls in busy)
            # Until the first of the heads is gone all rates stay.
            span = min(left[cls][0][0] * total / weights[cls] for cls in busy)
            if end is not None and now + span > end:
                span = end - now
            now += span
            for cls in busy:
                left[cls][0][0] -= span * weights[cls] / total
                if left[cls][0][0] == 0:
                    left[cls].popleft()
                    finish[numbers[cls].popleft()] = now
            if now == end:
                return

    for number, (at, cls, size) in enumerate(arrivals):
        run_until(at)
        left[cls].append([Fraction(size)])
        numbers[cls].append(number)
    run_until(None)
    return finish
