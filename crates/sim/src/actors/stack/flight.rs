//! The bytes of datagrams that are in the network, whose packets carry only their numbers.
//!
//! What arrived stays for a while, since a link may deliver a datagram twice. What did not arrive is forgotten when much
//! that was sent later has arrived; a datagram that comes after that is lost to its stack.

use std::collections::VecDeque;

/// A datagram is forgotten when one arrives that was sent this many later.
const OVERTAKEN_BY: u32 = 32_768;
/// How many of those that arrived stay.
const STAY: usize = 64;
/// The most that are kept while none arrives: the first are forgotten.
const MOST: usize = 1 << 18;
/// The most forgotten ones whose memory is kept.
const MOST_SPARE: usize = 1 << 10;

/// The datagrams that one end has sent, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Flight {
    /// Number of the first datagram in `slots`.
    first: u32,
    /// Their bytes; an empty one has been forgotten.
    slots: VecDeque<Vec<u8>>,
    /// Numbers of the last that arrived, the oldest first.
    arrived: VecDeque<u32>,
    /// Memory of forgotten datagrams.
    spare: Vec<Vec<u8>>,
}

impl Flight {
    /// Keeps a datagram and returns its number. `datagram` is left with memory of an older one.
    pub fn send(&mut self, datagram: &mut Vec<u8>) -> u32 {
        let memory = self.spare.pop().unwrap_or_default();
        self.slots.push_back(std::mem::replace(datagram, memory));
        if self.slots.len() > MOST {
            self.forget(self.first);
        }
        self.first.wrapping_add(self.slots.len() as u32 - 1)
    }

    /// Copies a datagram that arrives into `to`; returns false if it has been forgotten.
    pub fn arrive(&mut self, number: u32, to: &mut Vec<u8>) -> bool {
        let place = number.wrapping_sub(self.first) as usize;
        let Some(bytes) = self.slots.get(place).filter(|bytes| !bytes.is_empty()) else { return false };
        to.clear();
        to.extend_from_slice(bytes);
        self.arrived.push_back(number);
        while self.arrived.len() > STAY
            && let Some(old) = self.arrived.pop_front()
        {
            self.forget(old);
        }
        while number.wrapping_sub(self.first) < 1 << 31 && number.wrapping_sub(self.first) > OVERTAKEN_BY {
            self.forget(self.first);
        }
        true
    }

    fn forget(&mut self, number: u32) {
        let place = number.wrapping_sub(self.first) as usize;
        if let Some(bytes) = self.slots.get_mut(place).filter(|bytes| !bytes.is_empty()) {
            let mut memory = std::mem::take(bytes);
            memory.clear();
            if self.spare.len() < MOST_SPARE {
                self.spare.push(memory);
            }
        }
        while self.slots.front().is_some_and(Vec::is_empty) {
            self.slots.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Returns the number of bytes on the heap.
    pub fn bytes(&self) -> usize {
        let slots = self.slots.iter().chain(&self.spare).map(|one| one.capacity() + size_of::<Vec<u8>>());
        slots.sum::<usize>() + self.arrived.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(flight: &mut Flight, count: u32) {
        for number in 0..count {
            let mut datagram = number.to_le_bytes().to_vec();
            assert_eq!(flight.send(&mut datagram), number);
            assert!(datagram.is_empty());
        }
    }

    fn arrives(flight: &mut Flight, number: u32) -> bool {
        let mut bytes = vec![9; 3];
        let came = flight.arrive(number, &mut bytes);
        assert!(!came || bytes == number.to_le_bytes(), "{number}: {bytes:?}");
        came
    }

    #[test]
    fn a_datagram_comes_in_any_order_and_twice() {
        let mut flight = Flight::default();
        sent(&mut flight, 200);
        for number in [5, 0, 1, 1, 0, 199, 7] {
            assert!(arrives(&mut flight, number));
        }
        assert!(!arrives(&mut flight, 200), "it was never sent");
    }

    /// One that arrived is forgotten after 64 others, one that did not after 32,768 numbers. Then its memory is used again.
    #[test]
    fn memory_is_bounded() {
        let mut flight = Flight::default();
        sent(&mut flight, OVERTAKEN_BY + 3);
        (1..=STAY as u32).for_each(|number| assert!(arrives(&mut flight, number)));
        assert!(arrives(&mut flight, 1), "it may come again");
        assert!(arrives(&mut flight, OVERTAKEN_BY));
        assert!(arrives(&mut flight, 0), "32,768 later is not yet too late");
        assert!(arrives(&mut flight, OVERTAKEN_BY + 2));
        assert!(!arrives(&mut flight, 0) && !arrives(&mut flight, 1));
        assert!(flight.spare.len() >= 3);
        let spare = flight.spare.len();
        flight.send(&mut vec![1]);
        assert_eq!(flight.spare.len(), spare - 1);
    }

    #[test]
    fn what_is_sent_into_nothing_is_bounded() {
        let mut flight = Flight::default();
        sent(&mut flight, MOST as u32 + 5);
        assert!(!arrives(&mut flight, 4) && arrives(&mut flight, 5) && arrives(&mut flight, MOST as u32 + 4));
    }

    #[test]
    fn a_long_connection_holds_what_is_under_way() {
        let mut flight = Flight::default();
        for number in 0..100_000u32 {
            let mut datagram = vec![1; 1200];
            assert_eq!(flight.send(&mut datagram), number);
            assert!(number % 10 == 0 || arrives_of(&mut flight, number));
        }
        assert!(flight.bytes() < 10_000_000, "a tenth of 32,768 datagrams: {}", flight.bytes());
    }

    fn arrives_of(flight: &mut Flight, number: u32) -> bool {
        flight.arrive(number, &mut Vec::new())
    }
}
