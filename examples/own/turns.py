import penstock


class Turns(penstock.Scheduler):
    """Classes take turns; in its turn a class may send as many packets as its weight."""

    def __init__(self):
        self.turn, self.left = 0, self.weights[0]

    def depart(self):
        for _ in range(len(self.weights) + 1):
            if self.left > 0 and self.queues[self.turn]:
                self.left -= 1
                return self.turn
            self.turn = (self.turn + 1) % len(self.weights)
            self.left = self.weights[self.turn]
        return None
