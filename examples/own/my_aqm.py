import penstock


class MyAqm(penstock.Aqm):
    """Drops at random: a packet which waited too long raises the probability, every other packet lowers it."""

    target_ms = 10.0
    step = 0.0002

    def __init__(self):
        self.probability = 0.0

    def on_enqueue(self, packet):
        return "mark" if self.random.random() < self.probability else None

    def on_dequeue(self, packet):
        late = packet.sojourn_s > self.target_ms / 1e3
        self.probability += self.step if late else -self.step
        self.probability = min(max(self.probability, 0.0), 0.1)
