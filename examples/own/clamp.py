import penstock


class Clamp(penstock.AckPath):
    """Lowers the windows that receivers advertise to a fixed number of bytes."""

    most_kb = 30.0

    def inbound(self, segment):
        if segment.window_bytes is not None and not segment.syn:
            segment.window_bytes = min(segment.window_bytes, self.most_kb * 1000)
