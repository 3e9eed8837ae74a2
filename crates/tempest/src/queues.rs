//! The packets of a run: a free list, and a queue for each flow. Packets have no content and one size, so a packet is
//! an index, and all lists run through one array which is allocated before time is measured.

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Queue {
    head: u32,
    tail: u32,
    waiting: u32,
}

/// Queues of flows with one free list.
#[derive(Debug, Clone)]
pub(crate) struct Queues {
    next: Vec<u32>,
    free: u32,
    queues: Vec<Queue>,
}

impl Queues {
    /// Creates `flows` empty queues and `packets` free packets; there must be fewer than 2^32 - 1 packets.
    pub fn new(flows: usize, packets: usize) -> Self {
        let mut next: Vec<u32> = (1..=packets as u32).collect();
        if let Some(last) = next.last_mut() {
            *last = NONE;
        }
        let queues = vec![Queue { head: NONE, tail: NONE, waiting: 0 }; flows];
        Self { free: if packets == 0 { NONE } else { 0 }, next, queues }
    }

    /// Number of packets of a flow that wait.
    #[inline]
    pub fn waiting(&self, flow: u32) -> u32 {
        self.queues[flow as usize].waiting
    }

    /// Takes a packet from the free list and appends it to a flow's queue. The list must not be empty.
    #[inline]
    pub fn push(&mut self, flow: u32) -> u32 {
        let packet = self.free;
        self.free = self.next[packet as usize];
        let queue = &mut self.queues[flow as usize];
        if queue.waiting == 0 {
            queue.head = packet;
        } else {
            self.next[queue.tail as usize] = packet;
        }
        queue.tail = packet;
        queue.waiting += 1;
        packet
    }

    /// Takes the first packet of a flow's queue, which must not be empty, and returns it to the free list.
    #[inline]
    pub fn pop(&mut self, flow: u32) -> u32 {
        let queue = &mut self.queues[flow as usize];
        let packet = queue.head;
        queue.head = self.next[packet as usize];
        queue.waiting -= 1;
        self.next[packet as usize] = self.free;
        self.free = packet;
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_in_order_and_are_used_again() {
        let mut queues = Queues::new(2, 3);
        let packets: Vec<u32> = [0, 1, 0].map(|flow| queues.push(flow)).to_vec();
        assert_eq!((queues.waiting(0), queues.waiting(1)), (2, 1));
        assert_eq!((queues.pop(0), queues.pop(1)), (packets[0], packets[1]));
        assert_eq!(queues.push(1), packets[1], "the last that came back is the first to go");
        assert_eq!((queues.pop(0), queues.pop(1)), (packets[2], packets[1]));
        assert_eq!((queues.waiting(0), queues.waiting(1)), (0, 0));
    }
}
