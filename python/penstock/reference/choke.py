"""CHOKe as Pan, Prabhakar and Psounis wrote it in 2000 (§II), around the twin of RED.

Draws one random number for each arrival that finds an average above the lower threshold and a queue that is not empty;
then, if it did not match, as RED does.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from penstock.reference import red
from penstock.reference.link import Arrival, Fate, Limit, Packet, serve


class Choke(red.Red):
    """RED, and a packet drawn from the queue. `flows` are those of the packets, by their place among the arrivals."""

    def __init__(
        self, limit: Limit, params: red.Params, rate_bps: int, uniform: Callable[[], float], flows: Sequence[int]
    ) -> None:
        super().__init__(limit, params, rate_bps, uniform)
        self.flows = flows
        self.places: list[Packet] = []

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Draws a packet of the queue. Drops both packets if they are of one flow; else judges as RED does."""
        self.update_average(now_ns)
        if self.avg > self.params.min_threshold and self.queue:
            drawn = self.places[int(self.uniform() * len(self.places))]
            if self.flows[drawn.id] == self.flows[packet.id]:
                self.take_out(drawn, now_ns)
                self.end(drawn, "drop_dequeue", now_ns)
                return "drop"
        return self.judge(packet)

    def enqueue(self, packet: Packet, now_ns: int) -> None:
        """Adds an accepted packet to the list of packets that can be drawn."""
        super().enqueue(packet, now_ns)
        if self.queue and self.queue[-1] is packet:
            self.places.append(packet)

    def dequeue(self, now_ns: int) -> Packet | None:
        """Returns the head of the queue, and removes it from the list of packets that can be drawn."""
        if not self.queue:
            return None
        head = self.queue[0]
        self.take_out(head, now_ns)
        return head

    def take_out(self, packet: Packet, now_ns: int) -> None:
        """Takes a packet out of the queue. The one with the last place gets its place."""
        place = self.places.index(packet)
        self.places[place] = self.places[-1]
        self.places.pop()
        self.queue.remove(packet)
        self.bytes -= packet.size
        self.idle_since_ns = None if self.queue else now_ns


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: red.Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    flows = [arrival.flow for arrival in arrivals]
    return serve(Choke(limit, params, rate_bps, uniform, flows), arrivals, rate_bps)
