import penstock


class Step(penstock.Aqm):
    """Marks a packet that waited longer than a target, or drops it if it cannot be marked."""

    target_ms = 10.0

    def __init__(self):
        self.late = 0

    def on_dequeue(self, packet):
        if packet.sojourn_s <= self.target_ms / 1e3:
            return None
        self.late += 1
        return "mark"
