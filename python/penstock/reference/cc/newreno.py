"""NewReno: RFC 5681 §3.1 with the counting of bytes of RFC 3465 §2.1. Whole bytes, as the RFCs have them."""

from __future__ import annotations

from penstock.reference.cc import MSS, Ack, Control


class NewReno(Control):
    """Once a window of bytes was acknowledged, it is one segment larger."""

    def __init__(self) -> None:
        super().__init__()
        self.acked = 0

    def avoid_congestion(self, ack: Ack, segments: float) -> None:
        """`bytes_acked` of RFC 3465."""
        del ack
        window = round(self.cwnd * MSS)
        self.acked += min(round(segments * MSS), window)
        if self.acked >= window:
            self.acked -= window
            self.cwnd += 1

    def kept(self, flight: float) -> float:
        """Half, in whole bytes."""
        return round(flight * MSS) // 2 / MSS

    def on_loss(self, now: float, flight: float) -> None:
        """The count begins anew."""
        super().on_loss(now, flight)
        self.acked = 0
