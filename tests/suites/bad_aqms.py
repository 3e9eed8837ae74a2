"""AQMs that are made to fail a criterion of RFC 7928."""

# mypy: ignore-errors
# ruff: noqa: ARG002 - the methods have these arguments

import penstock


class Naps(penstock.Aqm):
    """Sleeps for 12.5 of every 20 seconds, and drops a tenth of a longer queue in the others."""

    def on_enqueue(self, packet):
        awake = packet.now_s % 20 >= 12.5
        return "drop" if awake and packet.queue_packets > 5 and self.random.random() < 0.1 else None


class Grudge(penstock.Aqm):
    """Drops a part of the packets of the second flow."""

    def on_enqueue(self, packet):
        return "drop" if packet.flow == 1 and self.random.random() < 0.05 else None


class Forgiving(penstock.Aqm):
    """Drops what is not ECN-capable, and marks almost nothing of what is."""

    def on_enqueue(self, packet):
        part = 0.0005 if packet.ecn_capable else 0.05
        return "mark" if packet.queue_packets > 5 and self.random.random() < part else None


class Touchy(penstock.Aqm):
    """A threshold that grows with the fifth power of its parameter."""

    scale = 2.0

    def on_enqueue(self, packet):
        return "drop" if packet.queue_packets >= self.scale**5 else None


class Moody(penstock.Aqm):
    """Drops packets of every second flow, also where each flow has a queue of its own."""

    def on_enqueue(self, packet):
        return "drop" if packet.flow % 2 and self.random.random() < 0.05 else None


class Crowded(penstock.Aqm):
    """Drops small packets that find nobody waiting."""

    def on_enqueue(self, packet):
        small = packet.size < 300 and packet.queue_packets == 0
        return "drop" if small and self.random.random() < 0.3 else None


class Lossy(penstock.Aqm):
    """Drops a fiftieth of the packets."""

    def on_enqueue(self, packet):
        return "drop" if self.random.random() < 0.02 else None
